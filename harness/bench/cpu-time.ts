/** CPU time that processes have used, and what the machine was busy with: without them a figure cannot be judged. */
import { execFileSync } from 'node:child_process';
import { readFileSync, statfsSync } from 'node:fs';
import { availableParallelism, cpus, loadavg, totalmem } from 'node:os';

/** Kernel ticks per second, as Linux tells them to programs. */
const ticksPerSecond = 100;
const fileSystems = new Map([
  [0xef53, 'ext4'],
  [0x01021994, 'tmpfs'],
  [0x9123683e, 'btrfs'],
  [0x58465342, 'xfs'],
  [0x794c7630, 'overlay'],
]);

/** Seconds of CPU that a process has used so far; null where the system does not tell. */
export function cpuSeconds(pid: number): number | null {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The command's name may hold anything; what follows its bracket does not.
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
    return (Number(fields[11]) + Number(fields[12])) / ticksPerSecond;
  } catch {
    return null;
  }
}

/** CPUs used between two looks, one figure per process, busiest first. */
export class CpuWatch {
  private readonly before: ReadonlyMap<number, number | null>;
  private readonly ownBefore = process.cpuUsage();
  private readonly sinceMs = performance.now();

  constructor(pids: readonly number[]) {
    this.before = new Map(pids.map((pid) => [pid, cpuSeconds(pid)]));
  }

  /** CPUs in use since the construction: by this very process, and by each of the others. */
  read(): { readonly own: number; readonly others: number[] } {
    const seconds = (performance.now() - this.sinceMs) / 1000;
    const used = process.cpuUsage(this.ownBefore);
    const others = [...this.before].map(([pid, before]) => ((cpuSeconds(pid) ?? NaN) - (before ?? NaN)) / seconds);
    return { own: (used.user + used.system) / 1e6 / seconds, others: others.sort((a, b) => b - a) };
  }
}

/** One line about the machine, and how busy it is with other things. */
export function describeMachine(workDir: string): string {
  const [minute = 0] = loadavg();
  const model = cpus()[0]?.model.trim() ?? 'unknown CPU';
  const disk = fileSystems.get(statfsSync(workDir).type) ?? 'unknown file system';
  const kernel = execFileSync('uname', ['-sr'], { encoding: 'utf8' }).trim();
  return [
    `${availableParallelism()} CPUs (${model}), ${Math.round(totalmem() / 2 ** 30)} GiB, ${kernel}, Node ${process.versions.node}, disks on ${disk}`,
    `load average of the last minute ${minute.toFixed(2)}${minute > 0.3 ? ': the machine was not idle, so read spreads before medians' : ''}`,
  ].join('; ');
}
