/**
 * Evidence for a violation: the smallest prefix of the completions that cannot be explained. Any prefix of a linearizable
 * history is linearizable, so the first bad one is found by halving. Owns only evidence: the verdict stands without it.
 */

/** Result of judging one prefix. */
export type PrefixVerdict = 'valid' | 'invalid' | 'unknown';

/** Completions in the smallest bad prefix; `isMinimal` is false where the budget ended the halving. */
export interface SmallestPrefix {
  readonly completions: number;
  readonly isMinimal: boolean;
}

/**
 * Halves between `explained` completions (known to be valid) and `total` (known to be invalid). `judge` is asked for
 * prefixes in between.
 */
export function smallestPrefix(
  explained: number,
  total: number,
  judge: (completions: number) => PrefixVerdict,
): SmallestPrefix {
  let low = explained;
  let high = total;
  let isMinimal = true;
  // The search's own frontier is nearly always the answer: try it first.
  let probe = explained + 1;
  while (low + 1 < high) {
    const verdict = judge(probe);
    if (verdict === 'unknown') {
      isMinimal = false;
      break;
    }
    if (verdict === 'invalid') high = probe;
    else low = probe;
    probe = low + ((high - low) >> 1);
  }
  return { completions: high, isMinimal };
}
