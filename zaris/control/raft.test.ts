/** Raft in named situations, in a world without chance faults; the random ones are in raft-random.test.ts. */
import { describe, expect, it } from 'vitest';
import { present } from '../../lib/assert.ts';
import { nodeId } from '../model/ids.ts';
import { RaftWorld } from './raft-test-world.ts';

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
    const request = {
      kind: 'vote',
      sender,
      receiver,
      raftTerm: raftTerm + 5,
      lastIndex: 1e6,
      lastRaftTerm: raftTerm,
    } as const;
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

  it('elects within 300 ms when the connections to a dead leader are closed, also where votes split', () => {
    for (let seed = 1; seed <= 100; seed++) {
      const world = new RaftWorld({ seed });
      world.found('n1', 'n2', 'n3');
      world.crash('n1');
      world.run(10);
      world.closeLinks('n1');
      expect(
        world.run(300, () => world.leader() !== null),
        `seed ${seed}`,
      ).toBe(true);
    }
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
    const next = world.run(400, () =>
      [...world.nodes.values()].some((n) => n.nodeId !== 'n1' && n.raft?.isReadyLeader),
    );
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
