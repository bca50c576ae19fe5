/**
 * Owns the labels on everything that a run creates on an engine, and the judgement whether their owner is dead.
 *
 * Invariant: an owner is called dead only on proof. A wrong "dead" makes one run sweep the containers of another in
 * the middle of it; a wrong "alive" only leaves something to be cleaned by hand.
 */
import { readFileSync, readlinkSync } from 'node:fs';
import { hostname } from 'node:os';

/** Label names; everything of ours carries `run`. */
export const labelNames = {
  run: 'zaris.run',
  role: 'zaris.role',
  node: 'zaris.node',
  boot: 'zaris.boot',
  machine: 'zaris.machine',
  pidNamespace: 'zaris.pid-namespace',
  ownerPid: 'zaris.owner-pid',
  ownerStart: 'zaris.owner-start',
  /** On a marker volume: the run whose things stay until they are cleaned by hand. */
  kept: 'zaris.kept',
} as const;

export type Role = 'node' | 'seat' | 'network' | 'disk' | 'kept' | 'owner';

/** Who made a thing: a process, told apart from any later process with the same id. */
export interface Owner {
  readonly boot: string;
  readonly machine: string;
  readonly pidNamespace: string;
  readonly pid: number;
  /** Start time of the process in clock ticks since boot; empty where the system does not tell. */
  readonly startTicks: string;
}

/** What this host shows about itself and its processes; an argument, so that the judgement can be tested. */
export interface HostView {
  readonly boot: string;
  readonly machine: string;
  readonly pidNamespace: string;
  /** Start time of a live process in ticks; null when there is no such process; empty when unknown. */
  startTicks(pid: number): string | null;
}

function readTrimmed(path: string): string {
  try {
    return readFileSync(path, 'utf8').trim();
  } catch {
    return '';
  }
}

/** Start time in ticks from the text of /proc/PID/stat; the process name in it may hold spaces and brackets. */
export function startTicksOfStat(stat: string): string {
  const afterName = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return afterName[19] ?? '';
}

function startTicks(pid: number): string | null {
  if (process.platform === 'linux') {
    const stat = readTrimmed(`/proc/${pid}/stat`);
    return stat === '' ? null : startTicksOfStat(stat);
  }
  try {
    process.kill(pid, 0);
    return '';
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ESRCH' ? null : '';
  }
}

function pidNamespace(): string {
  try {
    return readlinkSync('/proc/self/ns/pid');
  } catch {
    return '';
  }
}

/** This host as it is now. */
export function currentHost(): HostView {
  return {
    boot: readTrimmed('/proc/sys/kernel/random/boot_id'),
    machine: `${readTrimmed('/etc/machine-id')}/${hostname()}`,
    pidNamespace: pidNamespace(),
    startTicks,
  };
}

/** This process as an owner. */
export function currentOwner(host: HostView = currentHost()): Owner {
  return {
    boot: host.boot,
    machine: host.machine,
    pidNamespace: host.pidNamespace,
    pid: process.pid,
    startTicks: host.startTicks(process.pid) ?? '',
  };
}

/** The labels of one thing of a run. */
export function labelsOf(runId: string, owner: Owner, role: Role, nodeId?: string): Record<string, string> {
  return {
    [labelNames.run]: runId,
    [labelNames.role]: role,
    [labelNames.boot]: owner.boot,
    [labelNames.machine]: owner.machine,
    [labelNames.pidNamespace]: owner.pidNamespace,
    [labelNames.ownerPid]: String(owner.pid),
    [labelNames.ownerStart]: owner.startTicks,
    ...(nodeId === undefined ? {} : { [labelNames.node]: nodeId }),
  };
}

/** Reads the owner back from labels; null when they are not ours or not complete. */
export function ownerOfLabels(labels: Readonly<Record<string, string>>): Owner | null {
  const pid = Number(labels[labelNames.ownerPid]);
  const boot = labels[labelNames.boot];
  const machine = labels[labelNames.machine];
  const namespace = labels[labelNames.pidNamespace];
  const start = labels[labelNames.ownerStart];
  if (!Number.isInteger(pid) || pid <= 0) return null;
  if (boot === undefined || machine === undefined || namespace === undefined || start === undefined) return null;
  return { boot, machine, pidNamespace: namespace, pid, startTicks: start };
}

export type OwnerVerdict =
  | { readonly kind: 'dead'; readonly proof: string }
  | { readonly kind: 'alive' }
  | { readonly kind: 'unknown'; readonly why: string };

/** Is the owner provably dead, seen from this host? */
export function judgeOwner(owner: Owner, host: HostView): OwnerVerdict {
  if (owner.machine !== host.machine) return { kind: 'unknown', why: 'made from another machine' };
  if (owner.boot !== host.boot && owner.boot !== '' && host.boot !== '') {
    return { kind: 'dead', proof: 'this machine has booted since' };
  }
  if (owner.pidNamespace !== host.pidNamespace) return { kind: 'unknown', why: 'made from another process namespace' };
  const ticks = host.startTicks(owner.pid);
  if (ticks === null) return { kind: 'dead', proof: `process ${owner.pid} is gone` };
  if (ticks === '' || owner.startTicks === '')
    return { kind: 'unknown', why: `process ${owner.pid} may be another one` };
  if (ticks !== owner.startTicks) return { kind: 'dead', proof: `process ${owner.pid} is a later one` };
  return { kind: 'alive' };
}
