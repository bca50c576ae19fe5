/**
 * Verdict and evidence for one register key at a time: zones where values are unique, the relay for what failed
 * compare-and-sets leave open, the search where values repeat.
 *
 * Owns the choice between them and the evidence. The worst outcome is a verdict from a method whose conditions do not hold.
 */

import type { SearchBudget } from './budget.ts';
import { ClusterTable, initialWriter, none } from './cluster-table.ts';
import { explainSearch } from './explain-search.ts';
import { linearize } from './linearize.ts';
import type { HistoryCut, RegisterHistory } from './register-history.ts';
import { isCompleteAt, isRelevantAt, okStatus, readKind, wholeHistory } from './register-history.ts';
import { judgeRelay } from './register-relay.ts';
import { registerProblem } from './register-search.ts';
import type { ZoneViolation } from './register-zones.ts';
import { ChainTable, judgeZones } from './register-zones.ts';
import { smallestPrefix } from './smallest-prefix.ts';

/** How a key was decided. */
export type RegisterMethod = 'zones' | 'relay' | 'search';

/** Why a key is invalid; operation numbers and values are those of the history. */
export interface RegisterEvidence {
  /** The operation whose completion ends the smallest prefix that cannot be explained. */
  readonly operation: number;
  /** Operations of the key that complete in that prefix, the last one included. */
  readonly prefixCompletions: number;
  /** False where the budget ended the search for a smaller one. */
  readonly isSmallest: boolean;
  /** What contradicts what, in terms of values. */
  readonly conflict: RegisterConflict;
  /** Operations that together show it; few. */
  readonly witnesses: readonly number[];
  /** Values that the state could have had when the operation had to take effect. */
  readonly statesPossible: readonly number[];
  /** False where not all values were tried. */
  readonly isStatesComplete: boolean;
}

/** The contradiction. `unexplained`: no order of the prefix's operations is legal. */
export type RegisterConflict =
  | { readonly kind: 'never-written'; readonly value: number }
  | { readonly kind: 'taken-twice'; readonly value: number }
  | { readonly kind: 'cycle'; readonly value: number }
  | { readonly kind: 'out-of-order'; readonly value: number }
  | { readonly kind: 'overlap'; readonly values: readonly [number, number] }
  | { readonly kind: 'denied'; readonly value: number }
  | { readonly kind: 'unexplained' };

/** The verdict on a key. `unknown` only when the budget ended. */
export type RegisterVerdict =
  | { readonly kind: 'valid'; readonly method: RegisterMethod }
  | { readonly kind: 'invalid'; readonly method: RegisterMethod }
  | { readonly kind: 'unknown'; readonly method: RegisterMethod };

/** Operations looked at, in all, while values are tried for `statesPossible`. */
const maxStateProbeWork = 4_000_000;

/** Most values tried. */
const maxStateProbes = 64;

/** Judges keys one after another with the same memory. */
export class RegisterChecker {
  private budget: SearchBudget;
  private readonly table = new ClusterTable();
  private readonly chains = new ChainTable();

  constructor(budget: SearchBudget) {
    this.budget = budget;
  }

  /** Replaces the budget, for what comes next. */
  setBudget(budget: SearchBudget): void {
    this.budget = budget;
  }

  /** Judges the key that `operations` (numbers into the history, in order of invocation) make up, from state `initial`. */
  judge(history: RegisterHistory, operations: Uint32Array, initial: number): RegisterVerdict {
    const zones = judgeZones(history, operations, initial, wholeHistory, this.table, this.chains);
    switch (zones.kind) {
      case 'valid':
        return { kind: 'valid', method: 'zones' };
      case 'invalid':
        return { kind: 'invalid', method: 'zones' };
      case 'denials':
        return { kind: judgeRelay(history, this.table, this.chains, this.budget), method: 'relay' };
      case 'repeated-values': {
        const { problem } = registerProblem(history, operations, initial);
        return { kind: linearize(problem, this.budget).kind, method: 'search' };
      }
    }
  }

  /**
   * Evidence for a key that `judge` called invalid; costs some twenty times as much as the verdict. Null only when the
   * budget ended meanwhile.
   */
  explain(
    history: RegisterHistory,
    operations: Uint32Array,
    initial: number,
    method: RegisterMethod,
  ): RegisterEvidence | null {
    if (method === 'search') return this.explainBySearch(history, operations, initial);
    return this.explainByZones(history, operations, initial);
  }

  /** Verdict on a prefix of a key with unique values. */
  private judgeCut(history: RegisterHistory, operations: Uint32Array, initial: number, cut: HistoryCut): CutVerdict {
    const zones = judgeZones(history, operations, initial, cut, this.table, this.chains);
    if (zones.kind === 'invalid') return { kind: 'invalid', violation: zones.violation };
    if (zones.kind !== 'denials') return { kind: 'valid', violation: null };
    return { kind: judgeRelay(history, this.table, this.chains, this.budget), violation: null };
  }

  private explainByZones(history: RegisterHistory, operations: Uint32Array, initial: number): RegisterEvidence {
    const order = completionOrder(history, operations);
    const cutAt = (completions: number): HistoryCut => {
      const operation = order[completions - 1]!;
      return { time: history.complete[operation]!, operation };
    };
    const prefix = smallestPrefix(
      0,
      order.length,
      (completions) => this.judgeCut(history, operations, initial, cutAt(completions)).kind,
    );
    const operation = order[prefix.completions - 1]!;
    const { violation } = this.judgeCut(history, operations, initial, cutAt(prefix.completions));
    const conflict = this.conflictOf(violation);
    const witnesses = this.witnessesOf(violation, history, operations, cutAt(prefix.completions));
    const kept = operations.filter(
      (other) => other !== operation && isRelevantAt(history, other, cutAt(prefix.completions)),
    );
    const states = this.probeStates(history, kept, initial, operation);
    return {
      operation,
      prefixCompletions: prefix.completions,
      isSmallest: prefix.isMinimal,
      conflict,
      witnesses,
      ...states,
    };
  }

