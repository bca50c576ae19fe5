/**
 * The conformance test of an adapter against a running cluster: does it answer as the port says? Each failure is one sentence for the
 * adapter's author that names the method, what it answered and what it must answer.
 *
 * What this finds would otherwise show up as a lost write, or hide one. The checks end with the nodes killed: an adapter that calls an
 * unknown outcome `fail`, or rejects, is the most dangerous kind.
 */
import {
  compareVersions,
  type Completion,
  type Operation,
  type StoreClient,
  type Version,
} from '../../workloads/port.ts';
import type { Cluster } from '../../chaos/ports.ts';
import type { RunningSystem, System } from '../systems/system.ts';

/** Longest that one operation may take before the kit gives up on it, ms. */
const operationLimitMs = 30_000;
/** Longest wait for a condition that takes its time, ms. */
const defaultSettleLimitMs = 30_000;
const pollMs = 200;
const longValueBytes = 64 * 1024;

/** One thing that was looked at. */
export interface ConformanceCheck {
  readonly name: string;
  /** Null: as it should be. */
  readonly problem: string | null;
}

export interface ConformanceSubject {
  readonly definition: System;
  readonly running: RunningSystem;
  readonly cluster: Cluster;
  readonly onCheck?: (check: ConformanceCheck) => void;
  /** Default {@link defaultSettleLimitMs}. */
  readonly settleLimitMs?: number;
}

/** A failed check; its message is the sentence. */
class Problem extends Error {}

const shown = (completion: Completion | null): string =>
  completion === null ? 'nothing' : JSON.stringify(completion).slice(0, 200);

/** Runs every check that the adapter's capabilities ask for. Kills all nodes at the end. */
export async function checkRunning(subject: ConformanceSubject): Promise<readonly ConformanceCheck[]> {
  const kit = new Kit(subject);
  const { capabilities } = subject.definition;
  await kit.check('status', () => kit.status());
  await kit.check('facts', () => kit.facts());
  await kit.check('placement', () => kit.placement());
  await kit.check('write and read', () => kit.writeAndRead());
  await kit.check('values as they are', () => kit.values());
  await kit.check('delete', () => kit.remove());
  await kit.check('sessions see each other', () => kit.sessions());
  if (capabilities.create) await kit.check('create', () => kit.create());
  if (capabilities.versions) await kit.check('versions', () => kit.versions());
  if (capabilities.compareAndSet) await kit.check('compare-and-set', () => kit.compareAndSet());
  if (capabilities.counters) await kit.check('counters', () => kit.counters());
  if (capabilities.ttl) await kit.check('time to live', () => kit.timeToLive());
  if (capabilities.peek) await kit.check('peek', () => kit.peek());
  await kit.check('what it does not offer', () => kit.notOffered());
  await kit.check('killed nodes', () => kit.killed());
  return kit.done;
}

class Kit {
  readonly done: ConformanceCheck[] = [];
  private readonly subject: ConformanceSubject;
  private readonly first: StoreClient;
  private readonly second: StoreClient;
  private readonly settleLimitMs: number;

  constructor(subject: ConformanceSubject) {
    this.subject = subject;
    this.first = subject.running.client(0);
    this.second = subject.running.client(1);
    this.settleLimitMs = subject.settleLimitMs ?? defaultSettleLimitMs;
  }

  async check(name: string, work: () => Promise<void>): Promise<void> {
    let problem: string | null = null;
    try {
      await work();
    } catch (error) {
      problem =
        error instanceof Problem
          ? error.message
          : `While "${name}" was looked at, the adapter threw: ${error instanceof Error ? error.message : String(error)}.`;
    }
    const check = { name, problem };
    this.done.push(check);
    this.subject.onCheck?.(check);
  }

