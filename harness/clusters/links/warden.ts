/**
 * A process beside the harness: carries all traffic between the nodes, so that the run loop does not, and outlives the harness
 * by as long as it takes to kill them.
 *
 * Invariant: when the harness is gone, however it went, every guarded process is dead before this one ends, paused ones too;
 * only processes with the start time that the harness saw are touched. Started by warden-client.ts, with an IPC channel.
 */
import { createServer } from 'node:net';
import { currentHost } from '../../../docker/labels.ts';
import { Prng } from '../../../lib/prng.ts';
import type { ProcessName, WardenAnswers, WardenCommand, WardenReply, WardenRequest } from './commands.ts';
import { LinkProxy } from './link-proxy.ts';
import { LinkTable } from './link-table.ts';
import { lookForRule, sendOne } from './rule-effects.ts';

const host = '127.0.0.1';

class Warden {
  private readonly links = new LinkTable();
  private readonly world: { nowMs(): number; random(): number };
  private readonly proxy: LinkProxy;
  private guarded: readonly ProcessName[] = [];
  private echoPort: Promise<number> | null = null;
  private isKept = false;

  constructor(seed: number) {
    const prng = new Prng(seed).fork('links');
    this.world = { nowMs: () => performance.now(), random: () => prng.float() };
    this.proxy = new LinkProxy(this.links, this.world);
  }

  async execute(command: WardenCommand): Promise<WardenAnswers[WardenCommand['kind']]> {
    switch (command.kind) {
      case 'add-client':
        return { probePort: await this.openProbe('client') };
      case 'add-node':
        return this.addNode(command);
      case 'remove-node':
        this.proxy.remove(command.nodeId);
        return null;
      case 'set-rules':
        this.links.setRules(command.rules);
        return null;
      case 'packet':
        return { tookMs: await sendOne(this.links.link(command.from, command.to), this.world) };
      case 'rule':
        return lookForRule(this.links.link(command.rule.from, command.rule.to), command.rule, this.world);
      case 'guard':
        this.guarded = command.processes;
        return null;
      case 'keep':
        this.isKept = true;
        return null;
    }
  }

  private async addNode(command: Extract<WardenCommand, { kind: 'add-node' }>): Promise<WardenAnswers['add-node']> {
    const { nodeId, sourceAddress, ports } = command;
    const isKnown = sourceAddress !== '';
    if (isKnown) this.proxy.addCaller(sourceAddress, nodeId);
    const open = (targetPort: number, nodesOnly: boolean): Promise<number> =>
      this.proxy.open({ owner: nodeId, targetPort, nodesOnly });
    return {
      ports: {
        client: await open(ports.client, false),
        cluster: await open(ports.cluster, isKnown),
        http: await open(ports.http, false),
      },
      probePort: await this.openProbe(nodeId),
    };
  }

  /** Stands for the end's kernel: answers also while a node's process is down or frozen. */
  private async openProbe(owner: string): Promise<number> {
    this.echoPort ??= openEcho();
    return this.proxy.open({ owner, targetPort: await this.echoPort, nodesOnly: false });
  }

  /** The harness is gone. */
  abandoned(): void {
    if (this.isKept) return;
    const alive = currentHost();
    for (const { pid, startTicks: known } of this.guarded) {
      const now = alive.startTicks(pid);
      // Only what is provably the process we were told of.
      if (now !== null && now === known) kill(pid);
    }
    process.exit(0);
  }
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It ended by itself meanwhile.
  }
}

async function openEcho(): Promise<number> {
  const server = createServer((socket) => {
    socket.on('error', () => socket.destroy());
    socket.pipe(socket);
  });
  await new Promise<void>((resolve) => server.listen(0, host, resolve));
  const address = server.address();
  return typeof address === 'object' && address !== null ? address.port : 0;
}

const warden = new Warden(Number(process.argv[2] ?? 0));
process.on('disconnect', () => warden.abandoned());
// The terminal's signals are for the harness, which ends us when it is done.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => undefined);
process.on('message', ({ id, command }: WardenRequest) => {
  const reply = (message: WardenReply): void => void process.send?.(message);
  warden.execute(command).then(
    (answer) => reply({ id, answer }),
    (error: unknown) => reply({ id, error: error instanceof Error ? error.message : String(error) }),
  );
});
