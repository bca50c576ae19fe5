/**
 * Bytes of client requests that outlive their connection: they lie in the socket of a paused node, or wait to be sent again after a
 * loss or a cut, while the client has given the connection up and asks again on another. They arrive late, in the order sent, the
 * close behind them, at the process that accepted the connection and at no other; the answers go nowhere.
 *
 * If all of them arrived before the retry, or never, no run would show a store that carries an old attempt out after it has told
 * the caller that nothing happened, or once more after it has forgotten the first time. So some connections hang with a mutation on
 * them, and break, for no other reason.
 */
import type { NodeId } from '../zaris/model/ids.ts';
import type { NodeEvent } from '../zaris/node/contract.ts';
import type { World } from './world.ts';

/** How long after the close a kernel goes on to send what a cut or a full socket holds up, ms. Below the silence that servers bear. */
const givenUpAfterMs = 30_000;

interface UnderWay {
  readonly event: NodeEvent;
  readonly atMs: number;
  isTaken: boolean;
}

interface Stream {
  readonly to: NodeId;
  readonly instance: number;
  underWay: UnderWay[];
  /** Lost for now. Nothing on the connection came through since, so these may yet come in their order. */
  held: NodeEvent[];
  /** Nothing further arrives before it is closed. */
  isStalled: boolean;
}

/** A repeat that hung as well would leave the call in doubt, and an old attempt of it could do no harm. */
const isFirstAttempt = (event: NodeEvent): boolean =>
  event.kind === 'request' && event.request.op === 'mutate' && event.request.attempt === 1;

export class LateRequests {
  private readonly world: World;
  private readonly deliver: (to: NodeId, instance: number, event: NodeEvent) => void;
  /** Open connections by their number. */
  private readonly streams = new Map<number, Stream>();

  constructor(world: World, deliver: (to: NodeId, instance: number, event: NodeEvent) => void) {
    this.world = world;
    this.deliver = deliver;
  }

  send(to: NodeId, connection: number, event: NodeEvent, instance: number): void {
    const { world } = this;
    let stream = this.streams.get(connection);
    if (stream === undefined) {
      stream = { to, instance, underWay: [], held: [], isStalled: false };
      this.streams.set(connection, stream);
    }
    if (!stream.isStalled && isFirstAttempt(event)) this.mayStall(stream, connection);
    if (stream.isStalled || world.isCut('client', to)) {
      stream.held.push(event);
      return;
    }
    stream.held = [];
    const { underWay } = stream;
    const atMs = world.network.streamArrivalMs('client', to, connection, world.nowMs);
    const item = { event, atMs, isTaken: false };
    underWay.push(item);
    world.at(atMs, () => {
      if (item.isTaken) return;
      underWay.shift();
      this.deliver(to, instance, event);
    });
  }

  private mayStall(stream: Stream, connection: number): void {
    const { world } = this;
    const forMs = world.network.stallMs(world.nowMs);
    if (forMs === null) return;
    stream.isStalled = true;
    world.at(world.nowMs + forMs, () => world.onStalled(connection));
  }

  /** Ends a connection. False: nothing of it was on its way, and its close goes as any. `unread` lies in the node's socket. */
  close(connection: number, unread: readonly NodeEvent[], closed: NodeEvent): boolean {
    const stream = this.streams.get(connection);
    this.streams.delete(connection);
    const { underWay = [], held = [] } = stream ?? {};
    const events = [...unread, ...underWay.map(({ event }) => event), ...held];
    if (stream === undefined || events.length === 0) return false;
    for (const item of underWay) item.isTaken = true;
    const { nowMs } = this.world;
    this.arrive(stream, [...events, closed], underWay.at(-1)?.atMs ?? nowMs, nowMs + givenUpAfterMs);
    return true;
  }

  /** The sockets of a process die with it. */
  died(nodeId: NodeId): void {
    for (const [connection, { to }] of this.streams) if (to === nodeId) this.streams.delete(connection);
  }

  private arrive(stream: Stream, events: readonly NodeEvent[], notBeforeMs: number, untilMs: number): void {
    const { world } = this;
    const { to, instance } = stream;
    world.at(notBeforeMs + world.network.lateMs(), () => {
      if (world.instance(to) !== instance) return;
      if (!world.isCut('client', to) && !world.node(to).paused)
        for (const event of events) this.deliver(to, instance, event);
      else if (world.nowMs < untilMs) this.arrive(stream, events, world.nowMs, untilMs);
    });
  }
}
