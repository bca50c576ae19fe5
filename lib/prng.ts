/**
 * Seeded pseudo-random numbers: xoshiro128** seeded through splitmix32 (Blackman & Vigna, "Scrambled linear
 * pseudorandom number generators", 2018).
 *
 * Every component gets its own fork, so that one more draw in one of them never shifts the numbers of another; if that
 * broke, a seed would stop replaying the run that it named. Not for secrets.
 */

const rotateLeft = (x: number, k: number): number => (x << k) | (x >>> (32 - k));

function hashLabel(seed: number, label: string): number {
  let hash = (seed ^ 0x811c9dc5) >>> 0;
  for (let index = 0; index < label.length; index++) {
    hash = Math.imul(hash ^ label.charCodeAt(index), 0x01000193) >>> 0;
  }
  return hash;
}

/** A deterministic stream of numbers; same seed, same stream. */
export class Prng {
  /** The state as signed 32-bit numbers: the bits are the same, and the engine keeps them in place. */
  private a: number;
  private b: number;
  private c: number;
  private d: number;
  /** The 32-bit seed this stream was made from; print it and the stream can be made again. */
  readonly seed: number;

  constructor(seed: number) {
    this.seed = seed >>> 0;
    let state = this.seed;
    const splitmix = (): number => {
      state = (state + 0x9e3779b9) >>> 0;
      let z = state ^ (state >>> 16);
      z = Math.imul(z, 0x21f0aaad);
      z ^= z >>> 15;
      z = Math.imul(z, 0x735a2d97);
      return z ^ (z >>> 15);
    };
    this.a = splitmix();
    this.b = splitmix();
    this.c = splitmix();
    this.d = splitmix();
  }

  /** An independent stream named `label`; does not advance this one. */
  fork(label: string): Prng {
    return new Prng(hashLabel(this.seed, label));
  }

  /** Integer in [0, 2^32). */
  uint32(): number {
    const { b } = this;
    const result = Math.imul(rotateLeft(Math.imul(b, 5), 7), 9) >>> 0;
    const c = this.c ^ this.a;
    const d = this.d ^ b;
    this.b = b ^ c;
    this.a ^= d;
    this.c = c ^ (b << 9);
    this.d = rotateLeft(d, 11);
    return result;
  }

  /** Float in [0, 1). */
  float(): number {
    return this.uint32() / 4294967296;
  }

  /** Integer in [0, bound); `bound` must be a positive integer below 2^32. */
  below(bound: number): number {
    return Math.floor(this.float() * bound);
  }

  /** Integer in [low, high], both included. */
  between(low: number, high: number): number {
    return low + this.below(high - low + 1);
  }

  /** True with the given probability in [0, 1]. */
  chance(probability: number): boolean {
    return this.float() < probability;
  }

  /** Exponentially distributed float with the given mean. */
  exponential(mean: number): number {
    return -Math.log(1 - this.float()) * mean;
  }

  /** One element of a non-empty list. */
  pick<T>(items: readonly T[]): T {
    if (items.length === 0) throw new RangeError('pick from an empty list');
    return items[this.below(items.length)] as T;
  }

  /** A shuffled copy (Fisher–Yates). */
  shuffle<T>(items: readonly T[]): T[] {
    const copy = [...items];
    for (let index = copy.length - 1; index > 0; index--) {
      const other = this.below(index + 1);
      const held = copy[index] as T;
      copy[index] = copy[other] as T;
      copy[other] = held;
    }
    return copy;
  }
}
