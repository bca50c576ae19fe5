/**
 * In-sync logs are equal up to the commit index: whatever two copies call committed at a seq is the same entry. Also: terms
 * never decrease along the log, and a sequence of a client takes effect once.
 *
 * Keeps the one committed log of each partition as the world has seen it; other checkers read from it.
 */
import { type PartitionId, seq as asSeq } from '../../zaris/model/ids.ts';
import type { Entry } from '../../zaris/model/entry.ts';
import type { Replica } from '../../zaris/partition/replica.ts';
import type { Checker, CheckerContext, CopyMark, Stepped } from './context.ts';

interface CommittedLog {
  dataLossNumber: number;
  /** Term of each committed entry by seq; 0 where nobody showed it. */
  terms: number[];
  /** Highest term that committed an entry of its own. */
  lastTerm: number;
  /** Sequences per client at or above its low watermark. */
  readonly once: Map<string, Map<number, number>>;
}

export class CommittedChecker implements Checker {
  private readonly context: CheckerContext;
  private readonly logs: CommittedLog[] = [];

  constructor(context: CheckerContext) {
    this.context = context;
  }

  log(partition: PartitionId): CommittedLog {
    return (this.logs[partition] ??= { dataLossNumber: 0, terms: [], lastTerm: 0, once: new Map() });
  }

  copyMoved(step: Stepped, partition: PartitionId, replica: Replica, mark: CopyMark | null): void {
    const log = this.log(partition);
    if (replica.dataLossNumber > log.dataLossNumber) {
      Object.assign(log, { dataLossNumber: replica.dataLossNumber, terms: [], lastTerm: 0 });
      log.once.clear();
    }
    if (replica.dataLossNumber < log.dataLossNumber) return;
    // What this copy had shown of another past says nothing of this one.
    const shown = mark === null || mark.dataLossNumber !== replica.dataLossNumber ? 0 : mark.commitSeq;
    const before = Math.min(shown, replica.commitSeq);
    for (let at = Math.max(before + 1, replica.log.baseVersion.seq); at <= replica.commitSeq; at++) {
      const term = replica.log.termAt(asSeq(at));
      if (term !== null && at > 0)
        this.committed(step, { partition, log, at, term, entry: replica.log.get(asSeq(at)) });
    }
  }

  private committed(
    step: Stepped,
    shown: { partition: PartitionId; log: CommittedLog; at: number; term: number; entry: Entry | undefined },
  ): void {
    const { partition, log, at, term, entry } = shown;
    const known = log.terms[at];
    if (known !== undefined && known !== 0) {
      if (known !== term)
        this.context.breach(
          step.processName,
          `partition ${partition}: committed logs differ at ${at}: terms ${known} and ${term}`,
        );
      return;
    }
    log.terms[at] = term;
    if (term < (log.terms[at - 1] ?? 0))
      this.context.breach(step.processName, `partition ${partition}: the term goes back at ${at}`);
    if (term > log.lastTerm) log.lastTerm = term;
    if (entry?.once !== undefined) this.tookEffect(step, partition, log, entry);
    if (entry?.effect.kind === 'expire-clients')
      for (const clientId of entry.effect.clientIds) log.once.delete(clientId);
  }

  private tookEffect(step: Stepped, partition: PartitionId, log: CommittedLog, entry: Entry): void {
    const { once } = entry;
    if (once === undefined) return;
    let mine = log.once.get(once.clientId);
    if (mine === undefined) log.once.set(once.clientId, (mine = new Map()));
    const before = mine.get(once.sequence);
    if (before !== undefined)
      this.context.breach(
        step.processName,
        `partition ${partition}: sequence ${once.sequence} of ${once.clientId} took effect at ${before} and at ${entry.seq}`,
      );
    mine.set(once.sequence, entry.seq);
    for (const sequence of mine.keys()) {
      if (sequence >= once.lowWatermark) break;
      mine.delete(sequence);
    }
  }
}
