import { describe, expect, it } from 'vitest';
import { type Member, type NodeId, epoch, nodeId, partitionId } from '../model/ids.ts';
import type { ControlCommand, PartitionCommand } from './commands.ts';
import { ControlState, type PartitionRuntime } from './state.ts';

const ids = ['n1', 'n2', 'n3', 'n4', 'n5'].map((name) => nodeId(name)) as [NodeId, NodeId, NodeId, NodeId, NodeId];
const [n1, n2, n3, n4] = ids;

type Undecided = PartitionCommand extends infer C
  ? C extends PartitionCommand
    ? Omit<C, 'partition' | 'expectEpoch'>
    : never
  : never;

/** A cluster of five with one partition on n1, n2, n3. */
class Cluster {
  readonly state = new ControlState();
  private index = 0;

  constructor(minInSync = 2) {
    const settings = { clusterId: 'c', replicationFactor: 3, minInSync, partitionCount: 1, initialNodes: 5 };
    this.apply({ kind: 'bootstrap', settings });
    for (const id of ids) this.register(id, `${id} start 1`);
    this.apply({
      kind: 'set-map',
      expectMapVersion: 0,
      placements: [{ preferredPrimary: n1, replicas: [n1, n2, n3] }],
    });
    this.on({ kind: 'serve', member: this.member(n1) });
  }
  apply(...commands: ControlCommand[]): void {
    this.index += 1;
    this.state.apply(this.index, { commands });
  }
  register(id: NodeId, nonce: string): void {
    const addresses = { clientAddress: `${id}:7861`, clusterAddress: `${id}:7862` };
    this.apply({ kind: 'register', nodeId: id, diskId: id, nonce, ...addresses });
  }
  member(id: NodeId): Member {
    const member = this.state.current(id);
    if (member === null) throw new Error(`${id} never registered`);
    return member;
  }
  get runtime(): PartitionRuntime {
    return this.state.runtime(partitionId(0));
  }
  on(command: Undecided): void {
    this.apply({ ...command, partition: partitionId(0), expectEpoch: this.runtime.epoch });
  }
  names(members: readonly Member[]): string {
    return members.map((member) => `${member.nodeId}#${member.incarnation}`).join(' ');
  }
}

/** Fields that are empty, zero or false wherever they stand, by their path. */
function emptyFields(data: object): string[] {
  const filled = new Map<string, boolean>();
  const look = (value: unknown, path: string): void => {
    const isObject = typeof value === 'object' && value !== null;
    const isFilled = isObject ? Object.keys(value).length > 0 : Boolean(value);
    filled.set(path, isFilled || filled.get(path) === true);
    if (!isObject) return;
    for (const [key, inner] of Object.entries(value)) look(inner, Array.isArray(value) ? path : `${path}.${key}`);
  };
  look(data, '');
  return [...filled].filter(([, isFilled]) => !isFilled).map(([path]) => path);
}

