/**
 * Plays a schedule against a cluster.
 *
 * Invariant: every event is planned in the journal before the first is injected, in the order of the schedule; when `done`
 * resolves, everything that was opened has been healed (or stands in `environmentErrors`), also after `stop` at any moment.
 * If something stayed open, the final read-back would be judged under a fault that no report shows.
 */
import type { Clock } from '../lib/clock.ts';
import type { Prng } from '../lib/prng.ts';
import { Account } from './account.ts';
import type { BudgetPolicy } from './budget.ts';
import { runFault } from './fault-run.ts';
import { ClusterCallError, type FieldBounds, FaultField, fieldBounds } from './field.ts';
import {
  advanceLife,
  type FaultJournal,
  type FaultLife,
  type FaultRecord,
  type FaultStep,
  isConfirmed,
  isOpen,
} from './journal.ts';
import type { Cluster, EventSource, Sleeper, StatusSource } from './ports.ts';
import { runRollingRestart } from './rolling.ts';
import { type RunBounds, runBounds, type RunContext, type ScaleChange } from './run-context.ts';
import { momentText, type Schedule, type ScheduleEvent, triggerStages } from './schedule.ts';
import { type Arrival, TriggerBoard } from './triggers.ts';

export interface ChaosOptions {
  readonly schedule: Schedule;
  readonly cluster: Cluster;
  readonly status: StatusSource;
  readonly journal: FaultJournal;
  readonly events: EventSource;
  readonly clock: Clock;
  readonly sleeper: Sleeper;
  /** For targets among equals; forked per event. */
  readonly prng: Prng;
  readonly policy?: BudgetPolicy;
  readonly bounds?: Partial<RunBounds>;
  readonly fieldBounds?: Partial<FieldBounds>;
  /** Told when a node was added or removed for good, so that the system can be asked to move its copies. Must not throw. */
  readonly onScaled?: (change: ScaleChange) => void;
  /** Told of every journal record, after it is kept; for the live line. */
  readonly onProgress?: (progress: ChaosProgress) => void;
}

export interface ChaosProgress {
  readonly record: FaultRecord;
  readonly planned: number;
  readonly open: number;
  readonly confirmed: number;
  readonly skipped: number;
}

export interface ChaosOutcome {
  readonly lives: ReadonlyMap<string, FaultLife>;
  /** What took more than the contract promises to survive; not empty: inconclusive. */
  readonly overshoots: readonly string[];
  /** Calls to the cluster that failed past their bounds; not empty: exit 4, unless something weighs more. */
  readonly environmentErrors: readonly string[];
  /** True when nothing is open, every heal was verified, and the cluster was brought back to its wanted state. */
  readonly isHealed: boolean;
  /** What the last reconciliation found and did. */
  readonly lastEvidence: string;
}

export interface ChaosRun {
  /** Never rejects but for a programmer's error or a journal that cannot be written. */
  readonly done: Promise<ChaosOutcome>;
  /** Injects nothing more, heals everything now; resolves with the outcome. */
  stop(why: string): Promise<ChaosOutcome>;
}

/** Starts playing. Time 0 of the schedule is now. */
export function startChaos(options: ChaosOptions): ChaosRun {
  const driver = new Driver(options);
  return {
    done: driver.done,
    stop: (why) => {
      driver.healNow(why);
      return driver.done;
    },
  };
}

class Driver {
  readonly done: Promise<ChaosOutcome>;
  private readonly options: ChaosOptions;
  private readonly field: FaultField;
  private readonly board: TriggerBoard;
  private readonly account = new Account();
  private readonly healing = new AbortController();
  private readonly lives = new Map<string, FaultLife>();
  private readonly overshoots: string[] = [];
  private readonly environmentErrors: string[] = [];
  private readonly startMs: number;
  /** Set when something threw that nobody may carry on after; rethrown once everything is healed. */
  private broken: { readonly error: unknown } | null = null;

  constructor(options: ChaosOptions) {
    this.options = options;
    this.startMs = options.clock.nowMs();
    const bounds = { ...fieldBounds, ...options.fieldBounds };
    this.field = new FaultField(options.cluster, options.clock, options.sleeper, bounds);
    this.board = new TriggerBoard(options.events);
    this.done = this.play();
  }

  healNow(why: string): void {
    if (!this.healing.signal.aborted) this.healing.abort(why);
  }

