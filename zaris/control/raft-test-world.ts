/**
 * A small world for Raft's tests: virtual time, disks that lose what was not synced, links that lose, double and reorder; and
 * the checks that hold in every run of it, after every event.
 *
 * Checked: election safety, leader completeness, state-machine safety (also across snapshots), log matching, reads not older than
 * what anybody was told before they were asked, disk equal to memory once synced.
 * Worst outcome if wrong: the random tests prove nothing; so each check was seen red with its rule broken.
 */
import { assert, present } from '../../lib/assert.ts';
import { Prng } from '../../lib/prng.ts';
import { nodeId } from '../model/ids.ts';
import type { NodeId } from '../model/ids.ts';
import type { DiskState, RaftConfig, RaftEntry, RaftMessage, RaftSnapshot, Voter } from '../model/raft-wire.ts';
import { emptyDisk } from '../model/raft-wire.ts';
import { sameVoter, sameVoters } from './raft-config.ts';
import type { ConfigChange } from './raft-config.ts';
import { foldDiskWrite } from './raft-disk.ts';
import type { RaftReady } from './raft-output.ts';
import { Raft } from './raft.ts';

export interface WorldOptions {
  readonly seed: number;
  readonly lossChance?: number;
  readonly duplicateChance?: number;
  /** Chance that a message takes up to 400 ms, past others. */
  readonly slowChance?: number;
  readonly snapshotEvery?: number;
}

/** The state machine of the tests: where it is, and a digest of all that it was given. */
interface Applied {
  readonly index: number;
  readonly digest: string;
}

export interface WorldNode {
  readonly nodeId: NodeId;
  disk: DiskState;
  diskId: string;
  /** Null while it is down. */
  raft: Raft | null;
  queue: RaftReady[];
  syncing: boolean;
  life: number;
  tickAtMs: number;
  applied: Applied;
  lostReads: number[];
}

const digestOf = (before: string, entry: RaftEntry): string => {
  const text = before + JSON.stringify(entry);
  let hash = 0x811c9dc5;
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193) >>> 0;
  return hash.toString(16);
};

export class RaftWorld {
  nowMs = 0;
  readonly random: Prng;
  readonly nodes = new Map<NodeId, WorldNode>();
  /** Everything anybody was told is committed, by index; 0 is the start. `knownIn`: raftTerm of the first who knew. */
  readonly history: { readonly entry: RaftEntry | null; readonly digest: string; readonly knownIn: number }[] = [
    { entry: null, digest: '', knownIn: 0 },
  ];
  /** Reads answered: context → index. */
  readonly answeredReads = new Map<number, number>();
  /** Called for every message sent; false drops it. */
  filter: (message: RaftMessage) => boolean = () => true;
  private readonly options: WorldOptions;
  private readonly events: { readonly atMs: number; readonly order: number; readonly run: () => void }[] = [];
  private readonly cuts = new Set<string>();
  private readonly leaderOfTerm = new Map<number, string>();
  private readonly askedReads = new Map<number, number>();
  /** Committed configs, oldest first. */
  private readonly configs: RaftConfig[] = [];
  private order = 0;
  private disks = 0;

  constructor(options: WorldOptions) {
    this.options = options;
    this.random = new Prng(options.seed);
  }

  // Time.

  after(delayMs: number, run: () => void): void {
    const event = { atMs: this.nowMs + delayMs, order: this.order++, run };
    let at = this.events.length;
    while (at > 0 && present(this.events[at - 1], 'event').atMs <= event.atMs) at--;
    this.events.splice(at, 0, event);
  }

  /** Runs for `forMs`, or until `done`; says whether `done` came true. */
  run(forMs: number, done: () => boolean = () => false): boolean {
    const endMs = this.nowMs + forMs;
    while (!done()) {
      const next = this.events.at(-1);
      if (next === undefined || next.atMs > endMs) {
        this.nowMs = endMs;
        return done();
      }
      this.events.pop();
      this.nowMs = next.atMs;
      next.run();
    }
    return true;
  }

  // Nodes.

  node(name: string): WorldNode {
    return present(this.nodes.get(nodeId(name)), name);
  }

  raft(name: string): Raft {
    return present(this.node(name).raft, `${name} is up`);
  }

  voter(name: string): Voter {
    return { nodeId: nodeId(name), diskId: this.node(name).diskId };
  }

