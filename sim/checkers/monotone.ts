/**
 * Epochs, terms, commit indexes, map versions and data-loss numbers never go back within a process; a map changes only with its
 * version, a data-loss number only with its audit event.
 */
import type { PartitionId } from '../../zaris/model/ids.ts';
import type { Replica } from '../../zaris/partition/replica.ts';
import type { Checker, CheckerContext, CopyMark, Stepped } from './context.ts';

interface Known {
  revision: number;
  mapVersion: number;
  map: string;
  epochs: number[];
  terms: number[];
  lossNumbers: number[];
}

export class MonotoneChecker implements Checker {
  private readonly context: CheckerContext;
  private readonly known = new Map<string, Known>();

  constructor(context: CheckerContext) {
    this.context = context;
  }

  stepped(step: Stepped): void {
    if (!step.stateMoved) return;
    const { state, processName } = step;
    const before = this.known.get(processName);
    const now: Known = {
      revision: state.revision,
      mapVersion: state.mapVersion,
      map:
        before !== undefined && before.mapVersion === state.mapVersion && !mayDiffer(step)
          ? before.map
          : JSON.stringify(state.placements),
      epochs: state.runtimes.map((runtime) => runtime.epoch),
      terms: state.runtimes.map((runtime) => runtime.term),
      lossNumbers: state.runtimes.map((runtime) => runtime.dataLossNumber),
    };
    this.known.set(processName, now);
    if (before === undefined) return;
    const back = (what: string, old: number, current: number): void => {
      if (current < old) this.context.breach(processName, `${what} went back from ${old} to ${current}`);
    };
    back('the control revision', before.revision, now.revision);
    back('the map version', before.mapVersion, now.mapVersion);
    if (now.mapVersion === before.mapVersion && now.map !== before.map)
      this.context.breach(processName, `the map changed under version ${now.mapVersion}`);
    before.epochs.forEach((epoch, partition) => {
      back(`the epoch of partition ${partition}`, epoch, now.epochs[partition] ?? 0);
      back(`the term of partition ${partition}`, before.terms[partition] ?? 0, now.terms[partition] ?? 0);
      const loss = now.lossNumbers[partition] ?? 0;
      back(`the data-loss number of partition ${partition}`, before.lossNumbers[partition] ?? 0, loss);
      if (loss === before.lossNumbers[partition]) return;
      const isAudited = state.audit.some((event) => event.partition === partition && event.dataLossNumber === loss);
      if (!isAudited)
        this.context.breach(
          processName,
          `the data-loss number of partition ${partition} became ${loss} without an audit event`,
        );
    });
  }

  copyMoved(step: Stepped, partition: PartitionId, replica: Replica, before: CopyMark | null): void {
    const { commitSeq, term, dataLossNumber } = replica;
    if (before === null || before.dataLossNumber !== dataLossNumber) return;
    if (commitSeq < before.commitSeq)
      this.context.breach(
        step.processName,
        `partition ${partition}: the commit index went back from ${before.commitSeq} to ${commitSeq}`,
      );
    if (term < before.term)
      this.context.breach(
        step.processName,
        `partition ${partition}: the term went back from ${before.term} to ${term}`,
      );
  }
}

/** Maps are compared where promotions happened: exactly there nobody may touch them. */
const mayDiffer = (step: Stepped): boolean =>
  step.effects.some(
    (effect) =>
      effect.kind === 'notice' && (effect.notice.name === 'edge-promotion' || effect.notice.name === 'edge-handoff'),
  );
