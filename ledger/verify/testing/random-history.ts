/**
 * Random histories for tests: from a linearizable model, and with one planted fault.
 *
 * The model is a register with versions that runs operations one after the other; each operation's interval is then drawn
 * around the moment at which it took effect, so the history is linearizable by construction.
 */
import type { Prng } from '../../../lib/prng.ts';
import { type HistoryRow } from '../history.ts';

export interface RandomHistoryOptions {
  readonly operations: number;
  readonly kinds: readonly HistoryRow['f'][];
  readonly infoShare: number;
  /** Are absences and deletes told with a version? */
  readonly absenceVersions: boolean;
  readonly versions: boolean;
  /** Ends with a read-back. */
  readonly readBack: boolean;
}

type Mutable<T> = { -readonly [K in keyof T]: T[K] };
export type MutableRow = Mutable<HistoryRow>;

interface Step {
  readonly row: MutableRow;
  readonly atNs: number;
}

/** A linearizable history, rows in the order of their ids (which is the order of invocation). */
export function randomHistory(prng: Prng, options: RandomHistoryOptions): MutableRow[] {
  const steps: Step[] = [];
  for (let index = 0; index < options.operations; index++) {
    const atNs = (index + 1) * 10;
    const spread = prng.pick([0, 4, 12, 30]);
    const row: MutableRow = {
      f: prng.pick(options.kinds),
      outcome: prng.chance(options.infoShare) ? 'info' : 'ok',
      invokeNs: atNs - prng.below(spread + 1),
      returnNs: atNs + prng.below(spread + 1),
    };
    steps.push({ row, atNs });
  }
  const rows = [...steps].sort((a, b) => a.row.invokeNs - b.row.invokeNs).map((step) => step.row);
  for (const [index, row] of rows.entries()) row.operationId = index + 1;
  const end = runModel(prng, steps, options);
  if (options.readBack) {
    const atNs = (options.operations + 20) * 10;
    rows.push({ f: 'read', outcome: 'ok', source: 'final', invokeNs: atNs, returnNs: atNs + 1, ...end });
  }
  return rows;
}

interface Shown {
  observed: number | null;
  version?: readonly [number, number];
}

function runModel(prng: Prng, steps: readonly Step[], options: RandomHistoryOptions): Shown {
  let value: number | null = null;
  let version: readonly [number, number] | null = null;
  let counter = 0;
  const shown = (): Shown => {
    const seen = options.versions && version !== null && (value !== null || options.absenceVersions) ? { version } : {};
    return { observed: value, ...seen };
  };
  const known: (readonly [number, number])[] = [[1, 0]];
  for (const { row } of steps) {
    const info = row.outcome === 'info';
    if (row.f === 'cas')
      row.expected = value !== null && version !== null && prng.chance(0.7) ? version : prng.pick(known);
    if (info && (row.f === 'read' || prng.chance(0.5))) continue;
    if (row.f === 'read') {
      Object.assign(row, shown());
      continue;
    }
    const holds =
      row.f === 'create'
        ? value === null
        : row.f === 'cas'
          ? value !== null && sameVersion(row.expected, version)
          : true;
    if (!holds) {
      if (info) continue;
      row.outcome = 'fail';
      row.why = 0;
      if (options.versions && version !== null && value !== null) row.version = version;
      continue;
    }
    if (row.f === 'delete' && value === null) {
      if (!info && options.versions && options.absenceVersions && version !== null) row.version = version;
      continue;
    }
    counter += 1 + prng.below(2);
    version = [1, counter];
    known.push(version);
    value = row.f === 'delete' ? null : (row.operationId as number);
    if (!info && options.versions && (row.f !== 'delete' || options.absenceVersions)) row.version = version;
  }
  return shown();
}

const sameVersion = (a: readonly [number, number] | undefined, b: readonly [number, number] | null): boolean =>
  a !== undefined && b !== null && a[0] === b[0] && a[1] === b[1];

/** Changes one thing at random; the result may or may not still be linearizable (ask the oracle). */
export function mutate(prng: Prng, rows: readonly MutableRow[]): MutableRow[] {
  const copy = rows.map((row) => ({ ...row }));
  const row = prng.pick(copy);
  const versions = copy.flatMap((other) => (other.version ? [other.version] : []));
  switch (prng.below(5)) {
    case 0: {
      const reads = copy.filter((other) => other.f === 'read' && other.outcome === 'ok');
      if (reads.length === 0) break;
      const read = prng.pick(reads);
      const from = prng.pick(copy);
      if (prng.chance(0.3)) {
        read.observed = null;
        if (prng.chance(0.5)) delete read.version;
      } else if (from.f !== 'read' && from.f !== 'delete') {
        read.observed = from.operationId as number;
        if (from.version && from.outcome === 'ok') read.version = from.version;
      }
      break;
    }
    case 1:
      if (row.version && versions.length > 0) row.version = prng.pick(versions);
      break;
    case 2: {
      const shift = prng.between(-40, 40);
      row.invokeNs += shift;
      row.returnNs += shift;
      break;
    }
    case 3:
      if (row.f === 'cas' && versions.length > 0) row.expected = prng.pick(versions);
      else if (row.outcome === 'ok' && row.f !== 'read') row.returnNs = row.invokeNs;
      break;
    default:
      if (row.f === 'write') row.f = 'create';
      else if (row.f === 'create' && row.outcome !== 'fail') row.f = 'write';
  }
  const operations = copy.filter((other) => (other.source ?? 'operation') === 'operation');
  // Ids follow the order of invocation, as in a run; what was observed follows the ids.
  const order = [...operations].sort((a, b) => a.invokeNs - b.invokeNs);
  const renamed = new Map(order.map((other, index) => [other.operationId as number, index + 1]));
  for (const other of copy) {
    if (typeof other.observed === 'number') other.observed = renamed.get(other.observed) ?? other.observed;
  }
  for (const other of order) other.operationId = renamed.get(other.operationId as number) as number;
  return [...order, ...copy.filter((other) => !operations.includes(other))];
}
