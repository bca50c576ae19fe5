/**
 * The life of a fault, and the journal it is written to.
 *
 * Invariant: a stage is announced in the journal before the action, and written again with evidence after it; `confirmed` is
 * reached only from `injected`, and only by a probe. If a fault could be counted without it, a green run would claim to have
 * survived what never happened; if an action came before its announcement, a harness killed in between would leave a fault
 * that nobody knows of.
 */
import { assert, unreachable } from '../lib/assert.ts';
import type { Fault, Target } from './faults.ts';
import type { Cut } from './partitions.ts';

/** What stands in the cluster at the moment of an injection: for the overlap share and for autopsies. */
export interface Surroundings {
  /** Other faults open at that moment. */
  readonly openFaults: readonly string[];
  /** Partitions that were not Healthy. */
  readonly unhealthyPartitions: number;
  /** Epoch of the partition the target was chosen by, or null. */
  readonly epoch: number | null;
  /** Roles of the targets, such as `control-leader` or `primary of 13`. */
  readonly roles: readonly string[];
}

/** One line of the journal. `atMs` is monotonic: of the effect where the cluster told it, else of the writing. */
export type FaultRecord = { readonly faultId: string; readonly atMs: number } & FaultStep;

export type FaultStep =
  | { readonly step: 'planned'; readonly fault: Fault; readonly target: Target; readonly due: string }
  /** The budget (or the cluster's size) made it another fault, or moved it to other nodes. */
  | {
      readonly step: 'changed';
      readonly from: string;
      readonly to: string;
      readonly fault: Fault;
      readonly why: string;
    }
  | { readonly step: 'skipped'; readonly reason: string }
  /** Written before the action. */
  | {
      readonly step: 'injecting';
      readonly fault: Fault;
      readonly nodeIds: readonly string[];
      readonly partition: number | null;
      readonly cuts: readonly Cut[];
      readonly surroundings: Surroundings;
    }
  | { readonly step: 'injected'; readonly evidence: string }
  | { readonly step: 'confirmed'; readonly evidence: string }
  /** No probe saw the effect within the bound; the fault is healed and never counted. */
  | { readonly step: 'unconfirmed'; readonly evidence: string }
  /** Written before the action. */
  | { readonly step: 'healing'; readonly why: string }
  | { readonly step: 'healed'; readonly evidence: string }
  | { readonly step: 'heal-verified'; readonly evidence: string }
  | { readonly step: 'heal-unverified'; readonly evidence: string }
  /** Together the open faults took more than the contract promises to survive; the run can certify nothing. */
  | {
      readonly step: 'overshoot';
      readonly why: string;
      /** Partitions every holder of which was taken, as far as is known. */
      readonly partitions?: readonly number[];
    }
  /** A call to the cluster failed past its bound. */
  | { readonly step: 'failed'; readonly error: string };

/** Where every step is written. */
export interface FaultJournal {
  /** Resolves once the record is kept; the driver acts only then. Records are kept in the order of the calls. */
  append(record: FaultRecord): Promise<void>;
}

/** How far a fault has come. */
export type FaultLife =
  | { readonly kind: 'planned' }
  | { readonly kind: 'skipped'; readonly reason: string }
  | { readonly kind: 'injecting' }
  | { readonly kind: 'injected'; readonly injectedAtMs: number }
  | { readonly kind: 'confirmed'; readonly injectedAtMs: number; readonly confirmedAtMs: number }
  | {
      readonly kind: 'healed' | 'heal-verified' | 'heal-unverified';
      readonly injectedAtMs: number;
      /** Null: never seen to bite, so not counted. */
      readonly confirmedAtMs: number | null;
      readonly healedAtMs: number;
    };

/** The life after one more record. Throws on a step that cannot follow; that would be a lie in the making. */
export function advanceLife(life: FaultLife | null, record: FaultRecord): FaultLife {
  const wrong = (): string => `fault ${record.faultId}: ${record.step} cannot follow ${life?.kind ?? 'nothing'}`;
  if (record.step === 'planned') {
    assert(life === null, wrong());
    return { kind: 'planned' };
  }
  assert(life !== null, wrong());
  switch (record.step) {
    case 'changed':
      assert(life.kind === 'planned', wrong());
      return life;
    case 'skipped':
      assert(life.kind === 'planned', wrong());
      return { kind: 'skipped', reason: record.reason };
    case 'injecting':
      assert(life.kind === 'planned', wrong());
      return { kind: 'injecting' };
    case 'injected':
      assert(life.kind === 'injecting', wrong());
      return { kind: 'injected', injectedAtMs: record.atMs };
    case 'confirmed':
      assert(life.kind === 'injected', wrong());
      return { kind: 'confirmed', injectedAtMs: life.injectedAtMs, confirmedAtMs: record.atMs };
    case 'healed': {
      assert(life.kind === 'injecting' || life.kind === 'injected' || life.kind === 'confirmed', wrong());
      return {
        kind: 'healed',
        injectedAtMs: life.kind === 'injecting' ? record.atMs : life.injectedAtMs,
        confirmedAtMs: life.kind === 'confirmed' ? life.confirmedAtMs : null,
        healedAtMs: record.atMs,
      };
    }
    case 'heal-verified':
    case 'heal-unverified':
      assert(life.kind === 'healed', wrong());
      return { ...life, kind: record.step };
    case 'unconfirmed':
    case 'healing':
    case 'overshoot':
    case 'failed':
      return life;
    default:
      return unreachable(record, 'fault step');
  }
}

/** True while the fault may still be felt: announced, and not yet healed. What a harness that died must undo. */
export function isOpen(life: FaultLife): boolean {
  return life.kind === 'injecting' || life.kind === 'injected' || life.kind === 'confirmed';
}

/** True once a probe has seen the effect. */
export function isConfirmed(life: FaultLife): boolean {
  switch (life.kind) {
    case 'confirmed':
      return true;
    case 'healed':
    case 'heal-verified':
    case 'heal-unverified':
      return life.confirmedAtMs !== null;
    case 'planned':
    case 'skipped':
    case 'injecting':
    case 'injected':
      return false;
    default:
      return unreachable(life, 'fault life');
  }
}
