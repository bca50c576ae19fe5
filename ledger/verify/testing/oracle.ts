/**
 * A brute-force judge of small histories, for tests only: tries every order that real time allows, with a plain register
 * that has versions. Nothing here is shared with the checkers that it tests. Exponential; a dozen operations at most.
 */
import { assert } from '../../../lib/assert.ts';
import { type HistoryRow, observedCorrupt, observedForeign } from '../history.ts';

const maxRows = 14;

interface State {
  /** Operation whose value is held; null absent. */
  readonly value: number | null;
  readonly version: readonly [number, number] | null;
}

/** True when some order explains the rows: acknowledged ones all in it, failed ones not, unknown ones if need be. */
export function isLinearizable(rows: readonly HistoryRow[], useVersions: boolean): boolean {
  assert(rows.length <= maxRows, 'too many rows for the oracle');
  const ids = rows.map((row, index) => row.operationId ?? index + 1);
  const ends = rows.map((row) => (row.outcome === 'info' ? Infinity : row.returnNs));
  const all = (1 << rows.length) - 1;
  let optional = 0;
  for (const [index, row] of rows.entries()) {
    if (row.outcome === 'info' || (row.outcome === 'fail' && !(useVersions && row.why === 0 && row.version)))
      optional |= 1 << index;
  }
  const dead = new Set<string>();

  const search = (done: number, state: State): boolean => {
    if ((done | optional) === all) return true;
    const memo = `${done}/${state.value}/${state.version?.join('.')}`;
    if (dead.has(memo)) return false;
    let earliestEnd = Infinity;
    for (let index = 0; index < rows.length; index++) {
      if ((done & (1 << index)) === 0 && (optional & (1 << index)) === 0)
        earliestEnd = Math.min(earliestEnd, ends[index] as number);
    }
    for (let index = 0; index < rows.length; index++) {
      const row = rows[index] as HistoryRow;
      if ((done & (1 << index)) !== 0 || row.invokeNs > earliestEnd) continue;
      for (const next of step(row, ids[index] as number, state, useVersions)) {
        if (search(done | (1 << index), next)) return true;
      }
    }
    dead.add(memo);
    return false;
  };
  return search(0, { value: null, version: null });
}

const same = (
  a: readonly [number, number] | null | undefined,
  b: readonly [number, number] | null | undefined,
): boolean => (a ?? null) === (b ?? null) || (!!a && !!b && a[0] === b[0] && a[1] === b[1]);

/** States after the row took effect at `state`; none where it cannot have. */
function step(row: HistoryRow, id: number, state: State, useVersions: boolean): State[] {
  if (row.outcome === 'fail') {
    // Reached only as an observation: the condition did not hold at this version.
    if (row.why !== 0 || !useVersions || !row.version || !same(row.version, state.version)) return [];
    if (row.f === 'create') return state.value !== null ? [state] : [];
    if (row.f === 'cas') return state.value === null || !same(row.expected, state.version) ? [state] : [];
    return [];
  }
  const known = row.outcome === 'ok';
  if (row.f === 'read') {
    if (!known) return [state];
    if (row.observed === observedCorrupt || row.observed === observedForeign || (row.observed ?? null) !== state.value)
      return [];
    return !useVersions || !row.version || same(row.version, state.version) ? [state] : [];
  }
  if (row.f === 'create' && state.value !== null) return [];
  if (row.f === 'cas' && useVersions && (state.value === null || !same(row.expected, state.version))) return [];
  if (row.f === 'delete' && state.value === null) {
    if (!known) return [];
    return !useVersions || !row.version || same(row.version, state.version) ? [state] : [];
  }
  const value = row.f === 'delete' ? null : id;
  if (!useVersions) return [{ value, version: null }];
  if (known && row.version) return newer(row.version, state.version) ? [{ value, version: row.version }] : [];
  return hiddenVersions(state.version).map((version) => ({ value, version }));
}

/** Versions that an effect of unknown version may have had: test histories leave odd minors for them. */
function hiddenVersions(after: readonly [number, number] | null): [number, number][] {
  const from = after === null ? 1 : after[1] + 1;
  const candidates: [number, number][] = [];
  for (let minor = from; minor <= 24; minor++) candidates.push([1, minor]);
  return candidates;
}

const newer = (a: readonly [number, number], b: readonly [number, number] | null): boolean =>
  b === null || a[0] > b[0] || (a[0] === b[0] && a[1] > b[1]);
