/**
 * The control leader's failure detector: closed connections, missing beacons. It only decides how soon a failover starts, and
 * no acknowledgement rests on it. But whom it gives up is no copy any more: a wrong word while the others die costs the last one.
 */
import type { NodeId } from '../model/ids.ts';

export interface DetectorTimings {
  /** After a closed connection the node is looked at again; no answer within this counts as gone. */
  readonly lookMs: number;
  /** A node silent for this long is gone even when its connections stand. */
  readonly suspectEscalationMs: number;
}

interface Watched {
  lastHeardMs: number;
  linkDownMs: number | null;
  lookNonce: number;
}

export class FailureDetector {
  private readonly timings: DetectorTimings;
  private readonly watched = new Map<NodeId, Watched>();
  private nextNonce = 1;
  /**
   * A majority of the control voters had been heard until then. Whoever hears nobody is deaf or cut off itself, and its word of the
   * others would be carried out all the same: what it proposes may reach them, and its successor commits it.
   */
  private quorumHeardMs = Number.NEGATIVE_INFINITY;

  constructor(timings: DetectorTimings) {
    this.timings = timings;
  }

  private watch(nodeId: NodeId, nowMs: number): Watched {
    let watched = this.watched.get(nodeId);
    if (watched === undefined) {
      watched = { lastHeardMs: nowMs, linkDownMs: null, lookNonce: 0 };
      this.watched.set(nodeId, watched);
    }
    return watched;
  }

  /** To be told before {@link isGone} is asked. */
  onQuorum(heardMs: number): void {
    this.quorumHeardMs = heardMs;
  }

  onBeacon(nodeId: NodeId, nowMs: number): void {
    this.watch(nodeId, nowMs).lastHeardMs = nowMs;
  }

  /** Returns the nonce of the look to send now, or null when one is under way. */
  onLinkDown(nodeId: NodeId, nowMs: number): number | null {
    const watched = this.watch(nodeId, nowMs);
    if (watched.linkDownMs !== null) return null;
    watched.linkDownMs = nowMs;
    watched.lookNonce = this.nextNonce++;
    return watched.lookNonce;
  }

  onLinkUp(nodeId: NodeId, nowMs: number): void {
    this.watch(nodeId, nowMs).linkDownMs = null;
  }

  onLookAck(nodeId: NodeId, nonce: number, nowMs: number): void {
    const watched = this.watch(nodeId, nowMs);
    if (watched.lookNonce !== nonce) return;
    watched.linkDownMs = null;
    watched.lastHeardMs = nowMs;
  }

  /** A new start of the node: what was known of the old one is void. */
  onRegistered(nodeId: NodeId, nowMs: number): void {
    this.watched.set(nodeId, { lastHeardMs: nowMs, linkDownMs: null, lookNonce: 0 });
  }

  /**
   * This node became leader, or stood still: a connection that closed before may have been the fault of its own side, and a network that
   * heals tells of it late. Every such node is to be looked at once more. Returns the looks to send now.
   */
  lookAgain(nowMs: number): { readonly nodeId: NodeId; readonly nonce: number }[] {
    const looks: { nodeId: NodeId; nonce: number }[] = [];
    for (const [nodeId, watched] of this.watched) {
      if (watched.linkDownMs === null) continue;
      watched.linkDownMs = nowMs;
      watched.lookNonce = this.nextNonce++;
      looks.push({ nodeId, nonce: watched.lookNonce });
    }
    return looks;
  }

  /** This node became leader, or stood still: silence before now proves nothing. */
  forgiveSilence(nodeIds: readonly NodeId[], nowMs: number): void {
    for (const nodeId of nodeIds) this.watch(nodeId, nowMs).lastHeardMs = nowMs;
  }

  isGone(nodeId: NodeId, nowMs: number): boolean {
    const watched = this.watched.get(nodeId);
    if (watched === undefined) return false;
    const { linkDownMs, lastHeardMs } = watched;
    const isUnanswered = linkDownMs !== null && nowMs - linkDownMs >= this.timings.lookMs;
    if (isUnanswered && this.quorumHeardMs > linkDownMs) return true;
    return Math.min(nowMs, this.quorumHeardMs) - lastHeardMs >= this.timings.suspectEscalationMs;
  }

  silentForMs(nodeId: NodeId, nowMs: number): number {
    const watched = this.watched.get(nodeId);
    return watched === undefined ? 0 : nowMs - watched.lastHeardMs;
  }

  /** The first moment after `afterMs` at which a look runs out; a node that is gone already wakes nobody again. */
  nextDeadlineMs(afterMs: number): number {
    let next = Number.POSITIVE_INFINITY;
    for (const { linkDownMs } of this.watched.values()) {
      if (linkDownMs === null) continue;
      const atMs = linkDownMs + this.timings.lookMs;
      if (atMs > afterMs && atMs < next) next = atMs;
    }
    return next;
  }
}
