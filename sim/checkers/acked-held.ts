/**
 * An acknowledged entry is in the log of every committed in-sync and eligible member from then on: looked at when it is
 * acknowledged, whenever a set moves, and whenever a log is cut.
 */
import type { Answer } from '../../zaris/model/client-wire.ts';
import {
  type Member,
  type NodeId,
  type PartitionId,
  type Version,
  memberName,
  partitionId,
} from '../../zaris/model/ids.ts';
import type { Notice } from '../../zaris/node/contract.ts';
import type { Replica } from '../../zaris/partition/replica.ts';
import { type Checker, type CheckerContext, type CopyMark, newestState, type Stepped } from './context.ts';

interface Acked {
  readonly version: Version;
  readonly dataLossNumber: number;
}

export class AckedHeldChecker implements Checker {
  private readonly context: CheckerContext;
  private readonly acked = new Map<PartitionId, Acked>();

  constructor(context: CheckerContext) {
    this.context = context;
  }

  answered(step: Stepped, answer: Answer): void {
    const { partition, version, status } = answer;
    if (status !== 'Ok' || partition === undefined || version === undefined) return;
    const known = this.acked.get(partition);
    const { dataLossNumber } = step.state.runtime(partition);
    if (known !== undefined && known.dataLossNumber === dataLossNumber && known.version.seq >= version.seq) return;
    this.acked.set(partition, { version, dataLossNumber });
    this.look(partition, 'when it was acknowledged');
  }

  copyMoved(_step: Stepped, partition: PartitionId, replica: Replica, before: CopyMark | null): void {
    if (before !== null && replica.log.last.seq < before.lastSeq) this.look(partition, 'after a log was cut');
  }

  noticed(_from: NodeId, notice: Notice): void {
    if (notice.level === 'debug' || !notice.name.startsWith('edge-')) return;
    const partition = notice.fields['partition'];
    if (typeof partition === 'number') this.look(partitionId(partition), `after ${notice.name}`);
  }

  private look(partition: PartitionId, when: string): void {
    const acked = this.acked.get(partition);
    const state = newestState(this.context.world);
    if (acked === undefined || state === null) return;
    const runtime = state.runtime(partition);
    if (runtime.dataLossNumber !== acked.dataLossNumber) return;
    for (const member of runtime.inSync) this.lookAt(member, partition, acked, when);
    for (const member of runtime.eligible) this.lookAt(member, partition, acked, when);
  }

  private lookAt(member: Member, partition: PartitionId, acked: Acked, when: string): void {
    const replica = this.replicaOf(member, partition);
    if (replica === null || replica.dataLossNumber !== acked.dataLossNumber) return;
    const { seq, term } = acked.version;
    const held = replica.log.baseVersion.seq >= seq || replica.log.termAt(seq) === term;
    if (!held)
      this.context.breach(
        memberName(member),
        `partition ${partition}: the acknowledged entry (${term}, ${seq}) is not in its log ${when}; its log ends at ${replica.log.last.seq}`,
      );
  }

  /** The member's copy while that incarnation's process runs; null when it is gone or has no copy yet. */
  private replicaOf(member: Member, partition: PartitionId): Replica | null {
    const running = this.context.world.nodes.get(member.nodeId)?.running;
    if (running === null || running === undefined) return null;
    const { control, data } = running.node.planes;
    return control.self?.incarnation === member.incarnation ? (data.replica(partition) ?? null) : null;
  }
}
