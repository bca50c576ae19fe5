/**
 * One simulated certification: a seed and its options in, a judged history out.
 *
 * Two phases. Safety: load under faults within the budget; whatever happens, nothing acknowledged may be lost and no invariant
 * may break. Liveness: everything is healed and the network calm; every partition must become Healthy and serve a write within
 * a bound. Then the read-back, every replica is asked, and the judge that judges containers judges this. The same seed and
 * options give the same run, event for event; if that broke, no failure could be replayed.
 */
import { startChaos, type ChaosOutcome } from '../chaos/driver.ts';
import type { Schedule } from '../chaos/schedule.ts';
import { present } from '../lib/assert.ts';
import { Prng } from '../lib/prng.ts';
import { encodeValue } from '../ledger/values.ts';
import { defaultJudgeOptions, type Judgement, judgeRun } from '../ledger/verify/judge.ts';
import { unlimitedBudget } from '../ledger/verify/search/budget.ts';
import { Mix, parseMix } from '../workloads/mix.ts';
import { defaultClientOptions } from '../zaris/client/contract.ts';
import { partitionOf } from '../zaris/model/segments.ts';
import { EdgeNotice } from '../zaris/node/edge-notice.ts';
import { Checkers } from './checkers/checkers.ts';
import { ClientHost, type SimClient } from './client-host.ts';
import { Coverage } from './coverage.ts';
import { EpochRecorder } from './epochs.ts';
import { extraSession } from './extra-sessions.ts';
import { SimFaultJournal } from './fault-rows.ts';
import { finishRun } from './finish.ts';
import { SimHistory } from './history.ts';
import { type Breach, makeWorld, type SimJob, type SimPlayed, type SimResult } from './job.ts';
import { SimKeyBook } from './key-book.ts';
import { nsOf, runOperation, SimLoad } from './load.ts';
import type { SimOptions } from './options.ts';
import { Retirer } from './retirer.ts';
import { PeerConnections } from './peer-connections.ts';
import { drawSchedule } from './schedule.ts';
import { controlLeader, EventHub, SimCluster } from './sim-cluster.ts';
import { Turns } from './turns.ts';
import type { World } from './world.ts';

/** Times of the phases beside the load, virtual ms. */
const startBoundMs = 60_000;
const drainBoundMs = 70_000;
/** How long after the last heal everything may take to be Healthy. */
export const livenessBoundMs = 120_000;
/** A write to each partition must be acknowledged within this after that. */
const probeBoundMs = 30_000;
/** How late an expiry may be: brutal chaos keeps partitions below their minimum, where nothing commits, for minutes. */
const ttlLateBoundMs = 240_000;
export const canaryCount = 8;

/** Plays and judges one seed. Rejects only on a fault of the simulator itself. */
export async function runSim(job: SimJob): Promise<SimResult> {
  const startedMs = performance.now();
  const played = await playSim(job);
  const judgement = judged(played);
  return { ...played, judgement, wallMs: performance.now() - startedMs };
}

/** Plays one seed; whoever takes its history judges it. */
export async function playSim(job: SimJob): Promise<SimPlayed> {
  return new SimRun(job).play();
}

function judged({ history, options }: SimPlayed): Judgement {
  return judgeRun(history, {
    ...defaultJudgeOptions,
    ttlLateBoundNs: nsOf(ttlLateBoundMs),
    minAckedInFaultWindows: 0,
    replicasPerKey: null,
    promises: {
      maxAttempts: defaultClientOptions.retry.maxAttempts,
      deadlineNs: nsOf(Math.max(options.requestTimeoutMs, probeBoundMs)),
    },
    searchBudget: () => unlimitedBudget(),
  });
}

/** Stands in every value of a run. */
export const runTagOf = (seed: number): string => `s${seed.toString(36)}`;

