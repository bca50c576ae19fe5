/** All invariant checkers as one observer of the world; works out once per step what moved. */
import type { NodeId, PartitionId } from '../../zaris/model/ids.ts';
import type { Effect, NodeEvent, Notice } from '../../zaris/node/contract.ts';
import type { Replica } from '../../zaris/partition/replica.ts';
import type { SimNode } from '../world-node.ts';
import { AckedHeldChecker } from './acked-held.ts';
import { AnswerChecker } from './answers.ts';
import { CommittedChecker } from './committed.ts';
import type { Checker, CheckerContext, Stepped } from './context.ts';
import { DigestChecker } from './digests.ts';
import { MonotoneChecker } from './monotone.ts';
import { OnePrimaryChecker } from './one-primary.ts';

export class Checkers {
  private readonly checkers: readonly Checker[];
  private readonly revisions = new Map<string, number>();
  private readonly marks = new WeakMap<Replica, { commitSeq: number; lastSeq: number; term: number }>();

  constructor(context: CheckerContext) {
    const committed = new CommittedChecker(context);
    // In this order: what is committed is known before answers are judged by it.
    this.checkers = [
      committed,
      new MonotoneChecker(context),
      new DigestChecker(context),
      new AnswerChecker(context, committed),
      new AckedHeldChecker(context),
      new OnePrimaryChecker(context),
    ];
  }

  stepped(node: SimNode, event: NodeEvent, effects: readonly Effect[]): void {
    const { running } = node;
    if (running === null) return;
    const { control, data } = running.node.planes;
    const processName = `${node.nodeId}-${running.instance}`;
    const { revision } = control.state;
    const stateMoved = this.revisions.get(processName) !== revision;
    if (stateMoved) this.revisions.set(processName, revision);
    const step: Stepped = {
      node,
      processName,
      state: control.state,
      event,
      effects,
      stateMoved,
      copies: () => data.copies(),
    };
    for (const [partition, replica] of data.copies()) if (this.moved(replica)) this.tellMoved(step, partition, replica);
    for (const checker of this.checkers) checker.stepped?.(step);
    for (const effect of effects) {
      if (effect.kind !== 'reply' || effect.answer.partition === undefined || effect.answer.copy !== undefined)
        continue;
      for (const checker of this.checkers) checker.answered?.(step, effect.answer);
    }
  }

  noticed(from: NodeId, notice: Notice): void {
    for (const checker of this.checkers) checker.noticed?.(from, notice);
  }

  private moved(replica: Replica): boolean {
    const mark = this.marks.get(replica);
    const { commitSeq, term } = replica;
    const lastSeq = replica.log.last.seq;
    if (mark === undefined) {
      this.marks.set(replica, { commitSeq, lastSeq, term });
      return true;
    }
    if (mark.commitSeq === commitSeq && mark.lastSeq === lastSeq && mark.term === term) return false;
    mark.commitSeq = commitSeq;
    mark.lastSeq = lastSeq;
    mark.term = term;
    return true;
  }

  private tellMoved(step: Stepped, partition: PartitionId, replica: Replica): void {
    for (const checker of this.checkers) checker.copyMoved?.(step, partition, replica);
  }
}
