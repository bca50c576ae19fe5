/**
 * What must hold of the control state after every command, beside the code that makes it so: asserted on every node.
 *
 * A failure means that this node's state can no longer be trusted, so it stops before it acts on it. Each check is a few comparisons.
 * If they were wrong themselves, a sound cluster would stop; so they ask for nothing that a legal command could undo.
 */
import { present } from '../../lib/assert.ts';
import { type Member, hasMember } from '../model/ids.ts';
import type { PartitionCommand } from './commands.ts';
import type { AuditEvent, ControlData, PartitionRuntime } from './state.ts';

/** Reports what does not hold: stops the node (in builds that test the verifier: does nothing). */
export type Check = (condition: boolean, why: string) => void;

/** Of a snapshot that replaces a state: it is later in every count that may only grow. */
export function checkForward(check: Check, before: ControlData, after: ControlData): void {
  check(after.revision >= before.revision, 'a control snapshot never goes back');
  check(after.mapVersion >= before.mapVersion, 'the map version never goes back');
  for (const [index, old] of before.runtimes.entries()) {
    const runtime = present(after.runtimes[index], 'runtime in a control snapshot');
    check(runtime.epoch >= old.epoch && runtime.term >= old.term, 'epoch and term never go back');
    check(runtime.dataLossNumber >= old.dataLossNumber, 'a data-loss number never goes back');
  }
}

/** Of a runtime after any edge: who leads, and who may be taken for a full copy. */
export function checkRuntime(
  check: Check,
  runtime: PartitionRuntime,
  cluster: { readonly minInSync: number; isCurrent(member: Member): boolean },
): void {
  const { primary, inSync, eligible, serving, term, epoch } = runtime;
  check(term <= epoch, 'a term is an epoch that has been');
  check(primary === null || hasMember(inSync, primary), 'who leads is in sync');
  check(primary !== null || !serving, 'only who leads serves');
  for (const member of inSync) check(cluster.isCurrent(member), 'an in-sync member is a current incarnation');
  for (const member of eligible) {
    check(cluster.isCurrent(member), 'an eligible member is a current incarnation');
    check(!hasMember(inSync, member), 'an eligible member is outside the in-sync set');
  }
  check(eligible.length === 0 || inSync.length < cluster.minInSync, 'nobody is eligible beside a set that may commit');
}

/** Counts of a runtime before a command. */
type Counts = Pick<PartitionRuntime, 'term' | 'dataLossNumber'>;

/** Of a command that was applied to a runtime: the counts that it may move, and those that it must. */
export function checkEdge(
  check: Check,
  command: PartitionCommand,
  before: Counts,
  { runtime: after, audit }: { readonly runtime: PartitionRuntime; readonly audit: AuditEvent | undefined },
): void {
  const { partition, epoch, term, dataLossNumber } = after;
  check(epoch > command.expectEpoch, 'every edge raises the epoch');
  const assigns = command.kind === 'promote' || command.kind === 'handoff' || command.kind === 'evict';
  if (assigns) check(term > before.term, 'an assignment raises the term');
  else check(term === before.term, 'only an assignment moves the term');
  if (command.kind !== 'evict') {
    check(dataLossNumber === before.dataLossNumber, 'only an eviction moves the data-loss number');
    return;
  }
  check(dataLossNumber === before.dataLossNumber + 1, 'an eviction raises the data-loss number by one');
  const isAudited = audit?.partition === partition && audit.dataLossNumber === dataLossNumber;
  check(isAudited, 'a data-loss number changes only with its audit event');
}
