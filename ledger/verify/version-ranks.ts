/** The versions of one key in their order, each once: from a version's code to its place. */

export class VersionRanks {
  count = 0;
  private codes = new Float64Array(64);
  private lastRank = 0;

  /** Starts over for another key. */
  clear(): void {
    this.count = 0;
  }

  /** Room for so many codes; what is in is gone. */
  reserve(capacity: number): void {
    if (capacity > this.codes.length) this.codes = new Float64Array(capacity);
  }

  /** Takes a code, in any order and as often as it comes. */
  add(code: number): void {
    this.codes[this.count++] = code;
  }

  /** Puts the codes in order; from here on they have ranks. */
  order(): void {
    const added = this.codes.subarray(0, this.count);
    if (!isAscending(added)) added.sort();
    this.count = 0;
    for (let at = 0; at < added.length; at++) {
      if (at === 0 || added[at] !== this.codes[this.count - 1]) this.codes[this.count++] = added[at] as number;
    }
    this.lastRank = 0;
  }

  /** Rank of a code; that of the next higher one, or `count`, when it is not there. */
  rankOf(code: number): number {
    // Rows come nearly in the order of their versions: it is often the one asked for last, or the next.
    const { lastRank, count, codes } = this;
    if (lastRank < count && codes[lastRank] === code) return lastRank;
    if (lastRank + 1 < count && codes[lastRank + 1] === code) return ++this.lastRank;
    return (this.lastRank = this.search(code));
  }

  isVersion(rank: number, code: number): boolean {
    return rank < this.count && this.codes[rank] === code;
  }

  private search(code: number): number {
    let low = 0;
    let high = this.count;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.codes[middle] as number) < code) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

function isAscending(codes: Float64Array): boolean {
  for (let at = 1; at < codes.length; at++) if ((codes[at] as number) < (codes[at - 1] as number)) return false;
  return true;
}
