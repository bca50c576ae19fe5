/**
 * The digest of everything that was delivered, in order: equal for equal seeds; and the watch over the pace of virtual time. If two
 * different runs had one hash, "deterministic" would mean nothing.
 */
import type { NodeEvent } from '../zaris/node/contract.ts';

/** Events in one virtual second above which the nodes are taken to run in circles. */
const eventsPerSecondBound = 200_000;

const eventCodes: Readonly<Record<NodeEvent['kind'], number>> = {
  start: 1,
  tick: 2,
  message: 3,
  linkDown: 4,
  linkUp: 5,
  persisted: 6,
  request: 7,
  connectionClosed: 8,
  shutdown: 9,
};

/** Virtual time hardly moves any more. */
export class CircleError extends Error {
  override readonly name = 'CircleError';
}

export class TraceHash {
  /** Events that were mixed in. */
  delivered = 0;
  private readonly messageCodes = new Map<string, number>();
  private hash = 0x811c9dc5;
  private secondEndsMs = 0;
  private deliveredBefore = 0;

  get text(): string {
    return (this.hash >>> 0).toString(16).padStart(8, '0');
  }

  /** Takes in one event. `place` and `from` are the nodes' places in the order of creation. Throws {@link CircleError}. */
  mix(event: NodeEvent, place: number, from: number, nowMs: number): void {
    this.delivered += 1;
    this.checkPace(nowMs);
    let code = eventCodes[event.kind] + 16 * place;
    if (event.kind === 'message') {
      const { kind } = event.message;
      let known = this.messageCodes.get(kind);
      if (known === undefined) this.messageCodes.set(kind, (known = this.messageCodes.size + 1));
      code += 4_096 * known + 262_144 * from;
    }
    this.hash = Math.imul(Math.imul(this.hash ^ code, 0x01000193) ^ (nowMs * 1_000), 0x01000193);
  }

  private checkPace(nowMs: number): void {
    if (nowMs >= this.secondEndsMs) {
      this.secondEndsMs = nowMs + 1_000;
      this.deliveredBefore = this.delivered;
    } else if (this.delivered - this.deliveredBefore > eventsPerSecondBound) {
      throw new CircleError(
        `more than ${eventsPerSecondBound} events within one second of virtual time, at ${Math.round(nowMs)} ms: the nodes run in circles`,
      );
    }
  }
}
