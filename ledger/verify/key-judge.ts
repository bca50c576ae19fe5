/**
 * All checkers of one key, and the verdict on each of its acknowledged writes in the words of DESIGN §2.
 *
 * `kept`: something looked later and saw it. `superseded`: replaced (or expired) before anything looked. `neverRead`: it should
 * still be there and nobody looked. `lost`: a finding names it. Only `kept` and `lost` are evidence; were a superseded write
 * counted as kept, a certificate would claim what nobody checked.
 */
import { KeyAnalysis } from './analysis.ts';
import { checkCounter, shownSum } from './counter.ts';
import type { RowFinding } from './finding.ts';
import { kindCode, type KeyHistory, outcomeCode, sourceCode } from './history.ts';
import { IntervalRule } from './interval.ts';
import { VersionWitness } from './witness.ts';
import { ZoneRule } from './zones.ts';

/** Findings kept of one key; a key with more is as bad as can be. */
export const maxFindingsPerKey = 50;

export const writeStatus = { none: 0, kept: 1, superseded: 2, neverRead: 3, lost: 4 } as const;

export interface KeyJudgeOptions {
  /** How long after return + ttl a value may still be seen, ns. A failover may lengthen a time to live; never shorten it. */
  readonly ttlLateBoundNs: number;
}

/** Judges key after key in the same memory: a result is valid until the next call. */
export class KeyJudge {
  readonly analysis = new KeyAnalysis();
  readonly witness = new VersionWitness();
  findings: RowFinding[] = [];
  /** More were found than kept. */
  findingsDropped = 0;
  /** Per operation row: a code of `writeStatus`; `none` for what is no acknowledged write. */
  status = new Uint8Array(64);
  witnessed = false;
  /** A client's final (or retiring) read answered. */
  readBack = false;
  private readonly options: KeyJudgeOptions;
  private readonly interval = new IntervalRule();
  private readonly zones = new ZoneRule();
  private readonly flagged = new Set<number>();
  private readonly report = (finding: RowFinding): void => this.add(finding);

  constructor(options: KeyJudgeOptions) {
    this.options = options;
  }

  judge(history: KeyHistory): void {
    const { analysis } = this;
    this.findings = [];
    this.findingsDropped = 0;
    this.flagged.clear();
    analysis.prepare(history);
    this.interval.check(analysis, this.options.ttlLateBoundNs, this.report);
    if (!analysis.isCounter && this.findings.length === 0) this.zones.check(analysis, this.report);
    this.witnessed = this.witness.check(analysis, this.flagged, this.report);
    if (analysis.isCounter) checkCounter(analysis, this.witnessed ? this.witness : null, this.report);
    if (this.findings.length > 1) this.merge();
    if (this.witnessed) this.extendSightings();
    this.assignStatuses();
  }

  private add(finding: RowFinding): void {
    if (finding.witness >= 0) this.flagged.add(finding.witness);
    else this.flagged.add(finding.subject);
    if (this.findings.length < maxFindingsPerKey) this.findings.push(finding);
    else this.findingsDropped++;
  }

  /** One loss is one finding, however many reads and replicas show it. */
  private merge(): void {
    const { history } = this.analysis;
    const lost = new Set(this.findings.filter((one) => one.kind === 'lost').map((one) => one.subject));
    if (lost.size === 0) this.promoteDivergence(lost);
    const named = new Set<number>();
    this.findings = this.findings.filter((one) => {
      if (!lost.has(one.subject) || one.subject < 0) return true;
      if (one.kind === 'lost') return named.has(one.subject) ? false : named.add(one.subject) !== undefined;
      const fromReplica = one.witness >= 0 && history.source[one.witness] === sourceCode.replica;
      return !(one.kind === 'stale' || one.kind === 'non-monotone' || (one.kind === 'diverged' && fromReplica));
    });
  }

