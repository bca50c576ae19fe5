/**
 * Collects the effects of one turn in the order of the contract, and loops messages of a node to itself back into it.
 * Data-plane effects of a turn that do not depend on what it persists stand before the `persist`, so that they need not wait.
 */
import type { Answer } from '../model/client-wire.ts';
import type { NodeId } from '../model/ids.ts';
import type { PeerMessage } from '../model/peer-wire.ts';
import type { Effect, Notice } from './contract.ts';

export class Outbox {
  private effects: Effect[] = [];
  private readonly self: NodeId;
  private own: PeerMessage[] = [];

  constructor(self: NodeId) {
    this.self = self;
  }

  send(to: NodeId, message: PeerMessage): void {
    if (to === this.self) this.own.push(message);
    else this.effects.push({ kind: 'send', to, message });
  }

  reply(connection: number, answer: Answer): void {
    this.effects.push({ kind: 'reply', connection, answer });
  }

  notice(level: Notice['level'], name: string, fields: Notice['fields']): void {
    this.effects.push({ kind: 'notice', notice: { level, name, fields } });
  }

  add(effect: Effect): void {
    this.effects.push(effect);
  }

  /** The next message of this node to itself. */
  takeOwn(): PeerMessage | undefined {
    return this.own.length === 0 ? undefined : this.own.shift();
  }

  take(): Effect[] {
    const { effects } = this;
    this.effects = [];
    return effects;
  }
}
