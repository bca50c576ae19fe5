/** Draws slots of a pool: uniformly, by Zipf's law (exponent 0.99), or half of the time the first one. */
import { assert } from '../lib/assert.ts';
import type { Prng } from '../lib/prng.ts';
import type { KeyDistribution } from './context.ts';

/** Exponent of the zipf distribution; YCSB's default. */
export const zipfExponent = 0.99;
/** Share of operations that go to the hot key. */
export const hotShare = 0.5;

/** Returns a function that draws an index in [0, count). */
export function indexDrawer(distribution: KeyDistribution, count: number): (prng: Prng) => number {
  assert(count > 0, 'a distribution needs at least one index');
  switch (distribution) {
    case 'uniform':
      return (prng) => prng.below(count);
    case 'hot':
      return (prng) => (prng.chance(hotShare) ? 0 : prng.below(count));
    case 'zipf': {
      const cumulative = cumulativeZipf(count);
      return (prng) => lowerBound(cumulative, prng.float());
    }
  }
}

function cumulativeZipf(count: number): Float64Array {
  const cumulative = new Float64Array(count);
  let sum = 0;
  for (let rank = 0; rank < count; rank++) {
    sum += 1 / (rank + 1) ** zipfExponent;
    cumulative[rank] = sum;
  }
  for (let rank = 0; rank < count; rank++) cumulative[rank] = (cumulative[rank] as number) / sum;
  return cumulative;
}

/** First index whose cumulative share is above `share`. */
function lowerBound(cumulative: Float64Array, share: number): number {
  let low = 0;
  let high = cumulative.length - 1;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((cumulative[middle] as number) > share) high = middle;
    else low = middle + 1;
  }
  return low;
}