  /** The client could not read back, and every replica that answered lacks the same write: it is lost, not diverged. */
  private promoteDivergence(lost: Set<number>): void {
    const { history } = this.analysis;
    let answered = 0;
    for (let i = history.operationCount; i < history.size; i++) {
      if (history.outcome[i] !== outcomeCode.ok) continue;
      if (history.source[i] !== sourceCode.replica) return;
      answered++;
    }
    const lacking = this.findings.filter((one) => one.kind === 'diverged' && one.rule === 'replica');
    const [first] = lacking;
    if (first === undefined || lacking.length < answered || lacking.some((one) => one.subject !== first.subject))
      return;
    lost.add(first.subject);
    this.findings.push({
      ...first,
      kind: 'lost',
      reason: 'the key could not be read back, and every replica that answered lacks the write',
    });
  }

  /** A compare-and-set that took effect, or a refused condition that names a version, saw the write behind it. */
  private extendSightings(): void {
    const { analysis, witness } = this;
    const { history } = analysis;
    for (let i = 0; i < history.operationCount; i++) {
      const effect = witness.effect[i] as number;
      const expected = witness.codes.expected[i] as number;
      const seen = analysis.isConditionWithVersion(i)
        ? (witness.codes.version[i] as number)
        : effect === effect
          ? expected
          : NaN;
      if (seen !== seen) continue;
      const rank = witness.ranks.rankOf(seen);
      const row = witness.ranks.isVersion(rank, seen) ? (witness.effectRows[rank] as number) : -1;
      if (row >= 0 && history.f[row] !== kindCode.delete) {
        analysis.lastSeenNs[row] = Math.max(analysis.lastSeenNs[row] as number, history.invokeNs[i] as number);
      }
    }
  }

  private assignStatuses(): void {
    const { analysis } = this;
    const { history } = analysis;
    if (history.operationCount > this.status.length) this.status = new Uint8Array(history.operationCount * 2);
    this.readBack = false;
    for (let i = history.operationCount; i < history.size; i++) {
      const source = history.source[i];
      if (source !== sourceCode.replica && history.outcome[i] === outcomeCode.ok) this.readBack = true;
    }
    if (analysis.isCounter) this.seeCounter();
    let latestCertainNs = -Infinity;
    for (let i = 0; i < history.operationCount; i++) {
      if (analysis.isCertain(i)) latestCertainNs = Math.max(latestCertainNs, history.invokeNs[i] as number);
    }
    for (let i = 0; i < history.operationCount; i++) {
      const f = history.f[i];
      if (f === kindCode.read || f === kindCode.delete || history.outcome[i] !== outcomeCode.ok) {
        this.status[i] = writeStatus.none;
      } else if ((analysis.lastSeenNs[i] as number) > -Infinity) this.status[i] = writeStatus.kept;
      else if (
        this.readBack ||
        latestCertainNs > (history.returnNs[i] as number) ||
        (f === kindCode.write && history.argument[i] === history.argument[i])
      ) {
        this.status[i] = writeStatus.superseded;
      } else this.status[i] = writeStatus.neverRead;
    }
    for (const finding of this.findings) {
      if (finding.kind === 'lost' && finding.subject >= 0 && this.status[finding.subject] !== writeStatus.none)
        this.status[finding.subject] = writeStatus.lost;
    }
  }

  /** A sum that fits shows every addition acknowledged before it was asked for. */
  private seeCounter(): void {
    const { analysis } = this;
    const { history } = analysis;
    let latestNs = -Infinity;
    for (let i = 0; i < history.size; i++) {
      if (history.source[i] === sourceCode.replica || this.flagged.has(i) || shownSum(analysis, i) === null) continue;
      if (history.f[i] === kindCode.read && analysis.target[i] === -1) continue;
      latestNs = Math.max(latestNs, history.invokeNs[i] as number);
    }
    for (let i = 0; i < history.operationCount; i++) {
      if (history.f[i] === kindCode.add && history.outcome[i] === outcomeCode.ok) {
        analysis.lastSeenNs[i] = (history.returnNs[i] as number) < latestNs ? latestNs : -Infinity;
      }
    }
  }
}
