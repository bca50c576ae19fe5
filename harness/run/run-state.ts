/**
 * What a run carries from phase to phase: settings, clock, ledger, keys, counts, and everything found against a certificate.
 */
import { currentHost } from '../assemble/head-part.ts';
import { LiveLine } from './live-line.ts';
import { KeyRegister } from './key-register.ts';
import { type LiveLoss, LiveCheck } from './live-check.ts';
import { type PhaseLimits, phaseLimits, PhaseRunner } from './phases.ts';
import type { RunCluster } from '../clusters/run-cluster.ts';
import type { RunFolder } from '../results.ts';
import type { RunSettings } from '../settings.ts';
import { storedSettings } from '../stored-settings.ts';
import { currentOwner } from '../../docker/labels.ts';
import type { ClusterPlan } from '../systems/system.ts';
import type { VerdictReason } from '../verdict.ts';
import { RunClock } from './run-clock.ts';
import { LedgerFaultJournal } from './fault-journal.ts';
import type { Resumption } from './resumption.ts';
import { ClientAudit } from './client-audit.ts';
import { CountingLedger } from './counting-ledger.ts';
import { Executor } from './executor.ts';
import { type RunLedger, unawaited } from './ports.ts';
import { Tally } from './tally.ts';
import type { RunEnd, World } from './world.ts';

/** Rate assumed for limits when the run is not throttled. */
const unthrottledPerSecond = 20_000;
/** Share of 64 sessions that may wait on one partition. */
const sessionsPerPartitionOf64 = 3;

/** Time limits of a run with these settings. */
export function runLimits(settings: RunSettings): PhaseLimits {
  const rate = Math.min(settings.ratePerSecond, unthrottledPerSecond);
  const operations = Math.min(settings.maxOperations, (settings.durationMs / 1_000) * rate);
  return phaseLimits(settings.durationMs, operations, Math.min(operations, settings.maxLiveKeys));
}

/** A short tag of a run's id for its values; ids differ in their last parts. */
export const runTagOf = (runId: string): string => runId.split('-').slice(-2).join('');

export class RunState {
  readonly settings: RunSettings;
  readonly world: World;
  readonly folder: RunFolder;
  /** The run's ledger, every row counted on its way. */
  readonly ledger: CountingLedger;
  readonly clock: RunClock;
  readonly limits: PhaseLimits;
  readonly phases: PhaseRunner;
  readonly live: LiveLine;
  readonly tally = new Tally();
  readonly liveCheck: LiveCheck;
  readonly audit: ClientAudit;
  readonly keys: KeyRegister;
  readonly executor: Executor;
  readonly journal: LedgerFaultJournal;
  /** Null unless an earlier harness of this run has died. */
  readonly resumed: Resumption | null;
  readonly plan: ClusterPlan;
  /** Named in every value of the run. */
  readonly runTag: string;
  /** Set as soon as there is anything to remove. */
  cluster: RunCluster | null = null;
  /** Set once the system is known; keys are placed by it. */
  partitionOf: (key: string) => number = () => 0;
  /** Why the load ended before its time without a signal; null when it did not. */
  stopped: string | null = null;
  /** What was the matter with this machine, one sentence each. */
  readonly hostTroubles: string[] = [];
  /** The cluster did not do what it was told at the heal: waiting for the store to recover is of no use. */
  isUnhealed = false;
  /** The cluster was frozen at a loss and is kept. */
  frozen = false;
  /** Called at every acknowledged write; faults may wait for so many of a partition. */
  onAcknowledged: (partition: number, node: string) => void = () => undefined;
  /** Called at a loss that the live check sees. */
  onLoss: () => void = () => undefined;
  readBack = { expected: 0, done: 0 };
  replicas = { asked: 0, answered: 0 };
  canaryPlanted: readonly string[] = [];
  canaryDeleted: readonly string[] = [];
  private readonly canarySeenLive: string[] = [];
  private readonly reasons: VerdictReason[] = [];
  private peakMemoryBytes = 0;
  /** How late a timer here was at worst, ms. */
  latenessMs: () => number = () => 0;

