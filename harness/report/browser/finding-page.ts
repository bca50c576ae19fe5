/** The page of one finding: its story, what every replica says now, the life of its key, the faults around it, how to replay. */
import { answerWords, explainFinding, faultName, findingNoun, isUnplaced } from '../finding-words.ts';
import type { Finding, KeyEvent } from '../model-finding.ts';
import type { Fault } from '../model-timeline.ts';
import type { RunReport } from '../model.ts';
import { formatDuration, formatOffset, shortened, visible } from '../text.ts';
import { copyText } from './copy.ts';
import { button, element, tableOf } from './element.ts';
import { faultTimes } from './faults-table.ts';
import { findingHref } from './findings-table.ts';

/** Longest key or value shown in full. */
const textShown = 2_000;

const answerSigns = { 'has-it': '✓', absent: '✕', older: '‹', newer: '›', other: '≠', 'no-answer': '?' } as const;
const eventSigns: Readonly<Record<KeyEvent['kind'], string>> = {
  write: 'W',
  read: 'R',
  delete: 'D',
  fault: '!',
  heal: '○',
  epoch: 'E',
  'read-back': '◎',
};

function sinceAck(atMs: number, originMs: number): string {
  const distance = atMs - originMs;
  if (Math.abs(distance) < 0.005) return '0';
  return `${distance < 0 ? '−' : '+'}${formatDuration(Math.abs(distance))}`;
}

function keyTimeline(finding: Finding): HTMLElement {
  const origin = finding.operation.acknowledgedAtMs ?? finding.operation.invokedAtMs;
  const list = element('ol', { class: 'life' });
  for (const event of finding.timeline.toSorted((a, b) => a.atMs - b.atMs)) {
    const own = event.kind === 'write' && event.endMs === finding.operation.acknowledgedAtMs;
    const took =
      event.endMs === null || event.kind === 'fault' ? '' : ` (took ${formatDuration(event.endMs - event.atMs)})`;
    const where = [event.node === null ? '' : visible(event.node), event.epoch === null ? '' : `epoch ${event.epoch}`]
      .filter((text) => text !== '')
      .join(', ');
    list.append(
      element(
        'li',
        { class: `event event-${event.kind}${own ? ' event-own' : ''}` },
        element('span', { class: 'mark', 'aria-hidden': 'true' }, eventSigns[event.kind]),
        element(
          'span',
          { class: 'when' },
          sinceAck(event.kind === 'write' && event.endMs !== null ? event.endMs : event.atMs, origin),
        ),
        element(
          'span',
          { class: 'text' },
          shortened(event.text, 200),
          event.outcome === '' ? '' : ` · ${event.outcome}`,
          took,
          own ? ' ← this write' : '',
        ),
        element('span', { class: 'where' }, where),
      ),
    );
  }
  return list;
}

function facts(finding: Finding): HTMLElement {
  const { operation } = finding;
  const rows: [string, string][] = [
    ['key', visible(shortened(finding.key, textShown))],
    ['value', operation.value === null ? 'none' : shortened(operation.value, textShown)],
    [
      'operation',
      `${operation.f} #${operation.operationId} of session ${operation.session}, ${operation.attempts} attempt${operation.attempts === 1 ? '' : 's'}`,
    ],
    ['invoked', formatOffset(operation.invokedAtMs, true)],
    [
      'acknowledged',
      operation.acknowledgedAtMs === null
        ? 'never'
        : `${formatOffset(operation.acknowledgedAtMs, true)} by ${finding.node ?? 'an unknown node'}`,
    ],
    ['epoch, partition', `${finding.epoch ?? 'unknown'}, ${finding.partition ?? 'unknown'}`],
    ['version', operation.version ?? 'none'],
  ];
  const list = element('dl', { class: 'sheet' });
  for (const [name, value] of rows) list.append(element('dt', {}, name), element('dd', {}, element('code', {}, value)));
  return list;
}

function replicaTable(finding: Finding): HTMLElement {
  return tableOf(
    ['replica', 'role', 'answer', 'value', 'version'],
    finding.replicas.map((replica) => [
      replica.node,
      replica.role,
      `${answerSigns[replica.answer]} ${answerWords(replica)}`,
      element('code', {}, replica.value === null ? '–' : shortened(replica.value, 80)),
      replica.version ?? '–',
    ]),
  );
}

