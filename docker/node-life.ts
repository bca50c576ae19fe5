/**
 * Owns one node on the engine: its seat, its container, its control disk, and what is done to them.
 *
 * Operations on a node run one after the other, in the order asked, and are idempotent: they look first, and a state
 * that is already there is no error. Invariant: the seat outlives every incarnation, so address, ports and packet rules
 * are in place before a restarted process runs its first instruction.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type Docker from 'dockerode';
import type { Clock } from '../lib/clock.ts';
import type { NodeState } from '../chaos/ports.ts';
import { clockEnvironment, offsetFile, offsetText, writeOffset } from './clock-fault.ts';
import { NodeContainer } from './containers.ts';
import type { NodeSpec } from './containers.ts';
import type { Engine } from './engine.ts';
import { messageOf } from './errors.ts';
import { lastSavedIncarnation, readIncarnationLog, saveIncarnationLog } from './incarnation-logs.ts';
import { processBelongsTo, processIsGone } from './netns.ts';
import type { Seat } from './netns.ts';
import { runOutOfMemory } from './out-of-memory.ts';

/** Something done to a node took effect; `atMs` is monotonic. */
export interface Effect {
  readonly kind: 'started' | 'killed' | 'stopped' | 'paused' | 'resumed' | 'wiped' | 'removed' | 'links' | 'clock';
  readonly nodeId: string;
  readonly atMs: number;
  /** The means, for reports: `signal` (from the host), `engine`, `memory`, `nsenter`, `exec`. */
  readonly via: string;
}

/** What one node's life is made of. */
export interface NodeLifeOptions {
  readonly engine: Engine;
  readonly clock: Clock;
  readonly nodeId: string;
  readonly seat: Seat;
  /** Called for each container made, so that its environment is fresh. */
  readonly spec: () => NodeSpec;
  /** Can the wall clock of its process be moved? It costs the process a file read per look at the clock. */
  readonly clockFaults: boolean;
  readonly volumeLabels: Record<string, string>;
  readonly logsDir: string;
  /** Taken over from a dead harness: its container, if it has one. Its log is read from where the engine keeps it. */
  readonly adopted?: { readonly containerId: string | null };
  readonly onEffect: (effect: Effect) => void;
  readonly onLogLost: (reason: string) => void;
}

const deathTimeoutMs = 15_000;
const statusOf = (error: unknown): number => (error as { statusCode?: number }).statusCode ?? 0;
const isGone = (error: unknown): boolean => statusOf(error) === 404;

/** Names one incarnation: the container and when it was started. */
const instanceOf = (about: Docker.ContainerInspectInfo): string => `${about.Id.slice(0, 12)}@${about.State.StartedAt}`;

/** One node's containers and disk. */
export class NodeLife {
  readonly nodeId: string;
  readonly seat: Seat;
  private readonly options: NodeLifeOptions;
  private readonly docker: Docker;
  private containerId: string | null = null;
  private incarnation = 0;
  private clockOffsetMs = 0;
  private killedForMemory: string | null = null;
  private unsavedStart: string | null = null;
  private queue: Promise<unknown> = Promise.resolve();

  constructor(options: NodeLifeOptions) {
    this.options = options;
    this.nodeId = options.nodeId;
    this.seat = options.seat;
    this.docker = options.engine.docker;
    if (options.adopted === undefined) return;
    this.containerId = options.adopted.containerId;
    this.incarnation = lastSavedIncarnation(options.logsDir, options.nodeId) + 1;
  }

  /** After taking over: the log of what runs now will be saved when it ends. */
  async watchAdopted(): Promise<void> {
    this.unsavedStart = (await this.inspect())?.State.StartedAt ?? null;
  }

  /** The id of the current container; null before the first start and after a wipe. */
  get container(): string | null {
    return this.containerId;
  }

  private inOrder<T>(work: () => Promise<T>): Promise<T> {
    const next = this.queue.then(work, work);
    this.queue = next.catch(() => {});
    return next;
  }

  private effect(kind: Effect['kind'], via: string, atMs = this.options.clock.nowMs()): void {
    this.options.onEffect({ kind, nodeId: this.nodeId, atMs, via });
  }

  private async inspect(): Promise<Docker.ContainerInspectInfo | null> {
    if (this.containerId === null) return null;
    try {
      return await this.docker.getContainer(this.containerId).inspect();
    } catch (error) {
      if (isGone(error)) return null;
      throw error;
    }
  }

