/** Made-up faults, epoch changes, node lanes and series that hang together; seeded. For tests and screenshots only. */
import { Prng } from '../../../lib/prng.ts';
import type { Coverage, EpochChange, Fault, NodeLane, NodeStateName, Recovery, Series } from '../model-timeline.ts';

export interface TimelineShape {
  readonly seed: number;
  readonly durationMs: number;
  readonly nodeCount: number;
  readonly partitionCount: number;
  readonly faultCount: number;
  /** Partitions that each harmful fault moves at most. */
  readonly movesPerFault: number;
  readonly bucketCount: number;
  readonly ackedPerSecond: number;
  /** From then on nothing recovers; null when everything does. */
  readonly stuckFromMs: number | null;
}

export interface Timeline {
  readonly faults: Fault[];
  readonly epochs: EpochChange[];
  readonly nodes: NodeLane[];
  readonly series: Series;
  readonly recovery: Recovery[];
  readonly coverage: Coverage;
}

const kinds = ['kill', 'pause', 'isolate', 'stop', 'one-way-in', 'loss'] as const;
const roleNames = ['control leader', 'primary', 'replica', 'joiner'] as const;
const stateOf: Readonly<Record<(typeof kinds)[number], NodeStateName | null>> = {
  kill: 'killed',
  pause: 'paused',
  isolate: 'cut-off',
  stop: 'stopped',
  'one-way-in': 'cut-off',
  loss: null,
};

export const nodeNames = (count: number): string[] => Array.from({ length: count }, (_, index) => `n${index + 1}`);

function makeFault(random: Prng, shape: TimelineShape, index: number, atMs: number): Fault {
  const kind = random.pick(kinds);
  const target = `n${random.between(1, shape.nodeCount)}`;
  const skipped = random.chance(0.03);
  const unconfirmed = !skipped && random.chance(0.02);
  const lengthMs = random.between(2_000, Math.max(4_000, Math.min(15_000, shape.durationMs / 12)));
  const injected = atMs + random.between(1, 20);
  const healed = Math.min(shape.durationMs, injected + lengthMs);
  const overlapping = random.chance(0.31);
  return {
    id: `F${index + 1}`,
    kind,
    targets: [target],
    roles: random.chance(0.2) ? ['control leader', 'primary'] : [random.pick(roleNames)],
    partition: random.chance(0.4) ? random.below(shape.partitionCount) : null,
    trigger: random.chance(0.2) ? `200 acks after an epoch change on p${random.below(shape.partitionCount)}` : 'time',
    outcome: skipped ? 'skipped' : unconfirmed ? 'unconfirmed' : 'confirmed',
    reason: skipped
      ? 'the budget had no room: one in-sync copy of partition 4 left'
      : unconfirmed
        ? 'no probe saw an effect within 2 s'
        : null,
    stages: {
      plannedMs: atMs,
      injectedMs: skipped ? null : injected,
      confirmedMs: skipped || unconfirmed ? null : injected + random.between(20, 400),
      healedMs: skipped ? null : healed,
      healVerifiedMs: skipped ? null : Math.min(shape.durationMs, healed + random.between(50, 900)),
    },
    evidence: skipped
      ? []
      : [
          { stage: 'injected', text: `${kind} of ${target}: container state before: running` },
          { stage: 'confirmed', text: `probe of ${target}:7802 \u001b[31mrefused\u001b[0m after 3 tries` },
          { stage: 'healed', text: `probe of ${target}:7802 answered in 4 ms` },
        ],
    overlapsOther: overlapping,
    hitUnhealthy: overlapping && random.chance(0.5),
    overshoot: false,
  };
}

