/** What a run found, in short: for whoever asks of a run which rules spoke, without its report. */
import type { FindingKind, FindingRule } from '../ledger/verify/finding.ts';

/** Findings of one kind by one rule. */
export interface Found {
  readonly kind: FindingKind;
  readonly rule: FindingRule;
  /** One sentence, of the first of them. */
  readonly reason: string;
  readonly count: number;
}

/** Findings counted by kind and rule, in the order in which each came first. */
export function foundOf(findings: readonly Omit<Found, 'count'>[]): Found[] {
  const groups = Map.groupBy(findings, ({ kind, rule }) => `${kind} ${rule}`);
  return [...groups.values()].flatMap(([first, ...rest]) =>
    first === undefined ? [] : [{ kind: first.kind, rule: first.rule, reason: first.reason, count: rest.length + 1 }],
  );
}
