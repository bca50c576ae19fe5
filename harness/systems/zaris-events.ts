/** Collects the notices of all nodes, in order per node, from where it left off. */
import type { ClusterEvent } from '../../chaos/ports.ts';
import type { NodeAddress } from './system.ts';
import { getJson } from './zaris-http.ts';

const answerTimeoutMs = 800;

/** What `/events?after=N` answers. */
interface EventsDocument {
  readonly nonce?: string;
  readonly next?: number;
  readonly events?: readonly { readonly name: string; readonly fields: ClusterEvent['fields'] }[];
}

export class ZarisEvents {
  private readonly addresses: readonly NodeAddress[];
  private readonly nowMs: () => number;
  private readonly cursors = new Map<string, number>();

  constructor(addresses: readonly NodeAddress[], nowMs: () => number) {
    this.addresses = addresses;
    this.nowMs = nowMs;
  }

  /** Everything new; a node that does not answer is asked again next time. */
  async poll(): Promise<readonly ClusterEvent[]> {
    const pages = await Promise.all(this.addresses.map((address) => this.pollNode(address)));
    return pages.flat();
  }

  private async pollNode(address: NodeAddress): Promise<ClusterEvent[]> {
    const after = this.cursors.get(address.nodeId) ?? 0;
    const page = (await getJson(address, `/events?after=${after}`, answerTimeoutMs)) as EventsDocument | null;
    if (page === null || page.next === undefined) return [];
    // A smaller cursor: the node has started anew and counts from the beginning.
    this.cursors.set(address.nodeId, page.next);
    const atMs = this.nowMs();
    return (page.events ?? []).map(({ name, fields }) => ({ name, fields, nodeId: address.nodeId, atMs }));
  }
}
