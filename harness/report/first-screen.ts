/**
 * What a reader must know first: certified or not, how strong, what was lost under which fault and epoch, where the value
 * is now, how to replay. Computed once and shown by the page, the Markdown, and the last lines of standard output, so that
 * the three cannot disagree.
 */
import { countFindings, findingVerb } from './finding-words.ts';
import type { RunReport, Strength, VerdictKind } from './model.ts';
import {
  formatCount,
  formatDuration,
  formatOffset,
  formatShare,
  formatWall,
  listWords,
  plural,
  visible,
} from './text.ts';

export type Tone = 'good' | 'bad' | 'unwell' | 'unsure';

export interface LossLine {
  readonly sentence: string;
  readonly under: string;
  readonly whereNow: string;
  /** The finding to click to: the first of the group that was seen and then missed, else its first; null when none is listed. */
  readonly findingId: string | null;
  readonly groupId: string;
}

export interface FirstScreen {
  readonly tone: Tone;
  /** A sign that does not need colour. */
  readonly sign: string;
  readonly word: string;
  /** The kind of cluster and the exit code; they belong to the first line. */
  readonly first: string;
  readonly headline: string;
  readonly identity: string;
  readonly strength: readonly string[];
  readonly losses: readonly LossLine[];
  /** Said where the verdict leaves open whether anything was lost; null where it does not, or where something was found. */
  readonly nothingFound: string | null;
  /** "and 3 more groups"; null when all are shown. */
  readonly moreLosses: string | null;
  readonly missing: readonly string[];
  readonly facts: readonly { readonly label: string; readonly value: string; readonly note: string }[];
  readonly replay: string;
  /** What the replay plays again, and what it cannot. */
  readonly replayNote: string;
}

/** Cause groups on the first screen. */
const groupsShown = 3;
/** Kinds of finding besides losses that the headline counts by name; the rest are summed. */
const otherKindsNamed = 2;

const words: Readonly<Record<VerdictKind, { tone: Tone; sign: string; word: string }>> = {
  certified: { tone: 'good', sign: '✓', word: 'CERTIFIED' },
  violated: { tone: 'bad', sign: '✕', word: 'NOT CERTIFIED · VIOLATED' },
  'not-recovered': { tone: 'unwell', sign: '↯', word: 'NOT CERTIFIED · NOT RECOVERED' },
  inconclusive: { tone: 'unsure', sign: '?', word: 'NOT CERTIFIED · INCONCLUSIVE' },
  interrupted: { tone: 'unsure', sign: '‖', word: 'NOT CERTIFIED · INTERRUPTED' },
  environment: { tone: 'unsure', sign: '!', word: 'NOT CERTIFIED · ENVIRONMENT' },
  'harness-fault': { tone: 'unsure', sign: '!', word: 'NOT CERTIFIED · HARNESS FAULT' },
};

export const verdictWords = (kind: VerdictKind): { tone: Tone; sign: string; word: string } => words[kind];

const bound = (value: number): string =>
  value >= 0.001 ? formatShare(value) : `1 in ${formatCount(Math.floor(1 / value))}`;

