/**
 * Versions as witness: the store itself says in which order a key's effects happened; that order must explain the history.
 *
 * Every effective mutation has a version, every read names the version of what it saw. Sorted by version, with each read
 * right after what it saw, they form one sequence. Positions: 4·rank for the effect at a version, +1 for observations of the
 * state at it, +2 for an absence after it whose cause (expiry, unknown delete) has no version of its own.
 *
 * Checked, per key: (1) a value has one version, a version one effect; (2) position respects real time: nothing is placed
 * before what had returned when it was invoked; (3) each compare-and-set follows its expected version at once, a refused
 * condition did not hold; (4) a create follows an absence; (5) a read of nothing lies in an absence (witness-absence.ts).
 *
 * Never flags a linearizable history of a store whose versions are as promised (unique per effect, increasing along the
 * linearization, read with their value): take such a linearization. Sorting its effects by version keeps their order, so
 * positions never decrease along it (each observation lies between its effect and the next one); if a returned before b was
 * invoked, a precedes b in it, hence (2). (1), (3), (4) state what that linearization does at each step; where an operation
 * of unknown outcome may stand between two known versions, nothing is concluded from the gap.
 *
 * Complete where versions are total (all effects that took place and all observations have one): by (2) the sequence extends
 * real-time order (ties are observations of one state, taken in the order of invocation), and by (1), (3), (4), (5) each
 * operation in it sees the state that the effects before it left. So the sequence is a linearization. O(n log n).
 */
import type { KeyAnalysis } from './analysis.ts';
import { sortIndexes, targetAbsent } from './analysis.ts';
import type { RowFinding } from './finding.ts';
import { kindCode, outcomeCode, sourceCode } from './history.ts';
import { VersionCodes } from './version-codes.ts';
import { VersionRanks } from './version-ranks.ts';
import { AbsenceWitness } from './witness-absence.ts';
import { stateCode, type WitnessView } from './witness-view.ts';

type Report = (finding: RowFinding) => void;

export class VersionWitness implements WitnessView {
  readonly codes = new VersionCodes();
  effect = new Float64Array(64);
  position = new Float64Array(64);
  floor = new Float64Array(64);
  readonly ranks = new VersionRanks();
  states = new Uint8Array(64);
  effectRows = new Int32Array(64);
  deleted = new Uint8Array(64);
  private byReturn = new Uint32Array(64);
  private readonly absence = new AbsenceWitness();

  /** Returns false when the key has no versions to go by. Rows in `flagged` are not reported again. */
  check(analysis: KeyAnalysis, flagged: ReadonlySet<number>, report: Report): boolean {
    if (!analysis.hasVersions) return false;
    this.reserve(analysis.history.size);
    this.codes.prepare(analysis.history);
    this.assignEffects(analysis, report);
    this.collectVersions(analysis, report);
    this.assignPositions(analysis);
    this.checkRealTime(analysis, flagged, report);
    this.checkConditions(analysis, report);
    this.absence.check(this, analysis, flagged, report);
    return true;
  }

  /** Number of versions. */
  get versionCount(): number {
    return this.ranks.count;
  }

  private assignEffects(analysis: KeyAnalysis, report: Report): void {
    const { history } = analysis;
    const { version } = this.codes;
    for (let i = 0; i < history.size; i++) {
      const mutates = history.f[i] !== kindCode.read && history.f[i] !== kindCode.delete;
      this.effect[i] = mutates && history.outcome[i] === outcomeCode.ok ? (version[i] as number) : NaN;
    }
    for (let i = 0; i < history.size; i++) {
      const target = analysis.target[i] as number;
      const code = version[i] as number;
      if (target < 0 || code !== code || history.outcome[target] === outcomeCode.fail) continue;
      const known = this.effect[target] as number;
      const fromReplica = history.source[i] === sourceCode.replica;
      if (known !== known) {
        if (!fromReplica) this.effect[target] = code;
      } else if (known !== code) {
        if (fromReplica)
          report({
            kind: 'diverged',
            rule: 'two-versions',
            subject: target,
            witness: i,
            reason: 'a replica holds the value under another version than its write or its readers were told',
          });
        else
          report({
            kind: 'duplicated',
            rule: 'two-versions',
            subject: target,
            witness: i,
            reason: 'one write shows under two versions: it took effect twice',
          });
      }
    }
  }

