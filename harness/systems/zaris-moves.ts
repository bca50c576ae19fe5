/**
 * Has Zaris move copies to nodes that were added and away from nodes that were removed for good, as an operator would.
 *
 * Invariant: a new map is asked for only while every other member is alive, as long as that can be waited for: Zaris draws maps over the nodes
 * that are alive, and one drawn under a fault would take all copies off a node that is back in a second. Without any of this a node that was
 * added would stay empty, and scaling would test nothing.
 */
import type { AdminCommand } from '../../zaris/model/client-wire.ts';
import { nodeId as asNodeId } from '../../zaris/model/ids.ts';
import type { ClusterView } from '../../zaris/model/view.ts';

/** Pause between two looks, ms. */
const everyMs = 500;
/** Pause after a map was asked for: it takes a moment to be committed, ms. */
const settleMs = 2_000;
/** Longest wait for a moment without a dead member, ms. */
export const calmWaitMs = 60_000;

export interface ZarisMovesOptions {
  /** Null when no node gave a confirmed view. */
  readonly view: () => Promise<ClusterView | null>;
  /** Never rejects. */
  readonly admin: (command: AdminCommand) => Promise<void>;
  readonly nowMs: () => number;
  readonly sleep: (ms: number) => Promise<void>;
}

/** One loop in the background while anything is wanted. */
export class ZarisMoves {
  private readonly options: ZarisMovesOptions;
  private readonly joining = new Set<string>();
  private readonly leaving = new Set<string>();
  private wantedSinceMs = 0;
  private isRunning = false;
  private isClosed = false;

  constructor(options: ZarisMovesOptions) {
    this.options = options;
  }

  added(nodeId: string): void {
    this.joining.add(nodeId);
    this.wake();
  }

  removed(nodeId: string): void {
    this.joining.delete(nodeId);
    this.leaving.add(nodeId);
    this.wake();
  }

  close(): void {
    this.isClosed = true;
  }

  private wake(): void {
    this.wantedSinceMs = this.options.nowMs();
    if (this.isRunning) return;
    this.isRunning = true;
    void this.run();
  }

  private async run(): Promise<void> {
    const { view, admin, sleep } = this.options;
    while (!this.isClosed) {
      const now = await view();
      if (now !== null) this.strikeOff(now);
      if (this.joining.size + this.leaving.size === 0) break;
      if (now !== null && this.mayAsk(now)) {
        await admin({ kind: 'rebalance', leaving: [...this.leaving].map((id) => asNodeId(id)) });
        this.wantedSinceMs = this.options.nowMs();
        await sleep(settleMs);
      } else await sleep(everyMs);
    }
    this.isRunning = false;
  }

  /** What has come true is wanted no more. */
  private strikeOff({ nodes, partitions }: ClusterView): void {
    for (const id of this.joining)
      if (partitions.some(({ replicas }) => replicas.some((holder) => holder === id))) this.joining.delete(id);
    for (const id of this.leaving) if (!nodes.some(({ nodeId }) => nodeId === id)) this.leaving.delete(id);
  }

  private mayAsk({ nodes }: ClusterView): boolean {
    const isThere = (id: string): boolean => nodes.some(({ nodeId, alive }) => nodeId === id && alive);
    const staying = nodes.filter(({ nodeId }) => !this.leaving.has(nodeId));
    const isCalm = staying.every(({ alive }) => alive) && [...this.joining].every(isThere);
    return isCalm || this.options.nowMs() - this.wantedSinceMs >= calmWaitMs;
  }
}
