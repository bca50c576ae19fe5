/** Raft in named situations, in a world without chance faults; the random ones are in raft-random.test.ts. */
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

/** In one turn, hence with one sync. */
function proposeAtOnce(world: RaftWorld, name: string, count: number): void {
  world.act(name, (raft) => {
    for (let at = 0; at < count; at++) raft.propose(at, world.nowMs);
  });
}

describe('elections', () => {
  it('bootstraps one voter, grows to three and replaces a leader that died, with everything it committed', () => {
    const world = cluster('n1', 'n2', 'n3');
    expect(world.commit('n1', 'a')).toBe(true);
    world.crash('n1');
    const next = world.awaitLeader(3000, 'n1');
    expect(world.commit(next, 'b')).toBe(true);
    world.start('n1');
    expect(world.run(2000, () => world.node('n1').applied.index === world.committedIndex)).toBe(true);
    expect(world.commands()).toEqual(['a', 'b']);
    expect(world.raft('n1').role).toBe('follower');
  });

  it('refuses to bootstrap a node that has a log', () => {
    const world = cluster('n1');
    expect(() => world.act('n1', (raft) => raft.bootstrap(world.nowMs))).toThrow('bootstrap of a node');
  });

  it('a node that was cut off disturbs nobody when it returns (pre-vote)', () => {
    const world = cluster('n1', 'n2', 'n3');
    const before = world.raft('n1').raftTerm;
    world.isolate('n3');
    world.run(10_000);
    expect(world.raft('n3').role).toBe('preCandidate');
    expect(world.raft('n3').raftTerm).toBe(before);
    world.heal();
    world.run(3000);
    expect(world.leader()?.nodeId).toBe('n1');
    expect(world.raft('n1').raftTerm).toBe(before);
    expect(world.raft('n3').leader).toBe('n1');
  });

  it('a follower with a fresh leader refuses even a real vote of a later raftTerm', () => {
    const world = cluster('n1', 'n2', 'n3');
    const { raftTerm } = world.raft('n2');
    const [sender, receiver] = [world.voter('n3'), world.voter('n2')];
    const request = { kind: 'vote', sender, receiver, raftTerm: raftTerm + 5, lastIndex: 1e6, lastRaftTerm: raftTerm } as const;
    world.act('n2', (raft) => raft.receive(nodeId('n3'), request, world.nowMs));
    expect(world.raft('n2').raftTerm).toBe(raftTerm);
    world.act('n2', (raft) => raft.linkDown(nodeId('n1'), world.nowMs));
    world.act('n2', (raft) => raft.receive(nodeId('n3'), request, world.nowMs));
    expect(world.raft('n2').raftTerm).toBe(raftTerm + 5);
  });

  it('a leader without a quorum steps down within an election timeout (check-quorum)', () => {
    const world = cluster('n1', 'n2', 'n3');
    world.isolate('n1');
    expect(world.run(750, () => world.raft('n1').role !== 'leader')).toBe(true);
    expect(world.raft('n1').leader).toBeNull();
    expect(world.propose('n1', 'x')).toBeNull();
  });

  it('a leader that is heard but hears nobody steps down too', () => {
    const world = cluster('n1', 'n2', 'n3');
    world.cut('n2', 'n1');
    world.cut('n3', 'n1');
    expect(world.run(750, () => world.raft('n1').role !== 'leader')).toBe(true);
    expect(world.awaitLeader(5000, 'n1')).not.toBe('n1');
  });

  it('elects within 300 ms when the connections to a dead leader are closed', () => {
    const world = cluster('n1', 'n2', 'n3');
    world.crash('n1');
    world.run(10);
    world.closeLinks('n1');
    expect(world.run(300, () => world.leader() !== null)).toBe(true);
  });

  it('a closed connection to a leader that lives deposes nobody', () => {
    const world = cluster('n1', 'n2', 'n3');
    const { raftTerm } = world.raft('n1');
    for (let round = 0; round < 20; round++) {
      world.act('n2', (raft) => raft.linkDown(nodeId('n1'), world.nowMs));
      world.run(250);
    }
    expect(world.raft('n1').role).toBe('leader');
    expect(world.raft('n1').raftTerm).toBe(raftTerm);
  });

  it('a quiet cluster has one leader for an hour', () => {
    const world = cluster('n1', 'n2', 'n3');
    const { raftTerm } = world.raft('n1');
    world.run(3_600_000);
    expect(world.raft('n1').raftTerm).toBe(raftTerm);
  });
});

