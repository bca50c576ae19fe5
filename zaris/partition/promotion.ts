/**
 * From "assigned" to "may serve": the possession proof, synchronising from a more complete holder, waiting out leases.
 *
 * Invariant: `ready` is reached only after the proof held for this term. If a member served without it, it could answer
 * from a log that lacks acknowledged entries.
 */
import { assert } from '../../lib/assert.ts';
import {
  type Member,
  type Seq,
  type Term,
  type Version,
  hasMember,
  memberName,
  sameMember,
  seq as asSeq,
} from '../model/ids.ts';
import type { PossessionAnswerMessage, TailAnswerMessage } from '../model/peer-wire.ts';
import type { Replica } from './replica.ts';

type Phase =
  | { readonly kind: 'asking'; readonly sinceMs: number }
  | { readonly kind: 'synchronising'; readonly source: Member; readonly sinceMs: number }
  | { readonly kind: 'lease-wait'; readonly untilMs: number }
  | { readonly kind: 'ready' };

interface PossessionReply {
  readonly member: Member;
  readonly last: Version;
  readonly keyCount: number;
}

export class Promotion {
  private readonly replica: Replica;
  private readonly term: Term;
  private readonly others: readonly Member[];
  private phase: Phase;
  private readonly answers = new Map<string, PossessionReply>();
  /** Sources that did not deliver; asked again only when nothing else is left. */
  private readonly givenUp = new Set<string>();
  private lastAskedMs = Number.NEGATIVE_INFINITY;

  constructor(replica: Replica, term: Term, nowMs: number) {
    this.replica = replica;
    this.term = term;
    const runtime = replica.host.runtime(replica.partition);
    this.others = [...runtime.inSync, ...runtime.eligible].filter((member) => !sameMember(member, replica.host.self));
    replica.host.rules.tailOnPromotion(replica.log, replica.commitSeq);
    this.phase = { kind: 'asking', sinceMs: nowMs };
    this.advance(nowMs);
  }

  get isReady(): boolean {
    return this.phase.kind === 'ready';
  }

  /** When it wants to be advanced again. */
  get wakeMs(): number {
    switch (this.phase.kind) {
      case 'asking':
        return this.lastAskedMs + this.replica.host.timings.possessionMs / 3;
      case 'synchronising':
        return this.lastAskedMs + this.replica.host.timings.resendMs;
      case 'lease-wait':
        return this.phase.untilMs;
      case 'ready':
        return Number.POSITIVE_INFINITY;
    }
  }

  onPossessionAnswer(from: Member, message: PossessionAnswerMessage, nowMs: number): void {
    if (message.term !== this.term || this.phase.kind === 'ready') return;
    const last: Version = { term: message.lastTerm, seq: message.lastSeq };
    this.answers.set(memberName(from), { member: from, last, keyCount: message.keyCount });
    this.advance(nowMs);
  }

  onTailAnswer(from: Member, message: TailAnswerMessage, nowMs: number): void {
    const { phase } = this;
    if (phase.kind !== 'synchronising' || message.term !== this.term || !sameMember(from, phase.source)) return;
    const { log, commitSeq, host } = this.replica;
    if (log.termAt(message.afterSeq) !== message.afterTerm || message.afterSeq < commitSeq) return;
    for (const entry of message.entries) {
      const own = log.termAt(entry.seq);
      if (own === entry.term) continue;
      if (own !== null) {
        host.invariant(
          entry.seq > commitSeq,
          `partition ${this.replica.partition}: synchronising would cut a committed entry`,
        );
        log.truncateFrom(entry.seq);
      }
      log.append(entry);
    }
    this.lastAskedMs = nowMs;
    if (message.more) this.askTail(phase.source, asSeq(message.afterSeq + message.entries.length));
    else this.decide(nowMs);
  }

  /** Moves on as far as time and answers allow. */
  advance(nowMs: number): void {
    const { phase } = this;
    const { timings } = this.replica.host;
    switch (phase.kind) {
      case 'asking': {
        const missing = this.others.filter((member) => !this.answers.has(memberName(member)));
        if (missing.length === 0 || nowMs - phase.sinceMs >= timings.possessionMs) this.decide(nowMs);
        else if (nowMs - this.lastAskedMs >= timings.possessionMs / 3) this.ask(missing, nowMs);
        return;
      }
      case 'synchronising':
        if (nowMs - phase.sinceMs >= timings.sourceMs) {
          this.givenUp.add(memberName(phase.source));
          this.decide(nowMs);
        } else if (nowMs - this.lastAskedMs >= timings.resendMs) {
          this.lastAskedMs = nowMs;
          this.askTail(phase.source, this.replica.commitSeq);
        }
        return;
      case 'lease-wait':
        if (nowMs >= phase.untilMs) this.phase = { kind: 'ready' };
        return;
      case 'ready':
        return;
    }
  }

  private ask(members: readonly Member[], nowMs: number): void {
    this.lastAskedMs = nowMs;
    for (const member of members) {
      this.replica.host.send(member, { kind: 'possession-query', partition: this.replica.partition, term: this.term });
    }
  }

  private askTail(source: Member, afterSeq: Seq): void {
    const afterTerm = this.replica.log.termAt(afterSeq);
    assert(afterTerm !== null, 'the place to continue from is in the log');
    const { partition } = this.replica;
    this.replica.host.send(source, { kind: 'tail-query', partition, term: this.term, afterSeq, afterTerm });
  }

  private decide(nowMs: number): void {
    const { replica } = this;
    const { host, partition } = replica;
    const runtime = host.runtime(partition);
    const proof = host.rules.provePossession({
      self: host.self,
      inSync: runtime.inSync,
      eligible: runtime.eligible,
      own: replica.log.last,
      ownKeyCount: replica.store.keyCount,
      ownLogSound: replica.log.baseVersion.seq <= replica.commitSeq && !replica.isStaging,
      answers: [...this.answers.values()].filter((answer) => !this.givenUp.has(memberName(answer.member))),
    });
    switch (proof.kind) {
      case 'refused':
        host.notice('error', 'possession-refused', { partition, term: this.term, why: proof.why });
        this.phase = { kind: 'asking', sinceMs: nowMs };
        this.lastAskedMs = nowMs;
        return;
      case 'synchronise':
        this.phase = { kind: 'synchronising', source: proof.source, sinceMs: nowMs };
        this.lastAskedMs = nowMs;
        host.notice('info', 'synchronising', { partition, term: this.term, source: memberName(proof.source) });
        this.askTail(proof.source, replica.commitSeq);
        return;
      case 'possessed': {
        host.invariant(
          hasMember(runtime.inSync, host.self) || hasMember(runtime.eligible, host.self),
          `partition ${partition}: possession of a member in no set`,
        );
        host.notice('info', 'possession-proved', {
          partition,
          term: this.term,
          lastTerm: replica.log.last.term,
          lastSeq: replica.log.last.seq,
          answers: this.answers.size,
          asked: this.others.length,
        });
        const untilMs = runtime.released ? nowMs : replica.leaseGrantedUntilMs(host.self);
        this.phase = untilMs > nowMs ? { kind: 'lease-wait', untilMs } : { kind: 'ready' };
        return;
      }
    }
  }
}
