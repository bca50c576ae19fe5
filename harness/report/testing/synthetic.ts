/** Made-up whole reports: one per verdict, and the four-hour one that the time and size goals are measured on. */
import { Prng } from '../../../lib/prng.ts';
import { composeHeadline } from '../first-screen.ts';
import { groupFindings } from '../group-findings.ts';
import type { Fault } from '../model-timeline.ts';
import { reportFormatVersion, type RunPromise, type RunReport, type VerdictKind } from '../model.ts';
import { type FindingPlan, makeFindings } from './synthetic-findings.ts';
import { makeTimeline, type TimelineShape } from './synthetic-timeline.ts';

export const syntheticNames = ['certified', 'violated', 'inconclusive', 'not-recovered', 'big'] as const;
export type SyntheticName = (typeof syntheticNames)[number];

const minute = 60_000;

const shapes: Readonly<Record<SyntheticName, TimelineShape>> = {
  certified: shapeOf(11, 20 * minute, 38),
  violated: shapeOf(12, 20 * minute, 41),
  inconclusive: shapeOf(13, 4 * minute, 9),
  'not-recovered': { ...shapeOf(14, 12 * minute, 22), stuckFromMs: 9 * minute },
  big: {
    ...shapeOf(15, 240 * minute, 1_200),
    movesPerFault: 1,
    bucketCount: 2_400,
    ackedPerSecond: 560,
    partitionCount: 64,
  },
};

function shapeOf(seed: number, durationMs: number, faultCount: number): TimelineShape {
  return {
    seed,
    durationMs,
    faultCount,
    nodeCount: 5,
    partitionCount: 64,
    movesPerFault: 13,
    bucketCount: 600,
    ackedPerSecond: 2_100,
    stuckFromMs: null,
  };
}

const verdicts: Readonly<Record<SyntheticName, { kind: VerdictKind; exitCode: number; missing: string[] }>> = {
  certified: { kind: 'certified', exitCode: 0, missing: [] },
  violated: { kind: 'violated', exitCode: 1, missing: ['Promise broken: every acknowledged write is kept'] },
  inconclusive: {
    kind: 'inconclusive',
    exitCode: 3,
    missing: [
      'Too few acknowledged writes inside fault windows: 212, needed 1,000',
      'The planned fault kind “pause” was never confirmed by a probe',
      '14 keys were not read back: n3 did not answer within 30 s',
    ],
  },
  'not-recovered': {
    kind: 'not-recovered',
    exitCode: 2,
    missing: ['8 partitions were not Healthy 120 s after the last heal: 3 Unavailable, 5 Recovering'],
  },
  big: { kind: 'violated', exitCode: 1, missing: ['Promise broken: every acknowledged write is kept'] },
};

const harmful = (faults: readonly Fault[], kind: string, from: number): Fault =>
  faults.slice(from).find((fault) => fault.kind === kind && fault.outcome === 'confirmed') ?? (faults[0] as Fault);

function plansOf(name: SyntheticName, faults: readonly Fault[]): FindingPlan[] {
  if (name === 'violated') {
    return [
      { kind: 'lost', count: 37, fault: harmful(faults, 'kill', 12), spreadMs: 340, prefix: '' },
      { kind: 'stale', count: 4, fault: harmful(faults, 'pause', 20), spreadMs: 100, prefix: '' },
      { kind: 'diverged', count: 2, fault: harmful(faults, 'isolate', 5), spreadMs: 700, prefix: '' },
    ];
  }
  if (name !== 'big') return [];
  return Array.from({ length: 20 }, (_, index) => ({
    kind: index % 5 === 4 ? ('stale' as const) : ('lost' as const),
    count: 25,
    fault: harmful(faults, index % 2 === 0 ? 'kill' : 'isolate', index * 55),
    spreadMs: 200 + index * 40,
    prefix: `${index + 1}-`,
  }));
}

