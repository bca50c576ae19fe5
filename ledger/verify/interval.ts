/**
 * The rule of DESIGN §9 on every read, live or final, with or without versions: what a read shows is allowed only if nothing
 * that certainly came later was certainly in before the read began.
 *
 * Evidence is a set of *marks* (owner, startNs, endNs): "something of this owner took effect after everything that was in
 * before startNs, and no later than endNs". A certain mutator x gives (x, x.invoke, bound(x)); a read r of x gives
 * (x, r.invoke, r.return); deletes and reads of nothing share the owner `absent`.
 *
 * Never flags a linearizable history. Let read r show w, and let a mark (x ≠ w) have startNs > bound(w), endNs < r.invoke. w
 * took effect by bound(w) < startNs. If the mark is x's own, x took effect after its invocation, so after w, and before r. If
 * it is a read r1 of x, then w was in before r1 began and r1 still saw x, so x came after w, and r1 ended before r began.
 * Either way x stands between w and r, so r cannot see w, since w takes effect once. For a read of nothing the part of w is
 * played by a *maker* of absence: the initial state (in since ever), an acknowledged delete (in by its return), the expiry of
 * a write (right after the write), an unknown delete (any time after its invocation, once). Two reads of nothing that only
 * unknown deletes explain, with a mark of a value between them, need two; Hall's condition on prefixes is checked.
 *
 * Not complete alone (nothing that looks at one read at a time is): `zones` adds pairs of values that alternate, versions
 * (witness.ts) or the search close the rest. Cost: sorting, then one sweep.
 */
import type { KeyAnalysis } from './analysis.ts';
import { sortIndexes, targetAbsent, targetNone } from './analysis.ts';
import type { RowFinding } from './finding.ts';
import { kindCode, observedCorrupt, observedForeign, outcomeCode, sourceCode } from './history.ts';

const millisecondNs = 1e6;

/** Judges every read of the analysed key; findings go to `report`. Reuses its memory from key to key. */
export class IntervalRule {
  private owner = new Int32Array(128);
  private startNs = new Float64Array(128);
  private endNs = new Float64Array(128);
  private row = new Int32Array(128);
  private byEnd = new Uint32Array(128);
  /** Rows that were found wrong: they are no evidence against others. */
  private wrong = new Uint8Array(128);
  private marks = 0;
  private readonly deleteInvokeNs: number[] = [];
  private readonly deleteBoundNs: number[] = [];
  private readonly expiring: number[] = [];
  private readonly unknownMakersNs: number[] = [];
  private readonly needsUnknown: number[] = [];

  check(analysis: KeyAnalysis, ttlLateBoundNs: number, reportFinding: (finding: RowFinding) => void): void {
    this.collect(analysis);
    const report = (finding: RowFinding): void => {
      if (finding.witness >= 0) this.wrong[finding.witness] = 1;
      reportFinding(finding);
    };
    this.sweep(analysis, ttlLateBoundNs, report);
    this.matchUnknownMakers(analysis, report);
    this.countCreates(analysis, report);
  }

  private collect(analysis: KeyAnalysis): void {
    const { history } = analysis;
    this.reserve(history.size);
    this.wrong.fill(0, 0, history.size);
    this.marks = 0;
    this.deleteInvokeNs.length = 0;
    this.deleteBoundNs.length = 0;
    this.expiring.length = 0;
    this.unknownMakersNs.length = 0;
    this.needsUnknown.length = 0;
    let latest = -Infinity;
    for (let order = 0; order < history.size; order++) {
      const i = analysis.byInvoke[order] as number;
      const f = history.f[i];
      if (f === kindCode.read) {
        if (history.source[i] === sourceCode.replica || history.outcome[i] !== outcomeCode.ok) continue;
        const target = analysis.target[i] as number;
        if (target !== targetNone) this.mark(target, history.invokeNs[i] as number, history.returnNs[i] as number, i);
        continue;
      }
      const invokeNs = history.invokeNs[i] as number;
      const boundNs = analysis.boundNs[i] as number;
      if (f === kindCode.delete) {
        if (history.outcome[i] === outcomeCode.ok) {
          this.mark(targetAbsent, invokeNs, boundNs, i);
          latest = Math.max(latest, boundNs);
          this.deleteInvokeNs.push(invokeNs);
          this.deleteBoundNs.push(latest);
        } else if (history.outcome[i] === outcomeCode.info) this.unknownMakersNs.push(invokeNs);
        continue;
      }
      const certain = analysis.isCertain(i);
      if (certain) this.mark(i, invokeNs, boundNs, i);
      const ttlMs = history.argument[i] as number;
      if (f === kindCode.write && ttlMs === ttlMs && history.outcome[i] !== outcomeCode.fail) {
        if (certain) this.expiring.push(i);
        else this.unknownMakersNs.push(invokeNs + ttlMs * millisecondNs);
      }
    }
    for (let mark = 0; mark < this.marks; mark++) this.byEnd[mark] = mark;
    sortIndexes(this.byEnd, this.marks, this.endNs);
  }

