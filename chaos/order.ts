/**
 * Planned order against what came of it, from a journal alone: which events came when, and what triggers, live targets and the
 * budget made of them. Two clusters that play one file plan the same; what differs is listed, never guessed.
 *
 * Invariant: a plan is what the journal says was planned, in the order of its writing; executed is what was announced. If order
 * were taken from the file, a driver that shuffled its events would look right.
 */
import { faultName, targetText } from './faults.ts';
import type { FaultRecord } from './journal.ts';

/** One planned event and what became of it. */
export interface OrderedEvent {
  readonly faultId: string;
  /** From 1, in the order planned. */
  readonly planned: number;
  readonly due: string;
  readonly fault: string;
  readonly target: string;
  /** From 1, in the order announced; null when it never came. */
  readonly executed: number | null;
  /** Milliseconds after the first planning. */
  readonly executedMs: number | null;
  readonly nodeIds: readonly string[];
  /** What was not as planned, each with who changed it. */
  readonly changes: readonly string[];
}

/** Folds the records of one run, in the order of their writing. */
export function orderOf(records: readonly FaultRecord[]): readonly OrderedEvent[] {
  const events = new Map<string, OrderedEvent>();
  const startMs = records[0]?.atMs ?? 0;
  let executed = 0;
  for (const record of records) {
    if (record.step === 'planned') {
      events.set(record.faultId, {
        faultId: record.faultId,
        planned: events.size + 1,
        due: record.due,
        fault: faultName(record.fault),
        target: targetText(record.target),
        executed: null,
        executedMs: null,
        nodeIds: [],
        changes: [],
      });
      continue;
    }
    const before = events.get(record.faultId);
    if (before === undefined) continue;
    const change = changeOf(record);
    const changes = change === null ? before.changes : [...before.changes, change];
    if (record.step === 'injecting') {
      const executedMs = record.atMs - startMs;
      events.set(record.faultId, { ...before, changes, executed: ++executed, executedMs, nodeIds: record.nodeIds });
    } else events.set(record.faultId, { ...before, changes });
  }
  return [...events.values()];
}

function changeOf(record: FaultRecord): string | null {
  switch (record.step) {
    case 'changed':
      return `changed: ${record.from} → ${record.to} (${record.why})`;
    case 'skipped':
      return `skipped: ${record.reason}`;
    case 'overshoot':
      return record.why;
    default:
      return null;
  }
}

/** One line per event of the plan, without anything that a cluster could change: equal for equal files. */
export const planLines = (events: readonly OrderedEvent[]): readonly string[] =>
  events.map(({ faultId, due, fault, target }) => `${faultId}: ${due}, ${fault} ${target}`);

/** Events that were announced in another order than planned, by their ids; those that wait for something have no place in the plan. */
export function overtaken(events: readonly OrderedEvent[]): readonly string[] {
  const timed = events.filter(({ due, executed }) => due.startsWith('at ') && executed !== null);
  const late = timed.filter(({ due, executed }, index) =>
    timed.some(
      (other, otherIndex) =>
        otherIndex !== index && dueMs(other.due) > dueMs(due) && (other.executed as number) < (executed as number),
    ),
  );
  return late.map(({ faultId }) => faultId);
}

/** `at 12.5 s` → 12500. */
const dueMs = (due: string): number => Number(due.slice(3).replace(' s', '')) * 1_000;

/** What two runs of one file did differently, one sentence each; empty when both did the same in the same order. */
export function orderDifferences(
  one: { readonly name: string; readonly events: readonly OrderedEvent[] },
  other: { readonly name: string; readonly events: readonly OrderedEvent[] },
): readonly string[] {
  const differences: string[] = [];
  const [plan, otherPlan] = [planLines(one.events), planLines(other.events)];
  for (let index = 0; index < Math.max(plan.length, otherPlan.length); index++) {
    if (plan[index] === otherPlan[index]) continue;
    differences.push(
      `plan ${index + 1}: ${one.name} "${plan[index] ?? 'nothing'}", ${other.name} "${otherPlan[index] ?? 'nothing'}"`,
    );
  }
  const byId = new Map(other.events.map((event) => [event.faultId, event]));
  for (const event of one.events) {
    const twin = byId.get(event.faultId);
    if (twin === undefined) continue;
    const [did, twinDid] = [deedOf(event), deedOf(twin)];
    if (did !== twinDid) differences.push(`${event.faultId}: ${one.name} ${did}; ${other.name} ${twinDid}`);
  }
  return differences;
}

/** Place, nodes, and what was changed. */
function deedOf({ executed, nodeIds, changes }: OrderedEvent): string {
  const place = executed === null ? 'never' : `${ordinal(executed)} on ${nodeIds.join(', ') || 'the cluster'}`;
  return changes.length === 0 ? place : `${place} [${changes.join('; ')}]`;
}

const ordinal = (place: number): string => `came as number ${place}`;
