/**
 * Canaries: known losses that a judgement must report, exactly those, and that no count includes (DESIGN §10).
 *
 * Real ones are ledgered keys that an unledgered client deleted; the run's settings name them. Forged ones are copies of
 * judged keys with one thing changed; the original stays as it was. If a checker went blind, a green run would say so here.
 */
import type { FindingKind } from './finding.ts';
import { historyOf, type HistoryRow, kindCode, type KeyHistory, outcomeCode, sourceCode } from './history.ts';
import { operationCodes, outcomeCodes } from '../rows.ts';
import { KeyJudge, type KeyJudgeOptions } from './key-judge.ts';
import { type RunContext, wholeStore } from './run-context.ts';
import type { HistorySource } from './source.ts';
import type { Tally } from './tally.ts';

/** Forged copies of each kind per part; more prove nothing more. */
const forgedPerKind = 8;
/** Longer histories are not copied. */
const maxRowsCopied = 400;

export const forgedKinds = [
  'lost',
  'stale',
  'resurrected',
  'phantom',
  'duplicated',
  'diverged',
  'corrupt',
] as const satisfies readonly FindingKind[];
export type ForgedKind = (typeof forgedKinds)[number];

/** What the settings of a run say of its real canaries, stored as meta `canary`. */
export interface PlantedCanary {
  readonly key: string;
  readonly kind: FindingKind;
}

export interface CanaryCheck {
  readonly name: string;
  readonly kind: FindingKind;
  readonly planted: number;
  readonly reported: number;
  readonly where: 'shadow history' | 'read-back' | 'autopsy';
}

export interface CanaryResult {
  /** `missed` also when something was reported that was not planted. */
  readonly outcome: 'caught' | 'missed' | 'not-run';
  readonly checks: readonly CanaryCheck[];
}

export type ShadowCounts = Map<ForgedKind, { planted: number; reported: number }>;

/** Forges losses in copies of clean histories and counts how many the same checkers report. */
export class ShadowCanary {
  private readonly judge: KeyJudge;
  private readonly counts: ShadowCounts = new Map();

  constructor(options: KeyJudgeOptions) {
    this.judge = new KeyJudge(options);
  }

  /** Takes a clean history, valid only during the call. */
  offer(history: KeyHistory): void {
    if (history.size > maxRowsCopied) return;
    const wanted = forgedKinds.filter((kind) => (this.counts.get(kind)?.planted ?? 0) < forgedPerKind);
    const original = wanted.length === 0 ? null : originalOf(history);
    if (original === null) return;
    for (const kind of wanted) {
      const count = this.counts.get(kind) ?? { planted: 0, reported: 0 };
      const forged = forgeIn(original, kind);
      if (forged === null) continue;
      this.judge.judge(forged);
      count.planted++;
      if (this.judge.findings.some((finding) => finding.kind === kind)) count.reported++;
      this.counts.set(kind, count);
    }
  }

  result(): ShadowCounts {
    return this.counts;
  }
}

export function checkCanaries(
  source: HistorySource,
  context: RunContext,
  tally: Tally,
  shadow: ShadowCounts,
): CanaryResult {
  const checks: CanaryCheck[] = [];
  for (const [kind, { planted, reported }] of shadow)
    checks.push({ name: `forged ${kind}`, kind, planted, reported, where: 'shadow history' });
  const planted = (source.meta('canary') ?? []) as readonly PlantedCanary[];
  let strays = 0;
  if (planted.length > 0) {
    const wanted = new Map(planted.map((canary) => [canary.key, canary.kind]));
    const found = new Set<string>();
    let missingOnReplicas = 0;
    for (const finding of tally.canaryFindings) {
      if (finding.key === null || wanted.get(finding.key) !== finding.kind) strays++;
      else if (!found.has(finding.key)) {
        found.add(finding.key);
        // Where every copy is gone by the store's own word there is no replica to ask.
        const isWholeGone = context.isLostAtEnd(finding.partition ?? wholeStore);
        if (
          isWholeGone ||
          (finding.replicas.length > 0 &&
            finding.replicas.every((replica) => replica.answer !== 'has-it' && replica.answer !== 'no-answer'))
        )
          missingOnReplicas++;
      }
    }
    checks.push({
      name: 'keys deleted behind the ledger',
      kind: 'lost',
      planted: planted.length,
      reported: found.size,
      where: 'read-back',
    });
    if (tally.replicasAsked > 0)
      checks.push({
        name: 'keys deleted behind the ledger',
        kind: 'lost',
        planted: planted.length,
        reported: missingOnReplicas,
        where: 'autopsy',
      });
  } else strays = tally.canaryFindings.length;
  if (checks.length === 0) return { outcome: 'not-run', checks };
  return {
    outcome: strays === 0 && checks.every((check) => check.reported === check.planted) ? 'caught' : 'missed',
    checks,
  };
}

/** A copy with one planted fault of `kind`, or null when the history has nothing to plant it in. */
export function forge(history: KeyHistory, kind: ForgedKind): KeyHistory | null {
  const original = originalOf(history);
  return original === null ? null : forgeIn(original, kind);
}

/** What is forged: a clean history as rows, and where in them something can be planted. */
interface Original {
  readonly history: KeyHistory;
  readonly operations: readonly HistoryRow[];
  readonly finals: readonly HistoryRow[];
  /** The last read-back that answered. */
  readonly last: HistoryRow;
  /** What wrote the value that was read back last. */
  readonly writer: HistoryRow | undefined;
  readonly seesWrite: boolean;
  /** Nothing explains it if the last value were gone. */
  readonly solid: boolean;
  readonly endNs: number;
  readonly nextId: number;
}

