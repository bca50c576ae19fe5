/** Stores that say something wrong to each other: the shipped node, with what leaves it rewritten. */
import type { Entry } from '../../zaris/model/entry.ts';
import type { AppendMessage, PeerMessage } from '../../zaris/model/peer-wire.ts';
import type { Effect } from '../../zaris/node/contract.ts';
import { seq as asSeq } from '../../zaris/model/ids.ts';
import type { BrokenStore } from './store.ts';

const base = {
  durationMs: '60000',
  chaos: 'brutal',
  moments: 'true',
  nodes: '5',
  lossChance: '0',
  slowNodeMs: '0',
  requestTimeoutMs: '10000',
} as const;

/** Rewrites the messages among the effects. */
const rewrite =
  (change: (message: PeerMessage) => PeerMessage) =>
  (effects: Effect[]): Effect[] =>
    effects.map((effect) => (effect.kind === 'send' ? { ...effect, message: change(effect.message) } : effect));

const withEntries = (message: PeerMessage, change: (entry: Entry) => Entry): PeerMessage =>
  message.kind === 'append' ? { ...message, entries: message.entries.map(change) } : message;

/** One entry in so many is skipped. */
const skipEvery = 41;

export const skippedEntry: BrokenStore = {
  name: 'replica-skips-entries',
  doc: 'now and then a replica is sent an entry without its effect, and acknowledges it',
  expects: ['lost', 'stale', 'diverged', 'resurrected'],
  pins: { ...base, rf: '3', faults: 'kill' },
  effects: rewrite((message) =>
    withEntries(message, (entry) =>
      entry.seq % skipEvery === 0 && entry.effect.kind === 'put' ? { ...entry, effect: { kind: 'completion' } } : entry,
    ),
  ),
};

export const shortenedTtl: BrokenStore = {
  name: 'ttl-shortened',
  doc: 'a replica is told a quarter of the time to live, so that a failover expires values early',
  expects: ['ttl', 'lost', 'stale'],
  pins: { ...base, rf: '3', faults: 'kill,isolate', mix: 'ttl:5,set:1', ratePerSecond: '200' },
  effects: rewrite((message) =>
    withEntries(message, (entry) =>
      entry.effect.kind === 'put' && entry.effect.ttlMs !== undefined
        ? { ...entry, effect: { ...entry.effect, ttlMs: entry.effect.ttlMs / 4 } }
        : entry,
    ),
  ),
};

export const forgetfulSnapshot: BrokenStore = {
  name: 'snapshot-without-records',
  doc: 'a snapshot carries the values but not the exactly-once records',
  expects: ['duplicated', 'lost', 'not-linearizable', 'phantom', 'stale'],
  pins: {
    ...base,
    rf: '3',
    faults: 'kill,client-partition',
    requestTimeoutMs: '60000',
    logKeepEntries: '16',
    holdDownMs: '500',
    mix: 'counters:3,create:1,lists:1',
    ratePerSecond: '200',
    sessions: '32',
  },
  effects: rewrite((message) => (message.kind === 'snapshot-chunk' ? { ...message, clients: [] } : message)),
};

export const blindAcknowledgement: BrokenStore = {
  name: 'acknowledges-blindly',
  doc: 'a replica acknowledges what it was sent even where its log does not match',
  expects: ['lost', 'stale', 'diverged', 'resurrected'],
  pins: { ...base, rf: '3', faults: 'kill,isolate,pause' },
  effects(effects, events) {
    const appends = events.flatMap((event) =>
      event.kind === 'message' && event.message.kind === 'append' ? [event.message] : [],
    );
    const sentUpTo = (message: AppendMessage): number => message.previousSeq + message.entries.length;
    return rewrite((message) => {
      if (message.kind !== 'append-ack' || message.matched) return message;
      const append = appends.find((one) => one.partition === message.partition && one.term === message.term);
      return append === undefined ? message : { ...message, matched: true, seq: asSeq(sentUpTo(append)) };
    })(effects);
  },
};
