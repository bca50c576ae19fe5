/**
 * One session's client of etcd: every operation goes to one member, the next one after an answer that did not come.
 *
 * Versions are (0, mod_revision). Every read is linearizable (etcd's default); a condition and the look at what refused it are one
 * transaction, so that the version beside a refusal is the one that it was judged by.
 */
import type { Etcd3, ITxnResponse } from 'etcd3';
import { unreachable } from '../../../lib/assert.ts';
import type { Completion, Operation, StoreClient, Version } from '../../../workloads/port.ts';
import { completionOfError } from './etcd-answers.ts';

/** Members and their connections; may grow. */
export interface Member {
  readonly nodeId: string;
  readonly etcd: Etcd3;
}

const versionOf = (revision: string): Version => [0, Number(revision)];

export class EtcdClient implements StoreClient {
  private readonly members: readonly Member[];
  private at: number;

  constructor(members: readonly Member[], session: number) {
    this.members = members;
    this.at = session % Math.max(1, members.length);
  }

  async execute(operation: Operation): Promise<Completion> {
    const member = this.members[this.at % this.members.length];
    if (member === undefined) return { kind: 'fail', why: 'refused', error: 'not sent: the cluster has no members' };
    const served = { partition: 0, attempts: 1, node: member.nodeId };
    try {
      return { ...(await run(member.etcd, operation)), ...served };
    } catch (error) {
      this.at = (this.at + 1) % this.members.length;
      return { ...completionOfError(error), ...served };
    }
  }

  async close(): Promise<void> {}
}

async function run(etcd: Etcd3, operation: Operation): Promise<Completion> {
  const { key } = operation;
  switch (operation.f) {
    case 'read': {
      const [found] = (await etcd.get(key).exec()).kvs;
      return found === undefined
        ? { kind: 'ok', value: null, version: null }
        : { kind: 'ok', value: found.value.toString(), version: versionOf(found.mod_revision) };
    }
    case 'write': {
      if (operation.ttlMs !== undefined) return { kind: 'fail', why: 'invalid', error: 'not offered: leases' };
      const { header } = await etcd.put(key).value(operation.value).exec();
      return { kind: 'ok', version: versionOf(header.revision) };
    }
    case 'create': {
      const put = etcd.put(key).value(operation.value);
      return conditional(await etcd.if(key, 'Create', '==', 0).then(put).else(etcd.get(key)).commit());
    }
    case 'cas': {
      const put = etcd.put(key).value(operation.value);
      const [, revision] = operation.expected;
      return conditional(await etcd.if(key, 'Mod', '==', revision).then(put).else(etcd.get(key)).commit());
    }
    case 'delete':
      return await remove(etcd, key, operation.expected);
    case 'add':
      return { kind: 'fail', why: 'invalid', error: 'not offered: counters' };
    default:
      return unreachable(operation, 'operation');
  }
}

async function remove(etcd: Etcd3, key: string, expected: Version | undefined): Promise<Completion> {
  const remover = etcd.delete().key(key);
  if (expected !== undefined)
    return conditional(await etcd.if(key, 'Mod', '==', expected[1]).then(remover).else(etcd.get(key)).commit());
  const { deleted, header } = await remover.exec();
  // Nothing was there, so nothing has a revision.
  return deleted === '0'
    ? { kind: 'fail', why: 'condition', error: 'no such key' }
    : { kind: 'ok', version: versionOf(header.revision) };
}

function conditional({ succeeded, header, responses }: ITxnResponse): Completion {
  if (succeeded) return { kind: 'ok', version: versionOf(header.revision) };
  const [found] = responses[0]?.response_range?.kvs ?? [];
  const version = found === undefined ? null : versionOf(found.mod_revision);
  return { kind: 'fail', why: 'condition', error: 'the condition did not hold', version };
}
