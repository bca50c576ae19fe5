/** Stores that differ from the shipped one by a single rule of zaris/partition/rules.ts. */
import { seq as asSeq } from '../../zaris/model/ids.ts';
import { soundRules } from '../../zaris/partition/rules.ts';
import type { BrokenStore } from './store.ts';

/** A member silent for this long is left out of the count by a timer, ms. */
const impatienceMs = 200;

const base = {
  durationMs: '60000',
  chaos: 'brutal',
  moments: 'true',
  nodes: '5',
  lossChance: '0',
  slowNodeMs: '0',
  requestTimeoutMs: '10000',
} as const;

export const ackBeforeReplication: BrokenStore = {
  name: 'ack-before-replication',
  doc: 'acknowledges after its own append, before any replica holds the entry',
  expects: ['lost', 'stale', 'diverged'],
  pins: { ...base, rf: '3', faults: 'kill,isolate,pause' },
  rules: { commitIndex: ({ lastSeq }) => lastSeq },
};

export const impatientCommit: BrokenStore = {
  name: 'in-sync-by-timer',
  doc: 'leaves a silent member out of the count after a timer, without a committed entry',
  expects: ['lost', 'stale', 'diverged'],
  pins: { ...base, rf: '3', faults: 'isolate,pause,one-way-in,one-way-out' },
  rules: {
    commitIndex: (input) =>
      soundRules.commitIndex({
        ...input,
        minInSync: 1,
        inSync: input.inSync.filter((match) => match.silentMs < impatienceMs),
      }),
  },
};

export const noOnceRecord: BrokenStore = {
  name: 'no-exactly-once',
  doc: 'keeps no record of what a client has done, so a repeat runs again',
  expects: ['duplicated', 'lost', 'not-linearizable', 'phantom', 'stale'],
  pins: {
    ...base,
    rf: '3',
    faults: 'kill,isolate',
    breaksPerMinute: '120',
    mix: 'counters:3,create:2,lists:2,registers:2',
    meanLatencyMs: '20',
  },
  rules: { remembered: () => ({ kind: 'unknown' }) },
};

export const noLease: BrokenStore = {
  name: 'no-lease',
  doc: 'answers reads without a lease or a confirmation',
  expects: ['stale', 'non-monotone', 'not-linearizable', 'lost', 'resurrected'],
  pins: {
    ...base,
    rf: '3',
    faults: 'isolate,halves',
    clients: '16',
    sessions: '16',
    ratePerSecond: '200',
    readRatio: '0.5',
    activeKeys: '4',
    distribution: 'hot',
    mix: 'registers:1',
  },
  rules: { leaseHeld: () => true },
};

export const tailCut: BrokenStore = {
  name: 'tail-cut-on-promotion',
  doc: 'a new primary cuts what it does not know to be committed',
  expects: ['lost', 'stale', 'resurrected'],
  pins: { ...base, rf: '2', faults: 'kill,isolate', beatMs: '250' },
  rules: {
    tailOnPromotion(log, commitSeq) {
      if (log.last.seq > commitSeq) log.truncateFrom(asSeq(commitSeq + 1));
    },
  },
};
