/** `certify export`: a run's history in the words of other tools. */
import { createWriteStream } from 'node:fs';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { openLedgerReader } from '../../ledger/reader.ts';
import { workloadKinds } from '../../workloads/catalogue.ts';
import { UsageError } from '../errors.ts';
import { historyEvents } from '../export/history-events.ts';
import { JepsenEdnWriter } from '../export/jepsen-edn.ts';
import { jsonLines } from '../export/jsonl.ts';
import { openRunFolder } from '../results.ts';
import type { ExportWish } from './export-wish.ts';

/** Writes the history; returns 0. */
export async function exportCommand(wish: ExportWish): Promise<number> {
  const folder = openRunFolder(wish.resultsDir, wish.run);
  const wanted = wantedKeys(wish);
  using reader = openLedgerReader(folder.path);
  const lines = linesOf();
  const target = wish.out === null ? process.stdout : createWriteStream(wish.out);
  try {
    await pipeline(Readable.from(chunked(lines)), target, { end: wish.out !== null });
  } catch (error) {
    // Whoever reads the output may have seen enough of it.
    if ((error as NodeJS.ErrnoException).code === 'EPIPE') return 0;
    if ((error as NodeJS.ErrnoException).code === undefined || wish.out === null) throw error;
    throw new UsageError(`${wish.out} cannot be written (${(error as Error).message}); choose another file.`);
  }
  return 0;

  function* linesOf(): Generator<string, void, undefined> {
    if (wish.format === 'jsonl') return yield* jsonLines(reader, wanted);
    const writer = new JepsenEdnWriter({ bare: wish.key !== null });
    for (const event of historyEvents(reader, wanted)) yield writer.line(event);
  }
}

function wantedKeys({ key, workload }: ExportWish): (key: string) => boolean {
  if (key !== null) return (each) => each === key;
  if (workload === null) return () => true;
  const kind = workloadKinds.find((each) => each.name === workload);
  if (kind === undefined) {
    const names = workloadKinds.map((each) => each.name).join(', ');
    throw new UsageError(`There is no workload "${workload}"; the workloads are ${names}.`);
  }
  return (each) => each.startsWith(kind.prefix);
}

/** Lines per write. */
const linesPerChunk = 500;

function* chunked(lines: Iterable<string>): Generator<string, void, undefined> {
  let chunk: string[] = [];
  for (const line of lines) {
    chunk.push(line);
    if (chunk.length < linesPerChunk) continue;
    yield `${chunk.join('\n')}\n`;
    chunk = [];
  }
  if (chunk.length > 0) yield `${chunk.join('\n')}\n`;
}
