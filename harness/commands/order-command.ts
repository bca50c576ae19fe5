/**
 * `certify order`: the faults of one or more runs, in the order planned and in the order they came, with what triggers and the
 * budget changed; of several runs that played one file, whether they planned the same, and what each did differently.
 */
import { type FaultRecord } from '../../chaos/journal.ts';
import { orderDifferences, type OrderedEvent, orderOf, overtaken, planLines } from '../../chaos/order.ts';
import { openLedgerReader } from '../../ledger/reader.ts';
import { plainTable } from '../report/list-runs.ts';
import { openRunFolder } from '../results.ts';

interface Named {
  readonly name: string;
  readonly events: readonly OrderedEvent[];
}

/** Prints the tables. Exit 0, or 1 when the runs did not plan the same. */
export function orderCommand(resultsDir: string, runs: readonly string[]): number {
  const all = runs.map((run) => readOrder(resultsDir, run));
  for (const each of all) process.stdout.write(`${tableOf(each)}\n\n`);
  const [first, ...others] = all;
  if (first === undefined) return 0;
  let isSame = true;
  for (const other of others) {
    const isPlanned = planLines(first.events).join('\n') === planLines(other.events).join('\n');
    isSame &&= isPlanned;
    const verdict = isPlanned ? 'planned the same events in the same order' : 'did NOT plan the same';
    process.stdout.write(`${first.name} and ${other.name} ${verdict}.\n`);
    for (const line of orderDifferences(first, other)) process.stdout.write(`  ${line}\n`);
  }
  return isSame ? 0 : 1;
}

function readOrder(resultsDir: string, run: string): Named {
  const folder = openRunFolder(resultsDir, run);
  using reader = openLedgerReader(folder.path);
  const cluster = (reader.meta('settings') as { readonly cluster?: string } | undefined)?.cluster ?? 'unknown';
  const records = [...reader.faults()].map((row): FaultRecord => ({
    ...(row.evidence as FaultRecord),
    atMs: row.atNs / 1e6,
  }));
  return { name: `${cluster} ${folder.runId}`, events: orderOf(records) };
}

function tableOf({ name, events }: Named): string {
  const rows = events.map((event) => [
    String(event.planned),
    event.faultId,
    event.due,
    `${event.fault} ${event.target}`,
    event.executed === null ? '–' : String(event.executed),
    event.executedMs === null ? '–' : `${(event.executedMs / 1_000).toFixed(1)} s`,
    event.nodeIds.join(', '),
    event.changes.join('; '),
  ]);
  const late = overtaken(events);
  const table = plainTable(
    ['planned', 'event', 'due', 'fault', 'came', 'after', 'on', 'what triggers and the budget changed'],
    rows,
  );
  return `${name}\n${table}${late.length === 0 ? '' : `\nOvertaken by later ones: ${late.join(', ')}`}`;
}
