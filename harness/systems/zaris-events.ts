/** Collects the notices of all nodes, in order per node, from where it left off. */
import type { ClusterEvent } from '../../chaos/ports.ts';
import type { NodeAddress } from './system.ts';
import { getJson } from './zaris-http.ts';

const answerTimeoutMs = 800;

/** One element of `/events?after=N`. */
interface NumberedNotice {
  readonly number: number;
  readonly wallMs: number;
  readonly name: string;
  readonly fields: ClusterEvent['fields'];
}

export class ZarisEvents {
  private readonly addresses: readonly NodeAddress[];
  private readonly nowMs: () => number;
  private readonly cursors = new Map<string, number>();
  private readonly incarnations = new Map<string, number>();
  private readonly polledMs = new Map<string, number>();

  /** `addresses` may grow. */
  constructor(addresses: readonly NodeAddress[], nowMs: () => number) {
    this.addresses = addresses;
    this.nowMs = nowMs;
  }

  /** A node that was started again numbers its notices anew. */
  incarnation(nodeId: string, incarnation: number): void {
    if (this.incarnations.get(nodeId) !== incarnation) this.cursors.delete(nodeId);
    this.incarnations.set(nodeId, incarnation);
  }

  /** Everything new; a node that does not answer is asked again next time. */
  async poll(): Promise<readonly ClusterEvent[]> {
    const pages = await Promise.all(this.addresses.map((address) => this.pollNode(address)));
    return pages.flat().toSorted((a, b) => a.atMs - b.atMs);
  }

  private async pollNode({ nodeId, ...rest }: NodeAddress): Promise<ClusterEvent[]> {
    const after = this.cursors.get(nodeId) ?? 0;
    const page = (await getJson({ nodeId, ...rest }, `/events?after=${after}`, answerTimeoutMs)) as
      | readonly NumberedNotice[]
      | null;
    if (page === null) return [];
    const nowMs = this.nowMs();
    const sinceMs = this.polledMs.get(nodeId) ?? 0;
    this.polledMs.set(nodeId, nowMs);
    const last = page.at(-1);
    if (last !== undefined) this.cursors.set(nodeId, last.number);
    const agoOf = (wallMs: number): number => Date.now() - wallMs;
    // The node's wall clock tells how long ago; a clock that was set cannot move an event out of the time between two looks.
    return page.map(({ name, fields, wallMs }) => ({
      name,
      fields,
      nodeId,
      atMs: Math.min(nowMs, Math.max(sinceMs, nowMs - agoOf(wallMs))),
    }));
  }
}