  add(name: string): void {
    const id = nodeId(name);
    this.nodes.set(id, {
      nodeId: id,
      disk: emptyDisk,
      diskId: `d${++this.disks}`,
      raft: null,
      queue: [],
      syncing: false,
      life: 0,
      tickAtMs: Infinity,
      applied: { index: 0, digest: '' },
      lostReads: [],
    });
    this.start(name);
  }

  start(name: string): void {
    const node = this.node(name);
    assert(node.raft === null, 'start of a node that is up');
    node.applied = { index: 0, digest: '' };
    const self = this.voter(name);
    const random = this.random.fork(`${name} ${node.life}`);
    const { snapshotEvery = 50 } = this.options;
    node.raft = new Raft({ self, random, snapshotEvery, maxEntriesPerMessage: 8, maxInflight: 4 }, node.disk);
    node.raft.start(this.nowMs);
    this.settle(node);
  }

  /** Kills the process; of the writes under way a random beginning is on disk, and nobody hears of it. */
  crash(name: string): void {
    const node = this.node(name);
    if (node.raft === null) return;
    const writes = node.queue.flatMap((ready) => ready.persist?.writes ?? []);
    for (const write of writes.slice(0, this.random.below(writes.length + 1))) {
      node.disk = foldDiskWrite(node.disk, write);
    }
    node.raft = null;
    node.queue = [];
    node.syncing = false;
    node.life++;
  }

  /** Kills the process and takes its disk. */
  wipe(name: string): void {
    this.crash(name);
    const node = this.node(name);
    node.disk = emptyDisk;
    node.diskId = `d${++this.disks}`;
  }

  /** Starts `names`, the first as bootstrapped leader, and grows the cluster to all of them. */
  found(...names: string[]): void {
    for (const name of names) this.add(name);
    const first = present(names[0], 'first node');
    this.act(first, (raft) => raft.bootstrap(this.nowMs));
    const grown = this.run(20_000, () => {
      this.repair();
      return this.isSettled && this.config.voters.length === names.length;
    });
    assert(grown, 'the cluster did not grow');
  }

  // What is committed.

  get committedIndex(): number {
    return this.history.length - 1;
  }

  get config(): RaftConfig {
    return present(this.configs.at(-1), 'committed config');
  }

  /** The last change of voters is committed and so is the entry that settles it; none is under way anywhere. */
  get isSettled(): boolean {
    const [last, previous] = [this.configs.at(-1), this.configs.at(-2)];
    if (last === undefined) return false;
    if (previous !== undefined && !sameVoters(last.voters, previous.voters)) return false;
    return [...this.nodes.values()].every(({ raft, disk }) => {
      const log = raft?.['store'].log;
      const inMemory = log === undefined ? [] : log.slice(log.baseIndex + 1, Infinity);
      return [...disk.entries, ...inMemory].every(
        (entry) => entry.kind !== 'config' || entry.index <= this.committedIndex,
      );
    });
  }

  commands(): unknown[] {
    return this.history.flatMap(({ entry }) => (entry?.kind === 'command' ? [entry.command] : []));
  }

  /** The ready leader of the latest raftTerm. */
  leader(): WorldNode | null {
    const ready = [...this.nodes.values()].filter(({ raft }) => raft?.isReadyLeader);
    ready.sort((a, b) => (b.raft?.raftTerm ?? 0) - (a.raft?.raftTerm ?? 0));
    return ready[0] ?? null;
  }

  /** Runs until a leader is ready and returns its name. */
  awaitLeader(forMs = 10_000, other = ''): string {
    const found = this.run(forMs, () => this.leader() !== null && this.leader()?.nodeId !== other);
    assert(found, 'no leader in time');
    return present(this.leader(), 'leader').nodeId;
  }

  // Acts.

  act<T>(name: string, what: (raft: Raft) => T): T {
    const result = what(this.raft(name));
    this.settle(this.node(name));
    return result;
  }

  propose(name: string, command: unknown): number | null {
    return this.act(name, (raft) => raft.propose(command, this.nowMs))?.index ?? null;
  }

  /** Proposes and runs until it is committed; says whether it was. */
  commit(name: string, command: unknown, forMs = 5000): boolean {
    this.propose(name, command);
    return this.run(forMs, () => this.commands().includes(command));
  }

