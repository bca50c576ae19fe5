/**
 * The faults that are open, and the cluster brought to what they want together.
 *
 * Invariant: every action is a reconciliation to the reduction of all open faults (wanted.ts), one at a time per node and one
 * at a time for the links; so a heal is idempotent and never takes away what another fault wants. If actions of two faults
 * could interleave on a node, a late start could undo a kill that the journal calls open.
 */
import { unreachable } from '../lib/assert.ts';
import type { Clock } from '../lib/clock.ts';
import type { Cluster, LinkRule, Sleeper } from './ports.ts';
import { cutsOf, type DownBy, type OpenFault, wantedClockOffsetMs, wantedNode, wantedRules } from './wanted.ts';

/** Bounds on calls to the cluster. */
export interface FieldBounds {
  readonly callTimeoutMs: number;
  readonly callAttempts: number;
  readonly retryDelayMs: number;
}

export const fieldBounds: FieldBounds = { callTimeoutMs: 30_000, callAttempts: 3, retryDelayMs: 500 };

/** A call to the cluster failed past its bound: an `environment` error, not a finding about the store. */
export class ClusterCallError extends Error {
  override readonly name = 'ClusterCallError';
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** Open faults over a cluster. */
export class FaultField {
  private readonly cluster: Cluster;
  private readonly clock: Clock;
  private readonly sleeper: Sleeper;
  private readonly bounds: FieldBounds;
  private readonly openById = new Map<string, OpenFault>();
  private readonly reservedById = new Map<string, OpenFault>();
  private readonly queues = new Map<string, Promise<unknown>>();
  /** Wipes already carried out, so that a second reconciliation does not take the disk again. */
  private readonly wiped = new Set<string>();
  private readonly goneForGood = new Set<string>();
  private readonly clocked = new Set<string>();

  constructor(cluster: Cluster, clock: Clock, sleeper: Sleeper, bounds: FieldBounds = fieldBounds) {
    this.cluster = cluster;
    this.clock = clock;
    this.sleeper = sleeper;
    this.bounds = bounds;
  }

  /** In the order of their opening. */
  open(): readonly OpenFault[] {
    return [...this.openById.values()];
  }

  openWithout(faultId: string): readonly OpenFault[] {
    return this.open().filter((one) => one.faultId !== faultId);
  }

  /** Chosen, and not yet looked at: until then its nodes belong to it, or nobody could tell what bit them. */
  reserved(): readonly OpenFault[] {
    return [...this.reservedById.values()];
  }

  reserve(fault: OpenFault): void {
    this.reservedById.set(fault.faultId, fault);
  }

  release(faultId: string): void {
    this.reservedById.delete(faultId);
  }

  /** From now on the fault's wishes count; nothing is done yet. */
  add(fault: OpenFault): void {
    this.openById.set(fault.faultId, fault);
  }

  /** From now on they do not; nothing is done yet. */
  remove(faultId: string): void {
    this.openById.delete(faultId);
  }

  /** The node is to be left alone from now on; it was removed for good. */
  forget(nodeId: string): void {
    this.goneForGood.add(nodeId);
  }

  /** Brings what these wishes concern to the wanted state; the evidence says what was done. Throws {@link ClusterCallError}. */
  async reconcile(fault: OpenFault): Promise<string> {
    const done: string[] = [];
    const concernsLinks = fault.rules.length > 0;
    if (concernsLinks) done.push(await this.reconcileLinks());
    const { kind } = fault.intent.fault;
    const results = await Promise.all(
      fault.intent.nodeIds.map(async (nodeId) => {
        if (kind === 'clock') return this.reconcileClock(nodeId);
        return concernsLinks || kind === 'client-partition' ? null : this.reconcileNode(nodeId);
      }),
    );
    done.push(...results.filter((text) => text !== null));
    return done.join('; ');
  }

  /** Everything of ours to the wanted state; with nothing open that is: all run, nothing cut. */
  async reconcileAll(): Promise<string> {
    const nodeIds = this.cluster.nodeIds().filter((nodeId) => !this.goneForGood.has(nodeId));
    const done = await Promise.all([
      this.reconcileLinks(),
      ...nodeIds.map((nodeId) => this.reconcileNode(nodeId)),
      ...[...this.clocked].map((nodeId) => this.reconcileClock(nodeId)),
    ]);
    return done.join('; ');
  }

  /** A call with its bounds. Throws {@link ClusterCallError} when it fails every time. */
  async call<T>(what: string, action: () => Promise<T>, attempts = this.bounds.callAttempts): Promise<T> {
    let last = '';
    for (let attempt = 1; attempt <= attempts; attempt++) {
      const given = new AbortController();
      try {
        const timeout = this.sleeper.sleep(this.bounds.callTimeoutMs, given.signal).then((): never => {
          throw new Error(`no answer within ${this.bounds.callTimeoutMs} ms`);
        });
        // The loser of the race may still reject; its word is not wanted any more.
        timeout.catch(() => undefined);
        return await Promise.race([action(), timeout]);
      } catch (error) {
        last = messageOf(error);
      } finally {
        given.abort('over');
      }
      if (attempt < attempts) await this.sleeper.sleep(this.bounds.retryDelayMs);
    }
    throw new ClusterCallError(`${what} failed ${attempts} times: ${last}`);
  }