function promisesOf(name: SyntheticName, kinds: ReadonlySet<string>): RunPromise[] {
  const held = (kind: string): RunPromise['outcome'] => {
    if (kinds.has(kind)) return 'broken';
    return name === 'inconclusive' ? 'unknown' : 'held';
  };
  return [
    {
      id: 'durability',
      title: 'Every acknowledged write is kept',
      outcome: held('lost'),
      detail: kinds.has('lost') ? 'acknowledged writes are gone, see the groups by cause' : 'every live key read back',
    },
    {
      id: 'reads',
      title: 'No read goes back in time',
      outcome: kinds.has('stale') ? 'broken' : 'held',
      detail: 'stale, resurrected and phantom reads during the run',
    },
    {
      id: 'linearizability',
      title: 'Every key is linearizable',
      outcome: 'held',
      detail: 'versions as the witness, 41,020 keys',
    },
    {
      id: 'convergence',
      title: 'Replicas agree after the last heal',
      outcome: kinds.has('diverged') ? 'broken' : 'held',
      detail: 'equal digests at equal seq',
    },
    {
      id: 'exactly-once',
      title: 'No write takes effect twice',
      outcome: 'not-tested',
      detail: 'no counter workload in this preset',
    },
    {
      id: 'recovery',
      title: 'The cluster heals after the last fault',
      outcome: name === 'not-recovered' ? 'broken' : 'held',
      detail: 'back to Healthy within 120 s',
    },
  ];
}

function operationsOf(acknowledged: number): RunReport['counts']['operations'] {
  return [
    { kind: 'write', ok: Math.round(acknowledged * 0.62), fail: 0, info: 214 },
    { kind: 'read', ok: Math.round(acknowledged * 0.33), fail: 31, info: 12 },
    { kind: 'cas', ok: Math.round(acknowledged * 0.23), fail: Math.round(acknowledged * 0.04), info: 40 },
    { kind: 'delete', ok: Math.round(acknowledged * 0.15), fail: 3, info: 9 },
  ];
}

const settings = [
  { name: '--duration', value: '20m' },
  { name: '--rf', value: '3' },
  { name: '--chaos', value: 'standard' },
  { name: '--sessions', value: '24' },
  { name: '--contract', value: 'durable' },
  { name: '--ledger-sync', value: 'normal' },
  { name: 'ZARIS_SUSPECT_ESCALATION_MS', value: '10000' },
];

const environment = {
  host: {
    name: 'nightly-3',
    os: 'Debian GNU/Linux 12',
    kernel: '6.1.0-28-amd64',
    cpus: 8,
    memoryBytes: 16_777_216_000,
    engine: 'Docker 20.10.24',
  },
  versions: [
    { name: 'certify', value: '0.1.0' },
    { name: 'zaris (each node says)', value: '0.1.0' },
    { name: 'node.js', value: '24.21.0' },
  ],
  limits: [
    'Loss of every copy of a partition at once was not tested: the fault budget forbids it.',
    'Latency, bandwidth and clock faults were not injected: the kernel of this host has no netem.',
    'Writes in async mode were not part of the workload.',
    'The workload was set:5,registers:4,cas:1,counters:1,lists:1,create:1,churn:1,ttl:1; other operations were not tested.',
    'Power loss was not tested: container kills keep the page cache of the host.',
  ],
};

const canary: RunReport['canary'] = {
  outcome: 'caught',
  checks: [
    { name: 'forged loss in a shadow of the history', kind: 'lost', planted: 3, reported: 3, where: 'verifier' },
    { name: 'forged stale read', kind: 'stale', planted: 2, reported: 2, where: 'verifier' },
    {
      name: 'key deleted by an unledgered client',
      kind: 'lost',
      planted: 5,
      reported: 5,
      where: 'live check, read-back, autopsy',
    },
  ],
};

function strengthOf(
  name: SyntheticName,
  acknowledged: number,
  failovers: number,
  handoffs: number,
): RunReport['strength'] {
  const exposed = Math.round(acknowledged * 0.44);
  const claims = name === 'certified';
  const incidents = Math.max(1, Math.round(failovers / 8));
  return {
    perFailoverBound95: claims ? 3 / failovers : null,
    perIncidentBound95: claims ? 3 / incidents : null,
    perWriteBound95: claims ? 3 / exposed : null,
    failovers,
    incidents,
    handoffs,
    judged: Math.round(acknowledged * 0.81),
    exposed,
    superseded: Math.round(acknowledged * 0.19),
    neverRead: name === 'inconclusive' ? 14 : 0,
  };
}