  constructor(
    settings: RunSettings,
    world: World,
    folder: RunFolder,
    ledger: RunLedger,
    resumed: Resumption | null = null,
  ) {
    this.settings = settings;
    this.world = world;
    this.folder = folder;
    this.ledger = new CountingLedger(ledger, resumed?.rows);
    this.resumed = resumed;
    this.reasons.push(...(resumed?.reasons ?? []));
    this.clock = new RunClock(world.clock, ledger.nowNs());
    this.runTag = runTagOf(folder.runId);
    this.limits = runLimits(settings);
    this.plan = {
      clusterId: folder.runId,
      nodeCount: settings.nodeCount,
      replicationFactor: settings.replicationFactor,
      minInSync: settings.minInSync ?? world.system.defaultMinInSync(settings.replicationFactor),
      partitionCount: settings.partitionCount,
    };
    this.live = new LiveLine({
      out: world.out,
      tally: this.tally,
      nowMs: () => this.clock.nowMs(),
    });
    this.phases = new PhaseRunner(
      this.clock,
      (name) => {
        world.logger.info({ phase: name }, 'phase starts');
        if (name !== 'load' || this.loadFromNs === null)
          unawaited(this.ledger.meta(`started:${name}`, this.clock.nowNs()));
      },
      (record) => {
        const fromNs = this.clock.nsOf(record.fromMs);
        unawaited(
          this.ledger.meta(`phase:${record.name}`, {
            fromNs: record.name === 'load' ? (this.loadFromNs ?? fromNs) : fromNs,
            toNs: this.clock.nsOf(record.toMs),
          }),
        );
      },
    );
    this.journal = new LedgerFaultJournal(this.ledger, this.clock, this.tally);
    this.audit = new ClientAudit(world.system.definiteRefusals ?? null);
    this.liveCheck = new LiveCheck((loss) => this.lossSeen(loss));
    this.keys = new KeyRegister({
      maxLiveKeys: settings.maxLiveKeys,
      sessionsPerPartition:
        settings.distribution === 'hot' || settings.partitionCount === 1
          ? Infinity
          : Math.max(2, Math.floor((settings.sessions * sessionsPerPartitionOf64) / 64)),
      crowdedSessions: settings.sessions / 2,
      partitionOf: (key) => this.partitionOf(key),
      partitionCount: settings.partitionCount,
      nowMs: () => this.clock.nowMs(),
    });
    this.executor = new Executor({
      ledger: this.ledger,
      clock: this.clock,
      keys: this.keys,
      tally: this.tally,
      liveCheck: this.liveCheck,
      audit: this.audit,
      onAcknowledged: (partition, node) => this.onAcknowledged(partition, node),
    });
    this.writeSettings();
  }

  /** Records what stands against a certificate; the same reason counts once. */
  against(reason: VerdictReason): void {
    if (this.reasons.some((known) => known.verdict === reason.verdict && known.reason === reason.reason)) return;
    this.reasons.push(reason);
    // Kept at once: a harness that dies later must not take it along.
    unawaited(this.ledger.meta('reasons', this.reasons));
    this.world.logger.warn({ verdict: reason.verdict }, reason.reason);
  }

  /** How long load and faults run from now on, ms. */
  get loadMs(): number {
    return this.resumed?.remainingMs ?? this.settings.durationMs;
  }

  private get loadFromNs(): number | null {
    return this.resumed?.loadFromNs ?? null;
  }

  get reasonsAgainst(): readonly VerdictReason[] {
    return this.reasons;
  }

  /** Prints one line for people. */
  print(text: string): void {
    this.live.print(text);
    this.world.logger.info({}, text);
  }

  /** Keeps the highest memory seen; called regularly. */
  noteMemory(bytes: number): void {
    this.peakMemoryBytes = Math.max(this.peakMemoryBytes, bytes);
  }

  /** Writes everything that the judgement needs beside the rows. */
  async writeEnd(): Promise<void> {
    const complaint = this.audit.complaint();
    if (complaint !== null) this.against({ verdict: 'inconclusive', reason: complaint });
    await this.ledger.meta('written', this.ledger.counts);
    const end: RunEnd = {
      interruptedBy: this.world.interruption.signalName,
      reasons: this.reasons,
      readBack: this.readBack,
      replicas: this.replicas,
      canaryDeleted: this.canaryDeleted,
      canarySeenLive: this.canarySeenLive,
      peakMemoryBytes: this.peakMemoryBytes,
      latenessMs: Math.ceil(this.latenessMs()),
    };
    await this.ledger.meta('end', end);
    await this.ledger.meta(
      'canary',
      this.canaryDeleted.map((key) => ({ key, kind: 'lost' })),
    );
    if (this.stopped !== null) await this.ledger.meta('stopped', this.stopped);
    await this.ledger.meta('endedAtNs', this.clock.nowNs());
    await this.ledger.meta('counts', {
      opened: this.keys.openedCount,
      retired: this.keys.retiredCount,
      live: this.keys.liveCount,
    });
  }

  private writeSettings(): void {
    unawaited(this.ledger.meta('settings', storedSettings(this.settings)));
    unawaited(this.ledger.meta('owner', currentOwner()));
    if (this.resumed !== null) unawaited(this.ledger.meta('resumed', this.resumed.count));
    unawaited(this.ledger.meta('runId', this.folder.runId));
    unawaited(this.ledger.meta('plan', this.plan));
    unawaited(this.ledger.meta('host', currentHost()));
    unawaited(this.ledger.meta('versions', [{ name: 'node.js', value: process.version }]));
  }

  private lossSeen(loss: LiveLoss): void {
    this.world.logger.error({ ...loss }, 'the live check misses an acknowledged write');
    if (loss.canary) {
      this.canarySeenLive.push(loss.key);
      return;
    }
    this.tally.losses++;
    this.print(
      `LOSS SEEN: ${loss.key} was acknowledged and is ${loss.found === null ? 'absent' : 'another value'} now`,
    );
    this.onLoss();
  }
}
