/**
 * Judges a mutation against a key's current state and turns it into an absolute effect, or into a refusal. Pure.
 * If a condition were judged wrongly, a compare-and-set would overwrite a value that its caller never saw.
 */
import type { Mutation } from '../model/client-wire.ts';
import type { EntryEffect, StoredResult } from '../model/entry.ts';
import { type Version, compareVersions } from '../model/ids.ts';
import { unreachable } from '../../lib/assert.ts';

export interface CurrentValue {
  readonly value: string;
  readonly version: Version;
}

export type Judgement =
  /** Log it; once committed the answer is `result`, with the entry's own version. */
  | { readonly kind: 'effect'; readonly effect: EntryEffect; readonly value?: string }
  /** Nothing changes; `result` is an observation of the current state. */
  | { readonly kind: 'refusal'; readonly result: StoredResult };

const sumPattern = /^-?\d{1,15}$/;

/** `current` is null when the key is absent; `position` is the log position that an absence was judged against. */
export function judgeMutation(mutation: Mutation, current: CurrentValue | null, position: Version): Judgement {
  const refuse = (status: StoredResult['status']): Judgement => ({
    kind: 'refusal',
    result: { status, version: current?.version ?? position },
  });
  switch (mutation.kind) {
    case 'put': {
      const { key, value, ttlMs } = mutation;
      if (mutation.ifAbsent === true && current !== null) return refuse('Conflict');
      if (mutation.ifVersion !== undefined && !holds(current, mutation.ifVersion)) return refuse('Conflict');
      if (ttlMs === undefined) return { kind: 'effect', effect: { kind: 'put', key, value } };
      return { kind: 'effect', effect: { kind: 'put', key, value, ttlMs } };
    }
    case 'delete':
      if (current === null) return refuse('NotFound');
      if (mutation.ifVersion !== undefined && !holds(current, mutation.ifVersion)) return refuse('Conflict');
      return { kind: 'effect', effect: { kind: 'delete', key: mutation.key } };
    case 'add': {
      if (current !== null && !sumPattern.test(current.value)) return refuse('InvalidInput');
      const sum = (current === null ? 0 : Number(current.value)) + mutation.delta;
      if (!Number.isSafeInteger(sum)) return refuse('Conflict');
      if (mutation.min !== undefined && sum < mutation.min) return refuse('Conflict');
      if (mutation.max !== undefined && sum > mutation.max) return refuse('Conflict');
      return { kind: 'effect', effect: { kind: 'put', key: mutation.key, value: String(sum) }, value: String(sum) };
    }
    default:
      return unreachable(mutation);
  }
}

const holds = (current: CurrentValue | null, expected: Version): boolean =>
  current !== null && compareVersions(current.version, expected) === 0;
