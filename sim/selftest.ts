/**
 * The self-test: every broken store must be caught by the verifier, from the clients' history or the read-back.
 *
 * Invariant: a crash, a stall, a broken invariant or an assertion is no catch, and neither is a finding in a run whose faults
 * went past the budget. If any of those counted, a blind verifier would pass.
 */
import type { BrokenStore } from './broken/store.ts';
import { drawOptions } from './options.ts';
import type { SimResult } from './job.ts';
import { runSim } from './run-seed.ts';
import { CircleError } from './trace-hash.ts';

/** Time that one store gets, ms of the wall. */
export const selfTestBoundMs = 120_000;

export interface SelfTestRow {
  readonly name: string;
  readonly doc: string;
  readonly isCaught: boolean;
  /** What the verifier said first, of the expected kinds. */
  readonly finding: string | null;
  readonly kinds: readonly string[];
  readonly seeds: number;
  /** The seed that caught it. */
  readonly seed: number | null;
  readonly operations: number;
  readonly faults: number;
  readonly wallMs: number;
}

/** The finding that catches the store, or null. */
export function catchOf(store: BrokenStore, result: SimResult): string | null {
  if (result.overshoots.length > 0) return null;
  const finding = result.judgement.findings.find(({ kind }) => store.expects.includes(kind));
  return finding === undefined ? null : `${finding.kind} (${finding.rule}): ${finding.reason}`;
}

/** Null where the broken nodes ran in circles: a stall, and no catch. */
async function playOrStall(seed: number, store: BrokenStore): Promise<SimResult | null> {
  try {
    return await runSim({ seed, options: drawOptions(seed, store.pins), store });
  } catch (error) {
    if (error instanceof CircleError) return null;
    throw error;
  }
}

/** Plays seeds from `firstSeed` on until the store is caught or its time is over. */
export async function selfTest(store: BrokenStore, firstSeed: number, boundMs = selfTestBoundMs): Promise<SelfTestRow> {
  const startedMs = performance.now();
  let operations = 0;
  let faults = 0;
  let seeds = 0;
  for (let seed = firstSeed; performance.now() - startedMs < boundMs; seed++) {
    seeds += 1;
    const result = await playOrStall(seed, store);
    if (result === null) continue;
    operations += result.history.operationCount;
    faults += result.confirmedFaults;
    const finding = catchOf(store, result);
    if (finding === null) continue;
    const kinds = [...result.judgement.totals.keys()];
    return {
      name: store.name,
      doc: store.doc,
      isCaught: true,
      finding,
      kinds,
      seeds,
      seed,
      operations,
      faults,
      wallMs: performance.now() - startedMs,
    };
  }
  return {
    name: store.name,
    doc: store.doc,
    isCaught: false,
    finding: null,
    kinds: [],
    seeds,
    seed: null,
    operations,
    faults,
    wallMs: performance.now() - startedMs,
  };
}