  /** Tries values: would the prefix without `operation` allow a read of the value in its place? */
  private probeStates(
    history: RegisterHistory,
    others: Uint32Array,
    initial: number,
    operation: number,
  ): Pick<RegisterEvidence, 'statesPossible' | 'isStatesComplete'> {
    const values = new Set<number>();
    // The latest written first: the likeliest.
    for (let index = others.length - 1; index >= 0; index--) {
      const other = others[index]!;
      if (history.kind[other] !== readKind)
        values.add(history.kind[other] === 1 ? history.a[other]! : history.b[other]!);
    }
    values.add(initial);
    const probes = Math.min(maxStateProbes, Math.ceil(maxStateProbeWork / (others.length + 1)));
    const cut: HistoryCut = { time: history.complete[operation]!, operation };
    const probed = withRead(history, others, operation);
    const possible: number[] = [];
    let tried = 0;
    for (const value of values) {
      if (tried++ === probes) break;
      probed.history.b[operation] = value;
      if (this.judgeCut(probed.history, probed.operations, initial, cut).kind === 'valid') possible.push(value);
    }
    return { statesPossible: possible, isStatesComplete: values.size <= probes };
  }

  private conflictOf(violation: ZoneViolation | null): RegisterConflict {
    if (violation === null) return { kind: 'unexplained' };
    const value = this.table.value;
    if (violation.kind !== 'overlap') return { kind: violation.kind, value: value[violation.cluster]! };
    const [one, other] = violation.chains;
    return { kind: 'overlap', values: [value[this.chains.head[one]!]!, value[this.chains.head[other]!]!] };
  }

  private witnessesOf(
    violation: ZoneViolation | null,
    history: RegisterHistory,
    operations: Uint32Array,
    cut: HistoryCut,
  ): number[] {
    const { table, chains } = this;
    if (violation === null) return [];
    switch (violation.kind) {
      case 'taken-twice':
        return violation.takers.map((cluster) => table.writer[cluster]!);
      case 'denied':
        return [...this.extremes(history, operations, cut, [violation.cluster]), violation.operation];
      case 'overlap':
        return violation.chains.flatMap((chain) => {
          const members: number[] = [];
          for (let at = chains.head[chain]!; at !== none; at = table.next[at]!) members.push(at);
          return this.extremes(history, operations, cut, members);
        });
      case 'never-written':
      case 'out-of-order':
      case 'cycle':
        return this.extremes(history, operations, cut, [violation.cluster]);
    }
  }

  /** Of all writers and reads of these clusters, the one that completes first and the one that is invoked last. */
  private extremes(
    history: RegisterHistory,
    operations: Uint32Array,
    cut: HistoryCut,
    clusters: readonly number[],
  ): number[] {
    const values = new Set(clusters.map((cluster) => this.table.value[cluster]!));
    const found = clusters
      .map((cluster) => this.table.writer[cluster]!)
      .filter((op) => op !== none && op !== initialWriter);
    for (const operation of operations) {
      const isSeen = history.kind[operation] === readKind && values.has(history.b[operation]!);
      if (isSeen && isRelevantAt(history, operation, cut)) found.push(operation);
    }
    if (found.length === 0) return [];
    const certain = found.filter((op) => history.status[op] === okStatus && isCompleteAt(history, op, cut));
    const first = certain.reduce(
      (x, y) => (history.complete[y]! < history.complete[x]! ? y : x),
      certain[0] ?? found[0]!,
    );
    const last = found.reduce((x, y) => (history.invoke[y]! > history.invoke[x]! ? y : x));
    return first === last ? [first] : [first, last];
  }

  private explainBySearch(history: RegisterHistory, operations: Uint32Array, initial: number): RegisterEvidence | null {
    const { problem, operations: chosen, values } = registerProblem(history, operations, initial);
    const found = explainSearch(problem, this.budget);
    if (found === null) return null;
    return {
      operation: chosen[found.operation]!,
      prefixCompletions: found.prefixCompletions,
      isSmallest: found.isSmallest,
      conflict: { kind: 'unexplained' },
      witnesses: [],
      statesPossible: found.states.map((state) => values[state]!),
      isStatesComplete: found.isStatesComplete,
    };
  }
}

interface CutVerdict {
  readonly kind: 'valid' | 'invalid' | 'unknown';
  readonly violation: ZoneViolation | null;
}

/** Operations that say something and complete, in order of completion. */
function completionOrder(history: RegisterHistory, operations: Uint32Array): Uint32Array {
  const { complete } = history;
  const order = operations.filter(
    (operation) => complete[operation] !== Infinity && isRelevantAt(history, operation, wholeHistory),
  );
  return order.sort((x, y) => complete[x]! - complete[y]! || x - y);
}

/** A copy of the columns in which `operation` is a read, and the operations with it in their place. */
function withRead(
  history: RegisterHistory,
  others: Uint32Array,
  operation: number,
): { history: RegisterHistory; operations: Uint32Array } {
  const kind = history.kind.slice();
  const status = history.status.slice();
  kind[operation] = readKind;
  status[operation] = okStatus;
  const operations = new Uint32Array(others.length + 1);
  operations.set(others);
  operations[others.length] = operation;
  operations.sort((x, y) => history.invoke[x]! - history.invoke[y]! || x - y);
  return { history: { ...history, kind, status, b: history.b.slice() }, operations };
}
