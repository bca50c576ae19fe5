/**
 * The report of a run from its ledger and its judgement: the one place where the verdict of DESIGN §9 is drawn.
 *
 * Invariant: every reason against a certificate, of the run loop and of the verifier, takes part in the verdict; a canary that
 * was not caught, or not planted, makes a run inconclusive. The same ledger always gives the same report.
 */
import type { LedgerReader } from '../../ledger/reader.ts';
import type { Judgement } from '../../ledger/verify/judge.ts';
import { emptyReport } from '../report/empty-report.ts';
import { groupFindings } from '../report/group-findings.ts';
import type { EpochChange } from '../report/model-timeline.ts';
import type { RunReport } from '../report/model.ts';
import type { RunEnd } from '../run/world.ts';
import type { VerdictReason } from '../verdict.ts';
import { isIncomplete, missingFromRun } from './evidence-part.ts';
import { FaultAcks } from './fault-acks.ts';
import { faultPart, type FaultPart } from './fault-part.ts';
import { type FindingContext, findingDrafts, withLives } from './finding-part.ts';
import {
  factsOf,
  hostPart,
  type Meta,
  phasesPart,
  runPart,
  settingsOf,
  settingsPart,
  systemPart,
  textOf,
  versionsPart,
} from './head-part.ts';
import { nodeLanes } from './node-part.ts';
import { promisesOf } from './promise-part.ts';
import { Reach } from './reach.ts';
import { recoveryOf, StreamPart } from './stream-part.ts';
import { leftOutWorkloads } from '../system-options.ts';
import { gateReasons, gatesOf, verdictPart } from './verdict-part.ts';

/** What a run that never reached its end left behind. */
const noEnd: RunEnd = {
  interruptedBy: null,
  reasons: [{ verdict: 'inconclusive', reason: 'The harness did not reach the end of the run.' }],
  readBack: { expected: 0, done: 0 },
  replicas: { asked: 0, answered: 0 },
  canaryDeleted: [],
  canarySeenLive: [],
  peakMemoryBytes: 0,
  latenessMs: 0,
};

/** Assembles the report. Reads every operation once. */
export function assembleReport(reader: LedgerReader, judgement: Judgement): RunReport {
  const meta: Meta = (key) => reader.meta(key);
  const ended = meta('end') as RunEnd | undefined;
  const end: RunEnd = ended ?? { ...noEnd, reasons: [...noEnd.reasons, ...storedReasons(meta)] };
  const part = faultPart(reader.faults(), new Map((meta('unsupported') ?? []) as [string, string][]));
  const changes = [...reader.epochChanges()];
  const epochs = changes.flatMap((change): EpochChange[] =>
    change.partition === null
      ? []
      : [
          {
            atMs: change.atNs / 1e6,
            partition: change.partition,
            epoch: change.epoch,
            term: change.term,
            owner: change.node,
            health: change.health,
            kind: change.kind,
          },
        ],
  );
  const reach = new Reach(part.faults, changes);
  const acks = new FaultAcks(part.faults);
  const stream = new StreamPart(reach, acks);
  reader.outlines((operation) => stream.add(operation));
  const phases = phasesPart(meta, stream.lastMs * 1e6);
  const endNs = endOf(meta, phases, stream.lastMs * 1e6);
  const load = phases.find((phase) => phase.name === 'load');
  const canary = canaryPart(judgement, end);
  const runTag = textOf(meta('runTag'));
  const findings = findingsOf(judgement, { reader, runTag, faults: part.faults, epochs });
  const { counts, strength } = judgement;
  const report: RunReport = {
    ...emptyReport(),
    preliminary: false,
    run: runPart(meta, endNs),
    strength: {
      perFailoverBound95: strength.perFailoverBound95,
      perIncidentBound95: strength.perIncidentBound95,
      perWriteBound95: strength.perWriteBound95,
      failovers: strength.failovers,
      incidents: strength.incidents,
      handoffs: strength.handoffs,
      judged: strength.judged,
      exposed: strength.exposed,
      superseded: strength.superseded,
      neverRead: strength.neverRead,
    },
    counts: {
      operations: stream.operations(),
      acknowledgedWrites: stream.writes,
      sessions: Number(settingsOf(meta)['sessions'] ?? 0),
      keys: counts.keys,
      retiredKeys: counts.retiredKeys,
      readBack: { expected: counts.expectedReadBack, done: counts.doneReadBack },
      replicas: { asked: counts.replicasAsked, answered: counts.replicasAnswered },
    },
    performance: stream.performance(load === undefined ? 0 : load.toMs - load.fromMs),
    system: systemPart(meta),
    host: hostPart(meta),
    settings: settingsPart(meta),
    versions: versionsPart(meta),
    phases,
    series: stream.seriesUntil(endNs / 1e6),
    faults: [...part.faults],
    overlapShare: part.summary.overlapShare,
    epochs,
    nodes: nodeLanes(nodeIdsOf(part, epochs, meta), part.faults, [...reader.incarnations()], endNs / 1e6),
    findings,
    recovery: recoveryOf(part.faults, reach, changes),
    coverage: part.coverage,
    canary,
    promises: promisesOf(judgement, meta),
    limits: limitsOf(meta, part),
    ledger: {
      bytes: reader.size().fileBytes,
      gaps: gapsOf(reader, ended === undefined ? stream.lastMs : null, phases, meta),
    },
    peakMemoryBytes: end.peakMemoryBytes,
  };
  const judged = { ...report, gates: gatesOf(report, meta) };
  const evidence = { meta, part, judgement, acks, rows: reader.rowCounts() };
  const reasons = [...end.reasons, ...missingFromRun(evidence), ...gateReasons(judged.gates)];
  const verdict = verdictPart(judged, {
    judgement: ended === undefined ? withoutRecovery(judgement) : judgement,
    reasons,
    interruptedBy: end.interruptedBy,
    meta,
    isIncomplete: isIncomplete(evidence),
  });
  return withoutClaims({ ...judged, verdict });
}

