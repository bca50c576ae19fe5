/** Copies that have applied the same entries hold the same: equal digests at equal positions. */
import type { PartitionId } from '../../zaris/model/ids.ts';
import type { Replica } from '../../zaris/partition/replica.ts';
import type { Checker, CheckerContext, Stepped } from './context.ts';

/** Positions remembered per partition, by the low bits of their seq: a power of two. */
const remembered = 4_096;

interface Seen {
  readonly seq: number;
  readonly term: number;
  readonly dataLossNumber: number;
  readonly digest: number;
  readonly where: string;
  /** Another past that had come to the same seq. */
  readonly other: Seen | undefined;
}

export class DigestChecker implements Checker {
  private readonly context: CheckerContext;
  private readonly known: (Seen | undefined)[][] = [];

  constructor(context: CheckerContext) {
    this.context = context;
  }

  copyMoved(step: Stepped, partition: PartitionId, replica: Replica): void {
    const { store, dataLossNumber } = replica;
    const { applied, digest } = store;
    const { seq, term } = applied;
    const mine = (this.known[partition] ??= new Array<Seen | undefined>(remembered).fill(undefined));
    const place = seq & (remembered - 1);
    const first = mine[place];
    // A copy far behind: nothing is remembered of where it is.
    if (first !== undefined && first.seq > seq && first.dataLossNumber >= dataLossNumber) return;
    const known = first?.seq === seq ? first : undefined;
    for (let seen = known; seen !== undefined; seen = seen.other) {
      if (seen.term !== term || seen.dataLossNumber !== dataLossNumber) continue;
      if (seen.digest !== digest)
        this.context.breach(
          step.processName,
          `partition ${partition}: differs from ${seen.where} at the same position (${term}, ${seq})`,
        );
      return;
    }
    mine[place] = { seq, term, dataLossNumber, digest, where: step.processName, other: known };
  }
}
