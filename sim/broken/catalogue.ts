/** All broken stores: those that DESIGN §10 asks for first, then our own. */
import type { BrokenStore } from './store.ts';
import { countProof, noIncarnation, reusedTerm, uncleanElection } from './wrong-control.ts';
import { committedConditions, dirtyReads, mergedSnapshot, outlivedExpiry, unackedJoiner } from './wrong-inside.ts';
import { blindAcknowledgement, forgetfulSnapshot, shortenedTtl, skippedEntry } from './wrong-messages.ts';
import { ackBeforeReplication, impatientCommit, noLease, noOnceRecord, tailCut } from './wrong-rules.ts';

export const brokenStores: readonly BrokenStore[] = [
  ackBeforeReplication,
  countProof,
  noIncarnation,
  impatientCommit,
  noOnceRecord,
  noLease,
  reusedTerm,
  unackedJoiner,
  tailCut,
  dirtyReads,
  uncleanElection,
  mergedSnapshot,
  committedConditions,
  forgetfulSnapshot,
  skippedEntry,
  shortenedTtl,
  outlivedExpiry,
  blindAcknowledgement,
];

export const brokenStoreOf = (name: string): BrokenStore | undefined =>
  brokenStores.find((store) => store.name === name);