/** One made-up report; the same name gives the same report. */
export function syntheticReport(name: SyntheticName): RunReport {
  const shape = shapes[name];
  const timeline = makeTimeline(shape);
  const { durationMs } = shape;
  const acknowledged = name === 'big' ? 7_300_000 : Math.round((durationMs / 1000) * shape.ackedPerSecond * 0.85);
  const drafts = makeFindings(new Prng(shape.seed), plansOf(name, timeline.faults));
  const findings = groupFindings(drafts, { faults: timeline.faults, epochs: timeline.epochs });
  const failovers = timeline.epochs.filter((change) => change.kind === 'failover').length;
  const handoffs = timeline.epochs.filter((change) => change.kind === 'handoff').length;
  const keys = Math.round(acknowledged / 6);
  const confirmed = timeline.faults.filter((fault) => fault.outcome === 'confirmed');
  const verdict = verdicts[name];
  const report: RunReport = {
    formatVersion: reportFormatVersion,
    preliminary: false,
    run: {
      runId: `20261129-031204-${name}`,
      startedAt: '2026-11-29T03:12:04.000Z',
      endedAt: new Date(Date.parse('2026-11-29T03:12:04Z') + durationMs).toISOString(),
      durationMs,
      plannedMs: durationMs,
      seed: String(0x5eed_0000 + shape.seed),
      preset: 'nightly',
      chaosLevel: 'standard',
      cluster: 'docker',
      nodeCount: shape.nodeCount,
      replay: `npm run certify -- --schedule results/20261129-031204-${name}/schedule.json --seed ${0x5eed_0000 + shape.seed} --rf 3`,
    },
    verdict: {
      ...verdict,
      headline: '',
      contract: 'durable',
      permittedLosses: 0,
      permittedAnomalies: 0,
      interruptedBy: null,
    },
    strength: strengthOf(name, acknowledged, failovers, handoffs),
    counts: {
      operations: operationsOf(acknowledged),
      acknowledgedWrites: acknowledged,
      sessions: 24,
      keys,
      retiredKeys: Math.round(keys * 0.3),
      readBack: { expected: keys, done: name === 'inconclusive' ? keys - 14 : keys },
      replicas: { asked: keys * 3, answered: name === 'inconclusive' ? keys * 3 - 14 : keys * 3 },
    },
    performance: {
      ackedPerSecond: Math.round(acknowledged / (durationMs / 1000)),
      latencyMs: { p50: 1.1, p99: 14, p999: 320, max: 2_804 },
    },
    system: {
      name: 'zaris',
      build: 'zaris-node@sha256:9f2c1e0b77aa4d5e',
      replicationFactor: 3,
      minInSync: 2,
      partitions: shape.partitionCount,
      contract: 'An acknowledged write is held by every in-sync copy.',
    },
    ...environment,
    settings,
    phases: [
      { name: 'start', fromMs: 0, toMs: durationMs * 0.02 },
      { name: 'chaos', fromMs: durationMs * 0.02, toMs: durationMs * 0.94 },
      { name: 'heal', fromMs: durationMs * 0.94, toMs: durationMs * 0.96 },
      { name: 'read-back', fromMs: durationMs * 0.96, toMs: durationMs * 0.99 },
      { name: 'verify', fromMs: durationMs * 0.99, toMs: durationMs },
    ],
    series: timeline.series,
    faults: timeline.faults,
    overlapShare:
      confirmed.length === 0
        ? 0
        : confirmed.filter((fault) => fault.overlapsOther || fault.hitUnhealthy).length / confirmed.length,
    epochs: timeline.epochs,
    nodes: timeline.nodes,
    findings,
    recovery: timeline.recovery,
    coverage: timeline.coverage,
    canary,
    promises: promisesOf(name, new Set(findings.totals.map((row) => row.kind))),
    gates: [{ expression: 'recovery.p99>5s', outcome: 'passed', detail: 'recovery.p99 is 1.2 s' }],
    ledger: { bytes: acknowledged * 190, gaps: [] },
    peakMemoryBytes: 412_000_000,
  };
  return { ...report, verdict: { ...report.verdict, headline: composeHeadline(report) } };
}
