/**
 * Settings as the ledger keeps them (plain JSON, the mix as text, no infinities) and back. Both directions stand side by side,
 * because a setting that got lost on the way would make a resumed or repeated run another run under the same name.
 */
import { defaultMix, describeMix, parseMix } from '../workloads/mix.ts';
import { UsageError } from './errors.ts';
import type { RunSettings } from './settings.ts';

/** What is written to the ledger under `settings`. */
export function storedSettings(settings: RunSettings): Record<string, unknown> {
  const { mix, ratePerSecond, maxOperations, ...rest } = settings;
  const finite = (value: number): number | null => (Number.isFinite(value) ? value : null);
  return {
    ...rest,
    workload: describeMix(mix),
    ratePerSecond: finite(ratePerSecond),
    maxOperations: finite(maxOperations),
  };
}

/** The settings of a run from its ledger. `resultsDir`: where the run's folder lies now. Throws UsageError. */
export function settingsFrom(stored: unknown, resultsDir: string): RunSettings {
  if (typeof stored !== 'object' || stored === null)
    throw new UsageError('The ledger holds no settings: its run ended before it had begun.');
  const { workload, ratePerSecond, maxOperations, ...rest } = stored as Record<string, unknown>;
  const parsed = parseMix(typeof workload === 'string' ? workload : describeMix(defaultMix));
  if ('error' in parsed) throw new UsageError(`The ledger's settings cannot be used: ${parsed.error}`);
  const infinite = (value: unknown): number => (typeof value === 'number' ? value : Infinity);
  return {
    ...newerSettings,
    ...(rest as unknown as RunSettings),
    mix: parsed.mix,
    ratePerSecond: infinite(ratePerSecond),
    maxOperations: infinite(maxOperations),
    resultsDir,
  };
}

/** Settings that older ledgers do not have. */
const newerSettings = {
  profile: null,
  failIf: [],
  evidence: { minAcked: null, minAckedPerFault: null, minFailovers: null, minPlannedPerRole: null },
  beyondBudget: false,
  image: null,
  build: null,
} as const;