  reconcileNode(nodeId: string): Promise<string> {
    return this.inTurn(nodeId, () => this.call(`bringing ${nodeId} to its state`, () => this.bringNode(nodeId)));
  }

  reconcileLinks(): Promise<string> {
    return this.inTurn('links', () => this.call('setting link rules', () => this.bringLinks()));
  }

  private reconcileClock(nodeId: string): Promise<string> {
    return this.inTurn(`clock ${nodeId}`, () =>
      this.call(`setting the clock of ${nodeId}`, async () => {
        if (this.goneForGood.has(nodeId)) return `${nodeId} is gone for good`;
        const offsetMs = wantedClockOffsetMs(this.open(), nodeId);
        if (this.cluster.setClockOffset === undefined) throw new Error('this cluster cannot set clocks');
        this.clocked.add(nodeId);
        await this.cluster.setClockOffset(nodeId, offsetMs);
        return `clock of ${nodeId} off by ${offsetMs} ms`;
      }),
    );
  }

  private inTurn<T>(name: string, action: () => Promise<T>): Promise<T> {
    const before = this.queues.get(name) ?? Promise.resolve();
    const mine = before.then(action, action);
    this.queues.set(
      name,
      mine.catch(() => undefined),
    );
    return mine;
  }

  private async bringLinks(): Promise<string> {
    // A fault that was drawn before a node was removed for good names it still.
    const isThere = (end: string): boolean => !this.goneForGood.has(end);
    const rules: readonly LinkRule[] = wantedRules(this.open()).filter(({ from, to }) => isThere(from) && isThere(to));
    const cuts = cutsOf(rules);
    if (this.cluster.setLinkRules !== undefined) await this.cluster.setLinkRules(rules);
    else if (cuts.length === rules.length) await this.cluster.setCuts(cuts);
    else throw new Error('this cluster knows cuts only');
    return `${rules.length} link rules stand`;
  }

  private async bringNode(nodeId: string): Promise<string> {
    if (this.goneForGood.has(nodeId)) return `${nodeId} is gone for good`;
    const wanted = wantedNode(this.open(), nodeId);
    const state = await this.cluster.state(nodeId);
    switch (wanted.kind) {
      case 'down':
        return this.bringDown(nodeId, wanted.by, state.kind === 'running' || state.kind === 'paused');
      case 'paused':
        if (state.kind === 'paused') return `${nodeId} was paused`;
        if (state.kind !== 'running') await this.start(nodeId);
        await this.cluster.pause(nodeId);
        return `${nodeId} paused at ${Math.round(this.clock.nowMs())}`;
      case 'running':
        this.wiped.delete(nodeId);
        if (state.kind === 'running') return `${nodeId} was running`;
        if (state.kind === 'paused') await this.cluster.resume(nodeId);
        else await this.start(nodeId);
        return `${nodeId} ${state.kind === 'paused' ? 'resumed' : 'started'} at ${Math.round(this.clock.nowMs())}`;
      default:
        return unreachable(wanted, 'wanted node');
    }
  }

  /** A started process must find its cuts; set again, in case they went with the old one. */
  private async start(nodeId: string): Promise<void> {
    await this.cluster.startNode(nodeId);
    if (wantedRules(this.open()).length > 0) await this.bringLinks();
  }

  private async bringDown(nodeId: string, by: DownBy, isUp: boolean): Promise<string> {
    const at = (): string => `at ${Math.round(this.clock.nowMs())}`;
    switch (by.kind) {
      case 'kill':
        if (!isUp) return `${nodeId} was down`;
        await this.cluster.kill(nodeId);
        return `${nodeId} killed ${at()}`;
      case 'stop':
        if (!isUp) return `${nodeId} was down`;
        await this.cluster.stop(nodeId, by.graceMs);
        return `${nodeId} stopped ${at()}`;
      case 'oom':
        if (!isUp) return `${nodeId} was down`;
        if (this.cluster.oom === undefined) throw new Error('this cluster cannot run a node out of memory');
        await this.cluster.oom(nodeId);
        return `${nodeId} out of memory ${at()}`;
      case 'wipe':
        if (isUp) await this.cluster.kill(nodeId);
        if (!this.wiped.has(nodeId)) await this.cluster.wipe(nodeId);
        this.wiped.add(nodeId);
        return `${nodeId} wiped ${at()}`;
      default:
        return unreachable(by, 'way down');
    }
  }
}
