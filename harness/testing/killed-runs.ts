/**
 * `kill -9` of whole runs at random moments, and what must hold whenever the harness comes back: every acknowledgement that its
 * clients saw is in the ledger, or stands there as an operation that was open when the harness died; and the verdict is right.
 */
import { fork } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { openLedgerReader } from '../../ledger/reader.ts';
import type { StoredOperation } from '../../ledger/stored-operations.ts';
import type { Prng } from '../../lib/prng.ts';
import { canaryPrefix } from '../run/canary.ts';
import type { MortalEnd } from './mortal-harness.ts';
import { OutlivingStore } from './outliving-store.ts';

/** Kills per run at most: of the run, then of the resumption. */
const maxKills = 2;
/** A harness that takes longer has hung. */
const lifeLimitMs = 180_000;
const sessionsAndMore = 10;
const pollMs = 2;

export interface KilledRun {
  readonly seed: number;
  readonly isLossy: boolean;
  /** Phase that each kill fell into. */
  readonly killedIn: readonly string[];
  readonly end: MortalEnd;
  readonly acknowledged: number;
  /** Acknowledgements that the ledger holds as unknown, since the harness died before it could write them down. */
  readonly asGap: number;
  readonly gaps: number;
  /** What should not be, one sentence each. */
  readonly problems: readonly string[];
}

/** How long harnesses live that nobody kills, from the first sign of their ledger on, ms; learnt as they end. */
export class LifeSpan {
  ms = 9_000;

  took(ms: number): void {
    this.ms = Math.max(2_000, (this.ms + ms) / 2);
  }
}

/** One run in a folder of its own, killed once or twice, taken up again, and judged. */
export async function runAndKill(
  folder: string,
  options: { readonly seed: number; readonly isLossy: boolean; readonly prng: Prng; readonly life: LifeSpan },
): Promise<KilledRun> {
  const { seed, isLossy, prng, life } = options;
  mkdirSync(folder, { recursive: true });
  const store = new OutlivingStore(isLossy);
  const killedIn: string[] = [];
  let end: MortalEnd | null = null;
  for (let attempt = 0; end === null; attempt++) {
    // The first always, the second in half of the cases.
    const isKilled = attempt === 0 || (attempt < maxKills && prng.chance(0.5));
    const words = [attempt === 0 ? 'run' : 'resume', folder, String(seed)];
    end = await live(store, words, isKilled ? Math.round(prng.float() * life.ms) : null, life);
    if (end === null) killedIn.push(phaseOf(folder));
  }
  return { seed, isLossy, killedIn, end, ...looked(folder, store, end, isLossy, killedIn.length) };
}

/** Lets a harness live, until it ends or for so long; null: it was killed. */
async function live(
  store: OutlivingStore,
  words: readonly string[],
  killAfterMs: number | null,
  life: LifeSpan,
): Promise<MortalEnd | null> {
  const child = fork(join(import.meta.dirname, 'mortal-harness.ts'), words, {
    execArgv: [],
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  });
  store.serve(child);
  let said = '';
  child.stdout?.on('data', (bytes: Buffer) => (said += bytes.toString()));
  child.stderr?.on('data', (bytes: Buffer) => (said += bytes.toString()));
  const closed = new Promise<NodeJS.Signals | null>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (_code, how) => resolve(how));
  });
  const folder = words[1] ?? '';
  while (child.exitCode === null && child.signalCode === null && !existsSync(ledgerFileOf(folder)))
    await new Promise((resolve) => setTimeout(resolve, pollMs));
  const bornMs = performance.now();
  const timer = setTimeout(() => child.kill('SIGKILL'), killAfterMs ?? lifeLimitMs);
  const signal = await closed;
  clearTimeout(timer);
  if (signal === 'SIGKILL') {
    if (killAfterMs === null) throw new Error(`a harness did not end within ${lifeLimitMs} ms: ${said}`);
    return null;
  }
  const last = said.trim().split('\n').at(-1) ?? '';
  if (!last.startsWith('{')) throw new Error(`the harness ended by itself: ${said}`);
  if (words[0] === 'run') life.took(performance.now() - bornMs);
  return JSON.parse(last) as MortalEnd;
}

