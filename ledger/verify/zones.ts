/**
 * Two values that take turns: a value is written once, so it is current in one stretch of time. From the end of the first
 * operation on it to the start of the last one it surely was current; two such stretches that overlap cannot both be.
 *
 * Source: P. Gibbons and E. Korach, "Testing shared memories", SIAM J. Comput. 26(4), 1997 (zones). Sound for any history
 * of a register; with `interval` it is also complete for reads and writes alone. Needs no versions.
 */
import type { KeyAnalysis } from './analysis.ts';
import { sortIndexes } from './analysis.ts';
import type { RowFinding } from './finding.ts';
import { kindCode } from './history.ts';

export class ZoneRule {
  private startNs = new Float64Array(64);
  private endNs = new Float64Array(64);
  private write = new Int32Array(64);
  private order = new Uint32Array(64);

  check(analysis: KeyAnalysis, report: (finding: RowFinding) => void): void {
    const { history } = analysis;
    this.reserve(history.operationCount);
    let count = 0;
    for (let i = 0; i < history.operationCount; i++) {
      const f = history.f[i];
      if (f !== kindCode.write && f !== kindCode.create && f !== kindCode.cas) continue;
      const from = analysis.boundNs[i] as number;
      const to = analysis.lastSeenNs[i] as number;
      if (from >= to || !analysis.isCertain(i)) continue;
      this.startNs[count] = from;
      this.endNs[count] = to;
      this.write[count] = i;
      this.order[count] = count;
      count++;
    }
    sortIndexes(this.order, count, this.startNs);
    let open = -1;
    for (let at = 0; at < count; at++) {
      const zone = this.order[at] as number;
      if (open >= 0 && (this.startNs[zone] as number) < (this.endNs[open] as number)) {
        report({
          kind: 'non-monotone',
          rule: 'zones',
          subject: this.write[open] as number,
          witness: this.write[zone] as number,
          reason: 'reads show two values in turns, each before and after the other',
        });
        return;
      }
      if (open < 0 || (this.endNs[zone] as number) > (this.endNs[open] as number)) open = zone;
    }
  }

  private reserve(size: number): void {
    if (size <= this.write.length) return;
    const capacity = Math.max(size, this.write.length * 2);
    this.startNs = new Float64Array(capacity);
    this.endNs = new Float64Array(capacity);
    this.write = new Int32Array(capacity);
    this.order = new Uint32Array(capacity);
  }
}
