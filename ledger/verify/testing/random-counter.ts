/** Random histories of a counter, linearizable by construction, and the same with one addition lost or doubled. */
import type { Prng } from '../../../lib/prng.ts';
import type { HistoryRow } from '../history.ts';

export type CounterFault = 'none' | 'lost' | 'doubled';

export interface CounterOptions {
  readonly versions: boolean;
  readonly negative: boolean;
  readonly infoShare: number;
  readonly fault: CounterFault;
}

/** The fault hits one acknowledged addition; the read-back at the end must then show it, unless unknown ones can hide it. */
export function randomCounter(prng: Prng, options: CounterOptions): HistoryRow[] {
  const count = prng.between(2, 20);
  const steps = Array.from({ length: count }, (_, index) => {
    const atNs = (index + 1) * 10;
    const spread = prng.pick([0, 5, 25]);
    const f = prng.chance(0.6) ? ('add' as const) : ('read' as const);
    const argument = prng.between(1, 9) * (options.negative && prng.chance(0.5) ? -1 : 1);
    return {
      f,
      argument,
      info: prng.chance(options.infoShare),
      invokeNs: atNs - prng.below(spread + 1),
      returnNs: atNs + prng.below(spread + 1),
    };
  });
  const acknowledged = steps.flatMap((step, index) => (step.f === 'add' && !step.info ? [index] : []));
  const hit = options.fault === 'none' || acknowledged.length === 0 ? -1 : prng.pick(acknowledged);
  let sum = 0;
  let minor = 0;
  const version = (): { version?: readonly [number, number] } =>
    options.versions && minor > 0 ? { version: [1, minor] } : {};
  const rows = steps.map((step, index): HistoryRow => {
    const base = { f: step.f, invokeNs: step.invokeNs, returnNs: step.returnNs };
    if (step.f === 'read')
      return step.info
        ? { ...base, outcome: 'info' }
        : { ...base, outcome: 'ok', ...(minor === 0 ? { observed: null } : { number: sum }), ...version() };
    if (step.info) {
      if (prng.chance(0.5)) {
        sum += step.argument;
        minor++;
      }
      return { ...base, outcome: 'info', argument: step.argument };
    }
    minor++;
    sum += step.argument;
    const row: HistoryRow = { ...base, outcome: 'ok', argument: step.argument, number: sum, ...version() };
    // The store answers as if all were well, and then has less, or more.
    if (index === hit) sum += options.fault === 'lost' ? -step.argument : step.argument;
    return row;
  });
  const ordered = rows
    .sort((a, b) => a.invokeNs - b.invokeNs)
    .map((row, index) => ({ ...row, operationId: index + 1 }));
  const endNs = (count + 10) * 10;
  return [
    ...ordered,
    {
      f: 'read',
      outcome: 'ok',
      source: 'final',
      invokeNs: endNs,
      returnNs: endNs + 1,
      ...(minor === 0 ? { observed: null } : { number: sum }),
      ...version(),
    },
  ];
}
