/**
 * Saves what each incarnation of a node wrote, bounded in size, also of those that were killed. When it is missing the
 * autopsy of a loss has no witness from inside the node.
 */
import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type Docker from 'dockerode';

const maxLines = 50_000;
/** Most that is kept of one incarnation, bytes; the end is kept. */
export const maxLogBytes = 4 * 1024 * 1024;

/** Takes the engine's multiplexed log apart into plain text. */
export function demultiplex(raw: Buffer): string {
  const parts: Buffer[] = [];
  let offset = 0;
  while (offset + 8 <= raw.length) {
    const size = raw.readUInt32BE(offset + 4);
    parts.push(raw.subarray(offset + 8, offset + 8 + size));
    offset += 8 + size;
  }
  return Buffer.concat(parts).toString('utf8');
}

/** Keeps the last `limitBytes` of a text, cut at a line, and says so at the top. */
export function lastBytes(text: string, limitBytes: number): string {
  const bytes = Buffer.from(text);
  if (bytes.length <= limitBytes) return text;
  const tail = bytes.subarray(bytes.length - limitBytes).toString('utf8');
  return `[the first ${bytes.length - limitBytes} bytes are left out]\n${tail.slice(tail.indexOf('\n') + 1)}`;
}

/** The log of a container since its last start. */
export async function readIncarnationLog(docker: Docker, containerId: string, startedAt: string): Promise<string> {
  const raw = await docker.getContainer(containerId).logs({
    stdout: true,
    stderr: true,
    timestamps: true,
    tail: maxLines,
    follow: false,
    // Typed as a number, but the engine takes fractions only as text.
    since: sinceOf(startedAt) as unknown as number,
  });
  return lastBytes(demultiplex(raw), maxLogBytes);
}

/** The engine's `since` for a start time: seconds with all nine digits of the fraction. */
export function sinceOf(startedAt: string): string {
  const fraction = /\.(\d+)Z$/.exec(startedAt)?.[1] ?? '';
  return `${Math.floor(Date.parse(startedAt) / 1000)}.${fraction.padEnd(9, '0')}`;
}

/** Writes one incarnation's log; returns the file. */
export function saveIncarnationLog(folder: string, nodeId: string, incarnation: number, text: string): string {
  mkdirSync(folder, { recursive: true });
  const file = join(folder, `${nodeId}-${incarnation}.log`);
  writeFileSync(file, text);
  return file;
}

/** The highest incarnation of a node whose log lies in the folder; 0 when none does. */
export function lastSavedIncarnation(folder: string, nodeId: string): number {
  if (!existsSync(folder)) return 0;
  const numbers = readdirSync(folder).map((name) =>
    name.startsWith(`${nodeId}-`) ? Number(/-(\d+)\.log$/.exec(name)?.[1] ?? 0) : 0,
  );
  return Math.max(0, ...numbers);
}
