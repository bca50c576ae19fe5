/** Stores with one wrong step inside the data plane. */
import type { Answer, ClientRequest } from '../../zaris/model/client-wire.ts';
import type { SnapshotChunkMessage } from '../../zaris/model/peer-wire.ts';
import type { PartitionRuntime } from '../../zaris/control/state.ts';
import type { InSyncKeeper } from '../../zaris/partition/in-sync.ts';
import type { CurrentValue } from '../../zaris/partition/judge.ts';
import type { Primary } from '../../zaris/partition/primary.ts';
import type { Replica } from '../../zaris/partition/replica.ts';
import { soundRules } from '../../zaris/partition/rules.ts';
import { type BrokenStore, everyPrimary, everyReplica, exchange, inside } from './store.ts';

const base = {
  durationMs: '60000',
  chaos: 'brutal',
  moments: 'true',
  nodes: '5',
  lossChance: '0',
  slowNodeMs: '0',
  requestTimeoutMs: '10000',
} as const;

/** Calls `change` when the primary makes its keeper of the in-sync set. */
function onKeeper(primary: Primary, change: (keeper: InSyncKeeper) => void): void {
  let keeper = inside(primary)['keeper'] as InSyncKeeper | null;
  if (keeper !== null) change(keeper);
  Object.defineProperty(primary, 'keeper', {
    get: () => keeper,
    set(made: InSyncKeeper | null) {
      keeper = made;
      if (made !== null) change(made);
    },
  });
}

export const unackedJoiner: BrokenStore = {
  name: 'joiner-without-acks',
  doc: 'adds a joiner to the in-sync set before it holds what is committed',
  expects: ['lost', 'stale', 'resurrected'],
  pins: {
    ...base,
    rf: '3',
    nodes: '4',
    faults: 'kill',
    snapshotItems: '4',
    logKeepEntries: '16',
    meanLatencyMs: '20',
    valueBytes: '200',
    ratePerSecond: '200',
  },
  rules: { commitIndex: (input) => soundRules.commitIndex({ ...input, joiners: [] }), mayJoin: () => true },
  alter(node) {
    everyPrimary(node, (primary) =>
      onKeeper(primary, (keeper) =>
        exchange<[PartitionRuntime, number], boolean>(keeper, 'proposeJoiner', (proposeJoiner) => (runtime, nowMs) => {
          const replicator = inside(keeper)['replicator'] as {
            all(): Iterable<{ probing: boolean; snapshot: unknown }>;
          };
          // Whoever answers at all is taken for caught up.
          const held = [...replicator.all()].map((progress) => ({
            progress,
            probing: progress.probing,
            snapshot: progress.snapshot,
          }));
          for (const { progress } of held) Object.assign(progress, { probing: false, snapshot: null });
          const proposed = proposeJoiner(runtime, nowMs);
          for (const { progress, probing, snapshot } of held) Object.assign(progress, { probing, snapshot });
          return proposed;
        }),
      ),
    );
  },
};

export const dirtyReads: BrokenStore = {
  name: 'reads-pending-state',
  doc: 'answers reads from entries that are not committed yet',
  expects: ['stale', 'lost', 'phantom', 'non-monotone', 'not-linearizable', 'resurrected'],
  pins: {
    ...base,
    rf: '3',
    faults: 'kill,isolate,pause',
    readRatio: '0.5',
    distribution: 'hot',
    activeKeys: '4',
    mix: 'registers:1',
    meanLatencyMs: '20',
    ratePerSecond: '200',
    sessions: '32',
    partitions: '4',
  },
  alter(node) {
    everyPrimary(node, (primary) =>
      exchange<[ClientRequest & { op: 'get' | 'scan' }], Answer>(
        primary.desk,
        'evaluateRead',
        (evaluateRead) => (request) => {
          const answer = evaluateRead(request);
          const pending = request.op === 'get' ? primary.overlay.key(request.key) : undefined;
          if (pending === undefined) return answer;
          const { value: _value, ...rest } = answer;
          return pending.value === null
            ? { ...rest, status: 'NotFound', version: pending.version }
            : { ...rest, status: 'Ok', value: pending.value, version: pending.version };
        },
      ),
    );
  },
};

export const committedConditions: BrokenStore = {
  name: 'conditions-ignore-pending',
  doc: 'judges conditions against committed entries only',
  expects: ['lost', 'duplicated', 'not-linearizable', 'stale'],
  pins: {
    ...base,
    rf: '3',
    faults: 'kill',
    mix: 'cas:2,lists:2,counters:2,create:1',
    activeKeys: '4',
    meanLatencyMs: '5',
    ratePerSecond: '200',
  },
  alter(node) {
    everyPrimary(node, (primary) =>
      exchange<[string], CurrentValue | null>(
        primary.desk,
        'current',
        () => (key) => primary.replica.store.get(key) ?? null,
      ),
    );
  },
};

export const mergedSnapshot: BrokenStore = {
  name: 'snapshot-keeps-old-keys',
  doc: 'a snapshot is merged over the old copy, so that deleted keys come back',
  expects: ['resurrected', 'lost', 'stale', 'diverged'],
  pins: {
    ...base,
    rf: '3',
    faults: 'pause,isolate,kill',
    mix: 'churn:3,registers:1',
    logKeepEntries: '16',
    activeKeys: '64',
    ratePerSecond: '200',
  },
  alter(node) {
    everyReplica(node, (replica) =>
      exchange<[SnapshotChunkMessage, unknown], void>(replica, 'install', (install) => (message, staging) => {
        const old = replica.store;
        install(message, staging);
        if (replica.store === old) return;
        const missing = old.keys('').filter((key) => replica.store.get(key) === undefined);
        replica.store.restoreItems(
          missing.flatMap((key) => {
            const item = old.get(key);
            return item === undefined ? [] : [{ key, value: item.value, version: item.version }];
          }),
          [],
          0,
        );
      }),
    );
  },
};

export const outlivedExpiry: BrokenStore = {
  name: 'expiry-outlives-its-value',
  doc: 'forgets that an overwritten value takes its expiry with it, which then takes the value that came after',
  expects: ['lost', 'stale', 'ttl'],
  pins: { ...base, rf: '3', faults: 'kill', mix: 'renewals:5,set:1', ratePerSecond: '200' },
  alter(node) {
    const expiring = (replica: Replica): Map<string, number> =>
      inside(replica.store)['expiring'] as Map<string, number>;
    everyReplica(node, (replica) =>
      exchange<[number, number], unknown>(replica, 'commitTo', (commitTo) => (...given) => {
        const before = new Map(expiring(replica));
        const done = commitTo(...given);
        for (const [key, atMs] of before)
          if (replica.store.get(key) !== undefined && !expiring(replica).has(key)) expiring(replica).set(key, atMs);
        return done;
      }),
    );
  },
};