  async status(): Promise<void> {
    const status = await this.subject.running.status.status();
    if (status === null)
      throw new Problem(
        'status.status() is null although bootstrap() has resolved; it must tell the nodes and partitions.',
      );
    const nodeIds = this.subject.cluster.nodeIds();
    for (const { nodeId } of status.nodes)
      if (!nodeIds.includes(nodeId))
        throw new Problem(`status.status() names node "${nodeId}", but the nodes are ${nodeIds.join(', ')}.`);
    if (status.partitions.length === 0)
      throw new Problem('status.status() has no partitions; a store without any has one, number 0.');
    for (const { partition, primary, inSync, health, serving, epoch } of status.partitions) {
      if (primary !== null && !nodeIds.includes(primary))
        throw new Problem(`status.status() names "${primary}" as primary, which is no node.`);
      if (health !== 'Healthy' || !serving)
        throw new Problem(
          `status.status() calls partition ${partition} ${health}, serving ${serving}, right after bootstrap(); bootstrap() must wait until it is Healthy and serving.`,
        );
      if (inSync.length === 0)
        throw new Problem(`status.status() has nobody in sync in partition ${partition}; at least its primary is.`);
      if (!Number.isInteger(epoch) || epoch < 0)
        throw new Problem(
          `status.status() gives partition ${partition} the epoch ${epoch}; it must be a whole number that rises with every change.`,
        );
    }
    const again = await this.subject.running.status.status();
    for (const { partition, epoch } of status.partitions) {
      const later = again?.partitions.find((each) => each.partition === partition)?.epoch ?? epoch;
      if (later < epoch) throw new Problem(`The epoch of partition ${partition} went back from ${epoch} to ${later}.`);
    }
  }

  async facts(): Promise<void> {
    const facts = await this.subject.running.facts();
    for (const name of ['replicationFactor', 'minInSync', 'partitions'] as const)
      if (!Number.isInteger(facts[name]) || facts[name] < 1)
        throw new Problem(`facts() gives ${name} ${facts[name]}; it must be a whole number of at least 1.`);
  }

  async placement(): Promise<void> {
    const { partitions } = await this.subject.running.facts();
    for (let index = 0; index < 200; index++) {
      const key = `k${index}`;
      const partition = this.subject.running.partitionOf(key);
      if (!Number.isInteger(partition) || partition < 0 || partition >= partitions)
        throw new Problem(
          `partitionOf("${key}") is ${partition}; it must be a whole number from 0 to ${partitions - 1}.`,
        );
      if (this.subject.running.partitionOf(key) !== partition)
        throw new Problem(`partitionOf("${key}") gives different answers.`);
    }
  }

  async writeAndRead(): Promise<void> {
    const key = 'conformance-a';
    const absent = await this.run({ f: 'read', key });
    if (absent.kind !== 'ok' || absent.value !== null)
      throw new Problem(
        `A read of a key that was never written answered ${shown(absent)}; it must be { kind: "ok", value: null }.`,
      );
    await this.written(key, 'one');
    await this.written(key, 'two');
    await this.holds(key, 'two');
  }

  async values(): Promise<void> {
    for (const value of ['plain', 'ünï ☃ 🜚', 'a"b\\c\'d', 'x'.repeat(longValueBytes)]) {
      await this.written('conformance-value', value);
      await this.holds('conformance-value', value);
    }
    await this.written('conformance key/with:odd?characters', 'x');
    await this.holds('conformance key/with:odd?characters', 'x');
  }

  async remove(): Promise<void> {
    const key = 'conformance-deleted';
    await this.written(key, 'one');
    const deleted = await this.run({ f: 'delete', key });
    if (deleted.kind !== 'ok')
      throw new Problem(`A delete of a key that is there answered ${shown(deleted)}; it must be { kind: "ok" }.`);
    await this.holds(key, null);
    const again = await this.run({ f: 'delete', key });
    if (again.kind !== 'ok' && !(again.kind === 'fail' && again.why === 'condition'))
      throw new Problem(
        `A delete of a key that is not there answered ${shown(again)}; it must be "ok", or "fail" with why "condition".`,
      );
  }

  async sessions(): Promise<void> {
    const key = 'conformance-shared';
    await this.written(key, 'first');
    const read = await this.run({ f: 'read', key }, this.second);
    if (read.kind !== 'ok' || read.value !== 'first')
      throw new Problem(
        `Another session read ${shown(read)} right after an acknowledged write of "first"; clients must share one store.`,
      );
  }

