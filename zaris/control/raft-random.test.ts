/** Random worlds: whatever links, disks and processes do, the checks of RaftWorld hold, and progress resumes after healing. */
import { describe, expect, it } from 'vitest';
import { present } from '../../lib/assert.ts';
import type { ConfigChange } from './raft-config.ts';
import { RaftWorld } from './raft-test-world.ts';

const seeds = 320;
const chaosMs = 10_000;

/** What a run did, so that the test can tell that it tested something. */
interface Tally {
  commands: number;
  reads: number;
  elections: number;
  wipes: number;
  swaps: number;
  removed: number;
  snapshots: number;
}

/** Voters in the config that stands, and how many of those disks may still be lost. */
function wipesLeft(world: RaftWorld): number {
  const { voters } = world.config;
  const gone = voters.filter(({ nodeId, diskId }) => world.node(nodeId).diskId !== diskId).length;
  return world.isSettled ? Math.floor((voters.length - 1) / 2) - gone : 0;
}

function halve(world: RaftWorld, names: readonly string[]): void {
  const side = world.random.shuffle(names).slice(0, Math.floor(names.length / 2));
  for (const a of side) {
    for (const b of names.filter((other) => !side.includes(other))) {
      world.cut(a, b);
      world.cut(b, a);
    }
  }
}

/** Asks any node that takes itself for a leader to swap or remove a voter that may be well. */
function reconfigure(world: RaftWorld, names: readonly string[], tally: Tally): void {
  const { random } = world;
  const leaders = [...world.nodes.values()].filter(({ raft }) => raft?.role === 'leader');
  if (leaders.length === 0) return;
  const leader = random.pick(leaders);
  const raft = present(leader.raft, 'leader');
  const old = random.pick(raft.config.voters);
  const spare = raft.config.learners.find((learner) => world.isCaughtUp(raft, learner));
  const propose = (change: ConfigChange): boolean =>
    world.act(leader.nodeId, () => raft.proposeConfig(change, world.nowMs)) !== null;
  if (random.chance(0.7)) {
    if (spare === undefined) return;
    if (random.chance(0.5)) halve(world, names);
    if (propose({ kind: 'replace', old, new: spare })) tally.swaps++;
  } else if (raft.config.voters.length > 2 && wipesLeft(world) > 0) {
    if (propose({ kind: 'remove', voter: old })) tally.removed++;
  }
}

function hurt(world: RaftWorld, names: readonly string[], tally: Tally): void {
  const { random } = world;
  const leader = world.leader()?.nodeId;
  const name = leader !== undefined && random.chance(0.4) ? leader : random.pick(names);
  switch (random.below(9)) {
    case 0:
    case 1:
      world.crash(name);
      if (random.chance(0.5)) world.closeLinks(name);
      break;
    case 2:
      world.isolate(name);
      break;
    case 3:
      world.cut(name, random.pick(names));
      break;
    case 4:
      halve(world, names);
      break;
    case 5: {
      const { diskId } = world.node(name);
      if (wipesLeft(world) < 1 || !world.config.voters.some((voter) => voter.diskId === diskId)) break;
      world.wipe(name);
      tally.wipes++;
      break;
    }
    case 6:
      reconfigure(world, names, tally);
      break;
    default:
      world.heal();
      for (const other of names) if (world.node(other).raft === null) world.start(other);
  }
}

function runSeed(seed: number, tally: Tally): void {
  const world = new RaftWorld({
    seed,
    lossChance: (seed % 4) * 0.03,
    duplicateChance: (seed % 3) * 0.05,
    slowChance: (seed % 5) * 0.03,
    snapshotEvery: 20,
  });
  const size = seed % 2 === 0 ? 3 : 5;
  const names = ['n1', 'n2', 'n3', 'n4', 'n5', 'n6'].slice(0, size + 1);
  world.found(...names.slice(0, size));
  world.add(present(names[size], 'spare'));
  const { random } = world;
  const endMs = world.nowMs + chaosMs;
  let command = 0;
  while (world.nowMs < endMs) {
    world.run(random.below(40));
    for (const { nodeId, raft } of world.nodes.values()) {
      if (raft?.role !== 'leader') continue;
      for (let more = random.below(4); more > 0; more--) world.propose(nodeId, `${seed}.${command++}`);
      if (random.chance(0.3)) world.read(nodeId, command++);
    }
    if (random.chance(0.15)) hurt(world, names, tally);
    if (random.chance(0.3)) world.repair(size);
    if (random.chance(0.1)) world.checkLogMatching();
  }
  recover(world, names, size);
  tally.commands += world.commands().length;
  tally.reads += world.answeredReads.size;
  tally.elections += present(world.leader()?.raft, 'leader').raftTerm;
  tally.snapshots += [...world.nodes.values()].filter(({ disk }) => disk.snapshot !== null).length;
}

/** After healing every node is a member with the disk that it has, and holds everything that was ever committed. */
function recover(world: RaftWorld, names: readonly string[], size: number): void {
  world.heal();
  for (const name of names) if (world.node(name).raft === null) world.start(name);
  const whole = (): boolean => {
    if (world.random.chance(0.2)) world.repair(size);
    const { voters, learners } = world.config;
    const disks = [...voters, ...learners].map(({ diskId }) => diskId);
    return world.isSettled && voters.length >= size && names.every((name) => disks.includes(world.node(name).diskId));
  };
  expect(world.run(30_000, whole), 'every node is a member again').toBe(true);
  const before = world.commands();
  // A leader that is about to be deposed may lose a first proposal.
  const resumed = [1, 2, 3].some((attempt) => world.commit(world.awaitLeader(), `last ${attempt}`, 3000));
  expect(resumed, 'progress resumes').toBe(true);
  const end = world.committedIndex;
  const all = (): boolean => [...world.nodes.values()].every(({ applied }) => applied.index >= end);
  expect(world.run(10_000, all), 'everybody holds everything').toBe(true);
  expect(world.commands().slice(0, before.length)).toEqual(before);
  world.checkLogMatching();
}

describe('Raft in random worlds', () => {
  it(`keeps every promise over ${seeds} seeds`, { timeout: 120_000 }, () => {
    const tally: Tally = { commands: 0, reads: 0, elections: 0, wipes: 0, swaps: 0, removed: 0, snapshots: 0 };
    for (let seed = 1; seed <= seeds; seed++) {
      try {
        runSeed(seed, tally);
      } catch (error) {
        throw new Error(`seed ${seed}: ${(error as Error).message}`, { cause: error });
      }
    }
    expect(tally.wipes).toBeGreaterThan(seeds / 10);
    expect(tally.swaps).toBeGreaterThan(seeds / 10);
    expect(tally.removed).toBeGreaterThan(seeds / 10);
    expect(tally.elections).toBeGreaterThan(3 * seeds);
    expect(tally.commands).toBeGreaterThan(20 * seeds);
    expect(tally.reads).toBeGreaterThan(seeds);
  });
});
