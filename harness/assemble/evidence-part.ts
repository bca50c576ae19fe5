/**
 * What the run itself must have seen and kept before finding nothing means anything, beside what the verifier asks for: enough
 * writes in all and under each kind of fault, each kind against each role, failovers, every planned event told of, no row lost.
 *
 * Fails closed: whatever is missing becomes a reason, and is named. If a gate were left out, a fault driver that does nothing, or
 * a ledger that loses rows, would make a green run.
 */
import type { Judgement } from '../../ledger/verify/judge.ts';
import { isConfirmed } from '../../chaos/journal.ts';
import type { Schedule } from '../../chaos/schedule.ts';
import { minimumsOf } from '../evidence-minimums.ts';
import type { RowCounts } from '../../ledger/row-counts.ts';
import { settingsFrom } from '../stored-settings.ts';
import type { VerdictReason } from '../verdict.ts';
import type { FaultPart } from './fault-part.ts';
import type { FaultAcks } from './fault-acks.ts';
import type { Meta } from './head-part.ts';

/** Kinds that are over as soon as they are done: nothing can be acknowledged while they are open. */
const withoutWindow = new Set(['scale-out', 'scale-in', 'rolling-restart']);

export interface EvidenceInput {
  readonly meta: Meta;
  readonly part: FaultPart;
  readonly judgement: Judgement;
  readonly acks: FaultAcks;
  readonly rows: RowCounts;
}

/** The history is known to be incomplete: whatever it seems to show, the missing rows may explain. */
export const isIncomplete = (input: Pick<EvidenceInput, 'meta' | 'rows'>): boolean => missingRows(input).length > 0;

/** Reasons why nothing may be claimed; empty when there is evidence enough. */
export function missingFromRun(input: EvidenceInput): VerdictReason[] {
  const { meta } = input;
  if (meta('settings') === undefined)
    return [{ verdict: 'inconclusive', reason: 'The ledger holds no settings of its run.' }];
  return [...rowsMissing(input), ...writesMissing(input), ...faultsMissing(input)];
}

const inconclusive = (reason: string): VerdictReason => ({ verdict: 'inconclusive', reason });

function missingRows({ meta, rows }: Pick<EvidenceInput, 'meta' | 'rows'>): string[] {
  const written = meta('written') as RowCounts | undefined;
  if (written === undefined) return [];
  return (Object.keys(written) as (keyof RowCounts)[])
    .filter((table) => rows[table] < written[table])
    .map((table) => `${written[table] - rows[table]} of ${written[table]} ${wordOf(table)}`);
}

function rowsMissing(input: EvidenceInput): VerdictReason[] {
  const words = missingRows(input);
  if (words.length === 0) return [];
  return [{ verdict: 'harness-fault', reason: `The ledger has lost rows that the run wrote: ${words.join(', ')}.` }];
}

const wordOf = (table: string): string => table.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);

function writesMissing({ meta, part, judgement, acks }: EvidenceInput): VerdictReason[] {
  const least = minimumsOf(settingsFrom(meta('settings'), ''));
  const reasons: VerdictReason[] = [];
  const { acknowledgedWrites } = judgement.counts;
  if (acknowledgedWrites < least.acked)
    reasons.push(
      inconclusive(`${acknowledgedWrites} writes were acknowledged; a certificate of this run needs ${least.acked}.`),
    );
  const { failovers } = judgement.strength;
  if (failovers < least.failovers)
    reasons.push(
      inconclusive(
        `Judged writes went through ${failovers} failovers; a certificate of this run needs ${least.failovers}.`,
      ),
    );
  const confirmed = new Set(part.faults.filter((each) => each.outcome === 'confirmed').map((each) => each.kind));
  for (const kind of [...confirmed].toSorted()) {
    const count = acks.of(kind);
    if (count < least.ackedPerFaultKind && !withoutWindow.has(kind))
      reasons.push(
        inconclusive(
          `${count} writes were acknowledged under faults of kind ${kind}; a certificate of this run needs ${least.ackedPerFaultKind}.`,
        ),
      );
  }
  return reasons;
}

function faultsMissing({ meta, part }: EvidenceInput): VerdictReason[] {
  const reasons: VerdictReason[] = [];
  const schedule = meta('schedule') as Schedule | undefined;
  const told = new Set(part.stories.map((story) => story.faultId));
  const silent = (schedule?.events ?? []).filter((event) => !told.has(event.id)).map((event) => event.id);
  if (silent.length > 0)
    reasons.push(
      inconclusive(
        `${silent.length} of ${schedule?.events.length} planned faults are not in the journal, such as ${silent.slice(0, 3).join(', ')}.`,
      ),
    );
  const least = minimumsOf(settingsFrom(meta('settings'), ''));
  for (const [cell, { planned, confirmed }] of cellsOf(part))
    if (planned >= least.plannedPerRole && confirmed === 0)
      reasons.push(inconclusive(`The fault ${cell} was planned ${planned} times and never confirmed.`));
  return reasons;
}

/** Planned and confirmed per kind and role, as planned: a fault that became another one did not hit its role as this kind. */
function cellsOf(part: FaultPart): ReadonlyMap<string, { planned: number; confirmed: number }> {
  const cells = new Map<string, { planned: number; confirmed: number }>();
  const at = (cell: string): { planned: number; confirmed: number } => {
    const known = cells.get(cell) ?? { planned: 0, confirmed: 0 };
    cells.set(cell, known);
    return known;
  };
  for (const { planned, fault, role, life } of part.stories) {
    // What the harness's death took the turn of stands again under another name.
    if (life.kind === 'skipped' && life.reason.startsWith('the harness died')) continue;
    at(`${planned} against ${role}`).planned++;
    if (isConfirmed(life)) at(`${fault} against ${role}`).confirmed++;
  }
  return cells;
}
