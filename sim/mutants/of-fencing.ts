/** Mutants of hazards 8, 10, 11, 16, 17 and 23: somebody answers who may not, or too early. */
import type { Mutant } from './mutant.ts';

const rules = 'zaris/partition/rules.ts';
const desk = 'zaris/partition/request-desk.ts';

export const fencingMutants: readonly Mutant[] = [
  {
    hazard: 8,
    name: 'reads ask for no lease',
    rule: 'Read first, then check the lease: it needs every promotable member; failing that, a quorum-confirmed control read.',
    edits: [
      {
        file: rules,
        find: 'return grants.every((grant) => nowMs < grant.sentAtMs + leaseMs);',
        replace: 'return true;',
      },
    ],
    test: 'an isolated primary with a client on its side',
    red: 'a stale answer',
    asserted: 'a read outside the lease',
  },
  {
    hazard: 8,
    name: 'an isolated primary commits by itself after a while',
    rule: 'It commits when all of them hold it; a timer is never a success.',
    edits: [
      {
        file: rules,
        find: 'for (const match of inSync) if (match.seq < held) held = match.seq;',
        replace: 'for (const match of inSync) if (match.silentMs < 200 && match.seq < held) held = match.seq;',
      },
    ],
    test: 'an isolated primary with a client on its side',
    red: 'an acknowledgement',
    asserted: 'holds',
  },
  {
    hazard: 8,
    name: 'a promoted member does not wait out the lease it granted',
    rule: 'The holder counts from its send, the grantor from its receipt plus drift; a promoted member waits out the leases it granted.',
    edits: [
      {
        file: 'zaris/partition/promotion.ts',
        find: 'const untilMs = runtime.released ? nowMs : replica.leaseGrantedUntilMs(host.self);',
        replace: 'const untilMs = nowMs;',
      },
    ],
    test: 'a successor assigned faster than the lease',
    red: 'a stale answer',
    asserted: 'within a lease that it granted',
  },
  {
    hazard: 8,
    name: 'members answer a primary of an older term',
    rule: 'The term fences replication: a member that has adopted a later term answers nothing of an older one.',
    edits: [
      {
        file: 'zaris/node/data-plane.ts',
        find: 'if (term <= primary.term) return false;',
        replace: 'if (term <= primary.term) return term < primary.term;',
      },
      {
        file: 'zaris/partition/replica.ts',
        find: 'if (term < this.term) return false;',
        replace: 'if (term < this.term) return true;',
      },
      {
        file: 'zaris/partition/replica.ts',
        find: 'partition: this.partition, term: this.term, matched, seq: at });',
        replace: 'partition: this.partition, term: 1 as Term, matched, seq: at });',
      },
    ],
    test: 'a replaced primary that nobody told',
    red: 'answers of the replaced primary',
  },
  {
    hazard: 10,
    name: 'a sequence below the watermark runs',
    rule: 'A repeat gets the stored result; one below the watermark is refused, not run.',
    edits: [
      {
        file: desk,
        find: "if (remembered.kind === 'settled' || once.sequence < overlay.lowWatermark(once.clientId)) {",
        replace: 'if (once.sequence < 0) {',
      },
    ],
    test: 'a request that was parked in a paused node runs late',
    red: 'the answer to the late request',
    asserted: 'a sequence took effect twice',
  },
  {
    hazard: 11,
    name: 'no result is remembered',
    rule: 'The record and its result live in the log entry; a repeat gets the stored result.',
    edits: [
      { file: rules, find: 'return store.remembered(clientId, sequence);', replace: "return { kind: 'unknown' };" },
    ],
    test: 'only answers are dropped',
    red: 'the counter',
    asserted: 'a sequence took effect twice',
  },
  {
    hazard: 11,
    name: 'any version satisfies a condition',
    rule: 'Conditions (ifAbsent, ifMatchVersion) are judged against committed plus pending entries.',
    edits: [
      {
        file: 'zaris/partition/judge.ts',
        find: 'current !== null && compareVersions(current.version, expected) === 0;',
        replace: 'current !== null || expected === null;',
      },
    ],
    test: 'only answers are dropped',
    red: 'the chain',
  },
  {
    hazard: 16,
    name: 'a lease is granted by the wall clock',
    rule: 'The lease is checked on a monotonic clock; wall-clock jumps change nothing.',
    edits: [
      {
        file: 'zaris/partition/replica.ts',
        find: 'Math.max(this.grantedUntilMs, nowMs + leaseMs * (1 + clockDrift));',
        replace: 'Math.max(this.grantedUntilMs, Date.now() - 1_700_000_000_000 + leaseMs * (1 + clockDrift));',
      },
    ],
    test: 'the wall clock jumps an hour both ways',
    red: 'the trace with jumps',
  },
  {
    hazard: 17,
    name: 'a primary out of touch with control goes on',
    rule: 'Control session: a primary counts from the send of its last answered beacon and stops when it runs out.',
    edits: [
      {
        file: 'zaris/node/control-plane.ts',
        find: 'return nowMs - this.sessionSentAtMs < this.timings.controlSessionMs;',
        replace: 'return nowMs >= 0;',
      },
    ],
    test: 'the sole in-sync owner, cut off from control',
    red: 'a write after its session',
  },
  {
    hazard: 23,
    name: 'reads do not wait for inherited entries',
    rule: 'A key (or a scan touching it) with any uncommitted entry inherited from an older term answers when the last of these has committed.',
    edits: [{ file: desk, find: 'if (inherited > replica.commitSeq) {', replace: 'if (inherited < 0) {' }],
    test: 'reads and conditions on keys with inherited uncommitted entries',
    red: 'a read before the inherited entry is committed',
  },
  {
    hazard: 23,
    name: 'conditions are judged against committed entries alone',
    rule: 'Conditions are judged against committed plus pending entries.',
    edits: [
      {
        file: desk,
        find: 'const pending = this.primary.overlay.key(key);',
        replace: 'const pending = this.primary.overlay.key(`never ${key}`);',
      },
    ],
    test: 'reads and conditions on keys with inherited uncommitted entries',
    red: 'the condition',
  },
  {
    hazard: 23,
    name: 'an answer derived from a pending entry does not wait for it',
    rule: 'Every answer derived from a pending entry (Ok, Conflict, NotFound, a stored result) waits for that entry.',
    edits: [
      {
        file: desk,
        find: 'this.wait({ at: pending.seq, connection, id, result: pending.once.result });',
        replace: 'host.reply(connection, this.settledAnswer(id, pending.once.result));',
      },
    ],
    test: 'repeats of inherited uncommitted sequences',
    red: 'a repeat before the inherited entry is committed',
    asserted: 'above the commit index',
  },
];