/** How strong the certificate is, in words; the per-failover bound first (DESIGN §9). */
export function strengthWords(strength: Strength): string[] {
  const lines: string[] = [];
  if (strength.perFailoverBound95 !== null && strength.perFailoverBound95 >= 1) {
    lines.push(`${plural(strength.failovers, 'failover')}: too few to bound anything; finding nothing says little.`);
  } else if (strength.perFailoverBound95 !== null) {
    lines.push(
      `A failover loses an acknowledged write with a probability below ${bound(strength.perFailoverBound95)} (95 % confidence, ${plural(strength.failovers, 'failover')}, taken as alike and independent).`,
    );
  } else {
    lines.push(
      strength.failovers === 0
        ? 'No bound is claimed: a bound needs failovers, and the judged writes went through none.'
        : `No bound is claimed: a bound needs a certified run (this one saw ${plural(strength.failovers, 'failover')}).`,
    );
  }
  if (strength.perIncidentBound95 !== null && strength.perIncidentBound95 >= 1) {
    lines.push(
      `One dead node moves many partitions at once: all failovers of one moment counted as one, these are ${plural(strength.incidents, 'incident')}, too few for a bound.`,
    );
  } else if (strength.perIncidentBound95 !== null) {
    lines.push(
      `One dead node moves many partitions at once: with all failovers of one moment counted as one, below ${bound(strength.perIncidentBound95)} (${plural(strength.incidents, 'incident')}).`,
    );
  }
  if (strength.perWriteBound95 !== null) {
    lines.push(
      `Optimistic, per write: below ${bound(strength.perWriteBound95)}; writes of one failover share its fate.`,
    );
  }
  lines.push(
    `${plural(strength.judged, 'acknowledged write')} judged, ${formatCount(strength.exposed)} of them exposed to a failover; ${formatCount(strength.superseded)} superseded before anything looked: no evidence either way.`,
  );
  return lines;
}

/** "37 acknowledged writes were lost; also 4 stale reads"; null without findings. */
function violatedHeadline(report: RunReport): string | null {
  const lost = report.findings.totals.find(({ kind }) => kind === 'lost')?.count ?? 0;
  const others = report.findings.totals.filter(({ kind }) => kind !== 'lost').toSorted((a, b) => b.count - a.count);
  const counted = others.map(({ kind, count }) => countFindings(kind, count));
  const rest = others.slice(otherKindsNamed).reduce((sum, { count }) => sum + count, 0);
  const shown = counted.slice(0, otherKindsNamed);
  const found = listWords(rest === 0 ? shown : [...shown, `${plural(rest, 'finding')} of other kinds`]);
  if (lost === 0) return found === '' ? null : `No write is known to be lost, but a promise was broken: ${found}`;
  const sentence = `${plural(lost, 'acknowledged write')} ${lost === 1 ? 'was' : 'were'} lost`;
  return found === '' ? sentence : `${sentence}; also ${found}`;
}

/** The sentence for `verdict.headline`, from the rest of the report. */
export function composeHeadline(report: RunReport): string {
  const { verdict, counts, strength } = report;
  const first = verdict.missing[0];
  switch (verdict.kind) {
    case 'certified':
      if (verdict.permittedLosses + verdict.permittedAnomalies > 0) {
        return `Exit 0 only because --contract ${verdict.contract} was asked for; under the durable contract this run would fail`;
      }
      return `No acknowledged write was lost: ${formatCount(counts.acknowledgedWrites)} acknowledged, ${plural(strength.failovers, 'failover')}, ${counts.readBack.done === counts.readBack.expected ? 'every key' : `${formatCount(counts.readBack.done)} of ${formatCount(counts.readBack.expected)} keys`} read back`;
    case 'violated':
      return violatedHeadline(report) ?? first ?? 'A promise was broken';
    case 'not-recovered':
      return first ?? 'The cluster did not become healthy again after the last heal';
    case 'inconclusive':
      return verdict.missing.length > 1
        ? `Nothing is claimed: ${verdict.missing.length} pieces of evidence are missing`
        : `Nothing is claimed: ${first ?? 'evidence is missing'}`;
    case 'interrupted':
      return `Stopped by ${verdict.interruptedBy ?? 'a signal'} after ${formatDuration(report.run.durationMs)}; what there is was judged`;
    case 'environment':
      return first ?? 'The machine could not run the test';
    case 'harness-fault':
      return first ?? 'The harness itself failed; nothing is claimed';
  }
}

function identity(report: RunReport): string {
  const { run, system } = report;
  const ended =
    run.durationMs + 1000 < run.plannedMs
      ? `${formatDuration(run.durationMs)} of ${formatDuration(run.plannedMs)}`
      : formatDuration(run.durationMs);
  return `${visible(system.name)} · ${plural(run.nodeCount, 'node')} · rf ${system.replicationFactor}, min in sync ${system.minInSync} · ${ended} · seed ${visible(run.seed)}`;
}