describe('the runtime of a partition', () => {
  it('an edge compares its epoch: an old decision does nothing', () => {
    const cluster = new Cluster();
    const before = cluster.runtime.epoch;
    cluster.on({ kind: 'shrink', member: cluster.member(n3), why: 'silent' });
    const late = {
      kind: 'shrink',
      partition: partitionId(0),
      expectEpoch: before,
      member: cluster.member(n2),
      why: 'late',
    } as const;
    cluster.apply(late);
    expect(cluster.names(cluster.runtime.inSync)).toBe('n1#1 n2#1');
    expect(cluster.runtime.epoch).toBe(before + 1);
  });

  it('an unreleased promotion drops the old primary in the same entry and raises the term', () => {
    const cluster = new Cluster();
    cluster.on({ kind: 'promote', candidate: cluster.member(n2) });
    expect(cluster.runtime).toMatchObject({
      primary: { nodeId: n2 },
      released: false,
      serving: false,
      health: 'Recovering',
    });
    expect(cluster.runtime.term).toBe(cluster.runtime.epoch);
    expect(cluster.names(cluster.runtime.inSync)).toBe('n2#1 n3#1');
    expect(cluster.runtime.eligible).toEqual([]);
  });

  it('a candidate in no set, or of another incarnation, is refused', () => {
    const cluster = new Cluster();
    const stale = cluster.member(n2);
    cluster.on({ kind: 'promote', candidate: cluster.member(n4) });
    expect(cluster.runtime.primary?.nodeId).toBe(n1);
    cluster.register(n2, 'n2 start 2');
    cluster.on({ kind: 'promote', candidate: stale });
    expect(cluster.runtime.primary?.nodeId).toBe(n1);
    expect(cluster.names(cluster.runtime.inSync)).toBe('n1#1 n3#1');
  });

  it('below minInSync whoever is dropped becomes eligible, a replaced primary too; at minInSync again nobody is', () => {
    const cluster = new Cluster();
    cluster.on({ kind: 'shrink', member: cluster.member(n3), why: '' });
    expect(cluster.runtime.eligible).toEqual([]);
    cluster.on({ kind: 'promote', candidate: cluster.member(n2) });
    expect(cluster.names(cluster.runtime.inSync)).toBe('n2#1');
    expect(cluster.names(cluster.runtime.eligible)).toBe('n1#1');
    cluster.on({ kind: 'expand', member: cluster.member(n3) });
    expect(cluster.names(cluster.runtime.inSync)).toBe('n2#1 n3#1');
    expect(cluster.runtime.eligible).toEqual([]);
  });

  it('an eligible member that is promoted takes the set alone; whom it replaces becomes eligible', () => {
    const cluster = new Cluster();
    cluster.on({ kind: 'shrink', member: cluster.member(n3), why: '' });
    cluster.on({ kind: 'shrink', member: cluster.member(n2), why: '' });
    expect(cluster.names(cluster.runtime.eligible)).toBe('n2#1');
    cluster.on({ kind: 'promote', candidate: cluster.member(n2) });
    expect(cluster.names(cluster.runtime.inSync)).toBe('n2#1');
    expect(cluster.names(cluster.runtime.eligible)).toBe('n1#1');
  });

  it('a new incarnation is the death of the old one, in the same entry, in every set', () => {
    const cluster = new Cluster();
    cluster.on({ kind: 'shrink', member: cluster.member(n3), why: '' });
    cluster.on({ kind: 'shrink', member: cluster.member(n2), why: '' });
    cluster.register(n2, 'n2 start 2');
    expect(cluster.runtime.eligible).toEqual([]);
    cluster.register(n1, 'n1 start 2');
    expect(cluster.runtime).toMatchObject({ primary: null, health: 'Lost', inSync: [] });
  });

  it('a late registration of an earlier start kills nobody', () => {
    const cluster = new Cluster();
    cluster.register(n2, 'n2 start 2');
    cluster.register(n2, 'n2 start 1');
    expect(cluster.member(n2).incarnation).toBe(2);
  });

  it('with no candidate nobody leads and the sets stay', () => {
    const cluster = new Cluster();
    cluster.on({ kind: 'unassign' });
    expect(cluster.runtime).toMatchObject({ primary: null, health: 'Unavailable' });
    expect(cluster.names(cluster.runtime.inSync)).toBe('n1#1 n2#1 n3#1');
    cluster.on({ kind: 'promote', candidate: cluster.member(n1) });
    expect(cluster.runtime.primary?.nodeId).toBe(n1);
  });

  it('the last in-sync member and the primary are never dropped', () => {
    const cluster = new Cluster();
    cluster.on({ kind: 'shrink', member: cluster.member(n1), why: '' });
    expect(cluster.names(cluster.runtime.inSync)).toBe('n1#1 n2#1 n3#1');
  });

  it('a restarted joiner is refused', () => {
    const cluster = new Cluster();
    cluster.on({ kind: 'shrink', member: cluster.member(n3), why: '' });
    const joiner = cluster.member(n3);
    const at = cluster.runtime.epoch;
    cluster.register(n3, 'n3 start 2');
    expect(cluster.runtime.epoch).toBe(at);
    cluster.on({ kind: 'expand', member: joiner });
    expect(cluster.names(cluster.runtime.inSync)).toBe('n1#1 n2#1');
  });

  it('a handoff keeps the set and is not a failover', () => {
    const cluster = new Cluster();
    cluster.on({ kind: 'handoff', from: cluster.member(n1), to: cluster.member(n3) });
    expect(cluster.runtime).toMatchObject({ primary: { nodeId: n3 }, released: true });
    expect(cluster.runtime.inSync.length).toBe(3);
  });

  it('healthy only with every assigned member alive and in sync', () => {
    const cluster = new Cluster();
    cluster.apply({ kind: 'member-down', member: cluster.member(n3) });
    cluster.on({ kind: 'mark-healthy' });
    expect(cluster.runtime.health).toBe('Degraded');
    cluster.apply({ kind: 'member-up', member: cluster.member(n3) });
    cluster.on({ kind: 'mark-healthy' });
    expect(cluster.runtime.health).toBe('Healthy');
  });

  it('the map does not move in a failover; the data-loss number only with its audit event', () => {
    const cluster = new Cluster();
    cluster.on({ kind: 'promote', candidate: cluster.member(n2) });
    expect(cluster.state.mapVersion).toBe(1);
    expect(cluster.state.audit).toEqual([]);
    cluster.on({ kind: 'evict', members: [cluster.member(n3)] });
    expect(cluster.runtime.dataLossNumber).toBe(1);
    expect(cluster.state.audit.length).toBe(1);
    expect(cluster.runtime.epoch).toBe(epoch(cluster.runtime.term));
  });

  it('a snapshot of it is a whole copy', () => {
    const cluster = new Cluster();
    const saved = cluster.state.save();
    cluster.on({ kind: 'promote', candidate: cluster.member(n2) });
    const other = new ControlState();
    other.load(saved);
    expect(other.runtime(partitionId(0)).primary?.nodeId).toBe(n1);
  });

  it('a snapshot keeps every field', () => {
    const cluster = new Cluster();
    cluster.apply({ kind: 'set-leaving', nodeId: n3, leaving: true, drain: true });
    cluster.register(n4, 'n4 start 2');
    cluster.apply({ kind: 'forget-node', nodeId: n4 });
    cluster.on({ kind: 'evict', members: [cluster.member(n1), cluster.member(n2)] });
    cluster.on({ kind: 'serve', member: cluster.member(n1) });
    cluster.on({ kind: 'shrink', member: cluster.member(n2), why: 'silent' });
    // Applied last: nothing. So there is nothing to tell of but the state.
    cluster.apply();
    const saved = cluster.state.save();
    const other = new ControlState();
    other.load(saved);
    expect(other).toEqual(cluster.state);
    // Of an empty field nobody would see that it was forgotten: whoever adds one fills it above. The one partition has number 0.
    expect(emptyFields(saved)).toEqual(['.runtimes.partition', '.audit.partition']);
  });

  it('a node that may still be a full copy is not forgotten', () => {
    const cluster = new Cluster();
    cluster.on({ kind: 'shrink', member: cluster.member(n2), why: 'silent' });
    cluster.on({ kind: 'shrink', member: cluster.member(n3), why: 'silent' });
    expect(cluster.names(cluster.runtime.eligible)).toBe('n3#1');
    cluster.apply({
      kind: 'set-map',
      expectMapVersion: 1,
      placements: [{ preferredPrimary: n1, replicas: [n1, n2, n4] }],
    });
    cluster.apply({ kind: 'forget-node', nodeId: n3 });
    expect(cluster.state.current(n3), 'an eligible member').not.toBeNull();
    cluster.on({ kind: 'expand', member: cluster.member(n4) });
    cluster.apply({ kind: 'forget-node', nodeId: n3 });
    expect(cluster.state.current(n3)).toBeNull();
  });

  it('a forgotten node that comes back is another incarnation than any before', () => {
    const cluster = new Cluster();
    cluster.register(n4, 'n4 start 2');
    expect(cluster.member(n4).incarnation).toBe(2);
    cluster.apply({ kind: 'forget-node', nodeId: n4 });
    const other = new ControlState();
    other.load(cluster.state.save());
    cluster.register(n4, 'n4 start 3');
    expect(cluster.member(n4).incarnation).toBe(3);
    cluster.apply({ kind: 'forget-node', nodeId: n4 });
    cluster.register(n4, 'n4 start 4');
    expect(cluster.member(n4).incarnation).toBe(4);
    expect(other.current(n4)).toBeNull();
  });
});
