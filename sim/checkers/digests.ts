/** Copies that have applied the same entries hold the same: equal digests at equal positions. */
import type { PartitionId } from '../../zaris/model/ids.ts';
import type { Replica } from '../../zaris/partition/replica.ts';
import type { Checker, CheckerContext, Stepped } from './context.ts';

/** Positions remembered per partition. */
const remembered = 4_096;

export class DigestChecker implements Checker {
  private readonly context: CheckerContext;
  private readonly known = new Map<PartitionId, Map<string, { digest: number; where: string }>>();

  constructor(context: CheckerContext) {
    this.context = context;
  }

  copyMoved(step: Stepped, partition: PartitionId, replica: Replica): void {
    const { applied, digest } = replica.store;
    let mine = this.known.get(partition);
    if (mine === undefined) this.known.set(partition, (mine = new Map()));
    const place = `${replica.dataLossNumber}/${applied.term}/${applied.seq}`;
    const other = mine.get(place);
    if (other === undefined) {
      mine.set(place, { digest, where: step.processName });
      if (mine.size > remembered) mine.delete(mine.keys().next().value as string);
    } else if (other.digest !== digest) {
      this.context.breach(
        step.processName,
        `partition ${partition}: differs from ${other.where} at the same position (${applied.term}, ${applied.seq})`,
      );
    }
  }
}
