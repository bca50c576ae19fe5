/**
 * The end of a simulated run on a healed cluster: canaries are deleted behind the history's back, every live key is read
 * through the client, every replica is asked for its own copy once it has applied what the primary had committed.
 *
 * A key that could not be read, and a replica that did not answer, are recorded as such: missing evidence, never agreement.
 */
import type { Phase } from '../ledger/rows.ts';
import { present } from '../lib/assert.ts';
import type { Completion } from '../workloads/port.ts';
import { completionOf } from '../harness/systems/zaris-completions.ts';
import { operationResult } from '../zaris/client/result.ts';
import type { CopyReport } from '../zaris/model/client-wire.ts';
import { type NodeId, type PartitionId, partitionId } from '../zaris/model/ids.ts';
import { partitionOf } from '../zaris/model/segments.ts';
import type { DataPlane } from '../zaris/node/data-plane.ts';
import type { Replica } from '../zaris/partition/replica.ts';
import type { SimClient } from './client-host.ts';
import { nsOf, runOperation } from './load.ts';
import { extraSession } from './extra-sessions.ts';
import type { SimRun } from './run-seed.ts';
import { controlLeader } from './sim-cluster.ts';

/** Reads under way at a time. */
const readsAtOnce = 64;
const maxTries = 20;
const pauseMs = 200;
const readTimeoutMs = 10_000;
/** Longest read-back: tries of all keys of a partition that does not answer. */
const readBackBoundMs = 600_000;
const catchUpBoundMs = 10_000;

/** Resolves with the number of keys that were to be read back. */
export async function finishRun(run: SimRun, canaries: readonly string[]): Promise<number> {
  const client = run.client('final');
  const { world, turns } = run;
  let left = canaries.length;
  const session = run.options.sessions + extraSession.canary;
  const deleteNext = (index: number): void => {
    const key = canaries[index];
    if (key === undefined) return;
    // Then read under the history: the live check must see that it is gone.
    deleteUnseen(
      run,
      client,
      key,
      () => {
        runOperation(
          { ...run, timeoutMs: readTimeoutMs },
          { client, session, operation: { f: 'read', key }, canary: true },
          (completion) => {
            if (completion.kind === 'ok' && completion.value === null) run.canariesSeen.push(key);
            left -= 1;
            deleteNext(index + 1);
          },
        );
      },
      maxTries,
    );
  };
  deleteNext(0);
  await turns.run(world.nowMs + readBackBoundMs, () => left === 0);
  const keys = [...run.keys.liveKeys(), ...canaries];
  await run.phase('read-back', () => readBack(run, client, keys));
  await run.phase('autopsy', () => autopsy(run, keys));
  return keys.length;
}

function deleteUnseen(run: SimRun, client: SimClient, key: string, done: () => void, tries: number): void {
  const operation = { kind: 'mutate', mutation: { kind: 'delete', key } } as const;
  client.call(
    operation,
    ({ status }) => {
      if (status === 'Ok' || status === 'NotFound' || tries === 0) done();
      else run.world.at(run.world.nowMs + pauseMs, () => deleteUnseen(run, client, key, done, tries - 1));
    },
    readTimeoutMs,
  );
}

async function readBack(run: SimRun, client: SimClient, keys: readonly string[]): Promise<void> {
  let next = 0;
  let done = 0;
  const reader = (): void => {
    const key = keys[next++];
    if (key === undefined) return;
    readKey(run, { client, key, phase: 'final', tries: maxTries }, () => {
      done += 1;
      reader();
    });
  };
  for (let index = 0; index < readsAtOnce; index++) reader();
  await run.turns.run(run.world.nowMs + readBackBoundMs, () => done === keys.length);
}

/** Reads one key until it answers or the tries are used up, and records the last read. */
export function readKey(
  run: SimRun,
  read: { readonly client: SimClient; readonly key: string; readonly phase: Phase; readonly tries: number },
  done: (completion: Completion) => void,
): void {
  const { world, history } = run;
  const { client, key, phase, tries } = read;
  const invokeNs = nsOf(world.nowMs);
  client.call(
    { kind: 'get', key },
    (result) => {
      const completion = completionOf({ f: 'read', key }, operationResult(result));
      if (completion.kind === 'ok' || tries <= 1) {
        history.finalRead({ key, phase, invokeNs, returnNs: nsOf(world.nowMs), completion });
        done(completion);
      } else world.at(world.nowMs + pauseMs, () => readKey(run, { ...read, tries: tries - 1 }, done));
    },
    readTimeoutMs,
  );
}

