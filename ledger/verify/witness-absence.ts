/**
 * Absences in the order that versions give: every read of nothing, and every create, must lie where the key could be absent.
 *
 * An absence is *free* where the state before it is known: nothing was written yet, a delete with a version, a write that may
 * have expired. Else it needs a *cause* without a version: a delete of unknown outcome, or one whose store tells none; each
 * of those acts once. The needs of creates and of absences with a version are fixed to one gap between two known versions;
 * a read of nothing without a version may lie in any gap between its floor and its ceiling.
 *
 * Fewest gaps are opened: reads are taken by their end, which also orders their ceilings, and a new gap is opened as late as
 * it may be. Each open gap is then given the latest-invoked cause that was invoked in time and had not to come later. If no
 * assignment exists, the history is not explained by its versions. (Gaps shared with a fixed need are taken generously, so
 * that a doubt never accuses.)
 */
import type { KeyAnalysis } from './analysis.ts';
import { targetAbsent } from './analysis.ts';
import type { RowFinding } from './finding.ts';
import { kindCode, outcomeCode, sourceCode } from './history.ts';
import { stateCode, type WitnessView } from './witness-view.ts';

const millisecondNs = 1e6;

interface Need {
  /** Rank of the last known version before the absence; -1 before all. */
  readonly gap: number;
  /** A cause must have been invoked by then. */
  untilNs: number;
  readonly row: number;
}

interface Cause {
  readonly invokeNs: number;
  readonly floor: number;
}

export class AbsenceWitness {
  private readonly needs = new Map<number, Need>();
  private ceilings = new Float64Array(64);

  check(
    witness: WitnessView,
    analysis: KeyAnalysis,
    flagged: ReadonlySet<number>,
    report: (finding: RowFinding) => void,
  ): void {
    this.needs.clear();
    this.fixedNeeds(witness, analysis);
    this.floatingNeeds(witness, analysis, flagged, report);
    if (this.needs.size > 0) this.match(witness, analysis, flagged, report);
  }

  private fixedNeeds(witness: WitnessView, analysis: KeyAnalysis): void {
    const { history } = analysis;
    for (let i = 0; i < history.size; i++) {
      if (history.source[i] === sourceCode.replica) continue;
      const at = witness.position[i] as number;
      if (at !== at) continue;
      const rank = at >> 2;
      let gap: number;
      let untilNs = history.returnNs[i] as number;
      if (history.f[i] === kindCode.create && at % 4 === 0) {
        gap = rank - 1;
        untilNs = analysis.boundNs[i] as number;
      } else if (witness.showsAbsence(analysis, i)) {
        const explained = (witness.effectRows[rank] as number) >= 0 && witness.states[rank] === stateCode.absent;
        if (explained || witness.deleted[rank] === 1) continue;
        gap = at % 4 === 2 ? rank : rank - 1;
      } else continue;
      this.addFixed(witness, analysis, gap, untilNs, i);
    }
  }

  private addFixed(witness: WitnessView, analysis: KeyAnalysis, gap: number, untilNs: number, row: number): void {
    if (this.isFree(witness, analysis, gap, untilNs)) return;
    const known = this.needs.get(gap);
    if (known === undefined) this.needs.set(gap, { gap, untilNs, row });
    else known.untilNs = Math.max(known.untilNs, untilNs);
  }

  /** May the key be absent in the gap after this rank by `untilNs` without a cause of its own? */
  private isFree(witness: WitnessView, analysis: KeyAnalysis, gap: number, untilNs: number): boolean {
    if (gap < 0 || witness.states[gap] !== stateCode.present) return true;
    return this.mayExpire(witness, analysis, gap, untilNs);
  }

  private mayExpire(witness: WitnessView, analysis: KeyAnalysis, gap: number, untilNs: number): boolean {
    const { history } = analysis;
    const row = witness.effectRows[gap] as number;
    if (row < 0 || history.f[row] !== kindCode.write) return false;
    const ttlMs = history.argument[row] as number;
    return ttlMs === ttlMs && (history.invokeNs[row] as number) + ttlMs * millisecondNs <= untilNs;
  }

  private floatingNeeds(
    witness: WitnessView,
    analysis: KeyAnalysis,
    flagged: ReadonlySet<number>,
    report: (finding: RowFinding) => void,
  ): void {
    const { history } = analysis;
    const floating: number[] = [];
    for (let i = 0; i < history.size; i++) {
      if (history.source[i] === sourceCode.replica || flagged.has(i)) continue;
      const at = witness.position[i] as number;
      if (at !== at && analysis.isOkRead(i) && analysis.target[i] === targetAbsent) floating.push(i);
    }
    if (floating.length === 0) return;
    this.prepareCeilings(witness, analysis);
    floating.sort((a, b) => (history.returnNs[a] as number) - (history.returnNs[b] as number));
    let opened = -Infinity;
    for (const i of floating) {
      const untilNs = history.returnNs[i] as number;
      const floor = witness.floor[i] as number;
      // The last gap that ends at or before the ceiling, and the first whose absence is not before the floor.
      const ceiling = this.ceilingAfter(analysis, untilNs);
      const lastGap =
        ceiling === Infinity
          ? witness.versionCount - 1
          : ceiling % 4 >= 2
            ? ceiling >> 2
            : (ceiling >> 2) - (this.ceilingShowsAbsence(witness, ceiling) ? 0 : 1);
      const firstGap = floor === -Infinity ? -1 : floor >> 2;
      if (this.anyFree(witness, analysis, firstGap, lastGap, untilNs)) continue;
      if (opened >= firstGap && opened <= lastGap) continue;
      if (this.fixedBetween(firstGap, lastGap)) continue;
      if (lastGap < firstGap) {
        report({
          kind: 'stale',
          rule: 'version-witness',
          subject: i,
          witness: -1,
          reason: 'a read found nothing, and the versions leave no moment at which the key was absent',
        });
        continue;
      }
      opened = lastGap;
      this.needs.set(lastGap, { gap: lastGap, untilNs, row: i });
    }
  }

