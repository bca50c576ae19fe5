/**
 * Targets that the search still has to meet: states that certain operations require and operations may lead towards.
 *
 * Owns an exact pruning: a configuration is hopeless when some operation still requires a target, the present state does
 * not lead to it (`isMet`), and no operation that starts a way to it is left. If it pruned more than that, a good store would be called bad.
 */

/** What the operations of a problem require and supply. Targets are numbers from 0. */
export interface Demand {
  readonly targetCount: number;
  /** Per operation: the target that it requires, or −1. Counted only for operations that certainly took effect. */
  readonly requires: Int32Array;
  /** Per operation: the targets to which a new way starts when it takes effect. */
  readonly supplies: readonly (readonly number[])[];
  /** True when the state is the target, or can become it by operations that start no new way. */
  readonly isMet: (state: number, target: number) => boolean;
  /**
   * Optional: a state that stands for all from which no required target can be met. Only for models in which such states
   * differ for no operation: each is legal in all of them or in none, and leads from all to one state or to such again.
   */
  readonly blindState?: number;
}

/** Most unmet targets looked at after one move; leaving some out only prunes less. */
const maxLooks = 256;

/** Counts what is left, move by move. */
export class DemandTracker {
  private readonly demand: Demand;
  private readonly required: Int32Array;
  private readonly supplied: Int32Array;
  /** Targets that are required and no longer supplied, in no order, and where each stands in that list (−1: nowhere). */
  private readonly bare: number[] = [];
  private readonly bareAt: Int32Array;
  /** The same for all required targets. */
  private readonly wanted: number[] = [];
  private readonly wantedAt: Int32Array;

  /** `complete` is the problem's: operations with a finite one are certain. */
  constructor(demand: Demand, complete: Float64Array) {
    this.demand = demand;
    this.required = new Int32Array(demand.targetCount);
    this.supplied = new Int32Array(demand.targetCount);
    this.bareAt = new Int32Array(demand.targetCount).fill(-1);
    this.wantedAt = new Int32Array(demand.targetCount).fill(-1);
    for (let op = 0; op < complete.length; op++) {
      const target = demand.requires[op]!;
      if (target >= 0 && complete[op] !== Infinity) this.required[target]!++;
      for (const supplied of demand.supplies[op]!) this.supplied[supplied]!++;
    }
    for (let target = 0; target < demand.targetCount; target++) this.settle(target);
  }

  /** The operation takes effect (−1) or is taken back (+1). */
  count(operation: number, isCertain: boolean, by: 1 | -1): void {
    const { requires, supplies } = this.demand;
    const target = requires[operation]!;
    if (target >= 0 && isCertain) {
      this.required[target]! += by;
      this.settle(target);
    }
    for (const supplied of supplies[operation]!) {
      this.supplied[supplied]! += by;
      this.settle(supplied);
    }
  }

  /** True when some target can never be met from this state. */
  isHopeless(state: number): boolean {
    const end = Math.min(this.bare.length, maxLooks);
    for (let index = 0; index < end; index++) {
      if (!this.demand.isMet(state, this.bare[index]!)) return true;
    }
    return false;
  }

  /** The state itself, or the one that stands for it. */
  canonical(state: number): number {
    const { blindState, isMet } = this.demand;
    if (blindState === undefined || this.wanted.length > maxLooks) return state;
    for (const target of this.wanted) if (isMet(state, target)) return state;
    return blindState;
  }

  private settle(target: number): void {
    const isWanted = this.required[target]! > 0;
    keep(this.wanted, this.wantedAt, target, isWanted);
    keep(this.bare, this.bareAt, target, isWanted && this.supplied[target] === 0);
  }
}

/** Puts the target into the list, or takes it out. */
function keep(list: number[], places: Int32Array, target: number, isIn: boolean): void {
  const at = places[target]!;
  if (isIn === at >= 0) return;
  if (isIn) {
    places[target] = list.push(target) - 1;
    return;
  }
  const moved = list.pop()!;
  if (moved !== target) {
    list[at] = moved;
    places[moved] = at;
  }
  places[target] = -1;
}
