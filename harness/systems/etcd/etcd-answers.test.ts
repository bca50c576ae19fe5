import { describe, expect, it } from 'vitest';
import { completionOfError } from './etcd-answers.ts';
import { majorityLeader } from './etcd-status.ts';

describe('what etcd errors mean', () => {
  it.each([
    'GRPCUnavailableError: 14 UNAVAILABLE: No connection established. Last error: connect ECONNREFUSED',
    '8 RESOURCE_EXHAUSTED: etcdserver: too many requests',
  ])('never became a proposal, so it failed: %s', (message) =>
    expect(completionOfError(new Error(message))).toMatchObject({ kind: 'fail', why: 'refused' }),
  );

  it.each([
    'etcdserver: request timed out',
    'etcdserver: leader changed',
    '14 UNAVAILABLE: read ECONNRESET',
    '4 DEADLINE_EXCEEDED',
    'etcdserver: no leader',
    'anything',
  ])('may have become one, so it is unknown: %s', (message) =>
    expect(completionOfError(new Error(message)).kind).toBe('info'),
  );
});

describe('the leader of a majority', () => {
  const word = (leaderId: string, raftTerm: number) => ({ leaderId, raftTerm });

  it('is the one that more than half name in one term', () => {
    expect(majorityLeader([word('7', 3), word('7', 3)], 3)).toEqual(word('7', 3));
    expect(majorityLeader([word('7', 3), word('8', 4)], 3)).toBeNull();
    expect(majorityLeader([word('7', 3), word('7', 4), word('0', 4)], 3)).toBeNull();
    expect(majorityLeader([word('0', 4), word('0', 4), word('0', 4)], 3)).toBeNull();
    expect(majorityLeader([word('7', 3), word('7', 3)], 5)).toBeNull();
  });
});