  private collectVersions(analysis: KeyAnalysis, report: Report): void {
    const { history } = analysis;
    const { version } = this.codes;
    const { ranks } = this;
    ranks.clear();
    for (let i = 0; i < history.size; i++) {
      const code = this.ownVersion(analysis, i);
      if (code === code) ranks.add(code);
    }
    ranks.order();
    this.states.fill(stateCode.unknown, 0, this.versionCount);
    this.effectRows.fill(-1, 0, this.versionCount);
    this.deleted.fill(0, 0, this.versionCount);
    for (let i = 0; i < history.size; i++) {
      const code = this.effect[i] as number;
      if (code !== code) continue;
      const rank = this.ranks.rankOf(code);
      if ((this.effectRows[rank] as number) >= 0) {
        report({
          kind: 'not-linearizable',
          rule: 'version-reused',
          subject: i,
          witness: this.effectRows[rank] as number,
          reason: 'two operations took effect under one version',
        });
      } else this.effectRows[rank] = i;
      this.states[rank] = stateCode.present;
    }
    for (let i = 0; i < history.size; i++) {
      if (!this.showsAbsence(analysis, i)) continue;
      const rank = this.ranks.rankOf(version[i] as number);
      if (history.f[i] === kindCode.delete && history.outcome[i] === outcomeCode.ok) this.deleted[rank] = 1;
      if (this.states[rank] !== stateCode.present) this.states[rank] = stateCode.absent;
      else if (history.f[i] === kindCode.delete && history.outcome[i] === outcomeCode.ok) {
        report({
          kind: 'not-linearizable',
          rule: 'version-reused',
          subject: i,
          witness: this.effectRows[rank] as number,
          reason: 'a delete and a write took effect under one version',
        });
      }
    }
  }

  /** Version that the row puts into the sequence; NaN: none. Replicas only compare, they add nothing. */
  private ownVersion(analysis: KeyAnalysis, i: number): number {
    const { history } = analysis;
    const effect = this.effect[i] as number;
    if (effect === effect) return effect;
    if (history.source[i] === sourceCode.replica) return NaN;
    if (this.showsAbsence(analysis, i) || analysis.isConditionWithVersion(i)) return this.codes.version[i] as number;
    if (analysis.isCounter && analysis.isOkRead(i)) return this.codes.version[i] as number;
    return NaN;
  }

  /** A client's row that says: at this version there was nothing. */
  showsAbsence(analysis: KeyAnalysis, i: number): boolean {
    const { history } = analysis;
    const code = this.codes.version[i] as number;
    if (code !== code || history.source[i] === sourceCode.replica) return false;
    if (history.f[i] === kindCode.read) return analysis.target[i] === targetAbsent;
    if (history.f[i] !== kindCode.delete) return false;
    if (history.outcome[i] === outcomeCode.ok) return true;
    const expected = this.codes.expected[i] as number;
    return analysis.isConditionWithVersion(i) && expected !== expected;
  }

  private assignPositions(analysis: KeyAnalysis): void {
    const { history } = analysis;
    for (let i = 0; i < history.size; i++) {
      const effect = this.effect[i] as number;
      const code = this.codes.version[i] as number;
      if (effect === effect) this.position[i] = 4 * this.ranks.rankOf(effect);
      else if (this.showsAbsence(analysis, i)) {
        const rank = this.ranks.rankOf(code);
        this.position[i] = 4 * rank + (this.states[rank] === stateCode.present ? 2 : 1);
      } else if (analysis.isConditionWithVersion(i)) this.position[i] = 4 * this.ranks.rankOf(code) + 1;
      else this.position[i] = this.readPosition(analysis, i);
    }
    this.namePerformers(analysis);
  }

  private readPosition(analysis: KeyAnalysis, i: number): number {
    if (!analysis.isOkRead(i)) return NaN;
    const target = analysis.target[i] as number;
    const code = this.codes.version[i] as number;
    if (target >= 0) {
      const written = this.effect[target] as number;
      const seen = code === code ? code : written;
      const rank = this.ranks.rankOf(seen);
      return this.ranks.isVersion(rank, seen) ? 4 * rank + 1 : NaN;
    }
    if (!analysis.isCounter || code !== code) return NaN;
    const rank = this.ranks.rankOf(code);
    return this.ranks.isVersion(rank, code) ? 4 * rank + 1 : NaN;
  }

