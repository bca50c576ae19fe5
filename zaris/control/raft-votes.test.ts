/** One voter by hand: what it writes before it answers, what a disk that is gone is worth, what a leader counts. */
import { describe, expect, it } from 'vitest';
import { present } from '../../lib/assert.ts';
import { Prng } from '../../lib/prng.ts';
import { nodeId } from '../model/ids.ts';
import type { DiskState, RaftMessage, Voter } from '../model/raft-wire.ts';
import { emptyDisk } from '../model/raft-wire.ts';
import { foldDiskWrite } from './raft-disk.ts';
import { RaftWorld } from './raft-test-world.ts';
import { Raft } from './raft.ts';

function cluster(...names: string[]): RaftWorld {
  const world = new RaftWorld({ seed: 7, snapshotEvery: 1000 });
  world.found(...names);
  return world;
}

const followersOf = (world: RaftWorld, leader: string): [string, string] => {
  const [a, b] = [...world.nodes.keys()].filter((id) => id !== leader);
  return [present(a, 'follower'), present(b, 'follower')];
};

const voter = (name: string, disk = 'd'): Voter => ({ nodeId: nodeId(name), diskId: disk });

/** A voter of n1, n2, n3 whose disk has seen raftTerm 3. */
const seasoned: DiskState = {
  diskId: 'd',
  raftTerm: 3,
  votedFor: null,
  snapshot: null,
  entries: [
    {
      kind: 'config',
      index: 1,
      raftTerm: 1,
      config: { voters: [voter('n1'), voter('n2'), voter('n3')], learners: [] },
    },
    { kind: 'noop', index: 2, raftTerm: 3 },
  ],
};

const voteRequest = (from: string, receiver: Voter, raftTerm: number, diskId = 'd'): RaftMessage => ({
  kind: 'vote',
  sender: voter(from, diskId),
  receiver,
  raftTerm,
  lastIndex: 9,
  lastRaftTerm: 3,
});

/** What n3, started from `disk`, answers to a vote request of `from`; and its disk once that is durable. */
function askForVote(
  disk: DiskState,
  from: string,
  raftTerm: number,
): { granted: boolean; after: DiskState; order: string[] } {
  const raft = new Raft({ self: voter('n3'), random: new Prng(1) }, disk);
  raft.start(0);
  raft.takeReady();
  raft.receive(nodeId(from), voteRequest(from, voter('n3'), raftTerm), 1);
  const { persist, messages } = raft.takeReady();
  const answers = messages.flatMap(({ message }) => (message.kind === 'voteAnswer' ? [message] : []));
  const writes = persist?.writes ?? [];
  return {
    granted: answers.some((answer) => answer.granted),
    after: writes.reduce(foldDiskWrite, disk),
    order: [...writes.map(({ kind }) => kind), ...answers.map(({ kind }) => kind)],
  };
}

describe('votes and disks', () => {
  it('a voter that crashed between the sync and the answer gives its vote to nobody else in that raftTerm', () => {
    const first = askForVote(seasoned, 'n1', 4);
    expect(first.granted).toBe(true);
    expect(first.order.at(-1)).toBe('voteAnswer');
    expect(first.after).toMatchObject({ raftTerm: 4, votedFor: 'n1' });
    expect(askForVote(first.after, 'n2', 4).granted).toBe(false);
    expect(askForVote(first.after, 'n1', 4).granted).toBe(true);
    expect(askForVote(first.after, 'n2', 5).granted).toBe(true);
  });

  it('a voter that crashed before the sync is free, since nobody has its answer', () => {
    expect(askForVote(seasoned, 'n1', 4).granted).toBe(true);
    expect(askForVote(seasoned, 'n2', 4).granted).toBe(true);
  });

  it('refuses a candidate whose log lacks something', () => {
    const longer: DiskState = {
      ...seasoned,
      entries: [
        ...seasoned.entries,
        ...[3, 4, 5, 6, 7, 8, 9, 10].map((index) => ({ kind: 'noop', index, raftTerm: 3 }) as const),
      ],
    };
    expect(askForVote(longer, 'n1', 4).granted).toBe(false);
  });

  it('a candidate counts its own vote once and needs another', () => {
    const raft = new Raft({ self: voter('n3'), random: new Prng(1) }, seasoned);
    raft.start(0);
    raft.tick(5000);
    const answer = {
      kind: 'preVoteAnswer',
      sender: voter('n1'),
      receiver: voter('n3'),
      raftTerm: 4,
      granted: true,
      commitIndex: 0,
      commitRaftTerm: 0,
    } as const;
    raft.receive(nodeId('n1'), answer, 5001);
    expect([raft.role, raft.raftTerm]).toEqual(['candidate', 4]);
    raft.receive(nodeId('n1'), { ...answer, kind: 'voteAnswer', sender: voter('n1', 'wiped') }, 5002);
    expect(raft.role).toBe('candidate');
    raft.receive(nodeId('n1'), { ...answer, kind: 'voteAnswer' }, 5003);
    expect(raft.role).toBe('leader');
  });

  it('a wiped voter has no vote: neither under the old disk nor under the new one', () => {
    for (const diskId of ['d', 'new']) {
      const raft = new Raft({ self: voter('n3', 'new'), random: new Prng(1) }, emptyDisk);
      raft.start(0);
      raft.takeReady();
      raft.receive(nodeId('n1'), voteRequest('n1', voter('n3', diskId), 9), 1);
      expect(raft.takeReady()).toMatchObject({ persist: null, messages: [] });
      raft.tick(1_000_000);
      expect(raft.takeReady()).toMatchObject({ persist: null, messages: [] });
      expect(raft.nextDeadlineMs).toBe(Infinity);
    }
  });

  it('a voter that came back with a new disk and has the log by now is deaf to what is meant for the old one', () => {
    const learner: DiskState = { ...seasoned, diskId: 'new' };
    const raft = new Raft({ self: voter('n3', 'new'), random: new Prng(1) }, learner);
    raft.start(0);
    raft.takeReady();
    raft.receive(nodeId('n1'), voteRequest('n1', voter('n3'), 9), 1);
    raft.receive(nodeId('n1'), { ...voteRequest('n1', voter('n3'), 9), kind: 'preVote' } as RaftMessage, 1);
    expect(raft.takeReady()).toMatchObject({ persist: null, messages: [] });
    raft.receive(nodeId('n2'), voteRequest('n1', voter('n3', 'new'), 9), 1);
    expect(raft.takeReady()).toMatchObject({ persist: null, messages: [] });
    raft.receive(nodeId('n1'), voteRequest('n1', voter('n3', 'new'), 9), 1);
    expect(raft.takeReady().messages.length).toBe(1);
  });

  it('one voter and a wiped one elect nobody', () => {
    const world = cluster('n1', 'n2', 'n3');
    const [other, wiped] = followersOf(world, 'n1');
    world.crash('n1');
    world.wipe(wiped);
    world.start(wiped);
    world.run(20_000);
    expect(world.raft(other).role).not.toBe('leader');
    world.start('n1');
    world.awaitLeader();
  });

  it('with a majority wiped there is never a leader, and never an empty cluster', () => {
    const world = cluster('n1', 'n2', 'n3');
    expect(world.commit('n1', 'a')).toBe(true);
    for (const name of ['n1', 'n2']) world.wipe(name);
    for (const name of ['n1', 'n2']) world.start(name);
    world.run(120_000);
    for (const name of ['n1', 'n2', 'n3']) expect(world.raft(name).role).not.toBe('leader');
    expect(world.raft('n1').lastIndex + world.raft('n2').lastIndex).toBe(0);
    expect(world.commands()).toEqual(['a']);
  });

  it('refuses a disk of another identity', () => {
    expect(() => new Raft({ self: voter('n1', 'x'), random: new Prng(1) }, seasoned)).toThrow('another diskId');
  });
});

