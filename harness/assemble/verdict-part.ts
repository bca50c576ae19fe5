/**
 * The verdict of a run: every reason that anybody has against a certificate, in one place, under one precedence.
 *
 * Invariant: nothing here removes a reason. A reason that got lost between the run, the verifier and the gates would make a red
 * run green.
 */
import type { FindingKind } from '../../ledger/verify/finding.ts';
import type { Judgement } from '../../ledger/verify/judge.ts';
import { composeHeadline } from '../report/first-screen.ts';
import { evaluateGate, parseGate } from '../report/gates.ts';
import type { RunReport } from '../report/model.ts';
import { decideVerdict, exitCodeOf, type VerdictReason } from '../verdict.ts';
import { factsOf, type Meta, settingsOf } from './head-part.ts';

/** The job's own gates, each with what became of it. */
export function gatesOf(report: RunReport, meta: Meta): RunReport['gates'] {
  const expressions = (settingsOf(meta)['failIf'] ?? []) as readonly string[];
  return expressions.map((expression) => evaluateGate(parseGate(expression), report));
}

/** A gate that holds, or that nobody can tell of, keeps the run from passing. It says nothing about lost writes: inconclusive. */
export function gateReasons(gates: RunReport['gates']): VerdictReason[] {
  return gates
    .filter((gate) => gate.outcome !== 'passed')
    .map((gate) => ({
      verdict: 'inconclusive',
      reason: `The gate ${gate.expression} ${gate.outcome === 'failed' ? 'fails the run' : 'cannot be told'}: ${gate.detail}.`,
    }));
}

export interface VerdictInput {
  readonly judgement: Judgement;
  /** Everything that the run itself holds against a certificate. */
  readonly reasons: readonly VerdictReason[];
  readonly interruptedBy: string | null;
  readonly meta: Meta;
  /** Rows of the ledger are known to be missing: they may explain every finding, so none is held against the store. */
  readonly isIncomplete: boolean;
}

/** The verdict that stands, with every reason; the report's canary and counts are final already. */
export function verdictPart(report: RunReport, input: VerdictInput): RunReport['verdict'] {
  const { judgement, meta } = input;
  const { canary } = report;
  const contract = settingsOf(meta)['contract'] === 'declared' ? 'declared' : 'durable';
  const lost = judgement.totals.get('lost') ?? 0;
  const terms = factsOf(meta).contract;
  const needsReport = terms?.lossNeeds === 'reported-lost';
  const declared = contract === 'declared' && (terms?.durable === false || needsReport);
  // What a contract permits counts only where it was asked for by name.
  const permits = new Set<string>(declared ? (terms?.permits ?? []) : []);
  // Where a loss needs the store's own report, only findings behind such a report are permitted.
  const permittedOf = (kind: string, count: number): number =>
    needsReport ? (judgement.counts.reportedLosses.get(kind as FindingKind) ?? 0) : count;
  const found = [...judgement.totals].filter(([kind]) => kind !== 'unknown');
  const permitted = declared ? permittedOf('lost', lost) : 0;
  const permittedAnomalies = found
    .filter(([kind]) => permits.has(kind))
    .reduce((sum, [kind, count]) => sum + permittedOf(kind, count), 0);
  const all = found.reduce((sum, [, count]) => sum + count, 0);
  const reasons: VerdictReason[] = [...input.reasons];
  const held = all - permitted - permittedAnomalies;
  const findings: VerdictReason = { verdict: 'violated', reason: `The verifier has ${held} findings.` };
  if (held > 0)
    reasons.push(
      input.isIncomplete
        ? {
            verdict: 'harness-fault',
            reason: `The verifier has ${held} findings, and the missing rows may explain each of them.`,
          }
        : findings,
    );
  for (const reason of judgement.notRecovered) reasons.push({ verdict: 'not-recovered', reason });
  for (const { detail } of judgement.missingEvidence) reasons.push({ verdict: 'inconclusive', reason: detail });
  if (canary.outcome !== 'caught') {
    const missed = canary.checks
      .filter((check) => check.reported !== check.planted)
      .map((check) => `${check.name} (${check.where}): ${check.reported} of ${check.planted}`);
    reasons.push({
      verdict: 'inconclusive',
      reason:
        canary.outcome === 'not-run'
          ? 'No canary could be set free, so finding nothing proves nothing.'
          : `The canary was not caught as planted: ${missed.join('; ') || 'something was reported that was not planted'}.`,
    });
  }
  const kind = decideVerdict(reasons);
  // The findings themselves are told one by one elsewhere; a broken invariant is told nowhere else.
  const missing = [...new Set(reasons.filter((reason) => reason !== findings).map((reason) => reason.reason))];
  // The reasons of the verdict that stands come first: the headline quotes the first.
  const own = new Set(reasons.filter((reason) => reason.verdict === kind).map((reason) => reason.reason));
  missing.sort((a, b) => Number(own.has(b)) - Number(own.has(a)));
  const verdict = {
    kind,
    exitCode: exitCodeOf(kind),
    headline: '',
    missing,
    contract,
    permittedLosses: permitted,
    permittedAnomalies,
    interruptedBy: input.interruptedBy,
  } as const;
  return { ...verdict, headline: composeHeadline({ ...report, verdict }) };
}