/** Bounds are claimed by a certificate alone, and not by one that lets losses pass. */
function withoutClaims(report: RunReport): RunReport {
  const { kind, permittedLosses } = report.verdict;
  if (kind === 'certified' && permittedLosses === 0) return report;
  const none = { perFailoverBound95: null, perIncidentBound95: null, perWriteBound95: null };
  return { ...report, strength: { ...report.strength, ...none } };
}

const storedReasons = (meta: Meta): readonly VerdictReason[] => (meta('reasons') ?? []) as readonly VerdictReason[];

/** A run that was cut off under its faults had no chance to recover: nothing is said of it. */
const withoutRecovery = (judgement: Judgement): Judgement => ({ ...judgement, notRecovered: [] });

/** The ledger's gaps, and the one that an unfinished run ends with. */
function gapsOf(
  reader: LedgerReader,
  cutOffMs: number | null,
  phases: RunReport['phases'],
  meta: Meta,
): RunReport['ledger']['gaps'] {
  const gaps = [...reader.gaps()].map((gap) => ({
    fromMs: gap.fromNs / 1e6,
    toMs: gap.toNs / 1e6,
    reason: gap.reason,
  }));
  if (cutOffMs === null) return gaps;
  const load = phases.find((phase) => phase.name === 'load');
  const plannedMs = Number(settingsOf(meta)['durationMs'] ?? 0);
  const toMs = Math.max(cutOffMs, (load?.fromMs ?? cutOffMs) + plannedMs);
  return [...gaps, { fromMs: cutOffMs, toMs, reason: 'the harness ended here, before the end of the run' }];
}

/** The judge's canaries and those that the live check had to see. */
function canaryPart(judgement: Judgement, end: RunEnd): RunReport['canary'] {
  const { canary } = judgement;
  const checks: RunReport['canary']['checks'] = canary.checks.map((check) => ({ ...check }));
  if (end.canaryDeleted.length === 0) return { outcome: canary.outcome === 'missed' ? 'missed' : 'not-run', checks };
  const seen = end.canaryDeleted.filter((key) => end.canarySeenLive.includes(key)).length;
  checks.push({
    name: 'keys deleted behind the ledger',
    kind: 'lost',
    planted: end.canaryDeleted.length,
    reported: seen,
    where: 'live check',
  });
  return { outcome: canary.outcome === 'caught' && seen === end.canaryDeleted.length ? 'caught' : 'missed', checks };
}

/** The judge counts every finding; the list holds the first ones. Only what is listed has the life of its key told. */
function findingsOf(judgement: Judgement, context: FindingContext): RunReport['findings'] {
  const totals = [...judgement.totals].map(([kind, count]) => ({ kind, count }));
  const grouped = groupFindings(findingDrafts(judgement.findings, context), { ...context, found: judgement.totals });
  return {
    ...grouped,
    items: withLives(grouped.items, judgement.findings, context),
    total: totals.reduce((sum, each) => sum + each.count, 0),
    totals,
  };
}

function endOf(meta: Meta, phases: RunReport['phases'], lastNs: number): number {
  const ended = meta('endedAtNs');
  return typeof ended === 'number' ? ended : Math.max(lastNs, ...phases.map((phase) => phase.toMs * 1e6));
}

function nodeIdsOf(part: FaultPart, epochs: readonly EpochChange[], meta: Meta): string[] {
  const count = Number(settingsOf(meta)['nodeCount'] ?? 0);
  const ids = new Set(Array.from({ length: count }, (_, index) => `n${index + 1}`));
  for (const fault of part.faults) for (const nodeId of fault.targets) ids.add(nodeId);
  for (const { owner } of epochs) if (owner !== null) ids.add(owner);
  return [...ids].toSorted((a, b) => a.localeCompare(b, 'en', { numeric: true }));
}

/** What this run did not test, one sentence each. */
function limitsOf(meta: Meta, part: FaultPart): string[] {
  const limits = part.coverage.notInjected.map(({ kind, reason }) =>
    `The fault ${kind} was not injected: ${reason}.`.replace(/\.\.$/, '.'),
  );
  const settings = settingsOf(meta);
  const { capabilities, name } = factsOf(meta);
  if (capabilities !== undefined) limits.push(...leftOutWorkloads(capabilities, name ?? ''));
  limits.push(`The workload was ${textOf(settings['workload'])}; other operations were not tested.`);
  for (const trouble of (meta('hostTroubles') ?? []) as readonly string[]) limits.push(`${trouble}.`);
  if (settings['ledgerSync'] === 'normal')
    limits.push('The ledger survives a crash of the harness, not a power loss of its machine.');
  return limits;
}