  private sweep(analysis: KeyAnalysis, ttlLateBoundNs: number, report: (finding: RowFinding) => void): void {
    const { history } = analysis;
    let next = 0;
    let first = -1;
    let second = -1;
    for (let order = 0; order < history.size; order++) {
      const i = analysis.byInvoke[order] as number;
      const isRead = analysis.isOkRead(i);
      // A create that took effect saw that there was nothing.
      if (!isRead && !(history.f[i] === kindCode.create && analysis.isCertain(i))) continue;
      const invokeNs = history.invokeNs[i] as number;
      while (next < this.marks && (this.endNs[this.byEnd[next] as number] as number) < invokeNs) {
        const mark = this.byEnd[next++] as number;
        if (this.wrong[this.row[mark] as number] === 1) continue;
        if (first < 0 || (this.startNs[mark] as number) > (this.startNs[first] as number)) {
          if (first >= 0 && this.owner[first] !== this.owner[mark]) second = first;
          first = mark;
        } else if (
          this.owner[mark] !== this.owner[first] &&
          (second < 0 || (this.startNs[mark] as number) > (this.startNs[second] as number))
        ) {
          second = mark;
        }
      }
      if (!isRead) {
        this.judgeAbsence(analysis, i, analysis.boundNs[i] as number, first, second, report);
        continue;
      }
      const target = analysis.target[i] as number;
      if (target === targetAbsent) this.judgeAbsence(analysis, i, history.returnNs[i] as number, first, second, report);
      else if (target === targetNone) this.judgeOdd(analysis, i, report);
      else this.judgeValue(analysis, i, target, first, second, ttlLateBoundNs, report);
    }
  }

  private judgeValue(
    analysis: KeyAnalysis,
    i: number,
    target: number,
    first: number,
    second: number,
    ttlLateBoundNs: number,
    report: (finding: RowFinding) => void,
  ): void {
    const { history } = analysis;
    if (history.outcome[target] === outcomeCode.fail) {
      report({
        kind: 'phantom',
        rule: 'failed-write-read',
        subject: target,
        witness: i,
        reason: 'a read shows the value of a write that definitely failed',
      });
      return;
    }
    const invokeNs = history.invokeNs[i] as number;
    if ((history.returnNs[i] as number) < (history.invokeNs[target] as number)) {
      report({
        kind: 'phantom',
        rule: 'read-before-write',
        subject: target,
        witness: i,
        reason: 'a read that ended before the write was invoked shows its value',
      });
      return;
    }
    const written = history.number[target] as number;
    const read = history.number[i] as number;
    if (written !== read && (written === written || read === read)) {
      report({
        kind: 'corrupt',
        rule: 'list-content',
        subject: target,
        witness: i,
        reason: 'the list that was read differs from the list that its last element was appended to',
      });
      return;
    }
    const mark = first >= 0 && this.owner[first] !== target ? first : second;
    if (mark >= 0 && (this.startNs[mark] as number) > (analysis.boundNs[target] as number)) {
      this.reportValue(analysis, i, target, mark, report);
      return;
    }
    const ttlMs = history.f[target] === kindCode.write ? (history.argument[target] as number) : NaN;
    if (ttlMs === ttlMs && invokeNs > (analysis.boundNs[target] as number) + ttlMs * millisecondNs + ttlLateBoundNs) {
      report({
        kind: 'ttl',
        rule: 'ttl-late',
        subject: target,
        witness: i,
        reason: `a value with a time to live of ${ttlMs} ms is still there long after it`,
      });
    }
  }