  read(name: string, context: number): boolean {
    const taken = this.act(name, (raft) => {
      this.askedReads.set(context, this.committedIndex);
      return raft.requestRead(context, this.nowMs);
    });
    if (!taken) this.askedReads.delete(context);
    return taken;
  }

  cut(from: string, to: string): void {
    this.cuts.add(`${from}>${to}`);
  }

  isolate(name: string): void {
    for (const other of this.nodes.keys()) {
      if (other === name) continue;
      this.cut(name, other);
      this.cut(other, name);
    }
  }

  heal(): void {
    this.cuts.clear();
  }

  /** Tells all others that their connection to `name` was closed. */
  closeLinks(name: string): void {
    for (const [id, { raft }] of this.nodes) {
      if (id !== name && raft !== null) this.act(id, () => raft.linkDown(nodeId(name), this.nowMs));
    }
  }

  /** An operator's next step: everybody is a member with the disk it has, and `size` of them are voters. */
  repair(size = this.nodes.size): void {
    const leader = this.leader();
    if (leader === null) return;
    const raft = present(leader.raft, 'leader');
    for (const name of this.nodes.keys()) {
      const change = this.repairOf(raft, name, size);
      if (change !== null) this.act(leader.nodeId, () => raft.proposeConfig(change, this.nowMs));
    }
  }

  private repairOf(raft: Raft, name: NodeId, size: number): ConfigChange | null {
    const self = this.voter(name);
    const { voters } = raft.config;
    const old = voters.find(({ nodeId: id }) => id === name);
    if (old?.diskId === self.diskId) return null;
    const known = raft.config.learners.some(({ diskId }) => diskId === self.diskId);
    if (!known) return { kind: 'addLearner', voter: self };
    if (!this.isCaughtUp(raft, self)) return null;
    if (old !== undefined) return { kind: 'replace', old, new: self };
    return voters.length < size ? { kind: 'promote', voter: self } : null;
  }

  /** The leader knows that `voter` holds nearly everything. */
  isCaughtUp(raft: Raft, voter: Voter): boolean {
    const known = raft.progress.find((progress) => sameVoter(progress.voter, voter));
    return known !== undefined && known.matchIndex > 0 && known.matchIndex + 5 >= raft.commitIndex;
  }

  // The shell: disk first, then everything else, in order.

  private settle(node: WorldNode): void {
    const raft = present(node.raft, 'node is up');
    this.checkLeader(node, raft);
    const ready = raft.takeReady();
    node.queue.push(ready);
    if (!node.syncing) this.drain(node);
    const wakeMs = raft.nextDeadlineMs;
    if (wakeMs === node.tickAtMs || wakeMs === Infinity) return;
    node.tickAtMs = wakeMs;
    const { life } = node;
    this.after(Math.max(0, wakeMs - this.nowMs), () => {
      if (node.life !== life || node.tickAtMs !== wakeMs) return;
      node.tickAtMs = Infinity;
      this.act(node.nodeId, () => raft.tick(this.nowMs));
    });
  }

  private drain(node: WorldNode): void {
    for (let head = node.queue[0]; head !== undefined; head = node.queue[0]) {
      const { persist } = head;
      if (persist !== null) {
        node.syncing = true;
        const { life } = node;
        this.after(1 + this.random.below(4), () => {
          if (node.life !== life) return;
          node.syncing = false;
          for (const write of persist.writes) node.disk = foldDiskWrite(node.disk, write);
          const ready = present(node.queue.shift(), 'head of the queue');
          this.release(node, ready);
          this.act(node.nodeId, (raft) => raft.persisted(persist.ticket, this.nowMs));
        });
        return;
      }
      node.queue.shift();
      this.release(node, head);
    }
    this.checkDisk(node);
  }

  private release(node: WorldNode, ready: RaftReady): void {
    for (const { message } of ready.messages) this.post(node.nodeId, message);
    if (ready.snapshot !== null) this.restore(node, ready.snapshot);
    for (const entry of ready.committed) this.apply(node, entry);
    for (const { context, index } of ready.reads) {
      const floor = present(this.askedReads.get(context), 'read that was asked');
      assert(index >= floor, `stale read: ${index} < ${floor}`);
      this.answeredReads.set(context, index);
    }
    node.lostReads.push(...ready.lostReads);
    const { life } = node;
    if (node.raft?.compactionDue) this.after(0, () => node.life === life && this.compact(node));
  }