  /** What the engine says of the node now; `since` is monotonic. */
  async state(): Promise<NodeState> {
    const about = await this.inspect();
    if (about === null || about.State.Status === 'created') return { kind: 'absent' };
    const { State: state } = about;
    const instance = instanceOf(about);
    if (state.Paused) return { kind: 'paused', instance };
    if (!state.Running) {
      const oomKilled = state.OOMKilled || instance === this.killedForMemory;
      return { kind: 'exited', instance, exitCode: state.ExitCode, oomKilled };
    }
    const ageMs = this.options.clock.wallMs() - Date.parse(state.StartedAt);
    return { kind: 'running', instance, since: this.options.clock.nowMs() - ageMs };
  }

  /** Creates the control disk and the container when missing, and starts it. */
  start(): Promise<void> {
    return this.inOrder(async () => {
      const about = await this.inspect();
      if (about?.State.Running === true) return;
      await this.saveLog();
      if (about === null) {
        await this.create();
      } else {
        await this.docker
          .getContainer(about.Id)
          .start()
          .catch((error: unknown) => {
            if (statusOf(error) !== 304) throw error;
          });
      }
      this.incarnation += 1;
      this.unsavedStart = (await this.inspect())?.State.StartedAt ?? null;
      this.effect('started', 'engine');
    });
  }

  private async create(): Promise<void> {
    const spec = this.options.spec();
    // Creating a volume that is there already leaves it as it is.
    await this.docker.createVolume({ Name: spec.volume, Labels: this.options.volumeLabels });
    const environment = this.options.clockFaults ? { ...spec.environment, ...clockEnvironment } : spec.environment;
    const container = new NodeContainer({ ...spec, environment });
    if (this.options.clockFaults) {
      container.withCopyContentToContainer([{ content: offsetText(this.clockOffsetMs), target: offsetFile }]);
    }
    this.containerId = (await container.start()).getId();
  }

  /** SIGKILL, also of a frozen process: the signal waits for it, then it is thawed into its death. */
  kill(): Promise<void> {
    return this.inOrder(async () => {
      const about = await this.inspect();
      if (about?.State.Running !== true) return;
      const container = this.docker.getContainer(about.Id);
      const ended = container.wait();
      ended.catch(() => {});
      let via = 'engine';
      let atMs: number | null = null;
      if (this.killFromHost(about)) {
        via = 'signal';
        if (about.State.Paused) await this.thaw(container);
        atMs = await this.whenDead(about.State.Pid);
      } else {
        if (about.State.Paused) await this.thaw(container);
        await container.kill({ signal: 'SIGKILL' }).catch(ignoreNotRunning);
      }
      await this.bounded(ended, 'did not die');
      this.effect('killed', via, atMs ?? this.options.clock.nowMs());
      await this.saveLog();
    });
  }

  private killFromHost(about: Docker.ContainerInspectInfo): boolean {
    if (!this.options.engine.local || process.getuid?.() !== 0) return false;
    if (!processBelongsTo(about.State.Pid, about.Id)) return false;
    try {
      process.kill(about.State.Pid, 'SIGKILL');
      return true;
    } catch {
      return false;
    }
  }

  private async whenDead(pid: number): Promise<number> {
    const deadlineMs = this.options.clock.nowMs() + deathTimeoutMs;
    while (!processIsGone(pid)) {
      if (this.options.clock.nowMs() > deadlineMs)
        throw new Error(`${this.nodeId} did not die within ${deathTimeoutMs} ms.`);
      await sleep(2);
    }
    return this.options.clock.nowMs();
  }

  private async thaw(container: Docker.Container): Promise<void> {
    await container.unpause().catch((error: unknown) => {
      if (!/not paused|is not running|No such/i.test(messageOf(error))) throw error;
    });
  }

  private async bounded(ended: Promise<unknown>, what: string, limitMs = deathTimeoutMs): Promise<void> {
    const timer = new AbortController();
    const late = sleep(limitMs, 'late' as const, { signal: timer.signal }).catch(() => 'over' as const);
    const first = await Promise.race([ended.then(() => 'ended' as const), late]);
    timer.abort();
    if (first === 'late') throw new Error(`${this.nodeId} ${what} within ${limitMs} ms.`);
  }

  /** SIGTERM, then SIGKILL after `graceMs`. */
  stop(graceMs: number): Promise<void> {
    return this.inOrder(async () => {
      const about = await this.inspect();
      if (about?.State.Running !== true) return;
      const container = this.docker.getContainer(about.Id);
      const ended = container.wait();
      ended.catch(() => {});
      if (about.State.Paused) await this.thaw(container);
      await container.kill({ signal: 'SIGTERM' }).catch(ignoreNotRunning);
      try {
        await this.bounded(ended, 'did not stop', graceMs);
      } catch {
        await container.kill({ signal: 'SIGKILL' }).catch(ignoreNotRunning);
        await this.bounded(ended, 'did not die');
      }
      this.effect('stopped', 'engine');
      await this.saveLog();
    });
  }

