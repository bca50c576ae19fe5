/** A small sweep whose seeds follow from the commit; the same seed twice; options and pins. */
import { describe, expect, it } from 'vitest';
import { describeOptions, drawOptions, optionNames, pinsOf, SimOptionError } from './options.ts';
import { outcomeOf } from './outcome.ts';
import { runSim } from './run-seed.ts';
import { currentCommit, seedOfCommit, seedsFrom } from './seeds.ts';
import { sweep } from './sweep.ts';

/** Wall time that the sweep may take is bounded by its size; 1 min of virtual time each. */
const seedCount = 24;
const short = { durationMs: '60000' };

describe('a sweep', () => {
  it('passes every seed that follows from the commit', async () => {
    const commit = currentCommit();
    const first = seedOfCommit(commit ?? 'no commit');
    process.stdout.write(`seeds from ${commit ?? 'no commit'}: ${first} and following\n`);
    const totals = await sweep({ seeds: seedsFrom(first, seedCount), pins: short, jobs: 2, stopAtFirst: false });
    expect(totals.failures).toEqual([]);
    expect(totals.passed).toBe(seedCount);
    expect(totals.playedTwice).toBeGreaterThan(0);
    // Not vacuous: writes were acknowledged, faults took hold, primaries failed over.
    expect(totals.acknowledgedWrites).toBeGreaterThan(seedCount * 100);
    expect(totals.confirmedFaults).toBeGreaterThan(seedCount);
    expect(totals.failovers).toBeGreaterThan(seedCount / 4);
    for (const reached of [
      'edge promotion',
      'edge handoff',
      'health Unavailable',
      'promotion possessed',
      'snapshot installed',
      'outcome in doubt',
    ]) {
      expect(totals.coverage.counts.has(reached), reached).toBe(true);
    }
  });

  it('names a seed that the simulator cannot play, with its replay command', async () => {
    const totals = await sweep({ seeds: [1, 2], pins: { ...short, mix: 'nothing:1' }, jobs: 1, stopAtFirst: true });
    expect(totals.failures.map(({ seed, kind }) => [seed, kind])).toEqual([[1, 'simulator-fault']]);
    expect(totals.failures[0]?.replay).toBe(
      'npm run certify -- sim --seed 1 --pin durationMs=60000 --pin mix=nothing:1',
    );
  });
});

describe('determinism', () => {
  it('gives the same trace, operations and verdict for the same seed, and another trace for another', async () => {
    const play = async (seed: number) =>
      outcomeOf(await runSim({ seed, options: drawOptions(seed, short), checkers: true }));
    const { wallMs: _first, ...first } = await play(11);
    const { wallMs: _again, ...again } = await play(11);
    expect(again).toEqual(first);
    expect((await play(12)).traceHash).not.toBe(first.traceHash);
  });

  it('is not moved by checkers', async () => {
    const options = drawOptions(13, short);
    const plain = await runSim({ seed: 13, options });
    const watched = await runSim({ seed: 13, options, checkers: true });
    expect(watched.traceHash).toBe(plain.traceHash);
  });
});

describe('options', () => {
  it('are drawn from the seed alone; a pin moves no other', () => {
    const drawn = drawOptions(5);
    expect(drawOptions(5)).toEqual(drawn);
    const pinned = drawOptions(5, { sessions: '16', clients: '1' });
    for (const name of optionNames)
      if (name !== 'sessions' && name !== 'clients') expect(pinned[name], name).toEqual(drawn[name]);
  });

  it('draw requests that are late by nothing, by little and by much', () => {
    const drawn = seedsFrom(0, 50).map((seed) => drawOptions(seed).lateRequestMs);
    expect([...new Set(drawn)].sort((a, b) => a - b)).toEqual([0, 500, 5_000, 20_000]);
    expect(drawOptions(5, { lateRequestMs: '70' })).toEqual({ ...drawOptions(5), lateRequestMs: 70 });
  });

  it('come back from their own pins', () => {
    for (const seed of seedsFrom(0, 50)) {
      const options = drawOptions(seed);
      expect(drawOptions(seed + 1, pinsOf(options))).toEqual(options);
      expect(describeOptions(options)).toContain(`rf=${options.rf}`);
    }
  });

  it.each([
    [{ nothing: '1' }, /no simulator option "nothing"/],
    [{ rf: 'three' }, /must be a number/],
    [{ rf: '5', nodes: '3' }, /no more than the nodes/],
    [{ moments: 'maybe' }, /true or false/],
    [{ faults: 'kill,earthquake' }, /no fault "earthquake"/],
    [{ mix: 'nothing:1' }, /no workload "nothing"/],
    [{ partitions: '3' }, /divide 16,384/],
  ])('refuses %j with one sentence', (pins, expected) => {
    expect(() => drawOptions(1, pins as unknown as Record<string, string>)).toThrow(SimOptionError);
    expect(() => drawOptions(1, pins as unknown as Record<string, string>)).toThrow(expected);
  });
});