  private compact(node: WorldNode): void {
    this.act(node.nodeId, (raft) => raft.compact(node.applied.index, node.applied));
  }

  private post(from: NodeId, message: RaftMessage): void {
    const to = message.receiver.nodeId;
    if (!this.filter(message) || this.cuts.has(`${from}>${to}`)) return;
    const { lossChance = 0, duplicateChance = 0, slowChance = 0 } = this.options;
    if (this.random.chance(lossChance)) return;
    const copies = this.random.chance(duplicateChance) ? 2 : 1;
    for (let copy = 0; copy < copies; copy++) {
      const delayMs = this.random.chance(slowChance) ? this.random.below(400) : 1 + this.random.below(3);
      this.after(delayMs, () => {
        if (this.cuts.has(`${from}>${to}`)) return;
        if (this.nodes.get(to)?.raft) this.act(to, (raft) => raft.receive(from, message, this.nowMs));
      });
    }
  }

  // Checks.

  private apply(node: WorldNode, entry: RaftEntry): void {
    assert(entry.index === node.applied.index + 1, 'committed entries come in order, once');
    const digest = digestOf(node.applied.digest, entry);
    if (entry.index === this.history.length) {
      this.history.push({ entry, digest, knownIn: node.raft?.raftTerm ?? 0 });
      if (entry.kind === 'config') this.configs.push(entry.config);
    }
    assert(this.history[entry.index]?.digest === digest, `state-machine safety: ${node.nodeId} at ${entry.index}`);
    node.applied = { index: entry.index, digest };
  }

  private restore(node: WorldNode, { index, state }: RaftSnapshot): void {
    node.applied = state as Applied;
    assert(node.applied.index === index, 'a snapshot states its index');
    assert(this.history[index]?.digest === node.applied.digest, `state-machine safety: snapshot of ${node.nodeId}`);
  }

  private checkLeader(node: WorldNode, raft: Raft): void {
    if (raft.role !== 'leader') return;
    const name = `${node.nodeId}/${node.diskId}#${node.life}`;
    const known = this.leaderOfTerm.get(raft.raftTerm);
    if (known === name) return;
    assert(known === undefined, `election safety: ${known} and ${name} lead raftTerm ${raft.raftTerm}`);
    this.leaderOfTerm.set(raft.raftTerm, name);
    const { log } = raft['store'];
    for (let index = log.baseIndex; index <= this.committedIndex; index++) {
      const { entry, knownIn } = present(this.history[index], 'committed entry');
      const raftTerm = entry?.raftTerm ?? 0;
      // The last vote may come so late that a later leader has committed more by then.
      if (knownIn >= raft.raftTerm) continue;
      assert(log.raftTermAt(index) === raftTerm, `leader completeness: ${name} lacks ${index}`);
    }
  }

  private checkDisk({ disk, raft }: WorldNode): void {
    if (raft === null) return;
    const { log } = raft['store'];
    assert(disk.raftTerm === raft.raftTerm && disk.votedFor === raft['votedFor'], 'disk and memory: vote');
    assert((disk.snapshot?.index ?? 0) === log.baseIndex, 'disk and memory: snapshot');
    assert(disk.entries.length === log.length, 'disk and memory: length');
    assert((disk.entries.at(-1)?.raftTerm ?? log.lastRaftTerm) === log.lastRaftTerm, 'disk and memory: end');
  }

  /** Log matching over all disks: where two logs agree on (index, raftTerm) they agree on all before. */
  checkLogMatching(): void {
    const disks = [...this.nodes.values()].map(({ disk }) => disk);
    for (const [at, a] of disks.entries()) {
      for (const b of disks.slice(at + 1)) {
        let agreed = false;
        for (let index = (a.snapshot?.index ?? 0) + a.entries.length; index > (a.snapshot?.index ?? 0); index--) {
          const [x, y] = [a, b].map((disk) => disk.entries[index - (disk.snapshot?.index ?? 0) - 1]);
          if (x === undefined || y === undefined) continue;
          agreed ||= x.raftTerm === y.raftTerm;
          assert(!agreed || x === y || JSON.stringify(x) === JSON.stringify(y), `log matching at ${index}`);
        }
      }
    }
  }
}
