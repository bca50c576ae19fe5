/**
 * Stands between local processes: every connection to a node goes through a listener here, which knows by the source address
 * who calls, and carries each direction under that link's rules.
 *
 * What a cut means here, compared with packets: a connection to the proxy is accepted by the kernel at once, so a caller may
 * see "connected"; but nothing answers, and the node hears of it only when both directions are open. On a standing
 * connection one direction can be held while the other flows without bound; with packets the sender would stop after a window,
 * for want of acknowledgements. Invariant: a caller that is no known node reaches no cluster port, so that no traffic between
 * nodes can pass by its rules unseen.
 */
import { connect, createServer, type Server, type Socket } from 'node:net';
import type { Endpoint } from '../../../chaos/ports.ts';
import { LinkPipe, type PipeWorld } from './link-pipe.ts';
import type { LinkTable } from './link-table.ts';

const host = '127.0.0.1';
/** Connections at once; beyond it callers are refused. */
const maxConnections = 8_192;

/** One port of a node, and how it is reached. */
export interface Route {
  readonly owner: Endpoint;
  readonly targetPort: number;
  /** Only known nodes may call. */
  readonly nodesOnly: boolean;
}

/** Listeners and the connections through them. */
export class LinkProxy {
  private readonly links: LinkTable;
  private readonly world: PipeWorld;
  /** Source address → node. */
  private readonly callers = new Map<string, Endpoint>();
  private readonly servers = new Map<Endpoint, Server[]>();
  private readonly connections = new Set<Connection>();
  /** Callers that were refused at a cluster port for being unknown. */
  strangers = 0;

  constructor(links: LinkTable, world: PipeWorld) {
    this.links = links;
    this.world = world;
  }

  /** From now on connections from this address are this node's. */
  addCaller(address: string, nodeId: Endpoint): void {
    this.callers.set(address, nodeId);
  }

  /** Opens a listener; returns its port. */
  async open(route: Route): Promise<number> {
    const server = createServer({ allowHalfOpen: true, pauseOnConnect: true, noDelay: true }, (socket) =>
      this.accept(socket, route),
    );
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(0, host, resolve);
    });
    this.servers.set(route.owner, [...(this.servers.get(route.owner) ?? []), server]);
    const address = server.address();
    return typeof address === 'object' && address !== null ? address.port : 0;
  }

  /** Closes a node's listeners; standing connections end with their processes. */
  remove(nodeId: Endpoint): void {
    for (const server of this.servers.get(nodeId) ?? []) server.close();
    this.servers.delete(nodeId);
  }

  private accept(socket: Socket, route: Route): void {
    const caller = this.callers.get(socket.remoteAddress ?? '') ?? 'client';
    socket.on('error', () => socket.destroy());
    if (caller === 'client' && route.nodesOnly) {
      this.strangers++;
      return void socket.resetAndDestroy();
    }
    if (this.connections.size >= maxConnections) return void socket.resetAndDestroy();
    const connection = new Connection(socket, route.targetPort, {
      out: this.links.link(caller, route.owner),
      back: this.links.link(route.owner, caller),
      world: this.world,
      closed: () => this.connections.delete(connection),
    });
    this.connections.add(connection);
    connection.open();
  }
}

interface ConnectionParts {
  readonly out: ReturnType<LinkTable['link']>;
  readonly back: ReturnType<LinkTable['link']>;
  readonly world: PipeWorld;
  readonly closed: () => void;
}

const resetSocket = (stream: unknown): void => void (stream as Socket).resetAndDestroy();

/** A caller's connection and the one to the node that belongs to it. */
class Connection {
  private readonly caller: Socket;
  private readonly targetPort: number;
  private readonly parts: ConnectionParts;
  private readonly outPipe: LinkPipe;
  private backPipe: LinkPipe | null = null;
  private node: Socket | null = null;
  private readonly unwatch: (() => void)[];

  constructor(caller: Socket, targetPort: number, parts: ConnectionParts) {
    this.caller = caller;
    this.targetPort = targetPort;
    this.parts = parts;
    this.outPipe = new LinkPipe(caller, parts.out, parts.world, resetSocket, () => this.refuse());
    const retry = (): void => this.open();
    this.unwatch = [parts.out.watch(retry), parts.back.watch(retry)];
    caller.once('close', () => this.callerClosed());
    caller.resume();
  }

  /** Goes on to the node once both directions let a handshake pass. */
  open(): void {
    const { out, back, world } = this.parts;
    if (this.node !== null || this.caller.destroyed) return;
    if (out.settings.isReset || back.settings.isReset) return this.refuse();
    if (out.settings.isHeld || back.settings.isHeld) return;
    const node = connect({ host, port: this.targetPort, allowHalfOpen: true, noDelay: true });
    this.node = node;
    node.on('error', () => node.destroy());
    node.once('close', () => this.closedBoth());
    this.backPipe = new LinkPipe(node, back, world, resetSocket, () => this.refuse());
    this.backPipe.connect(this.caller);
    node.once('connect', () => this.outPipe.connect(node));
  }

  private refuse(): void {
    this.caller.resetAndDestroy();
    this.node?.resetAndDestroy();
    this.outPipe.close();
    this.backPipe?.close();
    this.over();
  }

  private callerClosed(): void {
    // A node that never heard of it need not hear of its end.
    if (this.node === null) {
      this.outPipe.close();
      this.over();
    } else this.closedBoth();
  }

  private closedBoth(): void {
    if (!this.caller.destroyed || this.node?.destroyed === false) return;
    this.outPipe.close();
    this.backPipe?.close();
    this.over();
  }

  private over(): void {
    for (const end of this.unwatch) end();
    this.parts.closed();
  }
}