  private async play(): Promise<ChaosOutcome> {
    const { schedule, sleeper } = this.options;
    const over = new AbortController();
    const healingPart = sleeper.sleep(schedule.healFromMs, over.signal).then(() => {
      if (!over.signal.aborted) this.healNow('the healing part of the run began');
    });
    let lastEvidence: string;
    try {
      // All at once, so that a journal with group commit takes one turn for a schedule of hours; the order is theirs.
      await Promise.all(
        schedule.events.map(({ id, fault, target, moment }) =>
          this.write(id, { step: 'planned', fault, target, due: momentText(moment) }),
        ),
      );
      const context = await this.context();
      await Promise.all(schedule.events.map((event) => this.playEvent(context, event)));
    } catch (error) {
      this.broken ??= { error };
    } finally {
      lastEvidence = await this.bringBack();
      over.abort('over');
      await healingPart;
    }
    if (this.broken !== null) throw this.broken.error;
    return {
      lives: this.lives,
      overshoots: this.overshoots,
      environmentErrors: this.environmentErrors,
      isHealed:
        lastEvidence !== '' &&
        [...this.lives.values()].every((life) => !isOpen(life) && life.kind !== 'heal-unverified'),
      lastEvidence,
    };
  }

  private async context(): Promise<RunContext> {
    const { cluster, status, clock, sleeper, policy, bounds } = this.options;
    let unsupported: ReadonlyMap<string, string> = new Map();
    try {
      unsupported = await this.field.call('asking what this host cannot do', () => cluster.unsupported());
    } catch (error) {
      if (!(error instanceof ClusterCallError)) throw error;
      this.environmentErrors.push(error.message);
      this.healNow(error.message);
    }
    return {
      cluster,
      status,
      clock,
      sleeper,
      field: this.field,
      account: this.account,
      policy: policy ?? { mayStall: false },
      bounds: { ...runBounds, ...bounds },
      unsupported,
      scaled: (change) => this.options.onScaled?.(change),
      healNow: this.healing.signal,
      write: (faultId, step, atMs) => this.write(faultId, step, atMs),
      environment: (error) => {
        this.environmentErrors.push(error);
      },
    };
  }

  private async playEvent(context: RunContext, event: ScheduleEvent): Promise<void> {
    try {
      const prng = this.options.prng.fork(event.id);
      const arrival = await this.waitFor(event);
      if (arrival.kind === 'never') await this.write(event.id, { step: 'skipped', reason: arrival.reason });
      else if (event.fault.kind === 'rolling-restart') await runRollingRestart(context, event, prng);
      else await runFault(context, event, prng, arrival.partition);
    } catch (error) {
      // Nothing is thrown while others are open: they heal first.
      this.broken ??= { error };
      this.healNow(`chaos broke: ${error instanceof Error ? error.message : String(error)}`);
    } finally {
      this.board.faultOver(event.id, this.lives.get(event.id)?.kind ?? 'over');
    }
  }

  private async waitFor(event: ScheduleEvent): Promise<Arrival> {
    const { signal } = this.healing;
    const { clock, sleeper } = this.options;
    const { moment } = event;
    let arrival: Arrival = { kind: 'came', partition: null };
    let delayMs = 0;
    if (moment.kind === 'at') {
      delayMs = this.startMs + moment.atMs - clock.nowMs();
    } else {
      delayMs = moment.delayMs;
      arrival =
        moment.kind === 'after-fault'
          ? await this.board.waitForStage(moment.faultId, moment.stage, signal)
          : await this.board.waitForEvent(moment, signal);
    }
    if (arrival.kind === 'came' && delayMs > 0) await sleeper.sleep(delayMs, signal);
    if (signal.aborted) return { kind: 'never', reason: String(signal.reason) };
    return arrival;
  }

  private async write(faultId: string, step: FaultStep, atMs = this.options.clock.nowMs()): Promise<void> {
    const record: FaultRecord = { faultId, atMs, ...step };
    const life = advanceLife(this.lives.get(faultId) ?? null, record);
    await this.options.journal.append(record);
    this.lives.set(faultId, life);
    if (record.step === 'overshoot') this.overshoots.push(`${faultId}: ${record.why}`);
    const stage = triggerStages.find((known) => known === record.step);
    if (stage !== undefined) this.board.stageReached(faultId, stage);
    const all = [...this.lives.values()];
    this.options.onProgress?.({
      record,
      planned: this.options.schedule.events.length,
      open: all.filter(isOpen).length,
      confirmed: all.filter(isConfirmed).length,
      skipped: all.filter((one) => one.kind === 'skipped').length,
    });
  }

  /** Nothing is wanted any more: everything runs, nothing is cut. What could not be healed before gets its last chance. */
  private async bringBack(): Promise<string> {
    for (const fault of this.field.open()) this.field.remove(fault.faultId);
    try {
      const evidence = await this.field.reconcileAll();
      for (const [faultId, life] of this.lives) {
        if (!isOpen(life)) continue;
        await this.write(faultId, { step: 'healed', evidence: `at the end: ${evidence}` });
        await this.write(faultId, {
          step: 'heal-unverified',
          evidence: 'healed by the last reconciliation, past its own bound',
        });
      }
      return evidence;
    } catch (error) {
      if (error instanceof ClusterCallError) this.environmentErrors.push(error.message);
      else this.broken ??= { error };
      return '';
    }
  }
}
