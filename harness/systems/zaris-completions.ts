/**
 * What a Zaris client's results mean for a history: `ok`, `fail` or `info`.
 *
 * Invariant: `fail` only where the client knows that the operation had no effect; whatever is unknown is `info`. A write in
 * doubt taken for a failed one would turn a kept value into a phantom, and a lost one into nothing at all.
 */
import { assert, unreachable } from '../../lib/assert.ts';
import type { Completion, Operation, Served, Version } from '../../workloads/port.ts';
import type { ZarisClient } from '../../zaris/client/client.ts';
import type { CallOperation } from '../../zaris/client/contract.ts';
import type { OperationResult } from '../../zaris/client/result.ts';
import { seq, term, type Version as ZarisVersion } from '../../zaris/model/ids.ts';

/** Longest error text that a completion carries. */
const maxErrorChars = 200;

const versionOf = (version: ZarisVersion | undefined): Version | null =>
  version === undefined ? null : [version.term, version.seq];
const zarisVersion = ([major, minor]: Version): ZarisVersion => ({ term: term(major), seq: seq(minor) });

/** Runs an operation with a client. Rejects where the client does (closed, refused by name); then nothing is known. */
export function callWith(client: ZarisClient, operation: Operation): Promise<OperationResult> {
  const { key } = operation;
  switch (operation.f) {
    case 'read':
      return client.get(key);
    case 'write':
      return operation.ttlMs === undefined
        ? client.put(key, operation.value)
        : client.put(key, operation.value, { ttlMs: operation.ttlMs });
    case 'create':
      return client.put(key, operation.value, { ifAbsent: true });
    case 'cas':
      return client.put(key, operation.value, { ifVersion: zarisVersion(operation.expected) });
    case 'delete':
      return operation.expected === undefined
        ? client.delete(key)
        : client.delete(key, { ifVersion: zarisVersion(operation.expected) });
    case 'add':
      return client.add(key, operation.delta);
    default:
      return unreachable(operation, 'operation');
  }
}

/** Refusals of this client that had no effect; it says itself when an operation is in doubt, and then it is none of these. */
export const definiteRefusals: readonly string[] = [
  'InvalidInput',
  'Lost',
  'Unauthorized',
  'Moved',
  'OwnershipChanging',
  'ReplicaWriteRejected',
  'Migrating',
  'Unavailable',
  'TransportError',
  'DeadlineExceeded',
  'Cancelled',
  'Closed',
  'Overloaded',
];

/** What the result says of the operation. */
export function completionOf(operation: Operation, result: OperationResult): Completion {
  const served = servedOf(result);
  const version = versionOf(result.version);
  if (result.status === 'Ok' && !result.inDoubt) return okOf(operation, result, version, served);
  const error = `${result.status}${result.reason === undefined ? '' : `: ${result.reason}`}`.slice(0, maxErrorChars);
  if (result.inDoubt) return { kind: 'info', error, ...served };
  switch (result.status) {
    case 'Ok':
      return okOf(operation, result, version, served);
    case 'NotFound':
      // For a read an observation like any other; a mutation found nothing to work on.
      return operation.f === 'read'
        ? { kind: 'ok', value: null, version, ...served }
        : { kind: 'fail', why: 'condition', error, version, ...served };
    case 'Conflict':
      return { kind: 'fail', why: 'condition', error, version, ...served };
    case 'InvalidInput':
      return { kind: 'fail', why: 'invalid', error, ...served };
    case 'Lost':
      // The store says that every copy is gone: of a key that is an observation, not a refusal to look.
      return operation.f === 'read'
        ? { kind: 'ok', value: null, version: null, ...served }
        : { kind: 'fail', why: 'refused', error, ...served };
    case 'Unauthorized':
    case 'Moved':
    case 'OwnershipChanging':
    case 'ReplicaWriteRejected':
    case 'Migrating':
    case 'Unavailable':
    case 'TransportError':
    case 'DeadlineExceeded':
    case 'Cancelled':
    case 'Closed':
    case 'Overloaded':
      return { kind: 'fail', why: 'refused', error, ...served };
    default:
      // A status that this build does not know: unknown is never "failed".
      return { kind: 'info', error: `unknown status ${String(result.status satisfies never)}`, ...served };
  }
}

function okOf(operation: Operation, result: OperationResult, version: Version | null, served: Served): Completion {
  if (operation.f !== 'read' && operation.f !== 'add') return { kind: 'ok', version, ...served };
  assert(result.value !== undefined, 'a value is found, or it is NotFound');
  return { kind: 'ok', value: result.value, version, ...served };
}

function servedOf(result: OperationResult): Served {
  const { attempts, partition, epoch, servedBy } = result;
  // In one piece where all is known, as nearly always: this is made for every operation.
  if (partition !== undefined && epoch !== undefined && servedBy !== undefined)
    return { attempts: Math.max(1, attempts), partition, epoch, node: servedBy };
  return {
    attempts: Math.max(1, attempts),
    ...(partition === undefined ? {} : { partition }),
    ...(epoch === undefined ? {} : { epoch }),
    ...(servedBy === undefined ? {} : { node: servedBy }),
  };
}

/** The call of a client core that an operation asks for; the same as {@link callWith} makes of it. */
export function callOf(operation: Operation): CallOperation {
  const { key } = operation;
  switch (operation.f) {
    case 'read':
      return { kind: 'get', key };
    case 'write':
      return {
        kind: 'mutate',
        mutation: {
          kind: 'put',
          key,
          value: operation.value,
          ...(operation.ttlMs === undefined ? {} : { ttlMs: operation.ttlMs }),
        },
      };
    case 'create':
      return { kind: 'mutate', mutation: { kind: 'put', key, value: operation.value, ifAbsent: true } };
    case 'cas':
      return {
        kind: 'mutate',
        mutation: { kind: 'put', key, value: operation.value, ifVersion: zarisVersion(operation.expected) },
      };
    case 'delete':
      return {
        kind: 'mutate',
        mutation: {
          kind: 'delete',
          key,
          ...(operation.expected === undefined ? {} : { ifVersion: zarisVersion(operation.expected) }),
        },
      };
    case 'add':
      return { kind: 'mutate', mutation: { kind: 'add', key, delta: operation.delta } };
    default:
      return unreachable(operation, 'operation');
  }
}