function makeEpochs(random: Prng, shape: TimelineShape, faults: readonly Fault[]): EpochChange[] {
  const names = nodeNames(shape.nodeCount);
  const owners = Array.from({ length: shape.partitionCount }, (_, p) => names[p % names.length] as string);
  const epochs = owners.map(() => 1);
  const terms = owners.map(() => 1);
  const freeAtMs = owners.map(() => 0);
  const changes: EpochChange[] = owners.map((owner, partition) => ({
    atMs: 0,
    partition,
    epoch: 1,
    term: 1,
    owner,
    health: 'Healthy',
    kind: 'edge',
  }));
  const push = (atMs: number, partition: number, health: string, kind: EpochChange['kind']): void => {
    epochs[partition] = (epochs[partition] ?? 0) + 1;
    if (kind !== 'edge') terms[partition] = epochs[partition] ?? 0;
    const owner = health === 'Unavailable' ? null : (owners[partition] as string);
    changes.push({ atMs, partition, epoch: epochs[partition] ?? 0, term: terms[partition] ?? 0, owner, health, kind });
  };
  for (const fault of faults) {
    const injectedMs = fault.stages.injectedMs;
    const target = fault.targets[0] as string;
    if (injectedMs === null || fault.kind === 'loss') continue;
    const hit = owners.flatMap((owner, partition) =>
      owner === target && (freeAtMs[partition] ?? 0) < injectedMs ? [partition] : [],
    );
    const fallback = owners.flatMap((_, partition) => ((freeAtMs[partition] ?? 0) < injectedMs ? [partition] : []));
    const moved = (hit.length > 0 ? hit : fallback).slice(0, shape.movesPerFault);
    for (const partition of moved) {
      const at = injectedMs + random.between(250, 1_800);
      const home = owners[partition] as string;
      const stuck = shape.stuckFromMs !== null && at > shape.stuckFromMs;
      if (stuck) {
        push(at, partition, random.chance(0.5) ? 'Unavailable' : 'Recovering', 'edge');
        freeAtMs[partition] = Infinity;
        continue;
      }
      owners[partition] = random.pick(names.filter((name) => name !== home));
      push(at, partition, 'Degraded', 'failover');
      const healthyAt = Math.max(at + 500, fault.stages.healedMs ?? at) + random.between(600, 2_500);
      push(healthyAt, partition, 'Healthy', 'edge');
      freeAtMs[partition] = healthyAt;
      if (random.chance(shape.movesPerFault === 1 ? 0.98 : 0.6)) {
        owners[partition] = home;
        push(healthyAt + 3_000, partition, 'Healthy', 'handoff');
        freeAtMs[partition] = healthyAt + 3_000;
      }
    }
  }
  return changes.filter((change) => change.atMs <= shape.durationMs).toSorted((a, b) => a.atMs - b.atMs);
}

function makeLanes(shape: TimelineShape, faults: readonly Fault[]): NodeLane[] {
  return nodeNames(shape.nodeCount).map((nodeId) => {
    const spans: NodeLane['spans'] = [];
    let atMs = 0;
    let incarnation = 1;
    const add = (state: NodeStateName, toMs: number): void => {
      if (toMs > atMs) spans.push({ state, fromMs: atMs, toMs, incarnation });
      atMs = Math.max(atMs, toMs);
    };
    for (const fault of faults) {
      const state = stateOf[fault.kind as (typeof kinds)[number]];
      const { injectedMs, healedMs } = fault.stages;
      if (state === null || injectedMs === null || healedMs === null) continue;
      if (fault.targets[0] !== nodeId || injectedMs < atMs) continue;
      add('up', injectedMs);
      add(state, healedMs);
      if (state === 'killed' || state === 'stopped') {
        incarnation++;
        add('catching-up', Math.min(shape.durationMs, healedMs + 1_800));
      }
    }
    add('up', shape.durationMs);
    return { nodeId, spans };
  });
}

