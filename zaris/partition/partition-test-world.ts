/**
 * One partition on real copies, for tests that need one exact interleaving at its primary: time moves by hand, messages arrive at the
 * end of a turn or are held, and control commits that the primary serves and nothing else.
 * Worst outcome if wrong: these tests prove nothing; so each was seen red with its rule broken.
 */
import { assert, present } from '../../lib/assert.ts';
import type { Placement } from '../control/commands.ts';
import type { PartitionRuntime } from '../control/state.ts';
import type { Answer, Mutation } from '../model/client-wire.ts';
import type { Entry } from '../model/entry.ts';
import { type Member, epoch, incarnation, nodeId, partitionId, sameMember, term } from '../model/ids.ts';
import type { DataMessage } from '../model/peer-wire.ts';
import type { Outgoing, ReplicaHost } from './host.ts';
import { Primary } from './primary.ts';
import { Replica } from './replica.ts';
import type { DataRequest } from './request-desk.ts';
import { soundRules } from './rules.ts';
import { type Timings, defaultTimings } from './timings.ts';

const member = (name: string): Member => ({ nodeId: nodeId(name), incarnation: incarnation(1) });
const [n1, n2] = [member('n1'), member('n2')];
/** Between two ticks, ms. */
const stepMs = 10;
/** Rounds of messages in one turn; whoever has more to say goes on in the next. */
const roundBound = 100;

interface Sent {
  readonly from: Member;
  readonly to: Member;
  readonly message: Outgoing;
}

export interface PartitionWorldOptions {
  readonly timings?: Partial<Timings>;
  /** n2 was dropped below `minInSync`, and the map asks for it no more: it joins no more, but may be promoted. */
  readonly isFollowerDropped?: boolean;
  /** What n1 and n2 hold of older terms, uncommitted. */
  readonly inherited?: readonly [readonly Entry[], readonly Entry[]];
}

/** n1 leads, n2 follows. */
export class PartitionTestWorld {
  nowMs = 10_000;
  readonly primary: Primary;
  /** Nothing arrives while this is true; afterwards all of it does, but beats are lost. */
  isCut = false;
  private runtime: PartitionRuntime;
  private readonly timings: Timings;
  private readonly placement: Placement;
  private readonly copies: readonly [Replica, Replica];
  private readonly answers = new Map<number, Answer>();
  private sent: Sent[] = [];
  private nextId = 1;
  private lastBeatMs = Number.NEGATIVE_INFINITY;

  constructor({ timings = {}, isFollowerDropped = false, inherited = [[], []] }: PartitionWorldOptions = {}) {
    this.timings = { ...defaultTimings, ...timings };
    const replicas = isFollowerDropped ? [n1.nodeId] : [n1.nodeId, n2.nodeId];
    this.placement = { preferredPrimary: n1.nodeId, replicas };
    this.runtime = {
      partition: partitionId(0),
      epoch: epoch(5),
      term: term(5),
      primary: n1,
      released: true,
      serving: false,
      inSync: isFollowerDropped ? [n1] : [n1, n2],
      eligible: isFollowerDropped ? [n2] : [],
      health: 'Degraded',
      dataLossNumber: 0,
    };
    this.copies = [new Replica(partitionId(0), this.hostOf(n1)), new Replica(partitionId(0), this.hostOf(n2))];
    inherited.forEach((entries, index) => {
      for (const entry of entries) this.copies[index === 0 ? 0 : 1].log.append(entry);
    });
    this.primary = new Primary(this.copies[0], term(5), this.nowMs);
    this.run(500);
  }

  private hostOf(self: Member): ReplicaHost {
    return {
      self,
      rules: soundRules,
      timings: this.timings,
      minInSync: 2,
      draining: false,
      send: (to, message) => void this.sent.push({ from: self, to, message }),
      reply: (connection, answer) => void this.answers.set(connection, answer),
      propose: (command) => {
        if (command.kind === 'serve')
          this.runtime = { ...this.runtime, epoch: epoch(this.runtime.epoch + 1), serving: true };
      },
      notice() {},
      invariant: assert,
      runtime: () => this.runtime,
      placement: () => this.placement,
      current: (id) => member(id),
      isCurrent: () => true,
      isAlive: () => true,
      mayLead: () => true,
      sessionHeld: () => true,
      handoffSlot: () => true,
    };
  }

  /** Ticks, beats and messages for so long. */
  run(forMs: number): void {
    const endMs = this.nowMs + forMs;
    while (this.nowMs < endMs) {
      this.nowMs += stepMs;
      this.primary.tick(this.nowMs);
      if (this.nowMs - this.lastBeatMs >= this.timings.beatMs) this.beat();
      this.settle();
    }
  }

  private beat(): void {
    this.lastBeatMs = this.nowMs;
    if (this.isCut) return;
    const { replica, term } = this.primary;
    const { applied, digest } = replica.store;
    const beat = { term, commitSeq: replica.commitSeq, digestSeq: applied.seq, digest };
    for (const target of this.primary.beatTargets()) {
      const matched = this.copy(target).onBeat(replica.host.self, beat, this.nowMs);
      if (matched !== null) this.primary.onBeatAck(target, this.nowMs, matched, this.nowMs);
    }
  }

  private copy(of: Member): Replica {
    return present(
      this.copies.find(({ host }) => sameMember(host.self, of)),
      'a copy',
    );
  }

  /** The end of a turn; what is held stays until the cut is mended. */
  private settle(): void {
    for (let round = 0; round < roundBound; round++) {
      this.primary.flush(this.nowMs);
      if (this.isCut || this.sent.length === 0) return;
      const { sent } = this;
      this.sent = [];
      for (const { from, to, message } of sent) {
        this.deliver(from, to, { ...message, from: from.incarnation, to: to.incarnation });
      }
    }
  }

  private deliver(from: Member, to: Member, message: DataMessage): void {
    const { primary, nowMs } = this;
    switch (message.kind) {
      case 'append':
        return this.copy(to).onAppend(from, message, nowMs);
      case 'snapshot-chunk':
        return this.copy(to).onSnapshotChunk(from, message, nowMs);
      case 'possession-query':
        return this.copy(to).onPossessionQuery(from, message);
      case 'tail-query':
        return this.copy(to).onTailQuery(from, message);
      case 'append-ack':
        return primary.onAppendAck(from, message, nowMs);
      case 'snapshot-ack':
        return primary.onSnapshotAck(from, message, nowMs);
      case 'possession-answer':
        return primary.onPossessionAnswer(from, message, nowMs);
      case 'tail-answer':
        return primary.onTailAnswer(from, message, nowMs);
    }
  }

  /** Sends a request to the primary; the returned function says its answer, once there is one. */
  ask(request: (id: number) => DataRequest): () => Answer | undefined {
    const id = this.nextId++;
    this.primary.desk.submit(id, request(id), this.nowMs);
    this.settle();
    return () => this.answers.get(id);
  }

  get(key: string): () => Answer | undefined {
    return this.ask((id) => ({ op: 'get', id, partition: partitionId(0), key }));
  }

  /** A mutation of client c; all sequences below `sequence` are settled at it. */
  mutate(sequence: number, mutation: Mutation, attempt = 1): () => Answer | undefined {
    const once = { clientId: 'c', sequence, lowWatermark: sequence };
    return this.ask((id) => ({ op: 'mutate', id, partition: partitionId(0), once, mutation, attempt }));
  }
}