/** Everything that a simulated run consists of. */
export class SimRun {
  readonly job: SimJob;
  readonly options: SimOptions;
  readonly world: World;
  readonly turns: Turns;
  readonly host: ClientHost;
  readonly history: SimHistory;
  readonly cluster: SimCluster;
  readonly events: EventHub;
  readonly epochs: EpochRecorder;
  readonly keys: SimKeyBook;
  readonly coverage = new Coverage();
  readonly breaches: Breach[] = [];
  readonly random: Prng;
  readonly clients: SimClient[] = [];
  private readonly phases: { name: string; fromMs: number; toMs: number }[] = [];
  private readonly schedule: Schedule;
  private confirmedFaults = 0;
  private keysAtEnd = 0;
  notRecovered: string | null = null;

  constructor(job: SimJob) {
    this.job = job;
    const { options } = job;
    this.options = options;
    this.random = new Prng(job.seed);
    this.schedule = job.schedule ?? drawSchedule(job.seed, options);
    this.world = makeWorld(job);
    this.turns = new Turns(this.world);
    const { sink } = job;
    if (sink !== undefined) this.turns.pace = () => sink.pace();
    this.host = new ClientHost(this.world);
    this.history = new SimHistory(runTagOf(job.seed), job.sink ?? null);
    this.cluster = new SimCluster(this.world, this.turns);
    this.events = new EventHub(this.turns);
    void new PeerConnections(this.world);
    this.epochs = new EpochRecorder(this.world, this.history);
    const isCrowded = options.distribution === 'hot' || options.partitions === 1;
    this.keys = new SimKeyBook({
      maxLiveKeys: options.maxLiveKeys,
      sessionsPerPartition: isCrowded ? Infinity : Math.max(2, Math.ceil(options.sessions / 2)),
      partitionOf: (key) => partitionOf(key, options.partitions),
    });
    this.listen();
    job.onWorld?.(this.world);
  }

  private listen(): void {
    const { world, breaches } = this;
    const breach = (where: string, why: string): void => {
      if (breaches.length < maxBreaches) breaches.push({ atMs: world.nowMs, where, why });
    };
    world.onCrash = (where, error) =>
      breach(
        where,
        `${error.name}: ${error.message}${error.name === 'AssertionError' ? '' : `\n${error.stack ?? ''}`}`,
      );
    const checkers = this.job.checkers === true ? new Checkers({ world, breach }) : null;
    world.onStep = (node, event, effects) => {
      this.coverage.stepped(effects);
      checkers?.stepped(node, event, effects);
    };
    world.onNotice = (from, notice) => {
      const heard = notice instanceof EdgeNotice ? this.epochs.heard(notice.edge) : 'news';
      checkers?.noticed(from, notice, heard === 'known');
      if (heard !== 'news') return;
      this.coverage.notice(notice);
      this.events.publish({ name: notice.name, fields: notice.fields, nodeId: from, atMs: world.nowMs });
    };
  }

  async play(): Promise<SimPlayed> {
    const startedMs = performance.now();
    if (await this.phase('start', () => this.start())) {
      const outcome = await this.phase('load', () => this.load());
      await this.phase('settle', () => this.recover(outcome));
      this.keysAtEnd = await finishRun(this, this.canaries);
      return this.result(startedMs, outcome);
    }
    this.notRecovered ??= `the cluster was not Healthy ${startBoundMs} ms after its start: ${this.unhealthy()}`;
    return this.result(startedMs, null);
  }

  /** Notes when a phase ran. */
  async phase<T>(name: string, work: () => Promise<T>): Promise<T> {
    const fromMs = this.world.nowMs;
    try {
      return await work();
    } finally {
      this.phases.push({ name, fromMs, toMs: this.world.nowMs });
    }
  }