  async create(): Promise<void> {
    const key = 'conformance-created';
    await this.acknowledged({ f: 'create', key, value: 'one' });
    const second = await this.run({ f: 'create', key, value: 'two' });
    if (second.kind !== 'fail' || second.why !== 'condition')
      throw new Problem(
        `A create of a key that is there answered ${shown(second)}; it must be "fail" with why "condition".`,
      );
    await this.holds(key, 'one');
  }

  async versions(): Promise<void> {
    const key = 'conformance-versions';
    const first = await this.versionOfWrite(key, 'one');
    const second = await this.versionOfWrite(key, 'two');
    if (compareVersions(second, first) <= 0)
      throw new Problem(
        `Two writes of one key got the versions ${first.join('/')} and ${second.join('/')}; versions must rise with every write.`,
      );
    const read = await this.run({ f: 'read', key });
    if (
      read.kind !== 'ok' ||
      read.version === undefined ||
      read.version === null ||
      compareVersions(read.version, second) !== 0
    )
      throw new Problem(
        `A read answered ${shown(read)}; it must carry the version of the value that it shows, here ${second.join('/')}.`,
      );
  }

  async compareAndSet(): Promise<void> {
    const key = 'conformance-cas';
    const first = await this.versionOfWrite(key, 'one');
    await this.acknowledged({ f: 'cas', key, value: 'two', expected: first });
    const stale = await this.run({ f: 'cas', key, value: 'three', expected: first });
    if (stale.kind !== 'fail' || stale.why !== 'condition')
      throw new Problem(
        `A compare-and-set on an old version answered ${shown(stale)}; it must be "fail" with why "condition".`,
      );
    await this.holds(key, 'two');
  }

  async counters(): Promise<void> {
    const key = 'conformance-counter';
    const first = await this.acknowledged({ f: 'add', key, delta: 3 });
    const second = await this.acknowledged({ f: 'add', key, delta: 4 });
    if (first.value !== '3' || second.value !== '7')
      throw new Problem(
        `Adding 3 and then 4 to a new counter gave ${JSON.stringify(first.value)} and ${JSON.stringify(second.value)}; they must be the sums as text, "3" and "7".`,
      );
  }

  async timeToLive(): Promise<void> {
    const key = 'conformance-ttl';
    const beganMs = performance.now();
    await this.acknowledged({ f: 'write', key, value: 'short', ttlMs: 1_000 });
    const early = await this.run({ f: 'read', key });
    // An answer that came later may rightly be that it is gone.
    if (performance.now() - beganMs < 1_000) this.expectRead(early, key, 'short');
    const gone = await this.until(async () => {
      const read = await this.run({ f: 'read', key });
      return read.kind === 'ok' && read.value === null;
    });
    if (!gone)
      throw new Problem(`A value with a time to live of 1 s is still there after ${this.settleLimitMs / 1_000} s.`);
  }

  async peek(): Promise<void> {
    const key = 'conformance-peek';
    await this.written(key, 'seen');
    const { running, cluster } = this.subject;
    const partition = running.partitionOf(key);
    const known = (await running.status.status())?.partitions.find((each) => each.partition === partition);
    for (const nodeId of known?.replicas ?? cluster.nodeIds()) {
      const shows = await this.until(async () => {
        const copy = await running.peek(nodeId, partition, [key, 'conformance-never']);
        const [own, never] = copy?.keys ?? [];
        return own?.key === key && own.value === 'seen' && never?.value === null;
      });
      if (!shows)
        throw new Problem(
          `peek("${nodeId}") does not show the key that was written, and null for one that was not, in the order asked.`,
        );
    }
    const primary = known?.primary ?? null;
    const role = primary === null ? null : (await running.peek(primary, partition, [key]))?.role;
    if (primary !== null && role !== 'primary')
      throw new Problem(
        `peek("${primary}") says the role "${role ?? 'none'}", but status.status() calls that node the primary; only a copy with the role "primary" is believed to know what is committed.`,
      );
  }

