/**
 * A run worth keeping: what found a bug, reduced, with all that it needs to be played again. Kept as `regressions/NAME.json`
 * and replayed before anything else, for ever.
 *
 * Invariant: a file that does not say everything, or says something unknown, throws; one that was quietly skipped would guard nothing.
 */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import type { Schedule } from '../chaos/schedule.ts';
import { formatSchedule, parseSchedule } from '../chaos/schedule-file.ts';
import { brokenStoreOf } from './broken/catalogue.ts';
import { catchOf } from './selftest.ts';
import { drawOptions, pinsOf, type SimOptions } from './options.ts';
import { outcomeOf } from './outcome.ts';
import type { SimResult } from './job.ts';
import { runSim } from './run-seed.ts';

/** Where they are kept. */
export const regressionsFolder = fileURLToPath(new URL('../regressions', import.meta.url));

/** A file of this folder cannot be used; one sentence. */
export class CounterexampleError extends Error {
  override readonly name = 'CounterexampleError';
}

export interface Counterexample {
  readonly name: string;
  /** What went wrong, and where it was. */
  readonly note: string;
  /** Name of a broken store that must be caught by it; null: the shipped store, which must pass. */
  readonly store: string | null;
  readonly seed: number;
  readonly options: SimOptions;
  readonly schedule: Schedule;
}

const fileShape = z.strictObject({
  version: z.literal(1),
  note: z.string().min(1),
  store: z.string().nullable(),
  seed: z.number().int().min(0).max(0xffffffff),
  options: z.record(z.string(), z.union([z.string(), z.number(), z.boolean()])),
  schedule: z.record(z.string(), z.unknown()),
});

/** Reads one. Throws {@link CounterexampleError}. */
export function readCounterexample(path: string): Counterexample {
  const name = basename(path, '.json');
  const wrong = (why: string): never => {
    throw new CounterexampleError(`The counterexample ${name} cannot be used: ${why.replace(/\s+/g, ' ')}`);
  };
  let json: unknown;
  try {
    json = JSON.parse(readFileSync(path, 'utf8'));
  } catch (error) {
    return wrong((error as Error).message);
  }
  const file = fileShape.safeParse(json);
  if (!file.success) return wrong(z.prettifyError(file.error));
  const { note, store, seed } = file.data;
  if (store !== null && brokenStoreOf(store) === undefined) return wrong(`there is no broken store "${store}".`);
  try {
    const pins = Object.fromEntries(
      Object.entries(file.data.options).map(([option, value]) => [option, String(value)]),
    );
    return {
      name,
      note,
      store,
      seed,
      options: drawOptions(seed, pins),
      schedule: parseSchedule(JSON.stringify(file.data.schedule)),
    };
  } catch (error) {
    return wrong((error as Error).message);
  }
}

export function writeCounterexample(
  folder: string,
  { name, note, store, seed, options, schedule }: Counterexample,
): string {
  mkdirSync(folder, { recursive: true });
  const path = join(folder, `${name}.json`);
  writeFileSync(
    path,
    `${JSON.stringify({ version: 1, note, store, seed, options: pinsOf(options), schedule: JSON.parse(formatSchedule(schedule)) }, null, 1)}\n`,
  );
  return path;
}

/** Paths of all that are kept, by name. */
export function listCounterexamples(folder = regressionsFolder): string[] {
  return readdirSync(folder)
    .filter((name) => name.endsWith('.json'))
    .sort()
    .map((name) => join(folder, name));
}

/** Plays one. `why` is null when it ends as it must: the shipped store passes, a broken one is caught. */
export async function playCounterexample(
  example: Counterexample,
): Promise<{ readonly result: SimResult; readonly why: string | null }> {
  const store = example.store === null ? undefined : brokenStoreOf(example.store);
  const { seed, options, schedule } = example;
  const result = await runSim({
    seed,
    options,
    schedule,
    checkers: store === undefined,
    ...(store === undefined ? {} : { store }),
  });
  if (store !== undefined)
    return { result, why: catchOf(store, result) === null ? `the store ${store.name} was not caught` : null };
  const { kind, reasons } = outcomeOf(result);
  return { result, why: kind === 'passed' ? null : `${kind}: ${reasons[0] ?? ''}` };
}