  /**
   * Deletes that share a version: one did it, the others found nothing. The one invoked first is taken to have done it,
   * unless a delete of unknown outcome or an expiry may have; that is the choice that forbids least.
   */
  private namePerformers(analysis: KeyAnalysis): void {
    const { history } = analysis;
    for (let i = 0; i < history.size; i++) {
      const unknownDelete =
        history.f[i] === kindCode.delete &&
        history.outcome[i] !== outcomeCode.fail &&
        this.codes.version[i] !== this.codes.version[i];
      const expires = history.f[i] === kindCode.write && history.argument[i] === history.argument[i];
      if (unknownDelete || expires) return;
    }
    for (let order = 0; order < history.size; order++) {
      const i = analysis.byInvoke[order] as number;
      if (history.f[i] !== kindCode.delete || history.outcome[i] !== outcomeCode.ok) continue;
      const code = this.codes.version[i] as number;
      if (code !== code) continue;
      const rank = this.ranks.rankOf(code);
      if (this.states[rank] !== stateCode.absent || (this.effectRows[rank] as number) >= 0) continue;
      // Nothing to delete before any write: such an answer describes the state, it made none.
      if (rank === 0 || this.states[rank - 1] === stateCode.absent) continue;
      this.effectRows[rank] = i;
      this.position[i] = 4 * rank;
    }
  }

  private checkRealTime(analysis: KeyAnalysis, flagged: ReadonlySet<number>, report: Report): void {
    const { history } = analysis;
    let placed = 0;
    for (let i = 0; i < history.size; i++) {
      const at = this.position[i] as number;
      if (at === at && history.source[i] !== sourceCode.replica) this.byReturn[placed++] = i;
    }
    sortIndexes(this.byReturn, placed, history.returnNs);
    let next = 0;
    let floor = -Infinity;
    let highest = -1;
    for (let order = 0; order < history.size; order++) {
      const i = analysis.byInvoke[order] as number;
      const invokeNs = history.invokeNs[i] as number;
      while (next < placed && (history.returnNs[this.byReturn[next] as number] as number) < invokeNs) {
        const returned = this.byReturn[next++] as number;
        if ((this.position[returned] as number) > floor && !flagged.has(returned)) {
          floor = this.position[returned] as number;
          highest = returned;
        }
      }
      this.floor[i] = floor;
      const at = this.position[i] as number;
      // A refused condition says which version it met, not whether that had expired since.
      const ceiling = analysis.isConditionWithVersion(i) ? at + 1 : at;
      if (at === at && ceiling < floor && !flagged.has(i) && (this.madeAbsence(i, at) || !this.isOneAbsence(at, floor)))
        this.reportOrder(analysis, i, highest, report);
    }
  }

  /**
   * Both positions lie in one absence: nothing was written between them. A version of an absence only says up to where a log was
   * looked through, and a new primary may have looked less far.
   */
  private isOneAbsence(at: number, floor: number): boolean {
    for (let rank = at >> 2; rank <= floor >> 2; rank++) if (this.states[rank] !== stateCode.absent) return false;
    return true;
  }

  /** The delete behind an absence: its version is that of an entry, and whoever looked that far before it was invoked saw what was not there yet. */
  private madeAbsence(i: number, at: number): boolean {
    return at % 4 === 0 && this.effectRows[at >> 2] === i;
  }

  private reportOrder(analysis: KeyAnalysis, i: number, earlier: number, report: Report): void {
    const { history } = analysis;
    const rule = 'version-witness';
    if (history.source[i] === sourceCode.replica) {
      report({
        kind: 'diverged',
        rule: 'replica',
        subject: earlier,
        witness: i,
        reason: 'a replica that has applied everything committed holds an older version than a client was given before',
      });
    } else if (history.f[i] !== kindCode.read || history.outcome[i] !== outcomeCode.ok) {
      report({
        kind: 'not-linearizable',
        rule,
        subject: i,
        witness: earlier,
        reason: 'an operation was ordered before one that had returned before it was invoked',
      });
    } else if (history.f[earlier] === kindCode.read) {
      report({
        kind: 'non-monotone',
        rule,
        subject: i,
        witness: earlier,
        reason: 'a read shows an older version than an earlier read',
      });
    } else if (history.f[earlier] === kindCode.delete && (analysis.target[i] as number) >= 0) {
      report({
        kind: 'resurrected',
        rule,
        subject: analysis.target[i] as number,
        witness: i,
        reason: 'a read shows a version older than an acknowledged delete',
      });
    } else if (history.source[i] !== sourceCode.operation) {
      report({
        kind: 'lost',
        rule,
        subject: earlier,
        witness: i,
        reason: 'the read-back shows an older version than an acknowledged operation',
      });
    } else {
      report({
        kind: 'stale',
        rule,
        subject: i,
        witness: earlier,
        reason: 'a read shows an older version than an operation acknowledged before it began',
      });
    }
  }

