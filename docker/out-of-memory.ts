/**
 * Makes the kernel kill a node for memory: its limit is drawn close around it, something beside it eats the rest, and
 * the node is marked as the one to go. The limit is put back before the node can start again.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import type Docker from 'dockerode';
import { runCommand } from './command.ts';
import { messageOf } from './errors.ts';

const roomBytes = 48 * 1024 * 1024;
const beyondReachBytes = 2 ** 45;
const deathTimeoutMs = 20_000;
const worstScore = '1000';
/** The log's clock is coarser than ours. */
const clockSlackSeconds = 1;
/** Reads zeros without an end into one line: memory grows until the kernel steps in. */
const eater = ['tail', '/dev/zero'];

/** Resident memory from the text of /proc/PID/status, bytes; NaN when it is not in there. */
export function residentBytes(status: string): number {
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1] ?? Number.NaN) * 1024;
}

/** Why this host cannot do it; null when it can. Killing by memory needs the engine's processes in sight. */
export function outOfMemoryObstacle(local: boolean): string | null {
  return local && process.getuid?.() === 0
    ? null
    : 'only root beside the engine can mark a process for the kernel to kill';
}

/** Kills the container's process by memory; resolves once it is dead, the kernel's log says why, and its limit is put back. */
export async function runOutOfMemory(
  docker: Docker,
  about: Docker.ContainerInspectInfo,
  nodeId: string,
): Promise<void> {
  const container = docker.getContainer(about.Id);
  const pid = about.State.Pid;
  const usedBytes = residentBytes(readFileSync(`/proc/${pid}/status`, 'utf8'));
  if (Number.isNaN(usedBytes)) throw new Error(`The memory of ${nodeId} cannot be read.`);
  const beganSeconds = Number(process.hrtime.bigint()) / 1e9;
  const ended = container.wait();
  ended.catch(() => {});
  writeFileSync(`/proc/${pid}/oom_score_adj`, worstScore);
  const limit = usedBytes + roomBytes;
  try {
    await container.update({ Memory: limit, MemorySwap: limit });
    const exec = await container.exec({ Cmd: eater });
    await exec.start({ Detach: true });
    await inTime(ended, nodeId);
  } finally {
    const { Memory: memory = 0, MemorySwap: swap = 0 } = about.HostConfig;
    // The engine cannot take a limit away again (zero means "as it is"), only raise it beyond reach.
    await container
      .update({ Memory: memory === 0 ? beyondReachBytes : memory, MemorySwap: swap === 0 ? -1 : swap })
      .catch((error: unknown) => {
        throw new Error(`The memory limit of ${nodeId} could not be put back: ${messageOf(error)}.`);
      });
  }
  await proveByKernelLog(pid, nodeId, beganSeconds);
}

/** When the kernel logged that it killed `pid` for memory, in seconds since boot; null when it did not. */
export function memoryKillSeconds(kernelLog: string, pid: number): number | null {
  let found: number | null = null;
  for (const line of kernelLog.split('\n')) {
    const match = /^\[\s*(\d+\.\d+)\].*[Oo]ut of memory.*Killed process (\d+)\b/.exec(line);
    if (match !== null && Number(match[2]) === pid) found = Number(match[1]);
  }
  return found;
}

/** The engine's own flag comes too late now and then; the kernel's word does not. */
async function proveByKernelLog(pid: number, nodeId: string, beganSeconds: number): Promise<void> {
  const log = await runCommand('dmesg', []);
  const seconds = memoryKillSeconds(log.stdout, pid);
  if (seconds === null || seconds < beganSeconds - clockSlackSeconds) {
    throw new Error(`${nodeId} ended, but the kernel's log does not say that it was for memory.`);
  }
}

async function inTime(ended: Promise<unknown>, nodeId: string): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(
      () => reject(new Error(`The kernel did not kill ${nodeId} for memory within ${deathTimeoutMs} ms.`)),
      deathTimeoutMs,
    );
  });
  try {
    await Promise.race([ended, late]);
  } finally {
    clearTimeout(timer);
  }
}
