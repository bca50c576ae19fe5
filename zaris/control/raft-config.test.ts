/** Changes of the voter set: quorums and steps as data, then in a world. */
import { describe, expect, it } from 'vitest';
import { present } from '../../lib/assert.ts';
import { nodeId } from '../model/ids.ts';
import type { RaftConfig, Voter } from '../model/raft-wire.ts';
import { changedConfig, everyMajority, majorityIndex } from './raft-config.ts';
import type { ConfigChange } from './raft-config.ts';
import { RaftWorld } from './raft-test-world.ts';

const voter = (name: string, disk = 'd'): Voter => ({ nodeId: nodeId(name), diskId: disk });
const [a, b, c, d] = [voter('n1'), voter('n2'), voter('n3'), voter('n4')];
const c2 = voter('n3', 'new');
const abc: RaftConfig = { voters: [a, b, c], learners: [] };

describe('quorums', () => {
  it('need a majority of every group', () => {
    const groups = [
      [a, b, c],
      [a, b, d],
    ];
    const has = (...who: Voter[]) => everyMajority(groups, (one) => who.includes(one));
    expect([has(a, b), has(a, c), has(a, d), has(a, c, d), has(b, c, d)]).toEqual([true, false, false, true, true]);
    expect(everyMajority([], () => true)).toBe(false);
    expect(everyMajority([[a, b]], (one) => one === a)).toBe(false);
  });

  it('reach the lowest of the groups', () => {
    const copies = new Map([
      [a, 9],
      [b, 5],
      [c, 3],
      [d, 7],
    ]);
    const copyOf = (one: Voter) => copies.get(one) ?? 0;
    expect(majorityIndex([[a, b, c]], copyOf)).toBe(5);
    expect(majorityIndex([[a, b, d]], copyOf)).toBe(7);
    expect(
      majorityIndex(
        [
          [a, b, c],
          [a, b, d],
        ],
        copyOf,
      ),
    ).toBe(5);
    expect(majorityIndex([[a, b]], copyOf)).toBe(5);
    expect(majorityIndex([], copyOf)).toBe(0);
  });
});

describe('changedConfig', () => {
  const learning: RaftConfig = { voters: [a, b, c], learners: [c2, d] };
  it.each<[string, RaftConfig, ConfigChange, RaftConfig | null]>([
    ['adds a learner', abc, { kind: 'addLearner', voter: d }, { voters: [a, b, c], learners: [d] }],
    ['adds the new disk of a voter', abc, { kind: 'addLearner', voter: c2 }, { voters: [a, b, c], learners: [c2] }],
    ['adds nobody twice', learning, { kind: 'addLearner', voter: d }, null],
    ['promotes a learner', learning, { kind: 'promote', voter: d }, { voters: [a, b, c, d], learners: [c2] }],
    ['promotes no stranger', abc, { kind: 'promote', voter: d }, null],
    ['makes no node two voters', learning, { kind: 'promote', voter: c2 }, null],
    ['replaces', learning, { kind: 'replace', old: c, new: c2 }, { voters: [a, b, c2], learners: [d] }],
    ['replaces by another node', learning, { kind: 'replace', old: c, new: d }, { voters: [a, b, d], learners: [c2] }],
    ['replaces no stranger', abc, { kind: 'replace', old: d, new: c2 }, null],
    ['replaces into no second voter of a node', learning, { kind: 'replace', old: a, new: c2 }, null],
    ['removes a voter', abc, { kind: 'remove', voter: c }, { voters: [a, b], learners: [] }],
    ['removes a learner', learning, { kind: 'remove', voter: d }, { voters: [a, b, c], learners: [c2] }],
    ['removes no stranger', abc, { kind: 'remove', voter: d }, null],
    ['removes not the last voter', { voters: [a], learners: [b] }, { kind: 'remove', voter: a }, null],
  ])('%s', (_, config, change, expected) => {
    expect(changedConfig(config, change)).toEqual(expected);
  });
});

function cluster(...names: string[]): RaftWorld {
  const world = new RaftWorld({ seed: 11, snapshotEvery: 1000 });
  world.found(...names);
  return world;
}

const propose = (world: RaftWorld, name: string, change: ConfigChange): number | null =>
  world.act(name, (raft) => raft.proposeConfig(change, world.nowMs))?.index ?? null;

const isVoter = (world: RaftWorld, name: string): boolean =>
  world.config.voters.some(({ diskId }) => diskId === world.node(name).diskId);

