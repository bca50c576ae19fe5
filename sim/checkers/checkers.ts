/** All invariant checkers as one observer of the world; works out once per step what moved. */
import type { NodeId, PartitionId } from '../../zaris/model/ids.ts';
import { beatAckWidth, beatWidth } from '../../zaris/model/peer-wire.ts';
import type { Effect, NodeEvent, Notice } from '../../zaris/node/contract.ts';
import type { Replica } from '../../zaris/partition/replica.ts';
import type { DataPlane } from '../../zaris/node/data-plane.ts';
import type { Running, SimNode } from '../world-node.ts';
import { AckedHeldChecker } from './acked-held.ts';
import { AnswerChecker } from './answers.ts';
import { CommittedChecker } from './committed.ts';
import type { Checker, CheckerContext, CopyMark, Stepped } from './context.ts';
import { DigestChecker } from './digests.ts';
import { MonotoneChecker } from './monotone.ts';
import { OnePrimaryChecker } from './one-primary.ts';

interface Watched {
  readonly replica: Replica;
  commitSeq: number;
  lastSeq: number;
  term: number;
  dataLossNumber: number;
}

/** What is remembered of the process that runs on a node. */
interface Watch {
  readonly running: Running;
  readonly processName: string;
  revision: number;
  /** By partition. */
  readonly copies: (Watched | undefined)[];
}

/** Copies: one, all, none, or those that a flat list names, each with `width` numbers of its own. */
type Touched = PartitionId | 'all' | 'none' | { readonly partitions: readonly number[]; readonly width: number };

/** Which copies an event can move where the control state stays as it is. Ticks come often and cover all, whatever a store does. */
function touchedBy(event: NodeEvent): Touched {
  switch (event.kind) {
    case 'request':
      return event.request.op === 'get' || event.request.op === 'mutate' ? event.request.partition : 'none';
    case 'message':
      switch (event.message.kind) {
        case 'append':
        case 'append-ack':
        case 'snapshot-chunk':
        case 'snapshot-ack':
        case 'possession-query':
        case 'possession-answer':
        case 'tail-query':
        case 'tail-answer':
          return event.message.partition;
        case 'beat':
          return { partitions: event.message.partitions, width: beatWidth };
        case 'beat-ack':
          return { partitions: event.message.partitions, width: beatAckWidth };
        default:
          return 'none';
      }
    case 'tick':
    case 'start':
      return 'all';
    default:
      return 'none';
  }
}

export class Checkers {
  private readonly listeners: readonly Checker[];
  private readonly movers: readonly Checker[];
  private readonly judges: readonly Checker[];
  private readonly steppers: readonly Checker[];
  /** Made anew for every event it would be a tenth of what a run allocates. */
  private step: { -readonly [Name in keyof Stepped]: Stepped[Name] } | null = null;
  /** By the node's place. */
  private readonly watches: (Watch | undefined)[] = [];

  constructor(context: CheckerContext) {
    const committed = new CommittedChecker(context);
    // In this order: what is committed is known before answers are judged by it.
    const checkers: readonly Checker[] = [
      committed,
      new MonotoneChecker(context),
      new DigestChecker(context),
      new AnswerChecker(context, committed),
      new AckedHeldChecker(context),
      new OnePrimaryChecker(context),
    ];
    this.listeners = checkers.filter((checker) => checker.noticed !== undefined);
    this.movers = checkers.filter((checker) => checker.copyMoved !== undefined);
    this.steppers = checkers.filter((checker) => checker.stepped !== undefined);
    this.judges = checkers.filter((checker) => checker.answered !== undefined);
  }

  stepped(node: SimNode, event: NodeEvent, effects: readonly Effect[]): void {
    const { running } = node;
    if (running === null) return;
    const { control, data } = running.node.planes;
    const watch = this.watchOf(node, running);
    const { state } = control;
    const stateMoved = watch.revision !== state.revision;
    watch.revision = state.revision;
    const { processName } = watch;
    const step = (this.step ??= { node, processName, state, event, effects, stateMoved });
    step.node = node;
    step.processName = processName;
    step.state = state;
    step.event = event;
    step.effects = effects;
    step.stateMoved = stateMoved;
    this.lookAtCopies(step, watch, data);
    for (const checker of this.steppers) checker.stepped?.(step);
    for (const effect of effects) {
      if (effect.kind !== 'reply' || effect.answer.partition === undefined || effect.answer.copy !== undefined)
        continue;
      for (const checker of this.judges) checker.answered?.(step, effect.answer);
    }
  }

  /** `isKnown`: an edge of which another process told the very same before. */
  noticed(from: NodeId, notice: Notice, isKnown: boolean): void {
    for (const checker of this.listeners) checker.noticed?.(from, notice, isKnown);
  }

  private watchOf(node: SimNode, running: Running): Watch {
    const known = this.watches[node.index];
    if (known !== undefined && known.running === running) return known;
    const watch = { running, processName: `${node.nodeId}-${running.instance}`, revision: -1, copies: [] };
    this.watches[node.index] = watch;
    return watch;
  }

  /** Looks at what this step may have moved. */
  private lookAtCopies(step: Stepped, watch: Watch, data: DataPlane): void {
    const touched = step.stateMoved ? 'all' : touchedBy(step.event);
    if (touched === 'none') return;
    if (touched === 'all') for (const replica of data.copies()) this.lookAt(step, watch, replica);
    else if (typeof touched === 'number') this.lookAt(step, watch, data.replica(touched));
    else {
      const { partitions, width } = touched;
      for (let index = 0; index < partitions.length; index += width)
        this.lookAt(step, watch, data.replica(partitions[index] as PartitionId));
    }
  }

  private lookAt(step: Stepped, { copies }: Watch, replica: Replica | undefined): void {
    if (replica === undefined) return;
    const { partition } = replica;
    const mark = copies[partition];
    const { commitSeq, term, dataLossNumber } = replica;
    const { lastSeq } = replica.log;
    if (mark === undefined || mark.replica !== replica) {
      this.tellMoved(step, partition, replica, null);
      copies[partition] = { replica, commitSeq, lastSeq, term, dataLossNumber };
      return;
    }
    if (mark.commitSeq === commitSeq && mark.lastSeq === lastSeq && mark.term === term) return;
    this.tellMoved(step, partition, replica, mark);
    mark.commitSeq = commitSeq;
    mark.lastSeq = lastSeq;
    mark.term = term;
    mark.dataLossNumber = dataLossNumber;
  }

  private tellMoved(step: Stepped, partition: PartitionId, replica: Replica, before: CopyMark | null): void {
    for (const checker of this.movers) checker.copyMoved?.(step, partition, replica, before);
  }
}
