/**
 * For tests of the harness's death: a store that outlives it. The store lives in the test's own process and answers a child's
 * calls; the child, which runs the real run loop on the real ledger, is killed and the store goes on, as containers do.
 *
 * Invariant: both processes count time on the host's monotonic clock, so that instants mean the same on either side.
 */
import type { ChildProcess } from 'node:child_process';
import type { Cluster, SystemStatus } from '../../chaos/ports.ts';
import type { Completion, Operation } from '../../workloads/port.ts';
import type { RunCluster } from '../clusters/run-cluster.ts';
import type { ClusterPlan, Peeked, RunningSystem, System } from '../systems/system.ts';
import { MemoryWorld, partitionOfKey } from './memory-world.ts';

export const nodeCount = 5;
/** Share of answers that get lost on their way. */
const lostAnswers = 0.02;
/** Latest acknowledged unique keys that a lossy store forgets with a killed node. */
const forgottenPerKill = 12;

/** The host's monotonic clock, ms; the same in every process. */
export const hostNowMs = (): number => Number(process.hrtime.bigint()) / 1e6;

/** What a child asks of the store; `words` travel as JSON. */
interface Call {
  readonly id: number;
  readonly method: string;
  readonly words: readonly unknown[];
}
type Answer = { readonly id: number } & ({ readonly value: unknown } | { readonly error: string });

/** The store's side. A lossy one forgets, with each killed node, what it acknowledged last. */
export class OutlivingStore {
  readonly world = new MemoryWorld(nodeCount, hostNowMs);
  /** Keys with an acknowledged value that were dropped. */
  readonly forgotten: string[] = [];
  private readonly isLossy: boolean;
  private readonly newest: string[] = [];
  private running: RunningSystem | null = null;

  constructor(isLossy: boolean) {
    this.isLossy = isLossy;
    this.world.lostAnswers = lostAnswers;
  }

  /** Answers the calls of a child until it is gone. */
  serve(child: ChildProcess): void {
    child.on('message', (call: Call) => {
      this.answer(call).then(
        (value) => reply(child, { id: call.id, value: value ?? null }),
        (error: unknown) => reply(child, { id: call.id, error: String(error) }),
      );
    });
  }

  private async answer({ method, words }: Call): Promise<unknown> {
    if (method === 'connect') {
      this.running = this.world.asSystem().connect({ plan: words[0] as ClusterPlan, addresses: [], nowMs: hostNowMs });
      return null;
    }
    if (method === 'kill') this.forget();
    if (method === 'unsupported') return [...(await this.world.unsupported())];
    if (this.running === null) throw new Error('the child asked before it connected');
    if (method === 'execute') return await this.execute(this.running, words[0] as Operation);
    if (method === 'status') return await this.running.status.status();
    if (method === 'peek') return await this.running.peek(...(words as [string, number, string[]]));
    if (method === 'events') return await this.running.events();
    return await (this.world[method as 'startNode'] as (...all: unknown[]) => Promise<unknown>).apply(
      this.world,
      words as unknown[],
    );
  }

  private async execute(running: RunningSystem, operation: Operation): Promise<Completion> {
    const completion = await running.client(0).execute(operation);
    if (completion.kind === 'ok' && operation.f === 'write' && operation.key.startsWith('s')) {
      this.newest.push(operation.key);
      if (this.newest.length > forgottenPerKill) this.newest.shift();
    }
    return completion;
  }

  private forget(): void {
    if (!this.isLossy) return;
    for (const key of this.newest.splice(0)) {
      if (this.world.store.peek(key, hostNowMs()).value === null) continue;
      this.world.store.forget(key);
      this.forgotten.push(key);
    }
  }
}

function reply(child: ChildProcess, answer: Answer): void {
  // A child that was killed in between takes no answer any more.
  if (child.connected) child.send(answer, () => undefined);
}

/** The child's side: the store and its cluster as the run loop wants them. */
export class RemoteStore {
  private readonly waiting = new Map<number, (answer: Answer) => void>();
  private nextId = 1;

  constructor() {
    process.on('message', (answer: Answer) => {
      this.waiting.get(answer.id)?.(answer);
      this.waiting.delete(answer.id);
    });
  }

  /** `sawAcknowledged` is called before the run loop hears of an acknowledgement. */
  asSystem(sawAcknowledged: (session: number, operation: Operation, completion: Completion) => void): System {
    return {
      ...new MemoryWorld(nodeCount).asSystem(),
      connect: ({ plan }) => this.connect(plan, sawAcknowledged),
    };
  }

  asRunCluster(): RunCluster {
    const nodeIds = Array.from({ length: nodeCount }, (_, index) => `n${index + 1}`);
    const forward =
      (method: string) =>
      (...words: unknown[]): Promise<never> =>
        this.call(method, words) as Promise<never>;
    const methods = [
      'startNode',
      'kill',
      'stop',
      'pause',
      'resume',
      'wipe',
      'setCuts',
      'state',
      'probeLink',
      'probeNode',
    ];
    const cluster = {
      kind: 'process',
      nodeIds: () => nodeIds,
      ...Object.fromEntries(methods.map((method) => [method, forward(method)])),
      unsupported: async () => new Map((await this.call('unsupported', [])) as [string, string][]),
    } as unknown as Cluster;
    return {
      cluster,
      addresses: () => nodeIds.map((nodeId) => ({ nodeId, host: 'memory', clientPort: 0, httpPort: 0 })),
      build: 'memory',
      engine: null,
      versions: [],
      logTail: async () => '',
      keep: async () => 'nothing to remove',
      dispose: async () => undefined,
    };
  }

  private connect(
    plan: ClusterPlan,
    sawAcknowledged: (session: number, operation: Operation, completion: Completion) => void,
  ): RunningSystem {
    const connected = this.call('connect', [plan]);
    return {
      client: (session) => ({
        execute: async (operation) => {
          const completion = (await this.call('execute', [operation])) as Completion;
          if (completion.kind === 'ok') sawAcknowledged(session, operation, completion);
          return completion;
        },
        close: async () => undefined,
      }),
      status: { status: async () => (await this.call('status', [])) as SystemStatus },
      partitionOf: (key) => partitionOfKey(key, plan.partitionCount),
      bootstrap: async () => void (await connected),
      facts: async () => ({
        build: 'memory',
        replicationFactor: plan.replicationFactor,
        minInSync: plan.minInSync,
        partitions: plan.partitionCount,
        versions: [],
      }),
      peek: async (...words) => (await this.call('peek', words)) as Peeked | null,
      events: async () => (await this.call('events', [])) as [],
      nodeAdded: () => undefined,
      close: async () => undefined,
    };
  }

  private call(method: string, words: readonly unknown[]): Promise<unknown> {
    const id = this.nextId++;
    return new Promise((resolve, reject) => {
      this.waiting.set(id, (answer) => {
        if ('error' in answer) reject(new Error(answer.error));
        else resolve(answer.value);
      });
      process.send?.({ id, method, words } satisfies Call);
    });
  }
}