describe('replace', () => {
  it('swaps a wiped voter for its new disk, which then counts', () => {
    const world = cluster('n1', 'n2', 'n3');
    world.wipe('n3');
    world.start('n3');
    expect(world.run(5000, () => (world.repair(), isVoter(world, 'n3')))).toBe(true);
    expect(world.config.voters.length).toBe(3);
    world.run(200);
    world.crash('n2');
    expect(world.commit('n1', 'with the new disk')).toBe(true);
    world.start('n2');
    world.run(500);
    world.crash('n1');
    expect(world.commit(world.awaitLeader(5000, 'n1'), 'elected with the new disk')).toBe(true);
  });

  it('does not stall commitment when the new voter is down or behind', () => {
    const world = cluster('n1', 'n2', 'n3');
    const old = world.voter('n3');
    world.wipe('n3');
    expect(propose(world, 'n1', { kind: 'replace', old, new: world.voter('n3') })).not.toBeNull();
    expect(world.commit('n1', 'a', 500)).toBe(true);
    expect(isVoter(world, 'n3')).toBe(true);
    world.start('n3');
    expect(world.run(2000, () => world.node('n3').applied.index === world.committedIndex)).toBe(true);
    world.crash('n2');
    expect(world.commit('n1', 'b', 500)).toBe(true);
  });

  it('is not asked for the old disk again after a restart of everybody', () => {
    const world = cluster('n1', 'n2', 'n3');
    world.wipe('n3');
    world.start('n3');
    expect(world.run(5000, () => (world.repair(), isVoter(world, 'n3') && world.isSettled))).toBe(true);
    world.run(200);
    for (const name of ['n1', 'n2', 'n3']) world.crash(name);
    // n1 stays down: of the old voters only n2 is left, of the new ones n2 and n3.
    for (const name of ['n2', 'n3']) world.start(name);
    expect(world.commit(world.awaitLeader(5000), 'a')).toBe(true);
  });

  it('needs the old majority: the new one alone commits nothing', () => {
    const world = cluster('n1', 'n2', 'n3');
    world.add('n4');
    expect(propose(world, 'n1', { kind: 'addLearner', voter: world.voter('n4') })).not.toBeNull();
    world.run(500);
    for (const [x, y] of [
      ['n1', 'n2'],
      ['n1', 'n3'],
      ['n4', 'n2'],
      ['n4', 'n3'],
    ] as const) {
      world.cut(x, y);
      world.cut(y, x);
    }
    const index = propose(world, 'n1', { kind: 'replace', old: world.voter('n3'), new: world.voter('n4') });
    expect(index).not.toBeNull();
    world.run(400);
    // n1 and n4 are a majority of n1 n2 n4 and hold the entry; n2 and n3 know only the old config.
    expect(world.raft('n4').lastIndex).toBe(index);
    expect(world.raft('n1').commitIndex).toBeLessThan(present(index, 'index'));
    const next = world.awaitLeader(5000, 'n1');
    expect(['n2', 'n3']).toContain(next);
    expect(world.commit(next, 'a')).toBe(true);
    world.heal();
    expect(world.run(3000, () => world.node('n1').applied.index === world.committedIndex)).toBe(true);
    expect(world.raft('n1').config.voters).toEqual(world.raft(next).config.voters);
    expect(world.raft('n1').config.voters.some(({ nodeId: id }) => id === 'n4')).toBe(false);
  });

  it('a change that its leader left half done is finished by the next one that has it', () => {
    const world = cluster('n1', 'n2', 'n3');
    world.wipe('n3');
    world.start('n3');
    propose(world, 'n1', { kind: 'addLearner', voter: world.voter('n3') });
    world.run(500);
    const old = present(
      world.raft('n1').config.voters.find(({ nodeId: id }) => id === 'n3'),
      'old n3',
    );
    world.filter = (message) => message.kind !== 'accepted';
    const index = propose(world, 'n1', { kind: 'replace', old, new: world.voter('n3') });
    world.run(50);
    expect(world.raft('n2').lastIndex).toBe(index);
    world.crash('n1');
    world.filter = () => true;
    // The old majority needs n1: nobody may decide without it.
    world.run(5000);
    expect(world.leader()).toBeNull();
    world.start('n1');
    world.awaitLeader(5000);
    expect(world.run(2000, () => isVoter(world, 'n3') && world.isSettled)).toBe(true);
  });

  it('of the leader by itself survives its crash, also with another disk lost (random seed 2100 found it)', () => {
    const world = cluster('n1', 'n2', 'n3');
    world.add('n4');
    propose(world, 'n1', { kind: 'addLearner', voter: world.voter('n4') });
    world.run(500);
    world.wipe('n3');
    const before = world.raft('n1').lastIndex;
    // Nobody hears from n1 once it has committed the change.
    world.filter = ({ sender }) => sender.nodeId !== 'n1' || world.raft('n1').commitIndex <= before;
    propose(world, 'n1', { kind: 'replace', old: world.voter('n1'), new: world.voter('n4') });
    world.run(200);
    expect(world.raft('n1').commitIndex).toBe(before + 1);
    expect(world.raft('n1').lastIndex).toBeGreaterThan(world.raft('n2').lastIndex);
    world.crash('n1');
    world.filter = () => true;
    world.start('n1');
    expect(['n2', 'n4']).toContain(world.awaitLeader(5000));
  });

  it('one change at a time, and none before something of the own raftTerm is committed', () => {
    const world = cluster('n1', 'n2', 'n3');
    world.add('n4');
    const change = { kind: 'addLearner', voter: world.voter('n4') } as const;
    expect(propose(world, 'n2', change)).toBeNull();
    expect(propose(world, 'n1', change)).not.toBeNull();
    expect(propose(world, 'n1', { kind: 'remove', voter: world.voter('n3') })).toBeNull();
    world.run(100);
    expect(propose(world, 'n1', { kind: 'remove', voter: world.voter('n3') })).not.toBeNull();
    world.run(1000);
    world.crash('n1');
    world.filter = (message) => message.kind !== 'accepted';
    world.start('n1');
    expect(world.run(5000, () => [...world.nodes.values()].some(({ raft }) => raft?.role === 'leader'))).toBe(true);
    const leader = present(
      [...world.nodes.values()].find(({ raft }) => raft?.role === 'leader'),
      'leader',
    );
    expect(propose(world, leader.nodeId, { kind: 'promote', voter: world.voter('n4') })).toBeNull();
  });
});