function faultBlock(fault: Fault): HTMLElement {
  const evidence = element('ul', { class: 'evidence' });
  for (const { stage, text } of fault.evidence)
    evidence.append(element('li', {}, `${stage}: `, element('code', {}, text)));
  return element(
    'div',
    { class: 'fault' },
    element('h4', {}, faultName(fault)),
    element('p', { class: 'quiet' }, faultTimes(fault)),
    evidence,
  );
}

export interface FindingPageActions {
  /** Go back to the overview and show this moment. */
  readonly showOnTimeline: (atMs: number) => void;
}

/** Fills `main` with the page of one finding; false when the id is not listed. */
export function showFindingPage(
  report: RunReport,
  id: string,
  main: HTMLElement,
  actions: FindingPageActions,
): boolean {
  const { items, groups } = report.findings;
  const index = items.findIndex((item) => item.id === id);
  const finding = items[index];
  if (finding === undefined) {
    main.replaceChildren(
      element('p', {}, element('a', { href: '#findings' }, '← all findings')),
      element('h1', {}, `No finding ${id} is listed`),
    );
    return false;
  }
  const faults = new Map(report.faults.map((fault) => [fault.id, fault]));
  const group = groups.find((one) => one.id === finding.group);
  const cause = (group?.faultId ? faults.get(group.faultId) : undefined) ?? null;
  const around = [...new Set([...(cause === null ? [] : [cause.id]), ...finding.openFaults])].flatMap(
    (one) => faults.get(one) ?? [],
  );
  const neighbour = (step: number, label: string): HTMLElement | null => {
    const other = items[index + step];
    return other === undefined ? null : element('a', { href: findingHref(other.id) }, label);
  };
  const moment = finding.operation.acknowledgedAtMs ?? finding.operation.invokedAtMs;
  const title = element(
    'h1',
    { tabindex: -1 },
    `${finding.id}: ${findingNoun(finding.kind, 1)}`,
    element('code', {}, shortened(finding.key, 80)),
  );
  const story = element(
    'div',
    { class: 'story' },
    ...explainFinding(finding, { faults, cause, epochs: report.epochs }).map((text) => element('p', {}, text)),
  );
  main.replaceChildren(
    element(
      'p',
      { class: 'crumbs' },
      element('a', { href: '#first', id: 'to-verdict' }, '← verdict'),
      element('a', { href: '#findings', id: 'back' }, 'all findings'),
      neighbour(-1, '‹ previous'),
      `${index + 1} of ${items.length}`,
      neighbour(1, 'next ›'),
    ),
    title,
    element('p', { class: 'quiet' }, shortened(finding.reason, 400)),
    story,
    element(
      'p',
      { class: 'tools' },
      button('show on the time line', 'Show this moment on the time line', () => actions.showOnTimeline(moment)),
    ),
    element('h2', {}, 'What each replica says now'),
    finding.replicas.length === 0 ? element('p', { class: 'quiet' }, 'No replica was asked.') : replicaTable(finding),
    element('h2', {}, 'The life of this key'),
    ...(finding.timeline.length === 0
      ? [element('p', { class: 'quiet' }, 'Not told: no operation of this key stands in the ledger.')]
      : [element('p', { class: 'quiet' }, 'Times are counted from the acknowledgement.'), keyTimeline(finding)]),
    element('h2', {}, 'Faults'),
    ...(around.length === 0
      ? [element('p', { class: 'quiet' }, 'None was open, and none began soon after.')]
      : around.map(faultBlock)),
    ...(isUnplaced(finding) ? [] : [element('h2', {}, 'Details'), facts(finding)]),
    ...(group === undefined ? [] : [element('p', { class: 'quiet' }, `Group ${group.id}: ${group.sentence}.`)]),
    element('h2', {}, 'Replay'),
    element(
      'div',
      { class: 'replay' },
      element('code', {}, report.run.replay),
      button('copy', 'Copy the replay command', () => copyText(report.run.replay)),
    ),
  );
  title.focus({ preventScroll: true });
  return true;
}