  private reportValue(
    analysis: KeyAnalysis,
    i: number,
    target: number,
    mark: number,
    report: (finding: RowFinding) => void,
  ): void {
    const { history } = analysis;
    const owner = this.owner[mark] as number;
    const row = this.row[mark] as number;
    const source = history.source[i];
    const live = source === sourceCode.operation;
    if (owner === targetAbsent) {
      const seenBy = history.f[row] === kindCode.delete ? 'an acknowledged delete' : 'a read that found nothing';
      report({
        kind: 'resurrected',
        rule: source === sourceCode.replica ? 'replica' : 'interval',
        subject: target,
        witness: i,
        reason: `a value came back after ${seenBy}`,
      });
    } else if (source === sourceCode.replica) {
      report({
        kind: 'diverged',
        rule: 'replica',
        subject: owner,
        witness: i,
        reason: 'a replica that has applied everything committed holds an older value',
      });
    } else if (!live) {
      report({
        kind: 'lost',
        rule: 'interval',
        subject: owner,
        witness: i,
        reason: 'the read-back shows an older value in place of an acknowledged or seen write',
      });
    } else if (history.f[row] === kindCode.read) {
      report({
        kind: 'non-monotone',
        rule: 'interval',
        subject: owner,
        witness: i,
        reason: 'a read went back behind what an earlier read had shown',
      });
    } else {
      report({
        kind: 'stale',
        rule: 'interval',
        subject: owner,
        witness: i,
        reason: 'a read shows an older value although a newer one was acknowledged before it began',
      });
    }
  }

  private judgeAbsence(
    analysis: KeyAnalysis,
    i: number,
    untilNs: number,
    first: number,
    second: number,
    report: (finding: RowFinding) => void,
  ): void {
    const mark = first >= 0 && this.owner[first] !== targetAbsent ? first : second;
    if (mark < 0) return;
    const startNs = this.startNs[mark] as number;
    if (startNs <= this.latestDelete(untilNs)) return;
    const { history } = analysis;
    for (const write of this.expiring) {
      const expiresNs = (history.invokeNs[write] as number) + (history.argument[write] as number) * millisecondNs;
      if (expiresNs <= untilNs && startNs <= (analysis.boundNs[write] as number)) return;
      // The mark may be of this very write: then its expiry is what came after it.
      if (
        expiresNs <= untilNs &&
        this.owner[mark] === write &&
        this.lastOther(write, first, second) <= (analysis.boundNs[write] as number)
      )
        return;
    }
    if (this.unknownMakersNs.length > 0) {
      this.needsUnknown.push(i, mark);
      return;
    }
    this.reportAbsence(analysis, i, mark, report);
  }

  /** Latest start of a mark that is owned by neither `write` nor `absent`, among the two that are kept. */
  private lastOther(write: number, first: number, second: number): number {
    for (const mark of [first, second]) {
      if (mark >= 0 && this.owner[mark] !== write && this.owner[mark] !== targetAbsent)
        return this.startNs[mark] as number;
    }
    return -Infinity;
  }

  private reportAbsence(analysis: KeyAnalysis, i: number, mark: number, report: (finding: RowFinding) => void): void {
    const { history } = analysis;
    const owner = this.owner[mark] as number;
    const source = history.source[i];
    const ttlMs = history.f[owner] === kindCode.write ? (history.argument[owner] as number) : NaN;
    if (history.f[i] === kindCode.create) {
      report({
        kind: 'duplicated',
        rule: 'created-twice',
        subject: i,
        witness: owner,
        reason: 'a create took effect although the key was there before it and nothing removed it',
      });
    } else if (source === sourceCode.replica) {
      report({
        kind: 'diverged',
        rule: 'replica',
        subject: owner,
        witness: i,
        reason: 'a replica that has applied everything committed does not hold the key',
      });
    } else if (ttlMs === ttlMs) {
      report({
        kind: 'ttl',
        rule: 'ttl-early',
        subject: owner,
        witness: i,
        reason: `a value with a time to live of ${ttlMs} ms was gone before it`,
      });
    } else if (source === sourceCode.operation) {
      report({
        kind: 'stale',
        rule: 'interval',
        subject: owner,
        witness: i,
        reason: 'a read found nothing although a value was acknowledged or seen before it began and nothing removed it',
      });
    } else {
      report({
        kind: 'lost',
        rule: 'interval',
        subject: owner,
        witness: i,
        reason: 'the read-back found nothing although the value was acknowledged or seen and nothing removed it',
      });
    }
  }

