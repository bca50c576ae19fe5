/** What several hazard tests share: quick suspicion, stores with one rule exchanged, and words for messages and calls. */
import type { ControlCommand } from '../../zaris/control/commands.ts';
import type { ClientRequest } from '../../zaris/model/client-wire.ts';
import type { PeerMessage } from '../../zaris/model/peer-wire.ts';
import type { NodeParts } from '../../zaris/node/options.ts';
import { soundRules } from '../../zaris/partition/rules.ts';
import type { Script } from '../testing/script.ts';

/** A control leader that leads no partition in a cluster of five with one partition: what members propose crosses the network. */
export const apart = { nodeCount: 5, controlAt: 'n5' } as const;

/** A silent node is gone after 1.5 s instead of 10. */
export const quickSuspicion = { node: { control: { suspectEscalationMs: 1_500 } } } as const;

/** A store with some rules exchanged and its own asserts off. */
export const broken = (rules: Partial<NodeParts['rules']>): NodeParts => ({
  rules: { ...soundRules, ...rules },
  onBrokenInvariant() {},
});

/** A message that asks the control leader for a command of this kind. */
export const proposes = (message: PeerMessage, kind: ControlCommand['kind']): boolean =>
  message.kind === 'propose' && (message.commands as ControlCommand[]).some((command) => command.kind === kind);

/** A message that carries entries of a partition's log. */
export const carriesEntries = (message: PeerMessage): boolean =>
  message.kind === 'append' && message.entries.length > 0;

/** A put as a client's call. */
export const put = (key: string, value: string) => ({ kind: 'mutate', mutation: { kind: 'put', key, value } }) as const;

/** A put past every client: nobody repeats it, and its answer goes to whoever asked. Sequences of `raw` count up. */
export const rawPut = (script: Script, key: string, value: string, sequence = 1): ClientRequest => ({
  op: 'mutate',
  id: 1,
  partition: script.partitionOf(key),
  once: { clientId: 'raw', sequence, lowWatermark: sequence },
  mutation: { kind: 'put', key, value },
  attempt: 1,
});

/** A get past every client. */
export const rawGet = (script: Script, key: string): ClientRequest => ({
  op: 'get',
  id: 1,
  partition: script.partitionOf(key),
  key,
});

/** An addition to a counter as a client's call. */
export const add = (key: string) => ({ kind: 'mutate', mutation: { kind: 'add', key, delta: 1 } }) as const;
