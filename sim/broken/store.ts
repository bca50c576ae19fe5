/**
 * What a deliberately wrong store is: the shipped node with something exchanged from outside, and the run that shows it.
 * The shipped code has no switch for any of it.
 */
import type { BudgetPolicy } from '../../chaos/budget.ts';
import type { FindingKind } from '../../ledger/verify/finding.ts';
import type { Prng } from '../../lib/prng.ts';
import type { DiskState } from '../../zaris/model/raft-wire.ts';
import type { Node } from '../../zaris/node/node.ts';
import type { ControlTimings, NodeOptions, NodeParts } from '../../zaris/node/options.ts';
import type { Timings } from '../../zaris/partition/timings.ts';
import type { Pins } from '../options.ts';

export interface BrokenStore {
  readonly name: string;
  /** What it does wrong, one sentence. */
  readonly doc: string;
  /** Findings of which one at least must be reported for it to count as caught. */
  readonly expects: readonly FindingKind[];
  /** Options of the runs that are to catch it: ordinary ones, chosen so that it shows soon. */
  readonly pins: Pins;
  readonly parts?: () => NodeParts;
  readonly makeNode?: (options: NodeOptions, disk: DiskState, random: Prng, parts: NodeParts) => Node;
  readonly control?: Partial<ControlTimings>;
  readonly timings?: Partial<Timings>;
  readonly policy?: BudgetPolicy;
}
