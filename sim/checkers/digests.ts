/** Copies that have applied the same entries hold the same: equal digests at equal positions. */
import type { PartitionId } from '../../zaris/model/ids.ts';
import type { Replica } from '../../zaris/partition/replica.ts';
import type { Checker, CheckerContext, Stepped } from './context.ts';

/** Positions remembered per partition. */
const remembered = 4_096;

interface Seen {
  readonly term: number;
  readonly dataLossNumber: number;
  readonly digest: number;
  readonly where: string;
  /** Another past that had come to the same seq. */
  readonly other: Seen | undefined;
}

export class DigestChecker implements Checker {
  private readonly context: CheckerContext;
  private readonly known = new Map<PartitionId, Map<number, Seen>>();

  constructor(context: CheckerContext) {
    this.context = context;
  }

  copyMoved(step: Stepped, partition: PartitionId, replica: Replica): void {
    const { store, dataLossNumber } = replica;
    const { applied, digest } = store;
    let mine = this.known.get(partition);
    if (mine === undefined) this.known.set(partition, (mine = new Map()));
    const first = mine.get(applied.seq);
    for (let seen = first; seen !== undefined; seen = seen.other) {
      if (seen.term !== applied.term || seen.dataLossNumber !== dataLossNumber) continue;
      if (seen.digest !== digest)
        this.context.breach(
          step.processName,
          `partition ${partition}: differs from ${seen.where} at the same position (${applied.term}, ${applied.seq})`,
        );
      return;
    }
    mine.set(applied.seq, { term: applied.term, dataLossNumber, digest, where: step.processName, other: first });
    if (mine.size > remembered) mine.delete(mine.keys().next().value as number);
  }
}