function originalOf(history: KeyHistory): Original | null {
  const rows = rowsOf(history);
  const last = rows.findLast((row) => row.source === 'final' && row.outcome === 'ok');
  const ownWrites = rows.filter(
    (row) => (row.f === 'write' || row.f === 'create') && row.outcome === 'ok' && row.argument === undefined,
  );
  const [write] = ownWrites;
  const counts = rows.some((row) => row.f === 'add');
  if (last === undefined || write === undefined || counts) return null;
  const endNs = Math.max(...rows.map((row) => (row.outcome === 'info' ? row.invokeNs : row.returnNs))) + 10;
  const clean =
    rows.every((row) => row.outcome !== 'info' || row.f === 'read') && rows.every((row) => row.argument === undefined);
  const operations = rows.filter((row) => row.source === 'operation');
  const finals = rows.filter((row) => row.source !== 'operation');
  const seesWrite = typeof last.observed === 'number' && last.observed >= 0;
  const writer = operations.find((row) => row.operationId === last.observed);
  // A delete that may have come after the write would explain the absence that is about to be forged.
  const solid =
    clean &&
    seesWrite &&
    writer !== undefined &&
    operations.every((row) => row.f !== 'delete' || row.returnNs < writer.invokeNs);
  const nextId = Math.max(...operations.map((row) => row.operationId as number)) + 1;
  return { history, operations, finals, last, writer, seesWrite, solid, endNs, nextId };
}

function forgeIn(original: Original, kind: ForgedKind): KeyHistory | null {
  const { history, operations, finals, last, writer, seesWrite, solid, endNs, nextId } = original;
  switch (kind) {
    case 'lost':
      if (!solid) return null;
      return copyOf(history, [...operations, { ...withoutVersion(last), observed: null }]);
    case 'corrupt':
      return copyOf(history, [...operations, { ...last, observed: -2 }]);
    case 'phantom':
      return copyOf(history, [...operations, { ...withoutVersion(last), observed: nextId + 1_000 }]);
    case 'stale': {
      if (!solid) return null;
      const read: HistoryRow = {
        f: 'read',
        outcome: 'ok',
        source: 'operation',
        operationId: nextId,
        invokeNs: endNs,
        returnNs: endNs + 1,
        observed: null,
      };
      return copyOf(history, [...operations, read, ...finals.map((row) => later(row, 20 + endNs - last.invokeNs))]);
    }
    case 'resurrected': {
      // Only an acknowledged write was surely in before the delete that is forged here.
      if (writer?.outcome !== 'ok' || !seesWrite) return null;
      const erase: HistoryRow = {
        f: 'delete',
        outcome: 'ok',
        source: 'operation',
        operationId: nextId,
        invokeNs: endNs,
        returnNs: endNs + 1,
      };
      return copyOf(history, [...operations, erase, ...finals.map((row) => later(row, 20 + endNs - last.invokeNs))]);
    }
    case 'duplicated': {
      if (
        writer?.version === undefined ||
        writer.outcome !== 'ok' ||
        last.version === undefined ||
        last.version === null
      )
        return null;
      const [major, minor] = last.version;
      return copyOf(history, [...operations, { ...last, version: [major, minor + 1] }]);
    }
    case 'diverged': {
      if (!solid) return null;
      return copyOf(history, [
        ...operations,
        last,
        { f: 'read', outcome: 'ok', source: 'replica', invokeNs: endNs, returnNs: endNs, observed: null },
      ]);
    }
  }
}

const later = (row: HistoryRow, byNs: number): HistoryRow => ({
  ...row,
  invokeNs: row.invokeNs + byNs,
  returnNs: row.returnNs + byNs,
});

function withoutVersion(row: HistoryRow): HistoryRow {
  // Nor the digest of a list: it would tell that a value was there after all.
  const { version: _version, number: _number, ...rest } = row;
  return rest;
}

function copyOf(history: KeyHistory, rows: readonly HistoryRow[]): KeyHistory {
  return historyOf(rows, history.name, history.keyId);
}

/** The history as rows again, without its replicas (a forged read-back would contradict them all). */
export function rowsOf(history: KeyHistory): HistoryRow[] {
  const rows: HistoryRow[] = [];
  for (let i = 0; i < history.size; i++) {
    if (history.source[i] === sourceCode.replica) continue;
    const number = (value: number | undefined): number | undefined => (value === value ? value : undefined);
    const major = number(history.major[i]);
    const expectedMajor = number(history.expectedMajor[i]);
    const numbers = { number: number(history.number[i]), argument: number(history.argument[i]) };
    const observed = history.observed[i] as number;
    rows.push({
      f: operationCodes[history.f[i] as number] as HistoryRow['f'],
      outcome: outcomeCodes[history.outcome[i] as number] as HistoryRow['outcome'],
      source:
        history.source[i] === sourceCode.operation
          ? 'operation'
          : history.source[i] === sourceCode.final
            ? 'final'
            : 'retire',
      operationId: history.operationId[i] as number,
      invokeNs: history.invokeNs[i] as number,
      returnNs: history.returnNs[i] as number,
      why: history.why[i] as number,
      ...(major === undefined ? {} : { version: [major, history.minor[i] as number] as const }),
      ...(expectedMajor === undefined
        ? {}
        : { expected: [expectedMajor, history.expectedMinor[i] as number] as const }),
      ...(history.f[i] === kindCode.read && history.outcome[i] === outcomeCode.ok
        ? { observed: observed === observed ? observed : null }
        : {}),
      ...(numbers.number === undefined ? {} : { number: numbers.number }),
      ...(numbers.argument === undefined ? {} : { argument: numbers.argument }),
    });
  }
  return rows;
}