  /** What keeps the cluster from being whole; null when it is. */
  unhealthy(): string | null {
    const leader = controlLeader(this.world);
    if (leader === null) return 'there is no control leader';
    const { state } = leader.planes.control;
    if (state.mapVersion === 0) return 'there is no partition map';
    const dead = state.nodes.filter((node) => !node.alive && this.world.nodes.get(node.nodeId)?.removed !== true);
    if (dead.length > 0) return `nodes ${dead.map((node) => node.nodeId).join(', ')} are not alive`;
    const bad = state.runtimes.filter((runtime) => runtime.health !== 'Healthy');
    return bad.length === 0
      ? null
      : `partitions ${bad.map((runtime) => `${runtime.partition} (${runtime.health})`).join(', ')} are not Healthy`;
  }

  private async start(): Promise<boolean> {
    const { world, options } = this;
    const { rf, minInSync, partitions, nodes } = options;
    for (const id of world.nodes.keys()) world.start(id);
    world.bootstrap({
      clusterId: 'sim',
      replicationFactor: rf,
      minInSync,
      partitionCount: partitions,
      initialNodes: nodes,
    });
    const isWhole = await this.turns.run(world.nowMs + startBoundMs, () => this.unhealthy() === null);
    for (let index = 0; index < options.clients; index++) this.clients.push(this.client(`c${index}`));
    return isWhole;
  }

  client(name: string): SimClient {
    return this.host.client(name, this.random.fork(`client ${name}`), {
      requestTimeoutMs: this.options.requestTimeoutMs,
    });
  }

  canaries: string[] = [];
  /** Canary keys whose loss a read of the history saw. */
  readonly canariesSeen: string[] = [];

  private async load(): Promise<ChaosOutcome> {
    const { world, options, turns, job } = this;
    const mix = parseMix(options.mix);
    if ('error' in mix) throw new Error(mix.error);
    const workload = new Mix(mix.mix, {
      prng: this.random.fork('workload'),
      values: {
        encode: (id) => encodeValue(this.history.runTag, id, options.valueBytes),
        element: (id) => encodeValue(this.history.runTag, id, 0),
      },
      keys: this.keys,
      distribution: options.distribution,
      readRatio: options.readRatio,
      activeKeys: options.activeKeys,
      operationsPerKey: options.operationsPerKey,
      rememberedKeys: Math.max(8, Math.floor(4_096 / options.sessions)),
    });
    this.plantCanaries();
    const sessions = Array.from({ length: options.sessions }, (_, session) =>
      present(this.clients[session % this.clients.length], 'client'),
    );
    const load = new SimLoad({
      world,
      history: this.history,
      keys: this.keys,
      workload,
      clients: sessions,
      random: this.random.fork('sessions'),
      thinkMs: (1_000 * options.sessions) / options.ratePerSecond,
      maxOperations: options.maxOperations,
      timeoutMs: options.requestTimeoutMs,
      onCompleted: (operation, completion) => this.coverage.completed(operation, completion),
    });
    load.start();
    const retirer = new Retirer(this, options.sessions + extraSession.retirer);
    this.breakConnections(world.nowMs + options.durationMs);
    const journal = new SimFaultJournal(this.history);
    const chaos = startChaos({
      schedule: this.schedule,
      cluster: this.cluster,
      status: this.cluster,
      journal,
      events: this.events,
      clock: turns,
      sleeper: turns,
      prng: this.random.fork('targets'),
      policy: job.policy ?? job.store?.policy ?? { mayStall: false },
    });
    await turns.settle();
    await turns.run(world.nowMs + options.durationMs);
    let outcome: ChaosOutcome | null = null;
    void chaos.stop('the run ends').then((end) => (outcome = end));
    await turns.settle();
    await turns.run(Infinity, () => outcome !== null);
    load.stop();
    retirer.stop();
    this.confirmedFaults = journal.confirmed.size;
    await turns.run(world.nowMs + drainBoundMs, () => load.open === 0);
    return present(outcome as ChaosOutcome | null, 'outcome of chaos');
  }

