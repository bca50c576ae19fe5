/**
 * Owns the way into a seat's network namespace: `nsenter` from the host where that is permitted, else exec in the seat.
 *
 * A seat is the container that holds a node's network: the node joins it, so its address, ports and packet rules
 * outlive every restart, pause and kill of the node. Work is done in the seat's namespace only; the process id is
 * checked against the container's id before each entry, so that a reused id is never taken for it.
 */
import { readFileSync } from 'node:fs';
import { PassThrough } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import type Docker from 'dockerode';
import { bashWords, runCommand } from './command.ts';
import type { CommandResult } from './command.ts';
import type { Engine } from './engine.ts';
import { messageOf } from './errors.ts';

/** Which way in is used; reports say it. */
export type NetnsMethod = 'nsenter' | 'exec';

/** A running seat container. */
export interface Seat {
  readonly containerId: string;
  /** Its first process, in the engine's process table. */
  readonly pid: number;
}

const sbinPath = `${process.env['PATH'] ?? ''}:/usr/local/sbin:/usr/sbin:/sbin`;
const defaultTimeoutMs = 8_000;
const maxExecOutputBytes = 1024 * 1024;

/** Is `pid` a process of container `containerId`, seen from this host? */
export function processBelongsTo(pid: number, containerId: string): boolean {
  try {
    return readFileSync(`/proc/${pid}/cgroup`, 'utf8').includes(containerId);
  } catch {
    return false;
  }
}

/** Has `pid` ended (or is it only waiting to be collected)? */
export function processIsGone(pid: number): boolean {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const state = stat.slice(stat.lastIndexOf(')') + 2)[0];
    return state === 'Z' || state === 'X';
  } catch {
    return true;
  }
}

/** The method that works here, tried on a running seat. */
export async function chooseNetnsMethod(engine: Engine, seat: Seat): Promise<NetnsMethod> {
  if (!engine.local || process.getuid?.() !== 0 || !processBelongsTo(seat.pid, seat.containerId)) return 'exec';
  const tried = await enterByNsenter(seat, 'iptables -w 5 -L INPUT -n >/dev/null', defaultTimeoutMs);
  return tried.exitCode === 0 ? 'nsenter' : 'exec';
}

/** Runs a bash script in the seat's network namespace. */
export async function runInNetns(
  engine: Engine,
  method: NetnsMethod,
  seat: Seat,
  script: string,
  timeoutMs = defaultTimeoutMs,
): Promise<CommandResult> {
  if (method === 'exec') return await execInContainer(engine.docker, seat.containerId, bashWords(script), timeoutMs);
  return await enterByNsenter(seat, script, timeoutMs);
}

async function enterByNsenter(seat: Seat, script: string, timeoutMs: number): Promise<CommandResult> {
  if (!processBelongsTo(seat.pid, seat.containerId)) {
    return { exitCode: -1, stdout: '', stderr: `seat ${seat.containerId.slice(0, 12)} is gone`, timedOut: false };
  }
  return await runCommand('nsenter', ['-t', String(seat.pid), '-n', ...bashWords(script)], {
    timeoutMs,
    env: { PATH: sbinPath },
  });
}

/** Runs a command inside a running container. Never rejects; a paused or dead container gives exit code -1. */
export async function execInContainer(
  docker: Docker,
  containerId: string,
  command: readonly string[],
  timeoutMs = defaultTimeoutMs,
): Promise<CommandResult> {
  const output = { stdout: '', stderr: '' };
  const abort = new AbortController();
  try {
    const exec = await docker
      .getContainer(containerId)
      .exec({ Cmd: [...command], AttachStdout: true, AttachStderr: true });
    const stream = await exec.start({});
    const collect = (name: 'stdout' | 'stderr'): PassThrough => {
      const sink = new PassThrough();
      sink.on('data', (chunk: Buffer) => {
        if (output[name].length < maxExecOutputBytes) output[name] += chunk.toString();
      });
      return sink;
    };
    docker.modem.demuxStream(stream, collect('stdout'), collect('stderr'));
    const ended = new Promise<'ended'>((resolve) =>
      stream.on('end', () => resolve('ended')).on('close', () => resolve('ended')),
    );
    const outcome = await Promise.race([
      ended,
      sleep(timeoutMs, 'late' as const, { signal: abort.signal }).catch(() => 'late' as const),
    ]);
    if (outcome === 'late') {
      stream.destroy();
      return { ...output, exitCode: -1, timedOut: true };
    }
    const about = await exec.inspect();
    return { ...output, exitCode: about.ExitCode ?? -1, timedOut: false };
  } catch (error) {
    return { ...output, exitCode: -1, stderr: messageOf(error), timedOut: false };
  } finally {
    abort.abort();
  }
}
