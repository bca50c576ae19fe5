/** Kills a writing process again and again and looks at what its ledger holds; shared by the short and the full test. */
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Prng } from '../../lib/prng.ts';
import { openLedger } from '../ledger.ts';
import { openLedgerReader } from '../reader.ts';

const sessions = 8;
const startupBoundMs = 60_000;

export interface CrashReport {
  readonly kills: number;
  readonly sent: number;
  readonly settled: number;
  /** Sent operations that a ledger did not hold after a kill. */
  readonly missing: number[];
  /** Settled operations (the session went on) that were not stored as acknowledged. */
  readonly unsettled: number[];
  /** Largest number of unknown operations beyond one per session and kill; never above 0. */
  readonly excessUnknown: number;
  readonly gaps: number;
  readonly nextOperationIdAbove: boolean;
}

/** Runs `kills` kills at moments drawn from `seed`. */
export async function crashRepeatedly(kills: number, seed: number): Promise<CrashReport> {
  const folder = mkdtempSync(join(tmpdir(), 'ledger-crash-'));
  try {
    return await crashIn(join(folder, 'ledger.sqlite'), kills, new Prng(seed));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function crashIn(path: string, kills: number, prng: Prng): Promise<CrashReport> {
  const missing: number[] = [];
  const unsettled: number[] = [];
  let excessUnknown = -Infinity;
  let log = { sent: new Set<number>(), settled: new Set<number>() };
  for (let kill = 1; kill <= kills; kill++) {
    await writeAndKill(path, prng.between(1, 250), kill > 1);
    log = readLog(`${path}.log`);
    const stored = new Map<number, string>();
    using reader = openLedgerReader(path);
    for (const operation of reader.operations()) stored.set(operation.operationId, operation.outcome);
    missing.push(...[...log.sent].filter((id) => !stored.has(id)));
    unsettled.push(...[...log.settled].filter((id) => stored.get(id) !== 'ok'));
    excessUnknown = Math.max(
      excessUnknown,
      [...stored.values()].filter((outcome) => outcome === 'info').length - kill * sessions,
    );
  }
  const ledger = await openLedger({ path, runTag: 'other', resume: true, minFreeBytes: 0 });
  const nextOperationIdAbove = [...log.sent].every((id) => id < ledger.nextOperationId()) && ledger.runTag === 'crash';
  await ledger.close();
  using reader = openLedgerReader(path);
  return {
    kills,
    sent: log.sent.size,
    settled: log.settled.size,
    missing,
    unsettled,
    excessUnknown,
    gaps: [...reader.gaps()].length,
    nextOperationIdAbove,
  };
}

async function writeAndKill(path: string, afterMs: number, resume: boolean): Promise<void> {
  const script = fileURLToPath(new URL('./writing-child.ts', import.meta.url));
  const before = existsSync(`${path}.log`) ? statSync(`${path}.log`).size : 0;
  const child = spawn(process.execPath, [script, path, String(sessions), ...(resume ? ['resume'] : [])], {
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const ended = new Promise<NodeJS.Signals | null>((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', (_code, signal) => resolve(signal));
  });
  const deadline = Date.now() + startupBoundMs;
  while (child.exitCode === null && !(existsSync(`${path}.log`) && statSync(`${path}.log`).size > before)) {
    if (Date.now() > deadline) break;
    await sleep(2);
  }
  await sleep(afterMs);
  child.kill('SIGKILL');
  if ((await ended) !== 'SIGKILL') throw new Error('the writing process ended by itself');
}

/** An outcome is settled when its session went on to send: outcomes travel no later than the next intent. */
function readLog(path: string): { sent: Set<number>; settled: Set<number> } {
  const sent = new Set<number>();
  const settled = new Set<number>();
  const lastDone = new Map<string, number>();
  for (const line of readFileSync(path, 'utf8').split('\n')) {
    const [what, id, session] = line.split(' ');
    // A new process: what the killed one had last in hand was never followed up.
    if (what === 'start') lastDone.clear();
    if (what === 'sent') sent.add(Number(id));
    if (what !== 'done' || session === undefined) continue;
    const before = lastDone.get(session);
    if (before !== undefined && before < Number(id)) settled.add(before);
    lastDone.set(session, Number(id));
  }
  return { sent, settled };
}
