/**
 * Moves the wall clock that one node's process sees, through libfaketime and a file in its container. The host's clock
 * is never touched: containers share it, so a moved host clock would be a fault of everybody, the harness included.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import type Docker from 'dockerode';
import type { ClockProbe } from '../chaos/ports.ts';
import { tarOf } from './base-image.ts';
import { execInContainer } from './netns.ts';

/** Where the offset stands in the container. */
export const offsetFile = '/var/lib/zaris-clock';

/** Environment of a process whose clock can be moved. `$LIB` is the loader's own word for the library folder. */
export const clockEnvironment: Readonly<Record<string, string>> = {
  LD_PRELOAD: '/usr/$LIB/faketime/libfaketime.so.1',
  FAKETIME_TIMESTAMP_FILE: offsetFile,
  FAKETIME_NO_CACHE: '1',
  FAKETIME_DONT_FAKE_MONOTONIC: '1',
};

/** The offset as libfaketime reads it. */
export function offsetText(offsetMs: number): string {
  return `${offsetMs < 0 ? '-' : '+'}${(Math.abs(offsetMs) / 1000).toFixed(3)}\n`;
}

/** Writes the offset into a container, whatever state it is in. */
export async function writeOffset(docker: Docker, containerId: string, offsetMs: number): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'zaris-clock-'));
  try {
    writeFileSync(join(folder, basename(offsetFile)), offsetText(offsetMs));
    const archive = tarOf(['-C', folder, basename(offsetFile)]);
    await docker.getContainer(containerId).putArchive(archive.stream, { path: dirname(offsetFile) });
    await archive.done;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** What a process in the container said, and what this host's clocks said before and after it. */
export interface ClockReading {
  readonly wallMs: number;
  readonly monotonicMs: number;
  readonly hostWallMs: number;
  readonly hostMonotonicBeforeMs: number;
  readonly hostMonotonicAfterMs: number;
}

/**
 * How far the reading is from the host's clocks. Both share the kernel's monotonic clock: inside the bracket of the
 * look it is unmoved, and then it says at which moment of the host the wall clock was read.
 */
export function clockOffsets(reading: ClockReading): Pick<ClockProbe, 'wallOffsetMs' | 'monotonicOffsetMs'> {
  const { monotonicMs: inside, hostMonotonicBeforeMs: before, hostMonotonicAfterMs: after } = reading;
  const monotonicOffsetMs = inside < before ? inside - before : inside > after ? inside - after : 0;
  const readAtMs = Math.min(after, Math.max(before, inside));
  return { wallOffsetMs: reading.wallMs - (reading.hostWallMs - (after - readAtMs)), monotonicOffsetMs };
}

const monotonicMs = (): number => Number(process.hrtime.bigint()) / 1e6;

/** Reads both clocks as a process in the container sees them. Rejects when none can run there. */
export async function readClocks(docker: Docker, containerId: string, nodeId: string): Promise<ClockReading> {
  const script = 'console.log(JSON.stringify([Date.now(), Number(process.hrtime.bigint()) / 1e6]))';
  const hostMonotonicBeforeMs = monotonicMs();
  const result = await execInContainer(docker, containerId, ['node', '-e', script]);
  const hostMonotonicAfterMs = monotonicMs();
  const hostWallMs = Date.now();
  if (result.exitCode !== 0) throw new Error(`The clocks of ${nodeId} cannot be read: ${result.stderr.trim()}.`);
  const [wall = Number.NaN, inside = Number.NaN] = JSON.parse(result.stdout) as number[];
  return { wallMs: wall, monotonicMs: inside, hostWallMs, hostMonotonicBeforeMs, hostMonotonicAfterMs };
}