  /** At an observation of an absent state the gap before it may still be the one. */
  private ceilingShowsAbsence(witness: WitnessView, ceiling: number): boolean {
    return ceiling % 4 === 1 && witness.states[ceiling >> 2] !== stateCode.present;
  }

  private anyFree(
    witness: WitnessView,
    analysis: KeyAnalysis,
    firstGap: number,
    lastGap: number,
    untilNs: number,
  ): boolean {
    for (let gap = firstGap; gap <= lastGap; gap++) if (this.isFree(witness, analysis, gap, untilNs)) return true;
    return false;
  }

  private fixedBetween(firstGap: number, lastGap: number): boolean {
    for (const gap of this.needs.keys()) if (gap >= firstGap && gap <= lastGap) return true;
    return false;
  }

  /** `ceilings[k]`: least position among the rows from place k on in the order of invocation. */
  private prepareCeilings(witness: WitnessView, analysis: KeyAnalysis): void {
    const { history } = analysis;
    if (history.size > this.ceilings.length) this.ceilings = new Float64Array(history.size * 2);
    let least = Infinity;
    for (let order = history.size - 1; order >= 0; order--) {
      const i = analysis.byInvoke[order] as number;
      const at = witness.position[i] as number;
      if (at === at && history.source[i] !== sourceCode.replica) {
        least = Math.min(least, analysis.isConditionWithVersion(i) ? at + 1 : at);
      }
      this.ceilings[order] = least;
    }
  }

  private ceilingAfter(analysis: KeyAnalysis, untilNs: number): number {
    const { history } = analysis;
    let low = 0;
    let high = history.size;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((history.invokeNs[analysis.byInvoke[middle] as number] as number) <= untilNs) low = middle + 1;
      else high = middle;
    }
    return low === history.size ? Infinity : (this.ceilings[low] as number);
  }

  private match(
    witness: WitnessView,
    analysis: KeyAnalysis,
    flagged: ReadonlySet<number>,
    report: (finding: RowFinding) => void,
  ): void {
    const causes = this.causes(witness, analysis);
    const needs = [...this.needs.values()].sort((a, b) => a.gap - b.gap);
    for (const need of needs) {
      let best = -1;
      for (let at = 0; at < causes.length; at++) {
        const cause = causes[at] as Cause;
        if (cause.floor > 4 * need.gap + 2 || cause.invokeNs > need.untilNs) continue;
        if (best < 0 || cause.invokeNs > (causes[best] as Cause).invokeNs) best = at;
      }
      if (best >= 0) causes.splice(best, 1);
      else if (!flagged.has(need.row)) this.reportNeed(analysis, witness, need, report);
    }
  }

  private causes(witness: WitnessView, analysis: KeyAnalysis): Cause[] {
    const { history } = analysis;
    const causes: Cause[] = [];
    for (let i = 0; i < history.operationCount; i++) {
      if (history.outcome[i] === outcomeCode.fail) continue;
      const invokeNs = history.invokeNs[i] as number;
      const code = witness.codes.version[i] as number;
      if (history.f[i] === kindCode.delete && code !== code)
        causes.push({ invokeNs, floor: witness.floor[i] as number });
      const ttlMs = history.f[i] === kindCode.write ? (history.argument[i] as number) : NaN;
      const effect = witness.effect[i] as number;
      if (ttlMs === ttlMs && effect !== effect)
        causes.push({ invokeNs: invokeNs + ttlMs * millisecondNs, floor: witness.floor[i] as number });
    }
    return causes;
  }

  private reportNeed(
    analysis: KeyAnalysis,
    witness: WitnessView,
    need: Need,
    report: (finding: RowFinding) => void,
  ): void {
    const { history } = analysis;
    const writer = need.gap >= 0 ? (witness.effectRows[need.gap] as number) : -1;
    if (history.f[need.row] === kindCode.create) {
      report({
        kind: 'duplicated',
        rule: 'created-twice',
        subject: need.row,
        witness: writer,
        reason:
          'a create took effect right after a version at which the key was there, and nothing can have removed it',
      });
    } else if (history.source[need.row] === sourceCode.operation) {
      report({
        kind: 'stale',
        rule: 'version-witness',
        subject: writer >= 0 ? writer : need.row,
        witness: need.row,
        reason: 'a read found nothing where the versions say that the key was there, and nothing can have removed it',
      });
    } else {
      report({
        kind: 'lost',
        rule: 'version-witness',
        subject: writer >= 0 ? writer : need.row,
        witness: need.row,
        reason:
          'the read-back found nothing where the versions say that the key was there, and nothing can have removed it',
      });
    }
  }
}