/** n3 as leader of raftTerm 4 by the vote of n1, after `before`; nothing of it is durable yet. */
function elected(before: (raft: Raft) => void = () => undefined): Raft {
  const raft = new Raft({ self: voter('n3'), random: new Prng(1) }, seasoned);
  raft.start(0);
  before(raft);
  raft.tick(5000);
  const answer = {
    sender: voter('n1'),
    receiver: voter('n3'),
    raftTerm: raft.raftTerm + 1,
    granted: true,
    commitIndex: 0,
    commitRaftTerm: 0,
  } as const;
  raft.receive(nodeId('n1'), { kind: 'preVoteAnswer', ...answer }, 5001);
  raft.receive(nodeId('n1'), { kind: 'voteAnswer', ...answer }, 5002);
  expect(raft.role).toBe('leader');
  return raft;
}

const accept = (raft: Raft, matchIndex: number): void => {
  const { raftTerm } = raft;
  const message = {
    kind: 'accepted',
    sender: voter('n1'),
    receiver: voter('n3'),
    raftTerm,
    matchIndex,
    round: 0,
  } as const;
  raft.receive(nodeId('n1'), message, 5010);
};

describe('commitment', () => {
  it('a leader does not count its own copy before it is durable', () => {
    const raft = new Raft({ self: voter('n1'), random: new Prng(1) }, emptyDisk);
    raft.start(0);
    raft.bootstrap(0);
    const first = present(raft.takeReady().persist, 'persist');
    raft.propose('second', 1);
    const second = present(raft.takeReady().persist, 'persist');
    expect(raft.commitIndex).toBe(0);
    raft.persisted(first.ticket, 2);
    expect(raft.commitIndex).toBe(1);
    expect(raft.takeReady().committed.map(({ kind }) => kind)).toEqual(['config']);
    expect(raft.isReadyLeader).toBe(true);
    raft.persisted(second.ticket, 3);
    expect(raft.takeReady().committed.map(({ kind }) => kind)).toEqual(['command']);
  });

  it('nor what was durable before a cut', () => {
    const noop = (index: number, raftTerm: number) => ({ kind: 'noop', index, raftTerm }) as const;
    const append = { kind: 'append', receiver: voter('n3'), commitIndex: 0, round: 0 } as const;
    const raft = elected((follower) => {
      const entries = [noop(3, 3), noop(4, 3), noop(5, 3)];
      const old = { ...append, sender: voter('n2'), raftTerm: 3, prevIndex: 2, prevRaftTerm: 3, entries };
      follower.receive(nodeId('n2'), old, 1);
      follower.persisted(present(follower.takeReady().persist, 'persist').ticket, 2);
      const cut = { ...append, sender: voter('n1'), raftTerm: 4, prevIndex: 2, prevRaftTerm: 3, entries: [noop(3, 4)] };
      follower.receive(nodeId('n1'), cut, 3);
    });
    expect([raft.raftTerm, raft.lastIndex]).toEqual([5, 4]);
    const { persist } = raft.takeReady();
    accept(raft, 4);
    // Only n1 holds entry 4; of this node's disk it is known that it holds up to 2.
    expect(raft.commitIndex).toBe(0);
    raft.persisted(present(persist, 'persist').ticket, 5020);
    expect(raft.commitIndex).toBe(4);
  });

  it('an entry of an older raftTerm is not committed by counting copies', () => {
    const raft = elected();
    raft.persisted(present(raft.takeReady().persist, 'persist').ticket, 5005);
    accept(raft, 2);
    expect(raft.commitIndex).toBe(0);
    accept(raft, 3);
    expect(raft.commitIndex).toBe(3);
  });
});