  pause(): Promise<void> {
    return this.inOrder(async () => {
      const about = await this.inspect();
      if (about?.State.Running !== true) throw new Error(`${this.nodeId} is not running, so it cannot be paused.`);
      if (about.State.Paused) return;
      await this.docker
        .getContainer(about.Id)
        .pause()
        .catch((error: unknown) => {
          if (!/already paused/i.test(messageOf(error))) throw error;
        });
      this.effect('paused', 'engine');
    });
  }

  resume(): Promise<void> {
    return this.inOrder(async () => {
      const about = await this.inspect();
      if (about?.State.Paused !== true) return;
      await this.thaw(this.docker.getContainer(about.Id));
      this.effect('resumed', 'engine');
    });
  }

  /** Moves the wall clock of its process; a later incarnation starts with the same offset. */
  setClockOffset(offsetMs: number): Promise<void> {
    return this.inOrder(async () => {
      if (!this.options.clockFaults)
        throw new Error(`The clock of ${this.nodeId} cannot be moved: this cluster was started without clock faults.`);
      this.clockOffsetMs = offsetMs;
      if (this.containerId === null) return;
      await writeOffset(this.docker, this.containerId, offsetMs);
      this.effect('clock', 'engine');
    });
  }

  /** Has the kernel kill its process for memory; a frozen one is thawed for it, it could not be killed otherwise. */
  oom(): Promise<void> {
    return this.inOrder(async () => {
      const about = await this.inspect();
      if (about?.State.Running !== true) return;
      if (about.State.Paused) await this.thaw(this.docker.getContainer(about.Id));
      await runOutOfMemory(this.docker, about, this.nodeId);
      this.killedForMemory = instanceOf(about);
      this.effect('killed', 'memory');
      await this.saveLog();
    });
  }

  /** Removes the node's container and its control disk; the seat stays. The next start makes both anew and empty. */
  wipe(): Promise<void> {
    return this.inOrder(async () => {
      await this.removeNodeContainer();
      await this.removeVolume();
      this.effect('wiped', 'engine');
    });
  }

  /** Removes everything of this node, its seat too. */
  remove(): Promise<void> {
    return this.inOrder(async () => {
      await this.removeNodeContainer();
      await this.removeVolume();
      await removeContainer(this.docker, this.seat.containerId);
      this.effect('removed', 'engine');
    });
  }

  /** Whether the container that holds the node's network runs. */
  async seatRuns(): Promise<boolean> {
    try {
      return (await this.docker.getContainer(this.seat.containerId).inspect()).State.Running;
    } catch (error) {
      if (isGone(error)) return false;
      throw error;
    }
  }

  private async removeNodeContainer(): Promise<void> {
    if (this.containerId === null) return;
    await this.saveLog();
    await removeContainer(this.docker, this.containerId);
    this.containerId = null;
  }

  private async removeVolume(): Promise<void> {
    await this.docker
      .getVolume(this.options.spec().volume)
      .remove({ force: true })
      .catch((error: unknown) => {
        if (!isGone(error)) throw error;
      });
  }

  /** The current incarnation's log so far. */
  async readLog(): Promise<string> {
    const about = await this.inspect();
    return about === null ? '' : await readIncarnationLog(this.docker, about.Id, about.State.StartedAt);
  }

  private async saveLog(): Promise<void> {
    if (this.unsavedStart === null || this.containerId === null) return;
    try {
      const text = await readIncarnationLog(this.docker, this.containerId, this.unsavedStart);
      saveIncarnationLog(this.options.logsDir, this.nodeId, this.incarnation, text);
    } catch (error) {
      this.options.onLogLost(
        `The log of ${this.nodeId}, incarnation ${this.incarnation}, is lost: ${messageOf(error)}`,
      );
    }
    this.unsavedStart = null;
  }
}

function ignoreNotRunning(error: unknown): void {
  if (!/is not running|No such container/i.test(messageOf(error))) throw error;
}

/** Removes a container in whatever state it is; one that is gone is no error. */
export async function removeContainer(docker: Docker, id: string): Promise<void> {
  const container = docker.getContainer(id);
  // The engine cannot kill what is frozen; thawing what is not is refused, and that is fine.
  await container.unpause().catch(() => {});
  await container.remove({ force: true, v: true }).catch((error: unknown) => {
    if (!isGone(error) && !/already in progress/i.test(messageOf(error))) throw error;
  });
}