async function autopsy(run: SimRun, keys: readonly string[]): Promise<void> {
  const byPartition = Map.groupBy(keys, (key) => partitionOf(key, run.options.partitions));
  const settled = (): boolean =>
    Array.from({ length: run.options.partitions }, (_, index) => isLevel(run, partitionId(index))).every(Boolean);
  await run.turns.run(run.world.nowMs + catchUpBoundMs, settled);
  for (let index = 0; index < run.options.partitions; index++)
    askReplicas(run, partitionId(index), byPartition.get(partitionId(index)) ?? [], 'final');
}

/** Null where the node's process does not run. */
const dataOf = (run: SimRun, id: NodeId): DataPlane | null => {
  const node = run.world.nodes.get(id);
  return node === undefined || node.running === null || node.paused ? null : node.running.node.planes.data;
};

const copyOf = (run: SimRun, id: NodeId, partition: PartitionId, keys: readonly string[]): CopyReport | null =>
  dataOf(run, id)?.copyReport(partition, keys) ?? null;

/** A node's own copy (undefined: it has none); null where its process does not run. */
const replicaOf = (run: SimRun, id: NodeId, partition: PartitionId): Replica | undefined | null => {
  const data = dataOf(run, id);
  return data === null ? null : data.replica(partition);
};

/**
 * What the partition's primary has committed by now, and in which term it leads; null where the node that leads by the control state
 * does not itself say so. Restarted before anybody noticed, it is empty, knows of nothing committed, and would make every gap look complete.
 */
export function committedIn(
  run: SimRun,
  partition: PartitionId,
): { readonly term: number; readonly seq: number } | null {
  const runtime = controlLeader(run.world)?.planes.control.state.runtime(partition);
  if (runtime === undefined || runtime.primary === null) return null;
  const primary = dataOf(run, runtime.primary.nodeId)?.primary(partition);
  return primary === undefined ? null : { term: runtime.term, seq: primary.replica.commitSeq };
}

const committedSeq = (run: SimRun, partition: PartitionId): number | null => committedIn(run, partition)?.seq ?? null;

/** Every replica has applied all up to `committed`: what the primary has committed by now, unless told otherwise. */
export function isLevel(run: SimRun, partition: PartitionId, committed = committedSeq(run, partition)): boolean {
  const state = controlLeader(run.world)?.planes.control.state;
  if (committed === null || state === undefined) return false;
  return state.placement(partition).replicas.every((id) => {
    const other = replicaOf(run, id, partition);
    return other !== null && (other?.store.applied.seq ?? 0) >= committed;
  });
}

/**
 * Asks every replica of a partition at this moment. Returns true when all answered and had applied what was committed: by now, or by
 * the time when the keys, which nobody writes any more, were read.
 */
export function askReplicas(
  run: SimRun,
  partition: PartitionId,
  keys: readonly string[],
  phase: Phase,
  commitSeq = committedSeq(run, partition),
): boolean {
  const { history, world } = run;
  const atNs = nsOf(world.nowMs);
  const state = controlLeader(world)?.planes.control.state;
  if (state === undefined || commitSeq === null) {
    for (const key of keys)
      history.replicaRead({
        key,
        phase,
        node: 'none',
        incarnation: null,
        role: 'unknown',
        atNs,
        kind: 'missing',
        reason: 'no primary said what was committed',
      });
    return false;
  }
  let isComplete = true;
  for (const id of state.placement(partition).replicas) {
    const copy = copyOf(run, id, partition, keys);
    const incarnation = state.current(id)?.incarnation ?? null;
    if (copy === null) {
      isComplete = false;
      for (const key of keys)
        history.replicaRead({
          key,
          phase,
          node: id,
          incarnation,
          role: 'unknown',
          atNs,
          kind: 'missing',
          reason: 'no answer',
        });
      continue;
    }
    if (copy.applied.seq < commitSeq) isComplete = false;
    for (const { key, value, version } of copy.values) {
      history.replicaRead({
        key,
        phase,
        node: id,
        incarnation,
        role: copy.role,
        atNs,
        kind: 'answered',
        value: value ?? null,
        version: version === undefined ? null : [version.term, version.seq],
        appliedSeq: copy.applied.seq,
        commitSeq,
      });
    }
    history.digest({
      partition,
      node: id,
      incarnation,
      role: copy.role,
      atNs,
      appliedTerm: copy.applied.term,
      appliedSeq: copy.applied.seq,
      digest: copy.digest,
      keyCount: present(copy.keyCount, 'key count'),
    });
  }
  return isComplete;
}