  async notOffered(): Promise<void> {
    const { capabilities } = this.subject.definition;
    const refused: Operation[] = [];
    if (!capabilities.compareAndSet) refused.push({ f: 'cas', key: 'conformance-not', value: 'x', expected: [0, 1] });
    if (!capabilities.counters) refused.push({ f: 'add', key: 'conformance-not', delta: 1 });
    if (!capabilities.create) refused.push({ f: 'create', key: 'conformance-not', value: 'x' });
    for (const operation of refused) {
      const completion = await this.run(operation);
      if (completion.kind !== 'fail' || completion.why !== 'invalid')
        throw new Problem(
          `"${operation.f}", which the adapter does not offer, answered ${shown(completion)}; it must be "fail" with why "invalid".`,
        );
    }
  }

  /** Whatever is asked of dead nodes must end, and must not be called acknowledged. */
  async killed(): Promise<void> {
    const { cluster, running } = this.subject;
    const open = this.run({ f: 'write', key: 'conformance-open', value: 'x' });
    await Promise.all(cluster.nodeIds().map((nodeId) => cluster.kill(nodeId)));
    await open;
    const late = await this.run({ f: 'write', key: 'conformance-dead', value: 'x' });
    if (late.kind === 'ok') throw new Problem('A write was acknowledged although every node is dead.');
    const read = await this.run({ f: 'read', key: 'conformance-a' });
    if (read.kind === 'ok')
      throw new Problem('A read was answered although every node is dead; answers must come from the store.');
    const status = await running.status.status();
    if (status?.partitions.some((partition) => partition.serving) === true)
      throw new Problem('status.status() calls a partition serving although every node is dead.');
    const [nodeId] = cluster.nodeIds();
    if (
      this.subject.definition.capabilities.peek &&
      nodeId !== undefined &&
      (await running.peek(nodeId, 0, ['conformance-a'])) !== null
    )
      throw new Problem('peek() answers for a dead node; it must be null, so that the silence is recorded.');
  }

  /** Runs one operation; a rejection or an endless wait is a problem of its own. */
  private async run(operation: Operation, client = this.first): Promise<Completion> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(
        () =>
          reject(
            new Problem(
              `"${operation.f}" has not ended after ${operationLimitMs / 1_000} s; every operation must end, as "info" when nothing is known.`,
            ),
          ),
        operationLimitMs,
      );
    });
    try {
      return await Promise.race([client.execute(operation), late]);
    } catch (error) {
      if (error instanceof Problem) throw error;
      throw new Problem(
        `execute() of "${operation.f}" rejected (${error instanceof Error ? error.message : String(error)}); it must never reject: what is not known is { kind: "info" }.`,
      );
    } finally {
      clearTimeout(timer);
    }
  }

  private async acknowledged(operation: Operation): Promise<Extract<Completion, { kind: 'ok' }>> {
    const completion = await this.run(operation);
    if (completion.kind !== 'ok')
      throw new Problem(
        `"${operation.f}" on a healthy cluster answered ${shown(completion)}; it must be { kind: "ok" }.`,
      );
    return completion;
  }

  private async written(key: string, value: string): Promise<void> {
    await this.acknowledged({ f: 'write', key, value });
  }

  private async versionOfWrite(key: string, value: string): Promise<Version> {
    const { version } = await this.acknowledged({ f: 'write', key, value });
    if (version === undefined || version === null)
      throw new Problem('A write answered without a version, although capabilities.versions is true.');
    return version;
  }

  private async holds(key: string, value: string | null): Promise<void> {
    this.expectRead(await this.run({ f: 'read', key }), key, value);
  }

  private expectRead(read: Completion, key: string, value: string | null): void {
    if (read.kind === 'ok' && read.value === value) return;
    const text = value === null ? 'null, as the key was deleted' : `the ${value.length} characters that were written`;
    throw new Problem(`A read of "${key}" answered ${shown(read)}; its value must be ${text}.`);
  }

  private async until(isSo: () => Promise<boolean>): Promise<boolean> {
    const untilMs = performance.now() + this.settleLimitMs;
    while (!(await isSo())) {
      if (performance.now() > untilMs) return false;
      await new Promise((resolve) => setTimeout(resolve, pollMs));
    }
    return true;
  }
}
