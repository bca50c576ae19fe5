/**
 * Epochs, terms, commit indexes, map versions and data-loss numbers never go back within a process; a map changes only with its
 * version, a data-loss number only with its audit event.
 */
import type { PartitionRuntime } from '../../zaris/control/state.ts';
import type { PartitionId } from '../../zaris/model/ids.ts';
import type { Replica } from '../../zaris/partition/replica.ts';
import type { Checker, CheckerContext, CopyMark, Stepped } from './context.ts';

/** What a process showed last. */
interface Known {
  revision: number;
  mapVersion: number;
  map: string;
  /** Epoch, term and data-loss number by partition, one after the other. */
  readonly numbers: number[];
}

/** Numbers that are kept of a partition. */
const perPartition = 3;

export class MonotoneChecker implements Checker {
  private readonly context: CheckerContext;
  private readonly known = new Map<string, Known>();

  constructor(context: CheckerContext) {
    this.context = context;
  }

  stepped(step: Stepped): void {
    if (!step.stateMoved) return;
    const { state, processName } = step;
    const { revision, mapVersion } = state;
    let known = this.known.get(processName);
    if (known === undefined) {
      known = { revision, mapVersion, map: JSON.stringify(state.placements), numbers: [] };
      this.known.set(processName, known);
    }
    this.back(step, 'the control revision', known.revision, revision);
    this.back(step, 'the map version', known.mapVersion, mapVersion);
    if (known.mapVersion !== mapVersion || mayDiffer(step)) {
      const map = JSON.stringify(state.placements);
      if (known.mapVersion === mapVersion && known.map !== map)
        this.context.breach(processName, `the map changed under version ${mapVersion}`);
      known.map = map;
    }
    known.revision = revision;
    known.mapVersion = mapVersion;
    this.back(step, 'the number of partitions', known.numbers.length / perPartition, state.runtimes.length);
    for (const runtime of state.runtimes) this.lookAt(step, runtime, known.numbers);
  }

  private lookAt(step: Stepped, runtime: PartitionRuntime, numbers: number[]): void {
    const { partition, epoch, term, dataLossNumber } = runtime;
    const at = partition * perPartition;
    if (epoch !== numbers[at]) {
      this.back(step, `the epoch of partition ${partition}`, numbers[at], epoch);
      numbers[at] = epoch;
    }
    if (term !== numbers[at + 1]) {
      this.back(step, `the term of partition ${partition}`, numbers[at + 1], term);
      numbers[at + 1] = term;
    }
    const loss = numbers[at + 2];
    if (dataLossNumber === loss) return;
    numbers[at + 2] = dataLossNumber;
    if (loss === undefined) return;
    this.back(step, `the data-loss number of partition ${partition}`, loss, dataLossNumber);
    if (!step.state.audit.some((event) => event.partition === partition && event.dataLossNumber === dataLossNumber))
      this.context.breach(
        step.processName,
        `the data-loss number of partition ${partition} became ${dataLossNumber} without an audit event`,
      );
  }

  private back(step: Stepped, what: string, old: number | undefined, current: number): void {
    if (old !== undefined && current < old)
      this.context.breach(step.processName, `${what} went back from ${old} to ${current}`);
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
