/**
 * Runs client cores on the simulated network: dials, sends, delivers answers, closes connections of dead processes.
 * It never repeats or invents a request; what a cut swallows is simply never answered, as with packets.
 */
import { present, unreachable } from '../lib/assert.ts';
import type { Prng } from '../lib/prng.ts';
import type { CallOperation, CallResult, ClientEffect, ClientEvent, ClientOptions } from '../zaris/client/contract.ts';
import { defaultClientOptions } from '../zaris/client/contract.ts';
import { ClientCore } from '../zaris/client/core.ts';
import type { Answer } from '../zaris/model/client-wire.ts';
import { type NodeId, nodeId as asNodeId } from '../zaris/model/ids.ts';
import { OpenTable } from './open-table.ts';
import type { World } from './world.ts';

interface Open {
  readonly client: SimClient;
  /** The client's own name of the connection. */
  readonly connection: number;
  readonly nodeId: NodeId;
  readonly instance: number;
  /** The process at the other end is gone; what it had sent still arrives. */
  ended: boolean;
}

/** All connections of all clients of one world. */
export class ClientHost {
  readonly world: World;
  private readonly open = new Map<number, Open>();
  private nextConnection = 1;
  /** Drops an answer on its way; for tests of lost answers. */
  dropAnswer: (answer: Answer, connection: number) => boolean = () => false;

  constructor(world: World) {
    this.world = world;
    world.onAnswer = (from, connection, answer) => {
      const open = this.open.get(connection);
      if (open === undefined || open.nodeId !== from || this.dropAnswer(answer, connection)) return;
      open.client.feed({ kind: 'answers', connection: open.connection, answers: [answer] });
    };
    world.onStopped = (nodeId, instance) => {
      for (const [connection, open] of this.open) {
        if (open.nodeId === nodeId && open.instance === instance && !open.ended)
          this.endOf(connection, open, 'closed by the peer');
      }
    };
    world.onStalled = (connection) => this.breakConnection(connection, 'connection timed out');
    world.onReset = (nodeId) => {
      for (const [connection, open] of this.open)
        if (open.nodeId === nodeId) this.breakConnection(connection, 'connection reset');
    };
  }

  /** Tells the client of the end of a connection, behind whatever is still on its way to it. */
  private endOf(connection: number, open: Open, reason: string): void {
    const { world } = this;
    open.ended = true;
    // Behind a cut the end of the connection is not seen either.
    if (world.isCut(open.nodeId, 'client')) {
      this.open.delete(connection);
      return;
    }
    const atMs = world.network.streamArrivalMs(open.nodeId, 'client', connection, world.nowMs);
    world.at(atMs, () => {
      if (this.open.get(connection) !== open) return;
      this.open.delete(connection);
      open.client.feed({ kind: 'disconnected', connection: open.connection, reason });
    });
  }

  /** Open connections, for those who break some. */
  get connections(): readonly number[] {
    return [...this.open.keys()];
  }

  /** Breaks a connection at both ends; answers on their way are lost, requests on their way still arrive. */
  breakConnection(connection: number, reason: string): void {
    const open = this.open.get(connection);
    if (open === undefined) return;
    this.close(connection);
    open.client.feed({ kind: 'disconnected', connection: open.connection, reason });
  }

  client(clientId: string, random: Prng, options: Partial<ClientOptions> = {}): SimClient {
    const seeds = [...this.world.nodes.keys()].map((id) => `${id}:7861`);
    return new SimClient(this, { ...defaultClientOptions, clientId, seeds, ...options }, random);
  }

  dial(client: SimClient, connection: number, address: string): number | null {
    const { world } = this;
    const nodeId = asNodeId(present(address.split(':')[0], 'host'));
    if (world.isCut('client', nodeId) || world.isCut(nodeId, 'client')) return null;
    const instance = world.instance(nodeId);
    const own = this.nextConnection++;
    world.at(world.nowMs + 2 * world.network.latency(), () => {
      if (instance === null || world.instance(nodeId) !== instance || world.network.isReset('client', nodeId)) {
        client.feed({ kind: 'disconnected', connection, reason: 'connection refused' });
        return;
      }
      this.open.set(own, { client, connection, nodeId, instance, ended: false });
      client.feed({ kind: 'connected', connection });
    });
    return own;
  }

  get(connection: number): Open | undefined {
    return this.open.get(connection);
  }

  close(connection: number): void {
    const open = this.open.get(connection);
    if (open === undefined) return;
    this.open.delete(connection);
    this.world.closeConnection(open.nodeId, connection, open.instance);
  }
}

export class SimClient {
  readonly core: ClientCore;
  private readonly host: ClientHost;
  private readonly connections = new Map<number, number>();
  private readonly pending = new OpenTable<(result: CallResult) => void>();
  private nextCallId = 1;
  private wakeAtMs = Number.POSITIVE_INFINITY;

  constructor(host: ClientHost, options: ClientOptions, random: Prng) {
    this.host = host;
    this.core = new ClientCore(options, random);
    this.feed({ kind: 'start' });
  }

  call(operation: CallOperation, done: (result: CallResult) => void, timeoutMs?: number): void {
    const callId = this.nextCallId++;
    this.pending.put(callId, done);
    this.feed(
      timeoutMs === undefined ? { kind: 'call', callId, operation } : { kind: 'call', callId, operation, timeoutMs },
    );
  }

  feed(event: ClientEvent): void {
    for (const effect of this.core.step(event, this.host.world.nowMs)) this.carryOut(effect);
  }

  private carryOut(effect: ClientEffect): void {
    const { world } = this.host;
    switch (effect.kind) {
      case 'connect': {
        const own = this.host.dial(this, effect.connection, effect.address);
        if (own !== null) this.connections.set(effect.connection, own);
        return;
      }
      case 'disconnect': {
        const own = this.connections.get(effect.connection);
        this.connections.delete(effect.connection);
        if (own !== undefined) this.host.close(own);
        return;
      }
      case 'send': {
        const own = this.connections.get(effect.connection);
        const open = own === undefined ? undefined : this.host.get(own);
        if (own !== undefined && open !== undefined && !open.ended)
          world.request(open.nodeId, own, effect.request, open.instance);
        return;
      }
      case 'settle': {
        this.pending.take(effect.callId)?.(effect.result);
        return;
      }
      case 'ready':
        return;
      case 'wake': {
        const { atMs } = effect;
        this.wakeAtMs = atMs;
        if (atMs === Number.POSITIVE_INFINITY) return;
        world.at(atMs, () => {
          if (this.wakeAtMs === atMs) this.feed({ kind: 'tick' });
        });
        return;
      }
      default:
        unreachable(effect);
    }
  }
}