function makeSeries(random: Prng, shape: TimelineShape, faults: readonly Fault[]): Series {
  const bucketMs = shape.durationMs / shape.bucketCount;
  const disturbance = new Float64Array(shape.bucketCount);
  for (const { stages } of faults) {
    if (stages.injectedMs === null) continue;
    const from = Math.floor(stages.injectedMs / bucketMs);
    const to = Math.min(shape.bucketCount - 1, Math.floor((stages.injectedMs + 2_500) / bucketMs));
    for (let index = from; index <= to; index++) disturbance[index] = Math.min(1, (disturbance[index] ?? 0) + 0.35);
  }
  const series: Series = {
    fromMs: 0,
    bucketMs,
    ackedPerSecond: [],
    p50Ms: [],
    p99Ms: [],
    maxMs: [],
    inFlight: [],
    refusals: ['Moved', 'OwnershipChanging', 'Unavailable', 'Migrating'].map((status) => ({ status, counts: [] })),
  };
  for (let index = 0; index < shape.bucketCount; index++) {
    const trouble = disturbance[index] ?? 0;
    const atMs = index * bucketMs;
    const stuck = shape.stuckFromMs !== null && atMs > shape.stuckFromMs;
    const rate = shape.ackedPerSecond * (1 - 0.6 * trouble) * (0.92 + 0.16 * random.float()) * (stuck ? 0.15 : 1);
    const silent = trouble > 0.9 && random.chance(0.05);
    series.ackedPerSecond.push(silent ? 0 : Math.round(rate));
    const p50 = 0.8 + random.float() * 0.4 + trouble * 2;
    const p99 = p50 * (4 + random.float() * 2) + trouble * 400 * random.float();
    series.p50Ms.push(silent ? null : Number(p50.toFixed(2)));
    series.p99Ms.push(silent ? null : Number(p99.toFixed(2)));
    series.maxMs.push(
      silent ? null : Number((p99 * (1.5 + random.float() * 3) + trouble * 1_500 * random.float()).toFixed(2)),
    );
    series.inFlight.push(Math.round(24 + trouble * 70));
    for (const [place, refusal] of series.refusals.entries()) {
      refusal.counts.push(trouble > 0 ? random.below(Math.ceil((bucketMs / 20) * trouble * (4 - place))) : 0);
    }
  }
  return series;
}

function makeRecovery(random: Prng, faults: readonly Fault[], stuck: boolean): Recovery[] {
  return ['all', ...kinds].map((faultKind) => {
    const count = faults.filter(
      (fault) => fault.outcome === 'confirmed' && (faultKind === 'all' || fault.kind === faultKind),
    ).length;
    const p50Ms = 300 + random.below(600);
    const healthy = { count, p50Ms: p50Ms * 4, p99Ms: p50Ms * 9, maxMs: p50Ms * 14 };
    return {
      faultKind,
      faults: count,
      firstAck: count === 0 ? null : { count, p50Ms, p99Ms: p50Ms * 3.4, maxMs: p50Ms * 5.1 },
      healthy: count === 0 ? null : healthy,
      neverRecovered: stuck && (faultKind === 'all' || faultKind === 'kill') ? 3 : 0,
    };
  });
}

function makeCoverage(faults: readonly Fault[]): Coverage {
  const roles = [...roleNames];
  return {
    kinds: [...kinds],
    roles,
    confirmed: kinds.map((kind) =>
      roles.map(
        (role) =>
          faults.filter((fault) => fault.outcome === 'confirmed' && fault.kind === kind && fault.roles.includes(role))
            .length,
      ),
    ),
    notInjected: [{ kind: 'latency', reason: 'the kernel of this host has no netem' }],
  };
}

/** Faults, epochs, lanes and series of one made-up run. */
export function makeTimeline(shape: TimelineShape): Timeline {
  const random = new Prng(shape.seed);
  const times = random.fork('fault times');
  const startMs = shape.durationMs * 0.03;
  const stepMs = (shape.durationMs * 0.9) / Math.max(1, shape.faultCount);
  const faults = Array.from({ length: shape.faultCount }, (_, index) =>
    makeFault(times, shape, index, Math.round(startMs + (index + times.float() * 0.8) * stepMs)),
  );
  return {
    faults,
    epochs: makeEpochs(random.fork('epochs'), shape, faults),
    nodes: makeLanes(shape, faults),
    series: makeSeries(random.fork('series'), shape, faults),
    recovery: makeRecovery(random.fork('recovery'), faults, shape.stuckFromMs !== null),
    coverage: makeCoverage(faults),
  };
}
