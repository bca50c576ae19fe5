/**
 * How long planned handoffs held writes, by the nodes' own notices: from `handoff-started` at the old primary to the edge with which the
 * new one serves. What a client adds by its retries is not in it. Nodes on one host share a wall clock, which the notices carry.
 */
import type { ClusterEvent } from '../../chaos/ports.ts';
import type { RunningSystem } from '../systems/system.ts';

const pollMs = 40;

/** Holds found in a stretch of notices, ms; an aborted handoff, or one that has not ended, is none. */
export function holdsOf(events: readonly ClusterEvent[]): number[] {
  const started = new Map<unknown, { readonly atMs: number; readonly from: unknown }>();
  const holds: number[] = [];
  for (const { name, fields, atMs } of events.toSorted((a, b) => a.atMs - b.atMs)) {
    const { partition } = fields;
    const open = started.get(partition);
    if (name === 'handoff-started') started.set(partition, { atMs, from: fields['member'] });
    else if (open === undefined) continue;
    else if (name === 'handoff-aborted') started.delete(partition);
    else if (name.startsWith('edge-') && fields['serving'] === true && fields['primary'] !== open.from) {
      started.delete(partition);
      holds.push(atMs - open.atMs);
    }
  }
  return holds;
}

/** Collects the notices of all nodes from its construction on, often enough not to miss those of a node that stops. */
export class HoldWatch implements AsyncDisposable {
  private readonly system: RunningSystem;
  private readonly events: ClusterEvent[] = [];
  private readonly running: Promise<void>;
  private isOver = false;

  constructor(system: RunningSystem) {
    this.system = system;
    this.running = this.run();
  }

  private async run(): Promise<void> {
    // What happened before is not ours.
    await this.system.events();
    while (!this.isOver) {
      await new Promise((resolve) => setTimeout(resolve, pollMs));
      this.events.push(...(await this.system.events()));
    }
  }

  holds(): number[] {
    return holdsOf(this.events);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.isOver = true;
    await this.running;
  }
}
