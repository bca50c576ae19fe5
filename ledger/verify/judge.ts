/**
 * History → verdict, pure: the same rows give the same judgement, on the machine of the run or years later.
 *
 * Precedence here (DESIGN §9): violated > not-recovered > inconclusive > certified; the harness puts its own faults, the
 * environment and interruptions between. Everything that could not be checked is missing evidence, never a pass.
 */
import { checkCanaries, type CanaryResult, ShadowCanary } from './canary.ts';
import { checkCluster, type ClientPromises } from './cluster-checks.ts';
import { describeFinding } from './describe-finding.ts';
import { type EvidenceRules, missingEvidence, type MissingEvidence, notRecovered } from './evidence.ts';
import type { Finding, FindingKind, RowFinding } from './finding.ts';
import { KeyJudge, type KeyJudgeOptions } from './key-judge.ts';
import { RunContext } from './run-context.ts';
import type { SearchBudget } from './search/budget.ts';
import { searchKey } from './search-key.ts';
import type { HistorySource } from './source.ts';
import { type RecoveryTime, recoveryTimes, type Strength, strengthOf } from './strength.ts';
import { countFinding, countKey, countReported, maxFindings, maxNamedKeys, newTally, type Tally } from './tally.ts';

/** How late an expired value may still be seen, unless told otherwise, ns: failovers lengthen a time to live. */
export const defaultTtlLateBoundNs = 60e9;
/** How long after the last heal every partition must be Healthy, ns. */
export const defaultRecoveryBoundNs = 120e9;

export type JudgedVerdict = 'violated' | 'not-recovered' | 'inconclusive' | 'certified';

export interface JudgeOptions extends KeyJudgeOptions, EvidenceRules {
  readonly promises: ClientPromises;
  /** Budget of one key without versions; called when the key's turn comes. Null leaves such keys undecided. */
  readonly searchBudget: (() => SearchBudget) | null;
}

export const defaultJudgeOptions: JudgeOptions = {
  ttlLateBoundNs: defaultTtlLateBoundNs,
  minAckedInFaultWindows: 1,
  mayExceedBudget: false,
  mayLosePartitions: false,
  replicasPerKey: null,
  promises: { maxAttempts: null, deadlineNs: null },
  recoveryBoundNs: defaultRecoveryBoundNs,
  searchBudget: null,
};

export interface Judgement {
  readonly verdict: JudgedVerdict;
  readonly exitCode: 0 | 1 | 2 | 3;
  /** At most `maxFindings` of tally.ts; `totals` counts all. */
  readonly findings: readonly Finding[];
  readonly totals: ReadonlyMap<FindingKind, number>;
  readonly missingEvidence: readonly MissingEvidence[];
  readonly notRecovered: readonly string[];
  readonly strength: Strength;
  readonly recovery: readonly RecoveryTime[];
  readonly counts: Tally;
  readonly canary: CanaryResult;
}

interface KeysResult {
  readonly tally: Tally;
  readonly shadow: ReturnType<ShadowCanary['result']>;
}

/** Judges key by key. */
function judgeKeys(source: HistorySource, context: RunContext, options: JudgeOptions): KeysResult {
  const judge = new KeyJudge(options);
  const shadow = new ShadowCanary(options);
  const tally = newTally();
  for (const history of source.histories()) {
    judge.judge(history);
    let verdict: ReturnType<typeof searchKey> = 'not-applicable';
    if (!judge.witnessed && !history.canary && judge.findings.length === 0 && history.size > 0) {
      verdict =
        options.searchBudget === null
          ? 'unknown'
          : searchKey(judge.analysis, options.searchBudget(), (finding) => judge.findings.push(finding));
      if (options.searchBudget === null && !needsSearch(judge)) verdict = 'not-applicable';
    }
    const describe = (finding: RowFinding): Finding => describeFinding(finding, judge.analysis, source, context);
    if (history.canary) {
      tally.canaryKeys++;
      tally.canaryFindings.push(...judge.findings.map(describe));
      continue;
    }
    if (!judge.witnessed) tally.unwitnessedKeys++;
    if (verdict === 'valid' || verdict === 'invalid') tally.searchedKeys++;
    if (verdict === 'unknown') {
      tally.undecidedCount++;
      if (tally.undecidedKeys.length < maxNamedKeys) tally.undecidedKeys.push(history.name);
    }
    for (const finding of judge.findings) {
      countFinding(tally, finding.kind);
      countReported(tally, finding, history, context);
      if (tally.findings.length < maxFindings) tally.findings.push(describe(finding));
    }
    tally.findingsDropped += judge.findingsDropped;
    countKey(tally, judge, history, context);
    if (judge.findings.length === 0) shadow.offer(history);
  }
  tally.extremes = { ...source.extremes() };
  return { tally, shadow: shadow.result() };
}

/** One write and reads that never overlap it leave a search nothing to find that the interval rule does not. */
function needsSearch(judge: KeyJudge): boolean {
  const { history } = judge.analysis;
  let mutators = 0;
  for (let i = 0; i < history.operationCount; i++) if (judge.analysis.isMutator(i)) mutators++;
  return mutators > 1 && !judge.analysis.isCounter;
}

/** Draws the verdict from what the keys and the cluster came to. */
function conclude(source: HistorySource, context: RunContext, result: KeysResult, options: JudgeOptions): Judgement {
  const { tally } = result;
  for (const finding of checkCluster(source, context, tally, options.promises)) {
    countFinding(tally, finding.kind);
    tally.findings.push(finding);
  }
  const missing = missingEvidence(source, context, tally, options);
  const down = notRecovered(context, tally, options);
  const violations = [...tally.findingCounts].reduce(
    (sum, [kind, count]) => (kind === 'unknown' ? sum : sum + count),
    0,
  );
  const verdict: JudgedVerdict =
    violations > 0 ? 'violated' : down.length > 0 ? 'not-recovered' : missing.length > 0 ? 'inconclusive' : 'certified';
  return {
    verdict,
    exitCode: ({ violated: 1, 'not-recovered': 2, inconclusive: 3, certified: 0 } as const)[verdict],
    findings: tally.findings,
    totals: tally.findingCounts,
    missingEvidence: missing,
    notRecovered: down,
    strength: strengthOf(tally, context),
    recovery: recoveryTimes(tally, context),
    counts: tally,
    canary: checkCanaries(source, context, tally, result.shadow),
  };
}

/** Judges a whole run, in this thread. */
export function judgeRun(source: HistorySource, options: JudgeOptions = defaultJudgeOptions): Judgement {
  const context = new RunContext(source);
  return conclude(source, context, judgeKeys(source, context, options), options);
}