  /** Client connections that break for no reason of ours, with answers on their way. */
  private breakConnections(untilMs: number): void {
    const { world, host, options } = this;
    if (options.breaksPerMinute === 0) return;
    const random = this.random.fork('breaks');
    const next = (): void => {
      if (world.nowMs >= untilMs) return;
      const { connections } = host;
      if (connections.length > 0) host.breakConnection(random.pick(connections), 'connection reset');
      world.at(world.nowMs + random.exponential(60_000 / options.breaksPerMinute), next);
    };
    world.at(world.nowMs + random.exponential(60_000 / options.breaksPerMinute), next);
  }

  private plantCanaries(): void {
    const client = present(this.clients[0], 'client');
    const session = this.options.sessions + extraSession.canary;
    const plant = (index: number): void => {
      if (index >= canaryCount) return;
      const key = `c${index}`;
      const operation = {
        f: 'write',
        key,
        value: encodeValue(this.history.runTag, this.history.nextOperationId, this.options.valueBytes),
      } as const;
      runOperation(
        { ...this, timeoutMs: this.options.requestTimeoutMs },
        { client, session, operation, canary: true },
        (completion) => {
          if (completion.kind === 'ok') this.canaries.push(key);
          plant(index + 1);
        },
      );
    };
    plant(0);
  }

  /** Liveness: all healed, the network calm. Healthy within a bound, and every partition acknowledges a write. */
  private async recover(outcome: ChaosOutcome): Promise<void> {
    const { world, turns } = this;
    if (!outcome.isHealed) this.notRecovered = `not everything could be healed: ${outcome.lastEvidence}`;
    world.network.calm();
    const boundMs = world.nowMs + livenessBoundMs;
    const isWhole = await turns.run(boundMs, () => this.unhealthy() === null);
    if (!isWhole) {
      this.notRecovered ??= `${livenessBoundMs} ms after the heal ${this.unhealthy() ?? 'it is whole'}`;
      return;
    }
    const waiting = new Set(Array.from({ length: this.options.partitions }, (_, partition) => partition));
    for (const partition of [...waiting]) this.probe(partition, () => waiting.delete(partition));
    if (!(await turns.run(world.nowMs + probeBoundMs, () => waiting.size === 0))) {
      this.notRecovered ??= `partitions ${[...waiting].join(', ')} acknowledged no write ${probeBoundMs} ms after they were Healthy`;
    }
  }

  private probe(partition: number, done: () => void): void {
    let key = '';
    for (let index = 0; key === ''; index++) {
      const name = `probe-${partition}-${index}`;
      if (partitionOf(name, this.options.partitions) === partition) key = name;
    }
    this.keys.opened(key);
    const operation = {
      f: 'write',
      key,
      value: encodeValue(this.history.runTag, this.history.nextOperationId, 0),
    } as const;
    const session = this.options.sessions + extraSession.probe + partition;
    runOperation(
      { ...this, timeoutMs: probeBoundMs },
      { client: present(this.clients[0], 'client'), session, operation },
      (completion) => {
        if (completion.kind === 'ok') done();
      },
    );
  }

  private result(startedMs: number, outcome: ChaosOutcome | null): SimPlayed {
    this.epochs.stop();
    const { history, options, world } = this;
    history.metas.set(
      'canary',
      this.canaries.map((key) => ({ key, kind: 'lost' })),
    );
    return {
      seed: this.job.seed,
      options,
      schedule: this.schedule,
      traceHash: world.traceHash,
      breaches: this.breaches,
      notRecovered: this.notRecovered,
      overshoots: outcome?.overshoots ?? [],
      environmentErrors: outcome?.environmentErrors ?? [],
      history,
      coverage: this.coverage,
      virtualMs: world.nowMs,
      wallMs: performance.now() - startedMs,
      events: world.delivered,
      confirmedFaults: this.confirmedFaults,
      failovers: this.epochs.failovers,
      handoffs: this.epochs.handoffs,
      canariesSeen: this.canariesSeen,
      keysAtEnd: this.keysAtEnd,
      phases: this.phases,
    };
  }
}

/** Breaches kept; more say nothing new. */
const maxBreaches = 20;
