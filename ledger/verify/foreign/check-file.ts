/**
 * Judges one history file: `checkFile`. Owns which format goes with which model, the initial value, and the budget.
 *
 * The worst outcome is `valid` for a file that was not understood: whatever a reader cannot place is a {@link UserError}.
 */

import { closeSync, fstatSync, openSync, readFileSync, readSync } from 'node:fs';
import type { SearchBudget } from '../search/budget.ts';
import { groupsOf, judgeKeys } from '../search/judge-keys.ts';
import { casKind, failedStatus, readKind, unknownStatus } from '../search/register-history.ts';
import { judgeCasRegister, toJudgement } from './cas-register.ts';
import type { ByteSource, ChistHistory } from './chist.ts';
import { chistBytesPerKey, chistBytesPerOperation, readChist, readChistHeader } from './chist.ts';
import { judgeCounter } from './counter.ts';
import { EdnReader } from './edn.ts';
import { readEtcdLog } from './etcd-log.ts';
import type { ForeignEvidence, Judgement, OperationPlace } from './evidence.ts';
import type { ForeignHistory, ForeignOperation } from './history.ts';
import { readJepsenEdn, readJepsenJson } from './jepsen.ts';
import { judgeKv } from './kv.ts';
import { readKvLog } from './kv-log.ts';
import { judgeMutex } from './mutex.ts';
import { judgeSet, judgeSetFull } from './sets.ts';
import { UserError } from './user-error.ts';
import type { Value } from './value.ts';

/** Formats of `--format`. */
export const foreignFormats = ['etcd-log', 'kv-log', 'jepsen-edn', 'jepsen-json', 'chist'] as const;
export type ForeignFormat = (typeof foreignFormats)[number];

/** Models of `--model`. */
export const foreignModels = ['cas-register', 'mutex', 'kv', 'counter', 'set', 'set-full'] as const;
export type ForeignModel = (typeof foreignModels)[number];

const jepsenModels: readonly ForeignModel[] = ['cas-register', 'mutex', 'counter', 'set', 'set-full'];

/** The models that each format can hold. */
export const modelsOfFormat: Readonly<Record<ForeignFormat, readonly ForeignModel[]>> = {
  'etcd-log': ['cas-register'],
  'kv-log': ['kv'],
  'jepsen-edn': jepsenModels,
  'jepsen-json': jepsenModels,
  chist: ['cas-register'],
};

/** Milliseconds for one file when none are given. */
export const defaultBudgetMs = 120_000;

/** MiB for one file when none are given. */
export const defaultMemoryMiB = 1024;

export interface CheckFileOptions {
  readonly path: string;
  readonly format: ForeignFormat;
  readonly model: ForeignModel;
  /** cas-register: the value at the start, as EDN text (`0`, `nil`, `"a"`). Default nil. */
  readonly initial?: string;
  /** After it the verdict is `unknown`. */
  readonly budgetMs?: number;
  /** Bound on the memory of the search and of bulk columns. */
  readonly memoryMiB?: number;
  /** Monotonic milliseconds; default `performance.now`. */
  readonly nowMs?: () => number;
}

/** Everything that `check` prints. */
export interface CheckFileResult {
  readonly verdict: 'valid' | 'invalid' | 'unknown';
  readonly model: ForeignModel;
  readonly format: ForeignFormat;
  /** Operations in the file. */
  readonly operations: number;
  readonly keys: number;
  readonly elapsedMs: number;
  /** Why it is invalid; null otherwise. */
  readonly evidence: ForeignEvidence | null;
  /** Why it is unknown; null otherwise. */
  readonly reason: string | null;
  /** Counts on how it was decided. */
  readonly notes: Readonly<Record<string, number>>;
}

/**
 * Reads and judges a file. Rejects with {@link UserError} (exit code 64) when the file or an option cannot be used; any other
 * rejection is a fault of ours.
 */
export async function checkFile(options: CheckFileOptions): Promise<CheckFileResult> {
  const { format, model } = options;
  const nowMs = options.nowMs ?? (() => performance.now());
  const startedMs = nowMs();
  if (!modelsOfFormat[format].includes(model)) {
    throw new UserError(`format ${format} holds ${modelsOfFormat[format].join(', ')}, not model ${model}`);
  }
  const memoryBytes = (options.memoryMiB ?? defaultMemoryMiB) * 1024 * 1024;
  const budget: SearchBudget = {
    nowMs,
    deadlineMs: startedMs + (options.budgetMs ?? defaultBudgetMs),
    // Tables double: old and new stand side by side for a moment.
    memoBytes: memoryBytes / 3,
  };
  const initial = parseInitial(options.initial, model);
  const { judgement, operations } =
    format === 'chist'
      ? judgeChistFile(options.path, initial, budget, memoryBytes)
      : judgeTextFile(options.path, format, model, initial, budget);
  return {
    verdict: judgement.verdict,
    model,
    format,
    operations,
    keys: judgement.keys,
    elapsedMs: Math.round((nowMs() - startedMs) * 1000) / 1000,
    evidence: judgement.verdict === 'invalid' ? judgement.evidence : null,
    reason: judgement.verdict === 'unknown' ? judgement.reason : null,
    notes: judgement.verdict === 'valid' ? judgement.notes : {},
  };
}

