/** Every kept counterexample, replayed; and files that cannot be used throw. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { brokenStoreOf } from './broken/catalogue.ts';
import {
  CounterexampleError,
  listCounterexamples,
  playCounterexample,
  readCounterexample,
  writeCounterexample,
} from './counterexample.ts';
import { shrinkFailure, traceCounterexample } from './investigate.ts';
import { drawOptions, SimOptionError } from './options.ts';
import { drawSchedule } from './schedule.ts';

const readText = (path: string): string => readFileSync(path, 'utf8');
const kept = listCounterexamples();
const folder = mkdtempSync(join(tmpdir(), 'zaris-regressions-'));
afterAll(() => rmSync(folder, { recursive: true }));

describe('kept counterexamples', () => {
  it('are there', () => {
    expect(kept.length).toBeGreaterThanOrEqual(2);
  });

  it.each(kept)('%s', async (path) => {
    const { why } = await playCounterexample(readCounterexample(path));
    expect(why).toBeNull();
  });
});

describe('a file', () => {
  const example = (): string => {
    const options = drawOptions(3, { durationMs: '20000' });
    return writeCounterexample(folder, {
      name: 'sound',
      note: 'nothing wrong',
      store: null,
      seed: 3,
      options,
      schedule: drawSchedule(3, options),
    });
  };
  const damaged = (change: (json: Record<string, unknown>) => unknown): string => {
    const json = JSON.parse(JSON.stringify(JSON.parse(readText(example())))) as Record<string, unknown>;
    const path = join(folder, 'damaged.json');
    writeFileSync(path, JSON.stringify(change(json)));
    return path;
  };

  it('comes back as it was written', () => {
    const options = drawOptions(3, { durationMs: '20000' });
    const schedule = drawSchedule(3, options);
    expect(readCounterexample(example())).toEqual({
      name: 'sound',
      note: 'nothing wrong',
      store: null,
      seed: 3,
      options,
      schedule,
    });
  });

  it.each<[string, (json: Record<string, unknown>) => unknown, RegExp]>([
    ['without a note', ({ note: _note, ...rest }) => rest, /note/],
    ['of another version', (json) => ({ ...json, version: 2 }), /version/],
    ['with a field that nobody knows', (json) => ({ ...json, extra: 1 }), /extra/i],
    [
      'with an option that nobody knows',
      (json) => ({ ...json, options: { ...(json['options'] as object), nothing: 1 } }),
      /no simulator option "nothing"/,
    ],
    [
      'with a schedule that makes no sense',
      (json) => ({
        ...json,
        schedule: { ...(json['schedule'] as object), events: [{ fault: { kind: 'earthquake' } }] },
      }),
      /damaged cannot be used/,
    ],
    ['of a store that does not exist', (json) => ({ ...json, store: 'perfect' }), /no broken store "perfect"/],
  ])('%s throws', (_what, change, expected) => {
    expect(() => readCounterexample(damaged(change))).toThrow(CounterexampleError);
    expect(() => readCounterexample(damaged(change))).toThrow(expected);
  });

  it('that is cut off throws', () => {
    const path = join(folder, 'cut.json');
    writeFileSync(path, readText(example()).slice(0, 100));
    expect(() => readCounterexample(path)).toThrow(/cut cannot be used/);
  });
});

describe('shrinking', () => {
  it('reduces the run that catches a broken store to a handful of events, and traces it', async () => {
    const store = brokenStoreOf('ack-before-replication');
    if (store === undefined) throw new Error('no such store');
    const options = drawOptions(1, store.pins);
    const first = { seed: 1, options, schedule: drawSchedule(1, options) };
    const { candidate } = await shrinkFailure({ first, store, maxRuns: 120, boundMs: 60_000, print: () => undefined });
    expect(candidate.schedule.events.length).toBeLessThanOrEqual(12);
    expect(candidate.schedule.events.length).toBeLessThan(first.schedule.events.length);
    expect(candidate.options.durationMs).toBeLessThan(options.durationMs);
    const example = { name: 'small', note: 'small', store: store.name, ...candidate };
    expect((await playCounterexample(readCounterexample(writeCounterexample(folder, example)))).why).toBeNull();
    const [text, html] = (await traceCounterexample(example, store, folder)).map(readText) as [string, string];
    expect(text).toMatch(/FINDING/);
    expect(text).toMatch(/n\d +→ n\d: append t\d+/);
    expect(html).toContain('<svg');
    expect(html).not.toContain('<script');
  });

  it('refuses a run that does not fail', async () => {
    const options = drawOptions(3, { durationMs: '10000' });
    await expect(
      shrinkFailure({
        first: { seed: 3, options, schedule: drawSchedule(3, options) },
        maxRuns: 5,
        boundMs: 1_000,
        print: () => undefined,
      }),
    ).rejects.toThrow(
      new SimOptionError('Seed 3 does not fail (passed) with these options, so there is nothing to reduce.'),
    );
  });
});
