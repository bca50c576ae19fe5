/**
 * What a run whose harness died left in its ledger, as far as the run needs it to go on: how much of its load is still to come,
 * which faults were open and which had not had their turn, which keys live in the store, what stood against a certificate.
 *
 * Invariant: nothing is taken from memory that was not committed. If an open fault were forgotten here, it would stay in the
 * cluster and the rest of the run would be judged under a fault that no report shows.
 */
import { type FaultLife, type FaultRecord, isOpen } from '../../chaos/journal.ts';
import { type Schedule, type ScheduleEvent, scheduleVersion } from '../../chaos/schedule.ts';
import { storiesOf } from '../../chaos/summary.ts';
import type { FaultRow, GapRow } from '../../ledger/rows.ts';
import type { VerdictReason } from '../verdict.ts';
import { canaryPrefix } from './canary.ts';
import type { RowCounts } from '../../ledger/row-counts.ts';

/** What of a ledger is read; a reader of the file, or a test's own. */
export interface ResumableLedger {
  meta(key: string): unknown;
  faults(): Iterable<FaultRow>;
  gaps(): Iterable<GapRow>;
  rowCounts(): RowCounts;
}

/** A run that goes on. */
export interface Resumption {
  /** How many times it has been taken up, this one included. */
  readonly count: number;
  /** When its load began, ns since the start of the run; null when it had not. */
  readonly loadFromNs: number | null;
  /** The load and the heal were over: only the end of the run is left. */
  readonly isLoadOver: boolean;
  /** Load that is still to come, ms. */
  readonly remainingMs: number;
  /** Faults that have not had their turn, under new names and times; null: no schedule was drawn yet. */
  readonly schedule: Schedule | null;
  /** The nodes that stand there run under movable clocks; one of them may be off. */
  readonly movableClocks: boolean;
  /** The same faults under their old names. */
  readonly unplayed: readonly { readonly faultId: string; readonly becomes: string | null }[];
  /** Everything the journal holds, in order. */
  readonly records: readonly FaultRecord[];
  /** Faults that the cluster may still be under, or whose heal nobody has verified. */
  readonly unhealed: readonly { readonly faultId: string; readonly open: boolean }[];
  /** Keys that live in the store, canaries left out. */
  readonly keys: readonly string[];
  readonly reasons: readonly VerdictReason[];
  /** Rows that the ledger held when the run was taken up. */
  readonly rows: RowCounts;
}

/** Under this name a run says, before its cluster starts, whether its nodes' clocks may be moved. */
export const movableClocksMeta = 'movableClocks';

/** Load below which another turn is not worth it, ms. */
const leastLoadMs = 1_000;

export interface ResumptionOptions {
  readonly ledger: ResumableLedger;
  readonly durationMs: number;
  /** Last instant that the ledger holds, ns. */
  readonly lastNs: number;
  /** Names of every key that was not released. */
  readonly keys: readonly string[];
}

export function readResumption(options: ResumptionOptions): Resumption {
  const { ledger, durationMs, lastNs } = options;
  const records = [...ledger.faults()].map((row): FaultRecord => ({
    ...(row.evidence as FaultRecord),
    atMs: row.atNs / 1e6,
  }));
  const lives = new Map(storiesOf(records).map((story) => [story.faultId, story.life]));
  const started = ledger.meta('started:load');
  const loadFromNs = typeof started === 'number' ? started : null;
  const spentMs = loadFromNs === null ? 0 : loadSpentMs(loadFromNs, lastNs, ledger.gaps());
  const remainingMs = Math.max(0, durationMs - spentMs);
  const isLoadOver = ledger.meta('phase:load') !== undefined || (loadFromNs !== null && remainingMs < leastLoadMs);
  const count = Number(ledger.meta('resumed') ?? 0) + 1;
  const planned = ledger.meta('schedule') as Schedule | undefined;
  const left = isLoadOver ? [] : restOf(planned?.events ?? [], lives, count, spentMs);
  const becomes = new Map(left.map(({ from, event }) => [from, event.id]));
  return {
    count,
    loadFromNs,
    isLoadOver,
    remainingMs,
    schedule:
      planned === undefined
        ? null
        : {
            ...planned,
            version: scheduleVersion,
            durationMs: remainingMs,
            healFromMs: Math.max(0, planned.healFromMs - spentMs),
            events: left.map(({ event }) => event),
          },
    movableClocks: ledger.meta(movableClocksMeta) === true,
    unplayed: [...lives]
      .filter(([, life]) => life.kind === 'planned')
      .map(([faultId]) => ({ faultId, becomes: becomes.get(faultId) ?? null })),
    records,
    unhealed: [...lives]
      .filter(([, life]) => isOpen(life) || life.kind === 'healed')
      .map(([faultId, life]) => ({ faultId, open: isOpen(life) })),
    keys: options.keys.filter((key) => !key.startsWith(canaryPrefix)),
    rows: ledger.rowCounts(),
    reasons: (ledger.meta('reasons') ?? []) as readonly VerdictReason[],
  };
}

/** Time under load until `lastNs`, earlier gaps left out, ms. */
function loadSpentMs(loadFromNs: number, lastNs: number, gaps: Iterable<GapRow>): number {
  let spentNs = Math.max(0, lastNs - loadFromNs);
  for (const gap of gaps) spentNs -= Math.max(0, Math.min(gap.toNs, lastNs) - Math.max(gap.fromNs, loadFromNs));
  return Math.max(0, spentNs) / 1e6;
}

interface Renamed {
  readonly from: string;
  readonly event: ScheduleEvent;
}

/** Events that have not had their turn, with new names, as many ms earlier as have passed. */
function restOf(
  events: readonly ScheduleEvent[],
  lives: ReadonlyMap<string, FaultLife>,
  count: number,
  spentMs: number,
): Renamed[] {
  const waits = (faultId: string): boolean => (lives.get(faultId)?.kind ?? 'planned') === 'planned';
  const nameOf = (faultId: string): string => `${faultId}r${count}`;
  return events
    .filter((event) => waits(event.id))
    .map((event) => ({ from: event.id, event: { ...event, id: nameOf(event.id), moment: momentOf(event) } }));

  function momentOf({ moment }: ScheduleEvent): ScheduleEvent['moment'] {
    switch (moment.kind) {
      case 'at':
        return { kind: 'at', atMs: Math.max(0, moment.atMs - spentMs) };
      case 'after-fault':
        // What it waited for has happened, or the harness died in the middle of it.
        return waits(moment.faultId)
          ? { ...moment, faultId: nameOf(moment.faultId) }
          : { kind: 'at', atMs: moment.delayMs };
      case 'after-event':
        return moment;
    }
  }
}
