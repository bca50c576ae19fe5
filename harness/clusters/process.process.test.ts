import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { LinkRule } from '../../chaos/ports.ts';
import { currentHost } from '../../docker/labels.ts';
import { openProcessCluster } from './process.ts';
import { endRecorded, type ProcessRecord, sweepProcesses, writeRecord } from './process-record.ts';
import type { RunCluster } from './run-cluster.ts';

const root = mkdtempSync(join(tmpdir(), 'process-cluster-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));

function logsOf(runId: string): string {
  const logs = join(root, runId, 'logs');
  mkdirSync(logs, { recursive: true });
  return logs;
}

const clock = { nowMs: () => performance.now(), wallMs: () => Date.now() };
const nodeEntry = 'harness/clusters/testing/tiny-node.ts';
/** Only what never comes takes so long. */
const patienceMs = 60_000;
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

async function until(what: string, holds: () => boolean | Promise<boolean>): Promise<void> {
  const endMs = performance.now() + patienceMs;
  while (!(await holds())) {
    if (performance.now() > endMs) throw new Error(`not within ${patienceMs} ms: ${what}`);
    await pause(20);
  }
}

const isAlive = (pid: number): boolean => {
  const stat = existsSync(`/proc/${pid}/stat`) ? readFileSync(`/proc/${pid}/stat`, 'utf8') : '';
  return stat !== '' && !stat.includes(') Z ');
};

interface Sent {
  readonly heard: string;
  readonly end: string;
  readonly tookMs: number;
}

describe('links of local processes', () => {
  let run: RunCluster;
  let addressesOf = new Map<string, string>();

  beforeAll(async () => {
    run = await openProcessCluster({
      runId: 'links',
      nodeCount: 3,
      logsDir: logsOf('links'),
      environment: (_nodeId, _index, nodes) => {
        addressesOf = new Map(nodes.map((node) => [node.nodeId, node.clusterAddress]));
        return {};
      },
      nodeEntry,
      clock,
      say: () => undefined,
      signal: new AbortController().signal,
    });
    for (const nodeId of run.cluster.nodeIds()) await answers(nodeId);
  });
  afterAll(() => run.dispose());

  const answers = (nodeId: string): Promise<void> =>
    until(`${nodeId} answers`, async () => (await run.cluster.probeNode(nodeId)).outcome === 'reachable');
  const clusterPortOf = (nodeId: string): number => Number((addressesOf.get(nodeId) as string).split(':')[1]);

  /** Lets `from` send on its connection `name` to the cluster port of `to`; from inside its process. */
  async function send(from: string, to: string, name: string, text = 'x', times = 1): Promise<Sent> {
    return (await ask(from, `send?name=${name}&port=${clusterPortOf(to)}&text=${text}&times=${times}`)) as Sent;
  }
  async function ask(nodeId: string, path: string): Promise<unknown> {
    const address = run.addresses().find((each) => each.nodeId === nodeId);
    return (await fetch(`http://127.0.0.1:${address?.httpPort}/${path}`)).json();
  }
  const heard = async (nodeId: string, name = ''): Promise<{ heard: string; received: string }> =>
    (await ask(nodeId, `heard?name=${name}`)) as { heard: string; received: string };
  const rules = (...given: LinkRule[]): Promise<void> => run.cluster.setLinkRules?.(given) as Promise<void>;
  const heal = (): Promise<void> => rules();
  const link = async (from: string, to: string): Promise<string> => (await run.cluster.probeLink(from, to)).outcome;
  const packet = async (from: string, to: string): Promise<string | undefined> =>
    (await run.cluster.probePacket?.(from, to))?.outcome;
  // One look that runs out of time on a busy machine says nothing of an open link; an open one answers to some look, a cut one to none.
  const open = (from: string, to: string): Promise<void> =>
    until(`${from} reaches ${to}`, async () => (await link(from, to)) === 'reachable');
  const passes = (from: string, to: string): Promise<void> =>
    until(`a byte of ${from} gets to ${to}`, async () => (await packet(from, to)) === 'reachable');
  const gone = (rule: LinkRule): Promise<void> =>
    until(`no ${rule.kind} is seen`, async () => (await effect(rule)) === 'absent');
  /** The quickest of some answers: a busy machine makes one slow, a rule all. */
  const quick = (name: string, times: number, withinMs: number): Promise<void> =>
    until(`an answer within ${withinMs} ms`, async () => (await send('n1', 'n2', name, 'a', times)).tookMs < withinMs);
  const effect = async (rule: LinkRule): Promise<string | undefined> => (await run.cluster.probeRule?.(rule))?.effect;

  it('without a rule everything passes, and no probe sees anything', async () => {
    expect(await send('n1', 'n2', 'plain', 'hello')).toMatchObject({ heard: 'hello', end: '' });
    for (const [from, to] of [
      ['n1', 'n2'],
      ['n2', 'n1'],
      ['client', 'n1'],
      ['n1', 'client'],
    ] as const) {
      await open(from, to);
      await passes(from, to);
    }
    await gone({ kind: 'delay', from: 'n1', to: 'n2', delayMs: 80, jitterMs: 0 });
    await gone({ kind: 'loss', from: 'n1', to: 'n2', percent: 20 });
    await gone({ kind: 'rate', from: 'n1', to: 'n2', bytesPerSecond: 20_000 });
  });

  it('a one-way cut holds one direction back, lets the other flow, and what was held flows after the heal', async () => {
    await send('n1', 'n2', 'way', 'before');
    await send('n2', 'n1', 'back', 'before');
    await run.cluster.setCuts([{ from: 'n1', to: 'n2' }]);
    expect(await packet('n1', 'n2')).toBe('unreachable');
    await passes('n2', 'n1');
    expect(await link('n1', 'n2')).toBe('unreachable');
    expect(await link('n2', 'n1')).toBe('unreachable');
    await open('n1', 'n3');
    // On n1's connection nothing arrives at n2; on n2's own it arrives at n1, and the answer does not come back.
    expect(await send('n1', 'n2', 'way', 'held')).toMatchObject({ heard: '', end: '' });
    expect((await heard('n2')).received).not.toContain('held');
    expect(await send('n2', 'n1', 'back', 'through')).toMatchObject({ heard: '', end: '' });
    await until('it got through', async () => (await heard('n1')).received.includes('through'));
    // New connections are never made, either way, though the proxy's kernel accepts them.
    expect(await send('n1', 'n2', 'new', 'never')).toMatchObject({ heard: '' });
    expect((await heard('n2')).received).not.toContain('never');
    await heal();
    await until('held bytes flow', async () => (await heard('n1', 'way')).heard === 'held');
    await until('held answers flow', async () => (await heard('n2', 'back')).heard === 'through');
    await open('n1', 'n2');
    expect(await send('n1', 'n2', 'way', 'after')).toMatchObject({ heard: 'after' });
  });

  it('a node killed behind a cut is not noticed by its peer before the heal', async () => {
    await send('n3', 'n2', 'quiet', 'hello');
    await run.cluster.setCuts([
      { from: 'n2', to: 'n3' },
      { from: 'n3', to: 'n2' },
    ]);
    await run.cluster.kill('n2');
    await pause(300);
    expect(((await ask('n3', `send?name=quiet&port=${clusterPortOf('n2')}&text=x`)) as Sent).end).toBe('');
    await run.cluster.startNode('n2');
    await answers('n2');
    // Restarted inside the cut it stays cut.
    expect(await link('n3', 'n2')).toBe('unreachable');
    expect(await send('n3', 'n2', 'fresh', 'x')).toMatchObject({ heard: '' });
    await heal();
    await until('the old connection ends', async () => (await send('n3', 'n2', 'quiet', 'x')).end !== '');
    expect(await send('n3', 'n2', 'later', 'x')).toMatchObject({ heard: 'x' });
  });

  it('a reset refuses new connections and breaks standing ones', async () => {
    await send('n1', 'n2', 'old', 'hello');
    await rules({ kind: 'reset', from: 'n1', to: 'n2' });
    expect(await send('n1', 'n2', 'old', 'x')).toMatchObject({ heard: '', end: 'ECONNRESET' });
    expect((await send('n1', 'n2', 'refused', 'x')).end).toMatch(/ECONNRESET|EPIPE/);
    expect(await link('n1', 'n2')).toBe('unreachable');
    await heal();
    await open('n1', 'n2');
    expect(await send('n1', 'n2', 'again', 'x')).toMatchObject({ heard: 'x' });
  });

  it('delay, throttle and loss slow one direction down, are seen, and are gone after the heal', async () => {
    const delay: LinkRule = { kind: 'delay', from: 'n1', to: 'n2', delayMs: 120, jitterMs: 10 };
    const rate: LinkRule = { kind: 'rate', from: 'n1', to: 'n2', bytesPerSecond: 20_000 };
    const loss: LinkRule = { kind: 'loss', from: 'n1', to: 'n2', percent: 30 };
    await quick('slow', 1, 90);
    await rules(delay);
    expect((await send('n1', 'n2', 'slow')).tookMs).toBeGreaterThan(100);
    expect(await effect(delay)).toBe('seen');
    await gone(rate);
    await rules(rate);
    expect((await send('n1', 'n2', 'slow', 'a', 10_000)).tookMs).toBeGreaterThan(300);
    expect(await effect(rate)).toBe('seen');
    await gone(delay);
    await rules(loss);
    let slowest = 0;
    for (let count = 0; count < 60 && slowest < 180; count++)
      slowest = Math.max(slowest, (await send('n1', 'n2', 'slow')).tookMs);
    expect(slowest).toBeGreaterThan(180);
    expect(await effect(loss)).toBe('seen');
    await rules(delay, rate, loss);
    for (const rule of [delay, rate, loss]) expect(await effect(rule)).toBe('seen');
    await heal();
    for (const rule of [delay, rate, loss]) await gone(rule);
    await quick('slow', 10_000, 250);
  });

  it('clients can be cut off alone', async () => {
    await rules({ kind: 'drop', from: 'client', to: 'n1' }, { kind: 'drop', from: 'n1', to: 'client' });
    expect(await link('client', 'n1')).toBe('unreachable');
    expect((await run.cluster.probeNode('n1')).outcome).toBe('unreachable');
    expect(await send('n2', 'n1', 'inside', 'x')).toMatchObject({ heard: 'x' });
    await heal();
    await answers('n1');
  });

  it('who is no node reaches no cluster port', async () => {
    const socket = connect({ host: '127.0.0.1', port: clusterPortOf('n1') });
    socket.on('connect', () => socket.write('hello'));
    const [error] = (await once(socket, 'error')) as [NodeJS.ErrnoException];
    expect(error.code).toBe('ECONNRESET');
  });

  it('pause, kill, stop, wipe and scaling, by what the kernel says', async () => {
    const { cluster } = run;
    await cluster.pause('n3');
    expect((await cluster.state('n3')).kind).toBe('paused');
    expect((await cluster.probeNode('n3')).outcome).toBe('unreachable');
    await open('client', 'n3');
    await cluster.resume('n3');
    expect((await cluster.state('n3')).kind).toBe('running');
    await answers('n3');
    const disk = join(root, 'links', 'nodes', 'n3');
    await cluster.kill('n3');
    expect(await cluster.state('n3')).toMatchObject({ kind: 'exited', exitCode: 137, oomKilled: false });
    expect(existsSync(disk)).toBe(true);
    await cluster.wipe('n3');
    expect(existsSync(disk)).toBe(false);
    expect((await cluster.state('n3')).kind).toBe('absent');
    await cluster.startNode('n3');
    await cluster.pause('n3');
    await cluster.stop('n3', 2_000);
    expect((await cluster.state('n3')).kind).toBe('exited');
    const added = await cluster.addNode();
    await answers(added);
    expect(added).toBe('n4');
    await open('n1', added);
    await cluster.removeNode(added);
    expect(cluster.nodeIds()).toEqual(['n1', 'n2', 'n3']);
    expect(await cluster.state(added)).toEqual({ kind: 'absent' });
  });
});

describe('a harness that is killed', () => {
  async function abandoned(
    runId: string,
  ): Promise<{ kill: () => Promise<void>; record: ProcessRecord; runFolder: string }> {
    const logs = logsOf(runId);
    const script = join(import.meta.dirname, 'testing', 'abandoned-cluster.ts');
    const child = spawn(process.execPath, [script, logs], { stdio: ['ignore', 'pipe', 'inherit'] });
    await once(child.stdout, 'data');
    const runFolder = join(root, runId);
    const record = JSON.parse(readFileSync(join(runFolder, 'processes.json'), 'utf8')) as ProcessRecord;
    expect(record.processes).toHaveLength(4);
    expect(record.processes.every(({ pid }) => isAlive(pid))).toBe(true);
    return {
      runFolder,
      record,
      kill: async () => {
        child.kill('SIGKILL');
        await once(child, 'exit');
      },
    };
  }

  it('leaves no process behind, not even a frozen one', async () => {
    const { kill, record } = await abandoned('killed');
    await kill();
    await until('all are gone', () => record.processes.every(({ pid }) => !isAlive(pid)));
    expect(sweepProcesses(root).find((swept) => swept.runId === 'abandoned')).toMatchObject({ ended: 0 });
    expect(existsSync(join(root, 'killed', 'processes.json'))).toBe(false);
  });

  it('killed together with its warden leaves a frozen node, which the next run ends; the living and the kept stay', async () => {
    const { kill, record, runFolder } = await abandoned('both');
    const [warden] = record.processes.slice(-1);
    expect(sweepProcesses(root)).toEqual([]);
    process.kill(warden?.pid as number, 'SIGKILL');
    await kill();
    const frozen = record.processes[2]?.pid as number;
    await until('the running ones are gone', () => record.processes.filter(({ pid }) => isAlive(pid)).length === 1);
    expect(isAlive(frozen)).toBe(true);
    // Of another process that has the same id now, nothing is known but its start.
    const others = record.processes.map(({ pid }) => ({ pid, startTicks: '1' }));
    writeRecord(runFolder, { ...record, processes: others });
    expect(sweepProcesses(root)).toMatchObject([{ ended: 0 }]);
    expect(isAlive(frozen)).toBe(true);
    writeRecord(runFolder, { ...record, kept: true });
    expect(sweepProcesses(root)).toEqual([]);
    expect(isAlive(frozen)).toBe(true);
    writeRecord(runFolder, record);
    expect(sweepProcesses(root, { ...currentHost(), machine: 'another' })).toEqual([]);
    expect(sweepProcesses(root)).toMatchObject([{ runId: 'abandoned', ended: 1 }]);
    await until('it is gone', () => !isAlive(frozen));
    expect(endRecorded(runFolder)).toBeNull();
  });
});