  private checkConditions(analysis: KeyAnalysis, report: Report): void {
    const { history } = analysis;
    for (let i = 0; i < history.operationCount; i++) {
      const expected = this.codes.expected[i] as number;
      if (analysis.isConditionWithVersion(i)) {
        const code = this.codes.version[i] as number;
        if (expected === code && history.f[i] === kindCode.cas && this.surelyPresent(analysis, code)) {
          report({
            kind: 'not-linearizable',
            rule: 'condition-refused',
            subject: i,
            witness: -1,
            reason: 'a compare-and-set was refused although the key was at the version that it expected',
          });
        } else if (history.f[i] === kindCode.create && this.states[this.ranks.rankOf(code)] === stateCode.absent) {
          report({
            kind: 'not-linearizable',
            rule: 'condition-refused',
            subject: i,
            witness: -1,
            reason: 'a create was refused at a version at which the key was absent',
          });
        }
        continue;
      }
      if (expected !== expected) continue;
      const at = this.position[i] as number;
      if (history.f[i] === kindCode.cas ? at === at : history.f[i] === kindCode.delete && at % 4 === 0)
        this.checkPredecessor(analysis, i, expected, report);
    }
  }

  /** A write that cannot expire has this version. */
  private surelyPresent(analysis: KeyAnalysis, code: number): boolean {
    const { history } = analysis;
    const rank = this.ranks.rankOf(code);
    const row = this.effectRows[rank] as number;
    return (
      this.states[rank] === stateCode.present &&
      row >= 0 &&
      !(history.f[row] === kindCode.write && history.argument[row] === history.argument[row])
    );
  }

  private checkPredecessor(analysis: KeyAnalysis, i: number, expected: number, report: Report): void {
    const rank = (this.position[i] as number) / 4;
    const before = this.ranks.rankOf(expected);
    const known = this.ranks.isVersion(before, expected);
    if (before >= rank + (known ? 0 : 1)) {
      report({
        kind: 'not-linearizable',
        rule: 'cas-predecessor',
        subject: i,
        witness: -1,
        reason: 'a conditional write took effect at a version not above the one that it expected',
      });
    } else if (before !== rank - (known ? 1 : 0)) {
      report({
        kind: 'not-linearizable',
        rule: 'cas-predecessor',
        subject: i,
        witness: this.effectRows[rank - 1] as number,
        reason: 'a conditional write took effect although another version came after the one that it expected',
      });
    } else if (known ? this.states[before] === stateCode.absent : !this.mayHideWrite(analysis, i)) {
      report({
        kind: 'not-linearizable',
        rule: 'cas-predecessor',
        subject: i,
        witness: -1,
        reason: 'a conditional write took effect on a version at which the key held no value',
      });
    }
  }

  /** May a write whose version nobody told have been the one that row `i` expected? */
  private mayHideWrite(analysis: KeyAnalysis, i: number): boolean {
    const { history } = analysis;
    for (let other = 0; other < history.operationCount; other++) {
      const f = history.f[other];
      if (other === i || f === kindCode.read || f === kindCode.delete || history.outcome[other] === outcomeCode.fail)
        continue;
      const effect = this.effect[other] as number;
      if (effect !== effect && (history.invokeNs[other] as number) <= (analysis.boundNs[i] as number)) return true;
    }
    return false;
  }

  private reserve(size: number): void {
    if (size <= this.effect.length) return;
    const capacity = Math.max(size, this.effect.length * 2);
    this.effect = new Float64Array(capacity);
    this.position = new Float64Array(capacity);
    this.floor = new Float64Array(capacity);
    this.ranks.reserve(capacity);
    this.states = new Uint8Array(capacity);
    this.effectRows = new Int32Array(capacity);
    this.deleted = new Uint8Array(capacity);
    this.byReturn = new Uint32Array(capacity);
  }
}