describe('replication', () => {
  it('cuts what a deposed leader appended in vain, and never commits it', () => {
    const world = cluster('n1', 'n2', 'n3');
    world.isolate('n1');
    for (let at = 0; at < 30; at++) world.propose('n1', `lost ${at}`);
    const next = world.awaitLeader(5000, 'n1');
    for (let at = 0; at < 5; at++) expect(world.commit(next, `kept ${at}`)).toBe(true);
    world.heal();
    expect(world.run(3000, () => world.node('n1').applied.index === world.committedIndex)).toBe(true);
    expect(world.raft('n1').lastIndex).toBe(world.raft(next).lastIndex);
    expect(world.commands()).toEqual(['kept 0', 'kept 1', 'kept 2', 'kept 3', 'kept 4']);
    world.checkLogMatching();
  });

  it('finds the place where long logs part in a few steps', () => {
    const world = cluster('n1', 'n2', 'n3');
    world.isolate('n1');
    proposeAtOnce(world, 'n1', 500);
    const next = world.awaitLeader(5000, 'n1');
    proposeAtOnce(world, next, 500);
    world.run(2000);
    // The next leader starts looking at the end of its own long log.
    world.crash(next);
    world.start(next);
    world.awaitLeader();
    let rejections = 0;
    let found = false;
    world.filter = (message) => {
      if (message.sender.nodeId !== 'n1') return true;
      found ||= message.kind === 'accepted';
      if (message.kind === 'rejected' && !found) rejections++;
      return true;
    };
    world.heal();
    expect(world.run(3000, () => world.node('n1').applied.index === world.committedIndex)).toBe(true);
    expect(rejections).toBeGreaterThan(0);
    expect(rejections).toBeLessThanOrEqual(3);
  });

  it('keeps no more messages in flight than its bound, and resumes after silence', () => {
    const world = cluster('n1', 'n2', 'n3');
    let sent = 0;
    world.filter = (message) => {
      if (message.kind === 'append' && message.entries.length > 0 && message.receiver.nodeId === 'n3') sent++;
      return message.receiver.nodeId !== 'n3';
    };
    proposeAtOnce(world, 'n1', 200);
    world.run(400);
    expect(world.commands().length).toBe(200);
    expect(sent).toBeLessThanOrEqual(4);
    world.filter = () => true;
    expect(world.run(1000, () => world.node('n3').applied.index === world.committedIndex)).toBe(true);
  });

  it('brings a follower that fell behind the log up with the snapshot', () => {
    const world = new RaftWorld({ seed: 3, snapshotEvery: 20 });
    world.found('n1', 'n2', 'n3');
    world.crash('n3');
    for (let at = 0; at < 100; at++) world.propose('n1', at);
    world.run(1000);
    expect(world.raft('n1').logLength).toBeLessThan(30);
    let installs = 0;
    world.filter = (message) => {
      if (message.kind === 'install') installs++;
      return true;
    };
    world.start('n3');
    expect(world.run(3000, () => world.node('n3').applied.index === world.committedIndex)).toBe(true);
    expect(installs).toBe(1);
    expect(world.node('n3').applied).toEqual(world.node('n1').applied);
    expect(world.node('n3').disk.snapshot).not.toBeNull();
  });

  it('installs a snapshot over a conflicting tail that was durable, and does not take the old tail for the new', () => {
    const world = new RaftWorld({ seed: 3, snapshotEvery: 20 });
    world.found('n1', 'n2', 'n3');
    world.isolate('n1');
    for (let at = 0; at < 200; at++) world.propose('n1', `lost ${at}`);
    const next = world.awaitLeader(5000, 'n1');
    for (let at = 0; at < 60; at++) world.propose(next, at);
    world.run(1000);
    world.heal();
    expect(world.run(3000, () => world.node('n1').applied.index === world.committedIndex)).toBe(true);
    expect(world.raft('n1').lastIndex).toBe(world.raft(next).lastIndex);
    expect(world.raft('n1')['output'].durableIndex).toBe(world.raft('n1').lastIndex);
  });
});

const voter = (name: string, disk = 'd'): Voter => ({ nodeId: nodeId(name), diskId: disk });

