/**
 * Versions of one key as plain numbers in the same order, so that they sort and compare fast.
 *
 * (major, minor) becomes major × 2^32 + minor where that is exact; else the pair's rank among all pairs of the key.
 */
import type { KeyHistory } from './history.ts';

const minorLimit = 2 ** 32;
const majorLimit = 2 ** 20;

export class VersionCodes {
  /** Of the row's own version; NaN: none. */
  version = new Float64Array(64);
  /** Of the version that a conditional operation expected; NaN: none. */
  expected = new Float64Array(64);

  prepare(history: KeyHistory): void {
    const { size } = history;
    if (size > this.version.length) {
      const capacity = Math.max(size, this.version.length * 2);
      this.version = new Float64Array(capacity);
      this.expected = new Float64Array(capacity);
    }
    let exact = true;
    for (let i = 0; i < size; i++) {
      this.version[i] = (history.major[i] as number) * minorLimit + (history.minor[i] as number);
      this.expected[i] = (history.expectedMajor[i] as number) * minorLimit + (history.expectedMinor[i] as number);
      if (tooLarge(history.major[i] as number, history.minor[i] as number)) exact = false;
      if (tooLarge(history.expectedMajor[i] as number, history.expectedMinor[i] as number)) exact = false;
    }
    if (!exact) this.rank(history);
  }

  private rank(history: KeyHistory): void {
    const pairs: [major: number, minor: number, code: Float64Array, row: number][] = [];
    for (let i = 0; i < history.size; i++) {
      const major = history.major[i] as number;
      const expectedMajor = history.expectedMajor[i] as number;
      if (major === major) pairs.push([major, history.minor[i] as number, this.version, i]);
      if (expectedMajor === expectedMajor)
        pairs.push([expectedMajor, history.expectedMinor[i] as number, this.expected, i]);
    }
    pairs.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
    let rank = -1;
    for (const [index, pair] of pairs.entries()) {
      const before = pairs[index - 1];
      if (before === undefined || before[0] !== pair[0] || before[1] !== pair[1]) rank++;
      pair[2][pair[3]] = rank;
    }
  }
}

const tooLarge = (major: number, minor: number): boolean =>
  major >= majorLimit || minor >= minorLimit || major < 0 || minor < 0;