function facts(report: RunReport): FirstScreen['facts'] {
  const { counts, strength } = report;
  const confirmed = report.faults.filter((fault) => fault.outcome === 'confirmed').length;
  const operations = counts.operations.reduce((sum, row) => sum + row.ok + row.fail + row.info, 0);
  const unknown = counts.operations.reduce((sum, row) => sum + row.info, 0);
  const caught = report.canary.checks.filter((check) => check.reported === check.planted).length;
  return [
    {
      label: 'acknowledged writes',
      value: formatCount(counts.acknowledgedWrites),
      note: `of ${plural(operations, 'operation')}, ${formatCount(report.performance.ackedPerSecond)}/s`,
    },
    {
      label: 'failovers',
      value: formatCount(strength.failovers),
      note: `and ${plural(strength.handoffs, 'planned handoff')}, not counted`,
    },
    {
      label: 'faults confirmed',
      value: formatCount(confirmed),
      note: `of ${formatCount(report.faults.length)} planned, ${formatShare(report.overlapShare)} overlapping`,
    },
    {
      label: 'keys read back',
      value: `${formatCount(counts.readBack.done)} of ${formatCount(counts.readBack.expected)}`,
      note: `replicas: ${formatCount(counts.replicas.answered)} of ${formatCount(counts.replicas.asked)} answered`,
    },
    {
      label: 'outcome unknown',
      value: formatCount(unknown),
      note: 'timeouts and the like; never taken for failed',
    },
    {
      label: 'canary',
      value:
        report.canary.outcome === 'caught' ? 'all caught' : report.canary.outcome === 'missed' ? 'MISSED' : 'not run',
      note:
        report.canary.checks.length === 0
          ? 'so finding nothing proves nothing'
          : `${caught} of ${plural(report.canary.checks.length, 'planted fault')} reported exactly`,
    },
  ];
}

/** Reasons that come once per partition, and how many of them are said at once. */
const perPartition: readonly {
  readonly pattern: RegExp;
  readonly together: (count: string, rest: string) => string;
}[] = [
  {
    pattern: /^Partition (\d+) (is \w+ at the end)\.$/,
    together: (count, rest) => `${count} partitions: each ${rest}`,
  },
  {
    pattern: /^No key of partition (\d+) (could be read back)\.$/,
    together: (count, rest) => `No key of ${count} partitions ${rest}`,
  },
];
const partitionsNamed = 8;

/** "Partition 7 is Degraded at the end." per partition becomes one line per state; every other reason stays as it is. */
export function gathered(reasons: readonly string[]): string[] {
  const read = (reason: string): { key: string; partition: number; together: (count: string) => string } | null => {
    for (const [index, { pattern, together }] of perPartition.entries()) {
      const [, partition, rest = ''] = pattern.exec(reason) ?? [];
      if (partition === undefined) continue;
      return { key: `${index} ${rest}`, partition: Number(partition), together: (count) => together(count, rest) };
    }
    return null;
  };
  const groups = Map.groupBy(reasons, (reason) => read(reason)?.key ?? reason);
  return [...groups.values()].map((members) => {
    const [first = ''] = members;
    const known = members.flatMap((reason) => read(reason) ?? []);
    const [one] = known;
    if (one === undefined || members.length === 1) return first;
    const partitions = known.map(({ partition }) => partition).toSorted((a, b) => a - b);
    return `${one.together(formatCount(members.length))} (${listWords(partitions.map(String), partitionsNamed)}).`;
  });
}

/** "+0:06:06 (03:18:10 UTC)". */
function when(report: RunReport, atMs: number | null): string {
  return atMs === null ? '' : `from ${formatOffset(atMs)} (${formatWall(report.run.startedAt, atMs).slice(11)} UTC)`;
}