describe('what is known to be committed', () => {
  it('is the old config while a majority has not taken the new one', () => {
    const world = cluster('n1', 'n2', 'n3');
    world.add('n4');
    propose(world, 'n1', { kind: 'addLearner', voter: world.voter('n4') });
    world.run(1000);
    // The entry reaches the learner only.
    world.filter = (message) => message.kind !== 'append' || message.receiver.nodeId === 'n4';
    const names = (voters: readonly Voter[]): string[] => voters.map(({ nodeId: id }) => id).toSorted();
    propose(world, 'n1', { kind: 'replace', old: world.voter('n3'), new: world.voter('n4') });
    world.run(60);
    expect(names(world.raft('n4').config.voters)).toEqual(['n1', 'n2', 'n4']);
    for (const name of ['n1', 'n4'])
      expect(names(world.raft(name).committedConfig.voters), name).toEqual(['n1', 'n2', 'n3']);
    world.filter = () => true;
    world.run(3000);
    for (const name of ['n1', 'n2', 'n4'])
      expect(names(world.raft(name).committedConfig.voters), name).toEqual(['n1', 'n2', 'n4']);
  });
});

describe('members', () => {
  it('a learner gets the log, and neither votes nor counts', () => {
    const world = cluster('n1', 'n2');
    world.add('n3');
    propose(world, 'n1', { kind: 'addLearner', voter: world.voter('n3') });
    expect(world.commit('n1', 'a')).toBe(true);
    world.run(300);
    expect(world.node('n3').applied.index).toBe(world.committedIndex);
    world.crash('n2');
    expect(world.commit('n1', 'b', 1000)).toBe(false);
    world.run(5000);
    expect([world.raft('n3').role, world.leader()]).toEqual(['follower', null]);
  });

  it('a removed voter stops campaigning', () => {
    const world = cluster('n1', 'n2', 'n3');
    propose(world, 'n1', { kind: 'remove', voter: world.voter('n3') });
    world.run(10_000);
    expect(world.raft('n3').role).toBe('follower');
    expect(world.raft('n3').nextDeadlineMs).toBe(Infinity);
    expect(world.leader()?.nodeId).toBe('n1');
  });

  it('a leader that removes itself sees it settled and resigns; the rest go on', () => {
    const world = cluster('n1', 'n2', 'n3');
    propose(world, 'n1', { kind: 'remove', voter: world.voter('n1') });
    expect(world.run(1000, () => world.raft('n1').role === 'follower')).toBe(true);
    expect(world.raft('n1').nextDeadlineMs).toBe(Infinity);
    world.crash('n1');
    const next = world.awaitLeader(5000);
    expect(world.commit(next, 'a')).toBe(true);
    expect(world.config.voters.map(({ nodeId: id }) => id).sort()).toEqual(['n2', 'n3']);
  });

  it('of two voters the one left goes on after the other was removed by itself as leader', () => {
    const world = cluster('n1', 'n2');
    propose(world, 'n1', { kind: 'remove', voter: world.voter('n1') });
    expect(world.run(1000, () => world.raft('n1').role === 'follower')).toBe(true);
    world.crash('n1');
    world.crash('n2');
    world.start('n2');
    expect(world.commit(world.awaitLeader(5000), 'alone')).toBe(true);
  });
});