const ledgerOf = (folder: string): string => join(folder, 'results', 'latest');
const ledgerFileOf = (folder: string): string => join(ledgerOf(folder), 'ledger.sqlite');

/** The last phase that had begun, by the ledger. */
function phaseOf(folder: string): string {
  if (!existsSync(ledgerFileOf(folder))) return 'before the ledger';
  try {
    using reader = openLedgerReader(ledgerOf(folder));
    if (reader.meta('end') !== undefined) return 'verify';
    const phases = ['autopsy', 'read-back', 'settle', 'heal', 'load', 'start'];
    return phases.find((phase) => reader.meta(`started:${phase}`) !== undefined) ?? 'before the start';
  } catch {
    return 'before the ledger';
  }
}

type Looked = Pick<KilledRun, 'acknowledged' | 'asGap' | 'gaps' | 'problems'>;

function looked(folder: string, store: OutlivingStore, end: MortalEnd, isLossy: boolean, kills: number): Looked {
  const log = join(folder, 'seen.log');
  // The canary is deleted behind the ledger's back, on purpose.
  const seen = (existsSync(log) ? readFileSync(log, 'utf8').split('\n') : []).filter(
    (line) => line !== '' && !(line.includes(' delete ') && line.split(' ')[2]?.startsWith(canaryPrefix) === true),
  );
  if (end.kind === 'refused') {
    const problems = seen.length === 0 ? [] : [`${seen.length} acknowledgements, but "${end.message}"`];
    return { acknowledged: seen.length, asGap: 0, gaps: 0, problems };
  }
  using reader = openLedgerReader(ledgerOf(folder));
  const finished = new Map<string, StoredOperation>();
  const unknown: StoredOperation[] = [];
  for (const operation of reader.operations()) {
    if (operation.outcome === 'ok' && operation.f !== 'read')
      finished.set(
        `${operation.session} ${operation.f} ${operation.key} ${operation.version?.join('.') ?? ''}`,
        operation,
      );
    else if (operation.error?.startsWith('the harness died') === true) unknown.push(operation);
  }
  const problems: string[] = [];
  let asGap = 0;
  for (const line of seen) {
    if (finished.has(line)) continue;
    const [session, f, key] = line.split(' ');
    const open = unknown.findIndex((each) => each.session === Number(session) && each.f === f && each.key === key);
    if (open < 0) problems.push(`the acknowledged "${line}" is not in the ledger`);
    else {
      unknown.splice(open, 1);
      asGap++;
    }
  }
  if (asGap > kills * sessionsAndMore) problems.push(`${asGap} acknowledgements were lost in ${kills} kills`);
  const gaps = [...reader.gaps()].length;
  const isKnown = (key: string): boolean =>
    [...finished.values()].some((each) => each.key === key && each.f === 'write');
  problems.push(...wrongVerdict(end, gaps, isLossy && store.forgotten.some(isKnown)));
  return { acknowledged: seen.length, asGap, gaps, problems };
}

/** `isLost`: an acknowledged write that the ledger holds was dropped by the store. */
function wrongVerdict(end: Exclude<MortalEnd, { kind: 'refused' }>, gaps: number, isLost: boolean): string[] {
  const { verdict } = end;
  if (isLost) return verdict === 'violated' ? [] : [`writes were lost, and the verdict is ${verdict}`];
  if (verdict === 'inconclusive') return [];
  // Only a run that was recorded from end to end may be certified.
  if (verdict === 'certified' && gaps === 0) return [];
  return [`nothing was lost, there are ${gaps} gaps, and the verdict is ${verdict}`];
}