function losses(report: RunReport): LossLine[] {
  return report.findings.groups.slice(0, groupsShown).map((group) => {
    const partitions =
      group.partitions.length === 0
        ? ''
        : `partition${group.partitions.length === 1 ? '' : 's'} ${listWords(group.partitions.map(String), 6)}`;
    const epochs =
      group.epochs.length === 0
        ? ''
        : `epoch${group.epochs.length === 1 ? '' : 's'} ${listWords(group.epochs.map(String), 6)}`;
    const nodes = group.nodes.length === 0 ? '' : `by ${listWords(group.nodes.map(visible))}`;
    const done = [nodes, epochs === '' ? '' : `under ${epochs}`].filter((part) => part !== '').join(' ');
    const items = report.findings.items.filter((item) => item.group === group.id);
    const verb = items[0] === undefined ? '' : `${findingVerb(items[0])} `;
    const answered = done === '' ? '' : `${verb}${done}`;
    const telling = items.find((item) => item.lastSeen !== null && item.firstMissed !== null);
    return {
      sentence: group.sentence,
      under: [when(report, group.firstAtMs), answered, partitions].filter((part) => part !== '').join(' · '),
      whereNow: group.whereNow,
      findingId: (telling ?? items[0])?.id ?? null,
      groupId: group.id,
    };
  });
}

/** A pass with losses that the contract permits says so in its first line, and never looks like a clean pass (DESIGN §9). */
function verdictWordsOf({ verdict }: RunReport): { tone: Tone; sign: string; word: string } {
  const { permittedLosses, permittedAnomalies } = verdict;
  if (verdict.kind !== 'certified' || permittedLosses + permittedAnomalies === 0) return words[verdict.kind];
  const others = permittedAnomalies === 0 ? '' : `, and ${plural(permittedAnomalies, 'finding')} that follow from it`;
  return {
    tone: 'unsure',
    sign: '!',
    word: `${plural(permittedLosses, 'write')} lost, permitted by contract ${verdict.contract}${others}`,
  };
}

/** A preliminary report was written before anything was judged: it cannot say that nothing is wrong. */
const nothingFound = ({ preliminary, counts }: RunReport): string =>
  preliminary || counts.acknowledgedWrites === 0
    ? 'Nothing has been judged yet.'
    : 'In what was judged, nothing was found lost, stale or otherwise wrong.';

function replayNote({ run, verdict }: RunReport): string {
  if (run.cluster === 'sim') return 'The same seed gives the same run, step for step.';
  const same = 'The same faults and the same load; the machine decides the rest.';
  if (verdict.kind !== 'violated') return same;
  // The folder as the replay command names it: a run elsewhere than in results/ is not found by its id.
  const folder = /--schedule ([^\s']+)\/schedule\.json/.exec(run.replay)?.[1] ?? run.runId;
  return `${same} How often it comes again: npm run certify -- reproduce ${visible(folder)} --times 5`;
}

/** Everything the first screen says. */
export function firstScreen(report: RunReport): FirstScreen {
  const { tone, sign, word } = verdictWordsOf(report);
  const more = report.findings.groups.length - groupsShown;
  return {
    tone,
    sign,
    word: report.preliminary ? `${word} (preliminary)` : word,
    first: `${report.run.cluster} cluster, exit ${report.verdict.exitCode}`,
    headline: report.verdict.headline,
    identity: identity(report),
    strength: strengthWords(report.strength),
    losses: losses(report),
    nothingFound: report.findings.total === 0 && report.verdict.kind !== 'certified' ? nothingFound(report) : null,
    moreLosses: more > 0 ? `and ${plural(more, 'more group')} by cause` : null,
    missing: gathered(report.verdict.missing.filter((one) => !report.verdict.headline.includes(one))),
    facts: facts(report),
    replay: report.run.replay,
    replayNote: replayNote(report),
  };
}
