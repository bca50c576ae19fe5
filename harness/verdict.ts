/**
 * How a run ends: the verdicts, their exit codes and which of several stands (DESIGN §9).
 *
 * Invariant: exactly one verdict passes, and only where nothing else was said. If the precedence were wrong, a run that
 * lost a write could end as "interrupted", or a broken harness as "certified".
 */

/** Verdicts in order of precedence: the first that applies is the run's. */
export const verdictPrecedence = [
  'violated',
  'harness-fault',
  'environment',
  'interrupted',
  'not-recovered',
  'inconclusive',
  'certified',
] as const;

export type Verdict = (typeof verdictPrecedence)[number];

/** Exit code of a command line that makes no sense. */
export const usageExitCode = 64;

const exitCodes: Readonly<Record<Verdict, number>> = {
  violated: 1,
  'harness-fault': 70,
  environment: 4,
  interrupted: 130,
  'not-recovered': 2,
  inconclusive: 3,
  certified: 0,
};

export const exitCodeOf = (verdict: Verdict): number => exitCodes[verdict];

/** Something that speaks for a verdict; `reason` is one sentence for people. */
export interface VerdictReason {
  readonly verdict: Exclude<Verdict, 'certified'>;
  readonly reason: string;
}

/** The verdict that stands. Without any reason against it a run is certified; so every doubt must be a reason. */
export function decideVerdict(reasons: readonly VerdictReason[]): Verdict {
  for (const verdict of verdictPrecedence) {
    if (verdict === 'certified' || reasons.some((reason) => reason.verdict === verdict)) return verdict;
  }
  return 'certified';
}
