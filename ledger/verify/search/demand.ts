/**
 * Targets that the search still has to meet: states that certain operations require and operations may lead towards.
 *
 * Owns an exact pruning: a configuration is hopeless when some operation still requires a target, the present state does
 * not lead to it (`isMet`), and of the operations that start a way to it none is left that is invoked before the one that requires
 * it completes. If it pruned more than that, a good store would be called bad.
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
  /** True when targets are states and `isMet` is equality; allows a further pruning (`heldUntil`). */
  readonly isExact?: boolean;
}

/** Most unmet targets looked at after one move; leaving some out only prunes less. */
const maxLooks = 256;

/** Keeps what is left, move by move. */
export class DemandTracker {
  private readonly demand: Demand;
  private readonly invoke: Float64Array;
  private readonly complete: Float64Array;
  private readonly isInEffect: Uint8Array;
  /** Per target: operations that require it, in order of completion, and that supply it, in order of invocation. */
  private readonly requirers: readonly number[][];
  private readonly suppliers: readonly number[][];
  /** Per operation: its place in the list of the target that it requires. */
  private readonly requirerPlace: Int32Array;
  /** Per target: no operation before these places in the two lists is left. */
  private readonly firstRequirer: Int32Array;
  private readonly firstSupplier: Int32Array;
  /** Targets that are required and not supplied in time, in no order, and where each stands in that list (−1: nowhere). */
  private readonly bare: number[] = [];
  private readonly bareAt: Int32Array;
  /** The same for all required targets. */
  private readonly wanted: number[] = [];
  private readonly wantedAt: Int32Array;

  /** `invoke` and `complete` are the problem's, in order of invocation; operations that complete are certain. */
  constructor(demand: Demand, invoke: Float64Array, complete: Float64Array) {
    const { targetCount } = demand;
    this.demand = demand;
    this.invoke = invoke;
    this.complete = complete;
    this.isInEffect = new Uint8Array(complete.length);
    this.requirers = Array.from({ length: targetCount }, () => []);
    this.suppliers = Array.from({ length: targetCount }, () => []);
    for (let op = 0; op < complete.length; op++) {
      const target = demand.requires[op]!;
      if (target >= 0 && complete[op] !== Infinity) this.requirers[target]!.push(op);
      for (const supplied of demand.supplies[op]!) this.suppliers[supplied]!.push(op);
    }
    this.requirerPlace = new Int32Array(complete.length);
    for (const list of this.requirers) {
      list.sort((x, y) => complete[x]! - complete[y]!);
      for (const [place, op] of list.entries()) this.requirerPlace[op] = place;
    }
    this.firstRequirer = new Int32Array(targetCount);
    this.firstSupplier = new Int32Array(targetCount);
    this.bareAt = new Int32Array(targetCount).fill(-1);
    this.wantedAt = new Int32Array(targetCount).fill(-1);
    for (let target = 0; target < targetCount; target++) this.settle(target);
  }

  /** The operation takes effect, or is taken back. */
  put(operation: number, isInEffect: boolean): void {
    const { requires, supplies } = this.demand;
    this.isInEffect[operation] = isInEffect ? 1 : 0;
    const target = requires[operation]!;
    if (target >= 0 && this.complete[operation] !== Infinity) {
      if (!isInEffect)
        this.firstRequirer[target] = Math.min(this.firstRequirer[target]!, this.requirerPlace[operation]!);
      this.settle(target);
    }
    for (const supplied of supplies[operation]!) {
      if (!isInEffect)
        this.firstSupplier[supplied] = back(this.suppliers[supplied]!, this.firstSupplier[supplied]!, operation);
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

  /**
   * Exact demands only: the time until which this state must stay, because operations that complete before the next supply
   * is invoked require it; −Infinity where nothing holds it.
   */
  heldUntil(state: number): number {
    if (this.demand.isExact !== true || state >= this.demand.targetCount || this.bareAt[state] === -1) return -Infinity;
    const list = this.requirers[state]!;
    const supplier = this.firstLeft(this.suppliers[state]!, this.firstSupplier, state);
    let low = this.firstRequirer[state]!;
    let high = list.length;
    if (supplier >= 0) {
      while (low < high) {
        const middle = (low + high) >> 1;
        if (this.complete[list[middle]!]! < this.invoke[supplier]!) low = middle + 1;
        else high = middle;
      }
    }
    for (let place = high - 1; place >= this.firstRequirer[state]!; place--) {
      if (this.isInEffect[list[place]!] === 0) return this.invoke[list[place]!]!;
    }
    return -Infinity;
  }

  /** The state itself, or the one that stands for it. */
  canonical(state: number): number {
    const { blindState, isMet } = this.demand;
    if (blindState === undefined || this.wanted.length > maxLooks) return state;
    for (const target of this.wanted) if (isMet(state, target)) return state;
    return blindState;
  }

  private settle(target: number): void {
    const requirer = this.firstLeft(this.requirers[target]!, this.firstRequirer, target);
    keep(this.wanted, this.wantedAt, target, requirer >= 0);
    let isBare = false;
    if (requirer >= 0) {
      const supplier = this.firstLeft(this.suppliers[target]!, this.firstSupplier, target);
      isBare = supplier < 0 || this.invoke[supplier]! > this.complete[requirer]!;
    }
    keep(this.bare, this.bareAt, target, isBare);
  }

  /** The first operation of the list that is not in effect; −1 when all are. */
  private firstLeft(list: readonly number[], firsts: Int32Array, target: number): number {
    let place = firsts[target]!;
    while (place < list.length && this.isInEffect[list[place]!] === 1) place++;
    firsts[target] = place;
    return place < list.length ? list[place]! : -1;
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

/** The place of `operation` in the list, which is in order of number, if that is before `first`; else `first`. */
function back(list: readonly number[], first: number, operation: number): number {
  let low = 0;
  let high = first;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (list[middle]! < operation) low = middle + 1;
    else high = middle;
  }
  return low;
}