interface Judged {
  readonly judgement: Judgement;
  readonly operations: number;
}

function parseInitial(text: string | undefined, model: ForeignModel): Value {
  if (text === undefined) return null;
  if (model !== 'cas-register') throw new UserError(`--initial goes with model cas-register, not with ${model}`);
  try {
    const reader = new EdnReader(text);
    const form = reader.next();
    if (form !== undefined && reader.isAtEnd()) return form.value;
  } catch (error) {
    if (!(error instanceof UserError)) throw error;
  }
  throw new UserError(`--initial ${JSON.stringify(text)} is not one value, such as nil, 0 or "a"`);
}

function judgeTextFile(
  path: string,
  format: Exclude<ForeignFormat, 'chist'>,
  model: ForeignModel,
  initial: Value,
  budget: SearchBudget,
): Judged {
  const { operations, total } = readOperations(readText(path), format);
  return { judgement: judgeOperations(operations, format, model, initial, budget), operations: total };
}

function readOperations(text: string, format: Exclude<ForeignFormat, 'chist'>): ForeignHistory {
  switch (format) {
    case 'etcd-log':
      return readEtcdLog(text);
    case 'kv-log':
      return readKvLog(text);
    case 'jepsen-edn':
      return readJepsenEdn(text);
    case 'jepsen-json':
      return readJepsenJson(text);
  }
}

function judgeOperations(
  operations: readonly ForeignOperation[],
  format: ForeignFormat,
  model: ForeignModel,
  initial: Value,
  budget: SearchBudget,
): Judgement {
  switch (model) {
    case 'cas-register':
      return judgeCasRegister(operations, { initial, isNilReadLegal: format !== 'etcd-log' }, budget);
    case 'mutex':
      return judgeMutex(operations, budget);
    case 'kv':
      return judgeKv(operations, budget);
    case 'counter':
      return judgeCounter(operations);
    case 'set':
      return judgeSet(operations);
    case 'set-full':
      return judgeSetFull(operations);
  }
}

function judgeChistFile(path: string, initial: Value, budget: SearchBudget, memoryBytes: number): Judged {
  const file = openFile(path);
  try {
    const source: ByteSource = {
      size: fstatSync(file).size,
      read: (into, position) => useFile(path, () => readFully(file, into, position)),
    };
    const { operations, keys } = readChistHeader(source);
    if (initial !== null && typeof initial !== 'number')
      throw new UserError('--initial must be nil or a number for format chist');
    const neededBytes = operations * chistBytesPerOperation + keys * chistBytesPerKey;
    if (neededBytes > memoryBytes) {
      const need = `${Math.ceil(neededBytes / 1024 / 1024)} MiB for ${operations} operations on ${keys} keys`;
      return { judgement: { verdict: 'unknown', keys: 0, reason: `out of memory budget: ${need}` }, operations };
    }
    const chist = readChist(source);
    return { judgement: judgeChist(chist, initial ?? -1, budget), operations };
  } finally {
    closeSync(file);
  }
}

function judgeChist(chist: ChistHistory, initial: number, budget: SearchBudget): Judgement {
  const { history, starts } = chist;
  const verdict = judgeKeys(history, groupsOf(history, starts), initial, budget);
  const valueName = (value: number): string => (value === -1 ? 'nil' : String(value));
  return toJudgement(verdict, history, {
    keyName: String,
    valueName,
    place: (operation) => placeOfRecord(chist, operation, valueName),
  });
}

function placeOfRecord(chist: ChistHistory, operation: number, show: (value: number) => string): OperationPlace {
  const { kind, status, a, b, invoke, complete } = chist.history;
  const what =
    kind[operation] === readKind
      ? `read → ${show(b[operation]!)}`
      : kind[operation] === casKind
        ? `cas ${show(a[operation]!)} ${show(b[operation]!)}`
        : `write ${show(a[operation]!)}`;
  const outcome =
    status[operation] === failedStatus ? ' → failed' : status[operation] === unknownStatus ? ' → unknown' : '';
  const end = complete[operation] === Infinity ? 'open' : String(complete[operation]!);
  return {
    line: chist.record[operation]! + 1,
    completeLine: null,
    process: String(chist.process[operation]!),
    text: `${what}${outcome} [${invoke[operation]!}, ${end}] ns`,
  };
}

function readText(path: string): string {
  const bytes = useFile(path, () => readFileSync(path));
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch (error) {
    if (error instanceof TypeError) throw new UserError('the file is not text in UTF-8');
    throw new UserError(`the file is too long to read as text (${bytes.length} bytes)`);
  }
}

function openFile(path: string): number {
  return useFile(path, () => openSync(path, 'r'));
}

function useFile<T>(path: string, use: () => T): T {
  try {
    return use();
  } catch (error) {
    if (error instanceof UserError) throw error;
    const code = error instanceof Error && 'code' in error ? String(error.code) : String(error);
    throw new UserError(`${path} cannot be read: ${code}`);
  }
}

function readFully(file: number, into: Uint8Array, position: number): void {
  for (let done = 0; done < into.length;) {
    const count = readSync(file, into, done, into.length - done, position + done);
    if (count === 0) throw new UserError('the file became shorter while it was read');
    done += count;
  }
}
