/**
 * Finds out what this host can do to a node, by doing it to a throw-away container: each answer comes with evidence.
 *
 * A fault kind whose means are missing is reported as skipped with this reason; a doctor that guessed would let a run
 * claim faults that never took hold.
 */
import type { Engine } from './engine.ts';
import { messageOf } from './errors.ts';
import { currentOwner, labelsOf } from './labels.ts';
import { chooseNetnsMethod, execInContainer, runInNetns } from './netns.ts';
import type { NetnsMethod, Seat } from './netns.ts';
import { removeContainer } from './node-life.ts';

/** One thing that the host can or cannot do. */
export interface Capability {
  readonly name: string;
  readonly able: boolean;
  readonly evidence: string;
  /** Fault kinds that need it. */
  readonly faults: readonly string[];
}

interface Check {
  readonly name: string;
  readonly faults: readonly string[];
  /** Run in the network namespace of a throw-away seat; exit code 0 means able. */
  readonly script: string;
}

const netnsChecks: readonly Check[] = [
  {
    name: 'packet filter',
    faults: ['partition', 'client-partition'],
    script: 'iptables -w 5 -A INPUT -s 192.0.2.1 -j DROP && iptables -w 5 -S INPUT | grep 192.0.2.1',
  },
  {
    name: 'reject with reset',
    faults: ['reset'],
    script:
      'iptables -w 5 -A INPUT -p tcp -s 192.0.2.2 -j REJECT --reject-with tcp-reset && iptables -w 5 -S INPUT | grep 192.0.2.2',
  },
  {
    name: 'random loss',
    faults: ['loss'],
    script:
      'iptables -w 5 -A INPUT -s 192.0.2.3 -m statistic --mode random --probability 0.3 -j DROP && iptables -w 5 -S INPUT | grep 192.0.2.3',
  },
  {
    name: 'netem delay',
    faults: ['latency'],
    script:
      'tc qdisc add dev lo root netem delay 50ms && tc qdisc show dev lo | grep netem; r=$?; tc qdisc del dev lo root 2>/dev/null; exit $r',
  },
  {
    name: 'rate limit (hashlimit)',
    faults: ['bandwidth'],
    script:
      'iptables -w 5 -A INPUT -s 192.0.2.4 -m hashlimit --hashlimit-above 100kb/s --hashlimit-mode srcip --hashlimit-name zaris -j DROP && iptables -w 5 -S INPUT | grep 192.0.2.4',
  },
];

const clockScript = [
  'f=$(ls /usr/lib/*/faketime/libfaketime.so.1) || exit 1',
  'echo "+3600" > /tmp/faketime',
  'export FAKETIME_TIMESTAMP_FILE=/tmp/faketime FAKETIME_NO_CACHE=1 FAKETIME_DONT_FAKE_MONOTONIC=1',
  "js='console.log(Date.now(), Math.round(Number(process.hrtime.bigint()) / 1e6))'",
  'a=$(node -e "$js"); b=$(LD_PRELOAD=$f node -e "$js")',
  'set -- $a $b; echo "Date moved by $(($3 - $1)) ms, hrtime by $(($4 - $2)) ms"',
  '[ $(($3 - $1)) -gt 3500000 ] && [ $(($4 - $2)) -lt 60000 ]',
].join('\n');

/** Tries everything in one throw-away container from the base image, and removes it. */
export async function examineHost(engine: Engine, base: string): Promise<readonly Capability[]> {
  const runId = `doctor-${process.pid}-${Date.now().toString(36)}`;
  const container = await engine.docker.createContainer({
    Image: base,
    Cmd: ['sleep', 'infinity'],
    Labels: labelsOf(runId, currentOwner(), 'seat'),
    HostConfig: { NetworkMode: 'none', CapDrop: ['ALL'], CapAdd: ['NET_ADMIN'] },
  });
  try {
    await container.start();
    const about = await container.inspect();
    const seat: Seat = { containerId: about.Id, pid: about.State.Pid };
    const method = await chooseNetnsMethod(engine, seat);
    return [
      { name: 'engine', able: true, evidence: `Docker ${engine.version} at ${engine.address}`, faults: [] },
      methodCapability(method),
      ...(await checkNetns(engine, method, seat)),
      await checkPause(engine, seat.containerId),
      await checkClock(engine, seat.containerId),
    ];
  } finally {
    await removeContainer(engine.docker, container.id);
  }
}

function methodCapability(method: NetnsMethod): Capability {
  const able = method === 'nsenter';
  const evidence = able
    ? 'iptables ran through nsenter'
    : 'not root beside the engine: exec in the seats is used (slower)';
  return { name: 'nsenter', able, evidence, faults: [] };
}

async function checkNetns(engine: Engine, method: NetnsMethod, seat: Seat): Promise<Capability[]> {
  const found: Capability[] = [];
  for (const check of netnsChecks) {
    const result = await runInNetns(engine, method, seat, check.script);
    const said = (result.exitCode === 0 ? result.stdout : result.stderr).trim().split('\n')[0] ?? '';
    const evidence = said === '' ? `exit code ${result.exitCode}` : said;
    found.push({ name: check.name, able: result.exitCode === 0, evidence, faults: check.faults });
  }
  return found;
}

async function checkPause(engine: Engine, containerId: string): Promise<Capability> {
  const container = engine.docker.getContainer(containerId);
  const faults = ['pause'];
  try {
    await container.pause();
    const about = await container.inspect();
    await container.unpause();
    return { name: 'freezer', able: about.State.Paused, evidence: `state was ${about.State.Status}`, faults };
  } catch (error) {
    return { name: 'freezer', able: false, evidence: messageOf(error), faults };
  }
}

async function checkClock(engine: Engine, containerId: string): Promise<Capability> {
  const result = await execInContainer(engine.docker, containerId, ['bash', '-c', clockScript]);
  const evidence =
    (result.stdout.trim() || result.stderr.trim() || `exit code ${result.exitCode}`).split('\n')[0] ?? '';
  return { name: 'libfaketime', able: result.exitCode === 0, evidence, faults: ['clock'] };
}

/** The fault kinds that these capabilities rule out, with the reason. */
export function unsupportedFaults(capabilities: readonly Capability[]): ReadonlyMap<string, string> {
  const reasons = new Map<string, string>();
  for (const item of capabilities) {
    if (item.able) continue;
    for (const fault of item.faults) reasons.set(fault, `${item.name} is not to be had on this host: ${item.evidence}`);
  }
  return reasons;
}
