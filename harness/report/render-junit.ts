/**
 * `junit.xml`: one test case per promise, one per gate, one for the canary and one for the verdict itself.
 * Missing evidence is an error, never a pass; only what was not part of the run is skipped.
 */
import { firstScreen } from './first-screen.ts';
import type { RunReport } from './model.ts';
import { escapeMarkup } from './text.ts';

type CaseOutcome = 'pass' | 'failure' | 'error' | 'skipped';

interface TestCase {
  readonly suite: string;
  readonly name: string;
  readonly outcome: CaseOutcome;
  readonly message: string;
  readonly body: string;
}

const promiseCase = { held: 'pass', broken: 'failure', unknown: 'error', 'not-tested': 'skipped' } as const;
const gateCase = { passed: 'pass', failed: 'failure', unknown: 'error' } as const;
const canaryCase = { caught: 'pass', missed: 'failure', 'not-run': 'error' } as const;

function verdictCase(report: RunReport): CaseOutcome {
  switch (report.verdict.kind) {
    case 'certified':
      return 'pass';
    case 'violated':
    case 'not-recovered':
      return 'failure';
    case 'inconclusive':
    case 'interrupted':
    case 'environment':
    case 'harness-fault':
      return 'error';
  }
}

function cases(report: RunReport): TestCase[] {
  const screen = firstScreen(report);
  const losses = screen.losses.map((loss) => `${loss.sentence}\n  ${loss.under}\n  value now: ${loss.whereNow}`);
  const story = [...losses, ...screen.missing, `replay: ${screen.replay}`].join('\n');
  return [
    {
      suite: 'certificate',
      name: 'The run is certified',
      outcome: verdictCase(report),
      message: screen.headline,
      body: story,
    },
    ...report.promises.map((promise): TestCase => ({
      suite: 'promises',
      name: promise.title,
      outcome: promiseCase[promise.outcome],
      message: promise.detail,
      body: promise.outcome === 'broken' ? story : '',
    })),
    {
      suite: 'trust',
      name: 'Every planted fault is reported',
      outcome: canaryCase[report.canary.outcome],
      message: `canary ${report.canary.outcome}`,
      body: '',
    },
    ...report.gates.map((gate): TestCase => ({
      suite: 'gates',
      name: `not ${gate.expression}`,
      outcome: gateCase[gate.outcome],
      message: gate.detail,
      body: '',
    })),
  ];
}

function element(one: TestCase, seconds: string): string {
  const head = `<testcase classname="${escapeMarkup(`certify.${one.suite}`)}" name="${escapeMarkup(one.name)}" time="${seconds}"`;
  if (one.outcome === 'pass') return `    ${head}/>`;
  const message = `message="${escapeMarkup(one.message)}"`;
  // Line by line, since escaping would show the line ends as text.
  const body = one.body.split('\n').map(escapeMarkup).join('\n');
  return `    ${head}><${one.outcome} ${message}>${one.outcome === 'skipped' ? '' : body}</${one.outcome}></testcase>`;
}

/** The whole file. */
export function renderJunit(report: RunReport): string {
  const all = cases(report);
  const count = (outcome: CaseOutcome): number => all.filter((one) => one.outcome === outcome).length;
  const seconds = (report.run.durationMs / 1000).toFixed(3);
  const totals = `tests="${all.length}" failures="${count('failure')}" errors="${count('error')}" skipped="${count('skipped')}" time="${seconds}"`;
  return [
    '<?xml version="1.0" encoding="UTF-8"?>',
    `<testsuites name="certify" ${totals}>`,
    `  <testsuite name="${escapeMarkup(report.run.runId)}" timestamp="${escapeMarkup(report.run.startedAt.replace(/\.\d+Z$|Z$/, ''))}" hostname="${escapeMarkup(report.host.name)}" ${totals}>`,
    ...all.map((one, index) => element(one, index === 0 ? seconds : '0')),
    '  </testsuite>',
    '</testsuites>',
    '',
  ].join('\n');
}
