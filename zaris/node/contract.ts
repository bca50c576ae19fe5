/**
 * The contract between a node and the world that runs it: events in, effects out, in order.
 *
 * `Node.step(event, nowMs) → Effect[]` is synchronous and deterministic. The world (server shell, simulator) owes it:
 * effects are carried out in the order given, across steps too, and **no ordered effect ({@link isOrdered}) that follows a
 * `persist` is released before that persist is durable and its `persisted` event has been fed back**. If a world broke this,
 * a voter could vote twice in a term after a crash, or vouch for a control entry that never existed.
 *
 * Ordered is what vouches for the control disk: Raft's messages and the process's end. All else overtakes a persist: the data plane
 * keeps nothing on disk (a crash takes its memory and makes a new incarnation of it), and acts on control entries only once a quorum
 * has them on disk. Were it held back too, one slow fsync would stop all writes of a node, which a soak on a busy host showed.
 * `nowMs` is monotonic; nothing here reads a clock.
 */
import type { Answer, ClientRequest } from '../model/client-wire.ts';
import type { NodeId } from '../model/ids.ts';
import type { PeerMessage } from '../model/peer-wire.ts';
import type { DiskWrite } from '../model/raft-wire.ts';

export type NodeEvent =
  /** First event of a process. */
  | { readonly kind: 'start' }
  /** The time of the last `wake` effect has come (early or repeated ticks are harmless). */
  | { readonly kind: 'tick' }
  | { readonly kind: 'message'; readonly from: NodeId; readonly message: PeerMessage }
  /** The connection to a peer was closed or refused (evidence for the failure detector; never for safety). */
  | { readonly kind: 'linkDown'; readonly nodeId: NodeId }
  | { readonly kind: 'linkUp'; readonly nodeId: NodeId }
  | { readonly kind: 'persisted'; readonly ticket: number }
  /** A decoded request of a client. `connection` is unique for the life of the process. */
  | { readonly kind: 'request'; readonly connection: number; readonly request: ClientRequest }
  | { readonly kind: 'connectionClosed'; readonly connection: number }
  /** SIGTERM: hand over, then `exit`. */
  | { readonly kind: 'shutdown' };

export type Effect =
  /** Make the writes durable (fsync), then feed `persisted`. */
  | { readonly kind: 'persist'; readonly ticket: number; readonly writes: readonly DiskWrite[] }
  /** Best effort: may be lost, repeated or reordered by the world. */
  | { readonly kind: 'send'; readonly to: NodeId; readonly message: PeerMessage }
  | { readonly kind: 'reply'; readonly connection: number; readonly answer: Answer }
  /** Feed `tick` at this time; replaces the earlier wake. */
  | { readonly kind: 'wake'; readonly atMs: number }
  /** Where a peer listens for peers (host:port); replaces what was known. */
  | { readonly kind: 'address'; readonly nodeId: NodeId; readonly clusterAddress: string }
  /** Something people and metrics want to know: epochs, promotions, in-sync changes, handoff steps. */
  | { readonly kind: 'notice'; readonly notice: Notice }
  /** The drain is complete; the process may end. */
  | { readonly kind: 'exit'; readonly code: number };

/** A structured event; `name` is stable, fields are flat. Goes to the log, to `/events` and to chaos triggers. */
export interface Notice {
  readonly name: string;
  readonly level: 'debug' | 'info' | 'warn' | 'error';
  readonly fields: Readonly<Record<string, string | number | boolean | null>>;
}

/** True for effects that must not overtake a `persist`. */
export function isOrdered(effect: Effect): boolean {
  return (
    effect.kind === 'persist' || effect.kind === 'exit' || (effect.kind === 'send' && effect.message.kind === 'raft')
  );
}