/** A voter of n1, n2, n3 whose disk has seen raftTerm 3. */
const seasoned: DiskState = {
  diskId: 'd',
  raftTerm: 3,
  votedFor: null,
  snapshot: null,
  entries: [
    { kind: 'config', index: 1, raftTerm: 1, config: { voters: [voter('n1'), voter('n2'), voter('n3')], learners: [] } },
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
function askForVote(disk: DiskState, from: string, raftTerm: number): { granted: boolean; after: DiskState; order: string[] } {
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
    const longer: DiskState = { ...seasoned, entries: [...seasoned.entries, ...[3, 4, 5, 6, 7, 8, 9, 10].map((index) => ({ kind: 'noop', index, raftTerm: 3 }) as const)] };
    expect(askForVote(longer, 'n1', 4).granted).toBe(false);
  });

  it('a candidate counts its own vote once and needs another', () => {
    const raft = new Raft({ self: voter('n3'), random: new Prng(1) }, seasoned);
    raft.start(0);
    raft.tick(5000);
    const answer = { kind: 'preVoteAnswer', sender: voter('n1'), receiver: voter('n3'), raftTerm: 4, granted: true, commitIndex: 0, commitRaftTerm: 0 } as const;
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
  const answer = { sender: voter('n1'), receiver: voter('n3'), raftTerm: raft.raftTerm + 1, granted: true, commitIndex: 0, commitRaftTerm: 0 } as const;
  raft.receive(nodeId('n1'), { kind: 'preVoteAnswer', ...answer }, 5001);
  raft.receive(nodeId('n1'), { kind: 'voteAnswer', ...answer }, 5002);
  expect(raft.role).toBe('leader');
  return raft;
}

const accept = (raft: Raft, matchIndex: number): void => {
  const { raftTerm } = raft;
  const message = { kind: 'accepted', sender: voter('n1'), receiver: voter('n3'), raftTerm, matchIndex, round: 0 } as const;
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

describe('reads', () => {
  it('answers after a round that began after the call', () => {
    const world = cluster('n1', 'n2', 'n3');
    expect(world.commit('n1', 'a')).toBe(true);
    expect(world.read('n1', 1)).toBe(true);
    expect(world.answeredReads.has(1)).toBe(false);
    expect(world.run(50, () => world.answeredReads.has(1))).toBe(true);
    expect(world.answeredReads.get(1)).toBe(world.committedIndex);
    expect(world.read('n2', 2)).toBe(false);
  });

  it('a deposed leader that does not know it yet serves none, and says so', () => {
    const world = cluster('n1', 'n2', 'n3');
    // Its own silence is noticed by the others first: they lose the connection, it does not.
    world.isolate('n1');
    world.closeLinks('n1');
    const next = world.run(400, () => [...world.nodes.values()].some((n) => n.nodeId !== 'n1' && n.raft?.isReadyLeader));
    expect(next).toBe(true);
    expect(world.raft('n1').role).toBe('leader');
    expect(world.read('n1', 5)).toBe(true);
    world.heal();
    world.run(2000);
    expect(world.answeredReads.has(5)).toBe(false);
    expect(world.node('n1').lostReads).toEqual([5]);
  });

  it('a new leader serves none before it has committed something of its own', () => {
    const world = cluster('n1', 'n2', 'n3');
    world.crash('n1');
    world.filter = (message) => message.kind !== 'accepted';
    const [a, b] = followersOf(world, 'n1');
    const leads = (name: string): boolean => world.raft(name).role === 'leader';
    expect(world.run(5000, () => leads(a) || leads(b))).toBe(true);
    const leader = leads(a) ? a : b;
    expect(world.read(leader, 9)).toBe(true);
    world.run(200);
    expect(world.answeredReads.has(9)).toBe(false);
    world.filter = () => true;
    expect(world.run(500, () => world.answeredReads.has(9))).toBe(true);
  });
});

describe('crashes of the disk order', () => {
  it('an acknowledged entry survives the loss of everything unsynced, on all nodes at once', () => {
    for (let seed = 1; seed <= 50; seed++) {
      const world = new RaftWorld({ seed });
      world.found('n1', 'n2', 'n3');
      for (let at = 0; at < 20; at++) world.propose('n1', at);
      world.run(world.random.below(12));
      const told = world.commands();
      for (const name of ['n1', 'n2', 'n3']) world.crash(name);
      for (const name of ['n1', 'n2', 'n3']) world.start(name);
      expect(world.commit(world.awaitLeader(), 'after')).toBe(true);
      expect(world.commands().slice(0, told.length)).toEqual(told);
    }
  });
});
