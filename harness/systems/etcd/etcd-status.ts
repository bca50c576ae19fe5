/**
 * Who leads an etcd cluster and which members have kept up, as a majority of the members says; and single copies for the autopsy.
 *
 * Invariant: without a majority that names the same leader in the same term there is no primary; fewer answers than a majority are no
 * status at all. A budget read from a minority could let faults take the majority that etcd's promise rests on.
 */
import type { Etcd3, IStatusResponse } from 'etcd3';
import type { SystemStatus } from '../../../chaos/ports.ts';
import { IncarnationCounter, ObservedRuntime, OrderedLooks, within } from '../observed-runtime.ts';
import type { NodeAddress, Peeked } from '../system.ts';
import type { Member } from './etcd-client.ts';

const answerTimeoutMs = 800;
const peekTimeoutMs = 4_000;
/** Entries that a member may have left to apply and still count as one that keeps up. */
const lagEntries = 5_000;
/** Keys of one peek that are asked for at a time. */
const keysAtOnce = 50;

/** What one member says of itself. */
interface MemberWord {
  readonly nodeId: string;
  readonly memberId: string;
  readonly leaderId: string;
  readonly raftTerm: number;
  readonly raftIndex: number;
  readonly version: string;
  readonly startedAt: string;
}

/** Leader and term that a majority of `memberCount` names alike; null when none does. */
export function majorityLeader(
  words: readonly Pick<MemberWord, 'leaderId' | 'raftTerm'>[],
  memberCount: number,
): { readonly leaderId: string; readonly raftTerm: number } | null {
  const alike = Map.groupBy(words, (word) => `${word.leaderId}@${word.raftTerm}`);
  for (const same of alike.values()) {
    const [first] = same;
    if (first !== undefined && first.leaderId !== '0' && same.length > memberCount / 2) return first;
  }
  return null;
}

export class EtcdStatus {
  private readonly addresses: readonly NodeAddress[];
  private readonly members: readonly Member[];
  private readonly nowMs: () => number;
  private readonly runtime = new ObservedRuntime();
  private readonly incarnations = new IncarnationCounter();
  private readonly looks = new OrderedLooks(() => this.look());

  constructor(addresses: readonly NodeAddress[], members: readonly Member[], nowMs: () => number) {
    this.addresses = addresses;
    this.members = members;
    this.nowMs = nowMs;
  }

  status(): Promise<SystemStatus | null> {
    return this.looks.ask();
  }

  /** Version of every member that answers, without repetition. */
  async versions(): Promise<readonly string[]> {
    const words = await Promise.all(this.members.map((member) => this.wordOf(member)));
    return [...new Set(words.flatMap((word) => (word === null ? [] : [word.version])))];
  }

  /** A member's own copy of keys, read without asking the others; null when it does not answer. */
  async peek(nodeId: string, keys: readonly string[]): Promise<Peeked | null> {
    const member = this.members.find((each) => each.nodeId === nodeId);
    if (member === undefined) return null;
    const { etcd } = member;
    // The position first: what it covers is in the values that follow.
    const whole = await within(peekTimeoutMs, etcd.getAll().serializable(true).limit(1).exec());
    const word = await this.wordOf(member);
    if (whole === null || word === null) return null;
    const copies: Peeked['keys'][number][] = [];
    for (let from = 0; from < keys.length; from += keysAtOnce) {
      const batch = await within(
        peekTimeoutMs,
        Promise.all(keys.slice(from, from + keysAtOnce).map((key) => ownCopy(etcd, key))),
      );
      if (batch === null) return null;
      copies.push(...batch);
    }
    const revision = Number(whole.header.revision);
    return {
      nodeId,
      incarnation: this.incarnations.of(nodeId, word.startedAt),
      role: word.leaderId === word.memberId ? 'primary' : 'replica',
      applied: [0, revision],
      commitSeq: revision,
      digest: '',
      keyCount: Number(whole.count),
      keys: copies,
    };
  }

  private async look(): Promise<SystemStatus | null> {
    const atMs = this.nowMs();
    const words = (await Promise.all(this.members.map((member) => this.wordOf(member)))).filter(
      (word) => word !== null,
    );
    const nodes = this.members.map(({ nodeId }) => {
      const word = words.find((each) => each.nodeId === nodeId);
      const incarnation =
        word === undefined ? this.incarnations.last(nodeId) : this.incarnations.of(nodeId, word.startedAt);
      return { nodeId, alive: word !== undefined, incarnation };
    });
    const replicas = this.members.map(({ nodeId }) => nodeId);
    if (words.length <= replicas.length / 2) return null;
    const led = majorityLeader(words, replicas.length);
    const leader = words.find((word) => word.memberId === led?.leaderId);
    const following = words.filter(
      (word) => led !== null && word.leaderId === led.leaderId && word.raftTerm === led.raftTerm,
    );
    const newest = Math.max(0, ...following.map((word) => word.raftIndex));
    const inSync = following.filter((word) => newest - word.raftIndex <= lagEntries).map((word) => word.nodeId);
    const incarnation = nodes.find((node) => node.nodeId === leader?.nodeId)?.incarnation ?? 0;
    const serving = leader !== undefined;
    const partition = this.runtime.see({
      partition: 0,
      primary: leader?.nodeId ?? null,
      reign: `${leader?.nodeId}#${incarnation}@${led?.raftTerm}`,
      replicas,
      inSync,
      joining: words.filter((word) => !inSync.includes(word.nodeId)).map((word) => word.nodeId),
      health: !serving ? 'Unavailable' : inSync.length === replicas.length ? 'Healthy' : 'Degraded',
      serving,
    });
    const minInSync = Math.floor(replicas.length / 2) + 1;
    return { atMs, leader: leader?.nodeId ?? null, voters: replicas, nodes, minInSync, partitions: [partition] };
  }

  private async wordOf({ nodeId, etcd }: Member): Promise<MemberWord | null> {
    const [status, startedAt] = await Promise.all([
      within<IStatusResponse>(answerTimeoutMs, etcd.maintenance.status()),
      this.startedAt(nodeId),
    ]);
    if (status === null || startedAt === null) return null;
    return {
      nodeId,
      memberId: status.header.member_id,
      leaderId: status.leader,
      raftTerm: Number(status.raftTerm),
      raftIndex: Number(status.raftIndex),
      version: status.version,
      startedAt,
    };
  }

  /** When the member's process started, from its metrics: what tells one incarnation from the next. */
  private async startedAt(nodeId: string): Promise<string | null> {
    const address = this.addresses.find((each) => each.nodeId === nodeId);
    if (address === undefined) return null;
    try {
      const response = await fetch(`http://${address.host}:${address.httpPort}/metrics`, {
        signal: AbortSignal.timeout(answerTimeoutMs),
      });
      return /^process_start_time_seconds (\S+)$/m.exec(await response.text())?.[1] ?? null;
    } catch {
      return null;
    }
  }
}

async function ownCopy(etcd: Etcd3, key: string): Promise<Peeked['keys'][number]> {
  const [found] = (await etcd.get(key).serializable(true).exec()).kvs;
  return found === undefined
    ? { key, value: null, version: null }
    : { key, value: found.value.toString(), version: [0, Number(found.mod_revision)] };
}
