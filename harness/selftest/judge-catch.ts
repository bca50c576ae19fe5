/**
 * Whether a run has caught a broken store (DESIGN §10): the verifier reported an expected finding from the clients' history or
 * the read-back, in a run whose faults stayed in the budget.
 *
 * Invariant: nothing else is a catch: no crash, no stall, no assertion, no run that ended without evidence, and no word of the store's
 * own (its epochs, its replicas' digests). If any of those counted, a blind verifier would pass its own test.
 */
import type { FindingKind, FindingRule } from '../../ledger/verify/finding.ts';
import type { Found } from '../found.ts';
import type { Verdict } from '../verdict.ts';

/** What a run came to, as far as it decides on a catch. */
export interface RunFacts {
  readonly verdict: Verdict;
  readonly headline: string;
  readonly found: readonly Found[];
  /** Faults that went past the budget. */
  readonly overshoots: readonly string[];
  /** Nodes that ended without a fault of ours. */
  readonly crashed: readonly string[];
}

export type Catch =
  | { readonly kind: 'caught'; readonly finding: Found }
  /** One sentence: why what there is does not count. */
  | { readonly kind: 'missed'; readonly why: string };

/** Rules that rest on what nodes say of themselves or of each other, or judge the client: neither a history of values nor a read-back. */
const otherWitnesses: ReadonlySet<FindingRule> = new Set([
  'replica',
  'digest',
  'two-primaries',
  'epoch-went-back',
  'attempts',
  'deadline',
]);

/** Has this run caught a store that must show one of the kinds `expects`? */
export function judgeCatch(expects: readonly FindingKind[], facts: RunFacts): Catch {
  const missed = (why: string): Catch => ({ kind: 'missed', why });
  const { verdict, headline, found, overshoots, crashed } = facts;
  if (verdict !== 'violated') return missed(`the run ended ${verdict}: ${headline}`);
  if (crashed.length > 0) return missed(`${crashed.join(', ')} crashed, and a crash is no catch`);
  if (overshoots.length > 0) return missed(`the faults ${overshoots.join(', ')} went past the budget`);
  for (const kind of expects) {
    const finding = found.find((each) => each.kind === kind && !otherWitnesses.has(each.rule));
    if (finding !== undefined) return { kind: 'caught', finding };
  }
  const kinds = [...new Set(found.map((each) => `${each.kind} (${each.rule})`))].join(', ');
  return missed(`found only ${kinds || 'nothing that is listed'}, not what it must show`);
}
