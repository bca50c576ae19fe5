/** Random worlds: whatever links, disks and processes do, the checks of RaftWorld hold, and progress resumes after healing. */
import { describe, expect, it } from 'vitest';
import { present } from '../../lib/assert.ts';
import { RaftWorld } from './raft-test-world.ts';

const seeds = 400;
const chaosMs = 15_000;

/** What a run did, so that the test can tell that it tested something. */
interface Tally {
  commands: number;
  reads: number;
  elections: number;
  wipes: number;
  replaced: number;
  removed: number;
  snapshots: number;
}

function hurt(world: RaftWorld, names: readonly string[], tally: Tally): void {
  const { random } = world;
  const name = random.pick(names);
  const node = world.node(name);
  const gone = world.config.voters.filter(({ nodeId, diskId }) => world.node(nodeId).diskId !== diskId).length;
  const spare = Math.floor((world.config.voters.length - 1) / 2) - gone;
  switch (random.below(8)) {
    case 0:
    case 1: {
      const leader = world.leader()?.nodeId ?? name;
      world.crash(random.chance(0.5) ? leader : name);
      if (random.chance(0.5)) world.closeLinks(name);
      break;
    }
    case 2:
      world.isolate(random.chance(0.5) ? (world.leader()?.nodeId ?? name) : name);
      break;
    case 3:
      world.cut(name, random.pick(names));
      break;
    case 4: {
      const side = random.shuffle(names).slice(0, Math.floor(names.length / 2));
      for (const a of side) {
        for (const b of names.filter((other) => !side.includes(other))) {
          world.cut(a, b);
          world.cut(b, a);
        }
      }
      break;
    }
    case 5:
      if (spare < 1 || !world.isSettled || !world.config.voters.some((voter) => voter.diskId === node.diskId)) break;
      world.wipe(name);
      tally.wipes++;
      break;
    case 6: {
      const leader = world.leader();
      if (gone > 0 || !world.isSettled || world.config.voters.length < 3 || leader === null) break;
      const voter = random.pick(world.config.voters);
      const raft = present(leader.raft, 'leader');
      const change = { kind: 'remove', voter } as const;
      if (world.act(leader.nodeId, () => raft.proposeConfig(change, world.nowMs)) !== null) tally.removed++;
      break;
    }
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
  const names = ['n1', 'n2', 'n3', 'n4', 'n5'].slice(0, seed % 2 === 0 ? 3 : 5);
  world.found(...names);
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
    if (random.chance(0.3)) world.repair();
    if (random.chance(0.1)) world.checkLogMatching();
  }
  recover(world, names);
  tally.commands += world.commands().length;
  tally.reads += world.answeredReads.size;
  tally.elections += present(world.leader()?.raft, 'leader').raftTerm;
  tally.replaced += new Set(world.config.voters.map(({ diskId }) => diskId)).size;
  tally.snapshots += [...world.nodes.values()].filter(({ disk }) => disk.snapshot !== null).length;
}

/** After healing every node becomes a voter with the disk that it has, and holds everything that was ever committed. */
function recover(world: RaftWorld, names: readonly string[]): void {
  world.heal();
  for (const name of names) if (world.node(name).raft === null) world.start(name);
  const whole = (): boolean => {
    world.repair();
    const { voters } = world.config;
    return world.isSettled && voters.length === names.length && names.every((n) => voters.some((v) => v.diskId === world.node(n).diskId));
  };
  expect(world.run(30_000, whole), 'every node is a voter again').toBe(true);
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
    const tally: Tally = { commands: 0, reads: 0, elections: 0, wipes: 0, replaced: 0, removed: 0, snapshots: 0 };
    for (let seed = 1; seed <= seeds; seed++) {
      try {
        runSeed(seed, tally);
      } catch (error) {
        throw new Error(`seed ${seed}: ${(error as Error).message}`, { cause: error });
      }
    }
    console.log(tally);
    expect(tally.wipes).toBeGreaterThan(seeds / 10);
    expect(tally.removed).toBeGreaterThan(seeds / 10);
    expect(tally.elections).toBeGreaterThan(3 * seeds);
    expect(tally.commands).toBeGreaterThan(20 * seeds);
    expect(tally.reads).toBeGreaterThan(seeds);
  });
});