  private judgeOdd(analysis: KeyAnalysis, i: number, report: (finding: RowFinding) => void): void {
    const { history } = analysis;
    const observed = history.observed[i] as number;
    if (observed === observedCorrupt) {
      report({
        kind: 'corrupt',
        rule: 'checksum',
        subject: i,
        witness: -1,
        reason: 'a value was read that no operation can have written: its checksum fails',
      });
    } else if (observed === observedForeign) {
      report({
        kind: 'phantom',
        rule: 'unwritten-value',
        subject: i,
        witness: -1,
        reason: 'a value of another run was read',
      });
    } else if (observed === observed) {
      report({
        kind: 'phantom',
        rule: 'unwritten-value',
        subject: i,
        witness: -1,
        reason: `a value was read that operation ${observed} did not write to this key`,
      });
    } else if (!analysis.isCounter) {
      report({
        kind: 'phantom',
        rule: 'unwritten-value',
        subject: i,
        witness: -1,
        reason: 'a number was read from a key that nobody counts on',
      });
    }
  }

  /** Reads of nothing that only unknown deletes explain: as many deletes as there are absences with a value between them. */
  private matchUnknownMakers(analysis: KeyAnalysis, report: (finding: RowFinding) => void): void {
    if (this.needsUnknown.length === 0) return;
    const { history } = analysis;
    const untilNs = (i: number): number =>
      analysis.isMutator(i) ? (analysis.boundNs[i] as number) : (history.returnNs[i] as number);
    const needs: [row: number, mark: number][] = [];
    for (let at = 0; at < this.needsUnknown.length; at += 2)
      needs.push([this.needsUnknown[at] as number, this.needsUnknown[at + 1] as number]);
    needs.sort((a, b) => untilNs(a[0]) - untilNs(b[0]));
    this.unknownMakersNs.sort((a, b) => a - b);
    let used = 0;
    let usable = 0;
    let lastEndNs = -Infinity;
    for (const [i, mark] of needs) {
      if (used > 0 && !this.valueBetween(lastEndNs, history.invokeNs[i] as number)) continue;
      while (usable < this.unknownMakersNs.length && (this.unknownMakersNs[usable] as number) <= untilNs(i)) usable++;
      if (used + 1 > usable) {
        this.reportAbsence(analysis, i, mark, report);
        continue;
      }
      used++;
      lastEndNs = untilNs(i);
    }
  }

  private valueBetween(afterNs: number, beforeNs: number): boolean {
    for (let mark = 0; mark < this.marks; mark++) {
      if (
        this.owner[mark] !== targetAbsent &&
        (this.startNs[mark] as number) > afterNs &&
        (this.endNs[mark] as number) < beforeNs
      )
        return true;
    }
    return false;
  }

  /** Each create that took effect after the first needs something that removed the key in between. */
  private countCreates(analysis: KeyAnalysis, report: (finding: RowFinding) => void): void {
    const { history } = analysis;
    let created = 0;
    let last = -1;
    for (let i = 0; i < history.operationCount; i++) {
      if (history.f[i] === kindCode.create && analysis.isCertain(i)) {
        created++;
        last = i;
      }
    }
    const makers = this.deleteInvokeNs.length + this.expiring.length + this.unknownMakersNs.length;
    if (created > 1 + makers) {
      report({
        kind: 'duplicated',
        rule: 'created-twice',
        subject: last,
        witness: -1,
        reason: `${created} creates of one key took effect and only ${makers} deletes or expiries can have come between them`,
      });
    }
  }

  private latestDelete(untilNs: number): number {
    let low = 0;
    let high = this.deleteInvokeNs.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.deleteInvokeNs[middle] as number) <= untilNs) low = middle + 1;
      else high = middle;
    }
    return low === 0 ? -Infinity : (this.deleteBoundNs[low - 1] as number);
  }

  private mark(owner: number, startNs: number, endNs: number, row: number): void {
    const mark = this.marks++;
    this.owner[mark] = owner;
    this.startNs[mark] = startNs;
    this.endNs[mark] = endNs;
    this.row[mark] = row;
  }

  private reserve(size: number): void {
    if (size <= this.owner.length) return;
    const capacity = Math.max(size, this.owner.length * 2);
    this.owner = new Int32Array(capacity);
    this.startNs = new Float64Array(capacity);
    this.endNs = new Float64Array(capacity);
    this.row = new Int32Array(capacity);
    this.byEnd = new Uint32Array(capacity);
    this.wrong = new Uint8Array(capacity);
  }
}
