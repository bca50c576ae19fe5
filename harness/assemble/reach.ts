/**
 * Which partitions each fault took the primary from, and when each of them acknowledged a write again.
 */
import type { EpochChangeRow } from '../../ledger/rows.ts';
import type { Fault } from '../report/model-timeline.ts';

/** Kinds that leave the primary able to serve its clients. */
const harmless = new Set(['clock', 'scale-out']);

/** A kill is stamped once the process is seen dead; a primary that went missing so shortly before fell to it, ms. */
const justBeforeMs = 1_000;

interface Hit {
  readonly faultId: string;
  readonly injectedMs: number;
  firstAckMs: number;
}

export class Reach {
  private readonly byPartition = new Map<number, Hit[]>();
  private readonly byFault = new Map<string, Hit[]>();

  constructor(faults: readonly Fault[], changes: readonly EpochChangeRow[]) {
    const applied = faults
      .filter((fault) => fault.outcome === 'confirmed' && fault.stages.injectedMs !== null && !harmless.has(fault.kind))
      .toSorted((a, b) => (a.stages.injectedMs as number) - (b.stages.injectedMs as number));
    const primaries = new Map<number, { readonly nodeId: string; readonly lostAtMs: number }>();
    let next = 0;
    for (const fault of applied) {
      const injectedMs = fault.stages.injectedMs as number;
      for (
        let change = changes[next];
        change !== undefined && change.atNs / 1e6 <= injectedMs;
        change = changes[++next]
      ) {
        if (change.partition === null) continue;
        const known = primaries.get(change.partition);
        if (change.node !== null) primaries.set(change.partition, { nodeId: change.node, lostAtMs: Infinity });
        else if (known?.lostAtMs === Infinity)
          primaries.set(change.partition, { ...known, lostAtMs: change.atNs / 1e6 });
      }
      for (const [partition, primary] of primaries) {
        if (injectedMs - primary.lostAtMs < justBeforeMs && fault.targets.includes(primary.nodeId))
          this.add(partition, { faultId: fault.id, injectedMs, firstAckMs: Infinity });
      }
    }
  }

  /** A write of the partition was acknowledged. */
  acknowledged(partition: number, invokedMs: number, returnedMs: number): void {
    const hits = this.byPartition.get(partition);
    if (hits === undefined) return;
    for (const hit of hits) {
      if (hit.injectedMs > invokedMs) return;
      if (returnedMs < hit.firstAckMs) hit.firstAckMs = returnedMs;
    }
  }

  /** Per partition hit: from the injection to the first acknowledged write that was invoked after it, ms; Infinity where none was. */
  firstAcks(faultId: string): number[] {
    return (this.byFault.get(faultId) ?? []).map((hit) => hit.firstAckMs - hit.injectedMs);
  }

  private add(partition: number, hit: Hit): void {
    const hits = this.byPartition.get(partition) ?? [];
    hits.push(hit);
    this.byPartition.set(partition, hits);
    const own = this.byFault.get(hit.faultId) ?? [];
    own.push(hit);
    this.byFault.set(hit.faultId, own);
  }
}
