/**
 * What every generator is given: its own random stream, the values it may write, and the book of keys.
 *
 * Generators are synchronous and seeded: the same seed and the same completions give the same operations. Whatever a
 * generator wants to know of the run (may a key be opened, is its part of the store clogged) it asks here.
 */
import type { Prng } from '../lib/prng.ts';
import type { Completion, Version } from './port.ts';
import { compareVersions } from './port.ts';

/** Makes the value that names the operation which writes it; a value written twice would blind the verifier. */
export interface ValueCodec {
  /** A whole value, of the run's value size. */
  encode(operationId: number): string;
  /** The shortest value: an element of a list. */
  element(operationId: number): string;
}

/** Counts the keys that live in the store; a run of hours stays within its cap because finished keys are retired. */
export interface KeyBook {
  /** May one more key come to life now? */
  mayOpen(): boolean;
  /** The generator starts to use `key`. */
  opened(key: string): void;
  /** The generator will never name `key` again and has no operation open on it. */
  finished(key: string): void;
  /** False while enough sessions already wait on the part of the store that holds `key`. */
  accepts(key: string): boolean;
}

/** How the keys of a pool are drawn. `hot` sends half of all operations to one key. */
export type KeyDistribution = 'uniform' | 'zipf' | 'hot';

export interface WorkloadContext {
  readonly prng: Prng;
  readonly values: ValueCodec;
  readonly keys: KeyBook;
  readonly distribution: KeyDistribution;
  /** Share of operations that read, 0 … 1. */
  readonly readRatio: number;
  /** Keys in use at a time by each generator that overwrites. */
  readonly activeKeys: number;
  /** Operations after which a key is finished and a new one starts. */
  readonly operationsPerKey: number;
  /** Keys written once that each session remembers for its reads; long enough that reads meet values older than a failover. */
  readonly rememberedKeys: number;
  /** Stands after the first letter of every key, so that a run that goes on after a break never names an old key; default none. */
  readonly keyTag?: string;
}

/** Lends every session its own fork of a generator's stream, so that sessions never shift each other's numbers. */
export class SessionStreams {
  private readonly prng: Prng;
  private readonly streams: Prng[] = [];

  constructor(prng: Prng) {
    this.prng = prng;
  }

  of(session: number): Prng {
    return (this.streams[session] ??= this.prng.fork(`session-${session}`));
  }
}

/** What is known of a key's current value from completions, newest version first seen wins. */
export interface KeyKnowledge {
  /** Newest version seen; null when none was. */
  newest: Version | null;
  /** Whether the key held a value at `newest`; null when unknown. */
  present: boolean | null;
  /** The value at `newest` where a read or our own write told it. */
  value: string | null;
}

export const knowNothing = (): KeyKnowledge => ({ newest: null, present: null, value: null });

/** Takes in what an `ok` completion (or a failed condition) says of the key; older news is ignored. */
export function learn(
  known: KeyKnowledge,
  completion: Completion,
  present: boolean | null,
  value: string | null,
): void {
  if (completion.kind === 'info') return;
  const version = completion.version ?? null;
  if (version === null) {
    if (known.newest === null && completion.kind === 'ok') {
      known.present = present;
      known.value = value;
    } else if (completion.kind === 'ok' && present === false) {
      known.present = false;
      known.value = null;
    }
    return;
  }
  if (known.newest !== null && compareVersions(version, known.newest) < 0) return;
  known.newest = version;
  known.present = present;
  known.value = value;
}
