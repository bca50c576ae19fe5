/**
 * Bugs of Zaris that the simulator found, each as one exact interleaving; the reduced runs that showed them are in regressions/. A
 * twin puts the old behaviour back and must see the damage.
 */
import { describe, expect, it } from 'vitest';
import type { PartitionRuntime } from '../zaris/control/state.ts';
import {
  hasMember,
  incarnation as asIncarnation,
  type NodeId,
  nodeId as asNodeId,
  partitionId,
  term as asTerm,
} from '../zaris/model/ids.ts';
import type { PeerMessage } from '../zaris/model/peer-wire.ts';
import { Node } from '../zaris/node/node.ts';
import { ClientTestWorld } from '../zaris/client/client-test-world.ts';
import { partitionOf } from '../zaris/model/segments.ts';
import { everyPrimary, exchange, inside } from './broken/store.ts';
import { controlLeader } from './sim-cluster.ts';
import { Script } from './testing/script.ts';
import type { WorldOptions } from './world-node.ts';

const moved = (owner: string) => ({ primary: { nodeId: asNodeId(owner), incarnation: asIncarnation(1) } });

const rebalance = (script: Script, leaving: readonly NodeId[]): void => {
  const leader = script.view().controlLeader;
  if (leader !== null) script.world.request(leader, 0, { op: 'admin', id: 1, command: { kind: 'rebalance', leaving } });
};

/** As it was: a copy went as soon as an applied entry, however old, did not assign it. */
const dropsCopies: Partial<WorldOptions> = {
  makeNode(options, disk, random, parts) {
    const node = new Node(options, disk, random, { ...parts, onBrokenInvariant() {} });
    const { data, control } = node.planes;
    exchange<[PartitionRuntime, number], void>(data, 'reconcile', (reconcile) => (runtime, nowMs) => {
      reconcile(runtime, nowMs);
      const { self } = data;
      const isWanted =
        hasMember([...runtime.inSync, ...runtime.eligible], self) ||
        control.state.placement(runtime.partition).replicas.includes(self.nodeId);
      if (!isWanted) (inside(data)['replicas'] as Map<number, unknown>).delete(runtime.partition);
    });
    return node;
  },
};

describe('a node that is behind in the control log and gets its copy before it has applied the map that assigns it', () => {
  const play = (world: Partial<WorldOptions>): { counted: boolean; lastSeq: number; acknowledgedSeq: number } => {
    const script = new Script({ nodeCount: 4, rf: 3, world: { ...world, node: { timings: { logKeepEntries: 8 } } } });
    const spare = [...script.world.nodes.keys()].find((id) => !script.partition().replicas.includes(id)) as NodeId;
    for (let index = 0; index < 40; index++) script.put(`k${index}`, 'v');
    const held: { from: NodeId; message: PeerMessage }[] = [];
    const stop = script.drop((from, to, message) => {
      if (to !== spare || message.kind !== 'raft') return false;
      held.push({ from, message });
      return true;
    });
    const leaving = script.replicas().find((id) => id !== script.view().controlLeader) as NodeId;
    rebalance(script, [leaving]);
    script.run(300);
    rebalance(script, [leaving]);
    script.until('the spare node has its copy', () => (script.copy(spare)?.lastSeq ?? 0) >= 40, 20_000);
    // Now it hears of everything at once, and applies it entry by entry: first that a node leaves, only then the map.
    stop();
    script.until('it is counted', () => script.partition().inSync.some((member) => member.nodeId === spare));
    const acknowledgedSeq = script.copy(script.primary())?.commitSeq ?? 0;
    return { counted: true, lastSeq: script.copy(spare)?.lastSeq ?? 0, acknowledgedSeq };
  };

  it('keeps that copy: it is counted, and holds what was acknowledged', () => {
    const { lastSeq, acknowledgedSeq } = play({});
    expect(acknowledgedSeq).toBeGreaterThan(40);
    expect(lastSeq).toBeGreaterThanOrEqual(acknowledgedSeq);
  });

  it('(twin) dropped it, and was counted by what the dropped copy had acknowledged', () => {
    const { lastSeq, acknowledgedSeq } = play(dropsCopies);
    expect(lastSeq).toBeLessThan(acknowledgedSeq);
  });
});

/** As it was: only the commit index counted, which a new primary starts with too low. */
const joinsAtCommitIndex: Partial<WorldOptions> = {
  makeNode(options, disk, random, parts) {
    const node = new Node(options, disk, random, { ...parts, onBrokenInvariant() {} });
    everyPrimary(node, (primary) =>
      exchange<[number], void>(primary, 'tick', (tick) => (nowMs) => {
        const keeper = inside(primary)['keeper'];
        if (keeper !== null) inside(keeper as object)['inheritedUpTo'] = 0;
        tick(nowMs);
      }),
    );
    return node;
  },
};

describe('a learner that has reached the commit index of a new primary, but not what the old one acknowledged', () => {
  /** Log ends of the counted members whose processes run, and the seq that was acknowledged last. */
  const play = (world: Partial<WorldOptions>): { ends: number[]; acknowledgedSeq: number } => {
    const script = new Script({ nodeCount: 5, rf: 3, world });
    for (let index = 0; index < 5; index++) script.put(`k${index}`, 'v');
    const old = script.primary();
    const [survivor, other] = script.replicas() as [NodeId, NodeId];
    script.world.kill(other);
    script.until('the other replica left the set', () => !script.replicas().includes(other));
    // The survivor holds one entry more, acknowledged, and never hears that it was committed.
    const stop = script.drop(
      (from, to, message) =>
        from === old &&
        to === survivor &&
        (message.kind === 'beat' || (message.kind === 'append' && message.entries.length === 0)),
    );
    expect(script.put('last', 'acknowledged').status).toBe('Ok');
    const acknowledgedSeq = script.copy(survivor)?.lastSeq ?? 0;
    expect(script.copy(survivor)?.commitSeq).toBeLessThan(acknowledgedSeq);
    script.world.kill(old);
    stop();
    script.until('the survivor serves', () => script.primary() === survivor && script.partition().serving);
    // The returning replica gets everything but that entry: it reaches the commit index, and no further.
    script.drop(
      (from, to, message) =>
        from === survivor &&
        to === other &&
        message.kind === 'append' &&
        message.entries.some((entry) => entry.seq >= acknowledgedSeq),
    );
    script.world.start(other);
    script.run(5_000);
    const ends = script
      .partition()
      .inSync.flatMap((member) =>
        script.world.node(member.nodeId).running === null ? [] : [script.copy(member.nodeId)?.lastSeq ?? 0],
      );
    return { ends, acknowledgedSeq };
  };
  const oneEntryAtATime = { node: { control: { suspectEscalationMs: 1_500 }, timings: { appendEntries: 1 } } };

  it('is not added to the in-sync set', () => {
    const { ends, acknowledgedSeq } = play(oneEntryAtATime);
    expect(Math.min(...ends)).toBeGreaterThanOrEqual(acknowledgedSeq);
  });

  it('(twin) was added without it', () => {
    const { ends, acknowledgedSeq } = play({ ...oneEntryAtATime, ...joinsAtCommitIndex });
    expect(Math.min(...ends)).toBeLessThan(acknowledgedSeq);
  });
});

describe('a call that waits in the line of a connection, goes elsewhere with the map, and comes back before that connection stands', () => {
  it('has its attempt ended once when the connection is lost: its last one, here', () => {
    const world = new ClientTestWorld(1);
    const client = world.client('c');
    world.runUntil(1_000);
    const keyOf = (owner: string): string => {
      for (let index = 0; ; index++) {
        const primary = world.view.partitions[partitionOf(`k${index}`, 12)]?.primary;
        if (primary?.nodeId === owner) return `k${index}`;
      }
    };
    const key = keyOf('n3');
    world.setState('n3', 'frozen');
    // Somebody has to wait for the map, or nobody would ask for it.
    world.rule = (request) =>
      request.op === 'get'
        ? { status: 'Unavailable', outcome: 'NotExecuted' }
        : request.op === 'mutate'
          ? 'ignore'
          : null;
    world.call(client, { kind: 'get', key: keyOf('n1') });
    const put = { kind: 'mutate', mutation: { kind: 'put', key, value: 'v' } } as const;
    const callId = world.call(client, put, { maxAttempts: 2 });
    const partitions = world.partitionsOf('n3');
    const moveTo = (owner: string): void =>
      world.change(partitions, ({ epoch }) => ({ ...moved(owner), term: asTerm(epoch + 1) }));
    world.runUntil(1_600);
    moveTo('n2');
    world.runUntil(2_400);
    moveTo('n3');
    world.runUntil(3_200);
    expect(world.settled.has(callId)).toBe(false);
    world.reset('n3', client);
    expect(world.settled.get(callId)?.result).toMatchObject({ status: 'TransportError', attempts: 2, inDoubt: true });
  });
});

describe('a refusal that goes out at once while an entry of another key has not committed', () => {
  it('names a position that is committed: one beyond it would be ahead of the reads that follow', () => {
    const script = new Script({ nodeCount: 3, rf: 3 });
    script.put('a', '1');
    const held = script.hold((_from, _to, message) => message.kind === 'append' && message.entries.length > 0);
    const put = script.call({ kind: 'mutate', mutation: { kind: 'put', key: 'a', value: '2' } });
    script.run(20);
    expect(script.copy(script.primary())?.lastSeq).toBeGreaterThan(script.copy(script.primary())?.commitSeq ?? 0);
    const refused = script.do({ kind: 'mutate', mutation: { kind: 'delete', key: 'missing' } });
    expect(put.result).toBeNull();
    expect(refused.status).toBe('NotFound');
    const named = refused.answer?.version?.seq ?? Infinity;
    expect(named).toBeLessThanOrEqual(script.copy(script.primary())?.commitSeq ?? 0);
    held.stop();
    held.deliver();
    script.until('the put is acknowledged', () => put.result !== null);
  });
});

describe('a node that becomes control leader with a closed connection that has healed since, and was not told yet', () => {
  it('looks at the other end again before it takes it for gone', () => {
    const script = new Script({ nodeCount: 5, rf: 2, controlAt: 'n5' });
    const { world } = script;
    script.put('a', '1');
    const primary = script.primary();
    const { term } = script.partition();
    const leader = controlLeader(world)?.identity().nodeId as NodeId;
    expect(leader).not.toBe(primary);
    const others = [...world.nodes.keys()].filter((id) => id !== primary && id !== leader);
    for (const id of others) {
      world.cut(id, primary);
      world.cut(primary, id);
      world.link(id, primary, false);
    }
    script.run(300);
    world.healAll();
    script.run(200);
    world.kill(leader);
    script.until('another leads', () => ![null, leader].includes(controlLeader(world)?.identity().nodeId ?? null));
    // The primary itself has no closed connection to itself.
    expect(controlLeader(world)?.identity().nodeId).not.toBe(primary);
    script.run(2_000);
    expect(script.partition()).toMatchObject({ term, primary: { nodeId: primary } });
    expect(script.get('a')).toBe('1');
  });
});

describe('a node that is asked to stop just after it took a partition over', () => {
  it('hands it back, and does not first drop the copy that the map no longer asks for', () => {
    const script = new Script({ nodeCount: 2, rf: 1, partitionCount: 16 });
    const { world } = script;
    const joiner = asNodeId('n3');
    const keys = Array.from({ length: 40 }, (_, index) => `key ${index}`);
    for (const key of keys) script.put(key, key);
    world.addNode(joiner);
    world.start(joiner);
    script.until('it is registered', () => script.view().nodes.some(({ nodeId }) => nodeId === joiner));
    rebalance(script, []);
    const takenOver = (): boolean =>
      script
        .view()
        .partitions.some(
          ({ primary, serving, inSync }) => primary?.nodeId === joiner && serving && inSync.length === 2,
        );
    script.until('it leads, and the old copy still counts', takenOver);
    world.shutdown(joiner);
    script.until('it has ended', () => world.node(joiner).running === null);
    script.run(2_000);
    for (const { health, primary } of script.view().partitions) {
      expect(health).not.toBe('Lost');
      expect(primary?.nodeId).not.toBe(joiner);
    }
    for (const key of keys) expect(script.get(key)).toBe(key);
  });
});

describe('an answer that names the position of a partition, from a primary that has not committed yet what it inherited', () => {
  it.each(['get', 'delete'] as const)('%s: waits until it has: the old primary had named a later one', (kind) => {
    const script = new Script({ nodeCount: 3, rf: 3 });
    const { world } = script;
    script.put('a', '1');
    script.run(500);
    const old = script.primary();
    // The followers hold it, and have not heard that it is committed.
    script.put('b', '1');
    const named = script.do({ kind: 'get', key: 'missing' }).answer?.version?.seq ?? Infinity;
    const held = script.hold((from, _to, message) => message.kind === 'append' && from !== old);
    world.kill(old);
    script.untilAnotherLeads(old);
    expect(script.copy(script.primary())?.commitSeq).toBeLessThan(named);
    const asked = script.call(
      kind === 'get' ? { kind, key: 'missing' } : { kind: 'mutate', mutation: { kind, key: 'missing' } },
    );
    script.run(300);
    expect(asked.result).toBeNull();
    held.stop();
    held.deliver();
    script.until('it is answered', () => asked.result !== null);
    expect(asked.result?.status).toBe('NotFound');
    expect(asked.result?.answer?.version?.seq).toBeGreaterThanOrEqual(named);
  });
});

describe('a primary that follows a later one before it has heard from control that it was deposed', () => {
  it('sends its old followers nothing: they would commit entries of the old term by the commit index of the new one', () => {
    const script = new Script({ nodeCount: 5, rf: 5, minInSync: 2, controlAt: 'n5' });
    const { world } = script;
    script.put('a', '1');
    script.run(500);
    const old = script.primary();
    const follower = script.replicas().find((id) => id !== script.view().controlLeader) as NodeId;
    const others = [...world.nodes.keys()].filter((id) => id !== old && id !== follower);
    const deaf = script.hold((_from, to, message) => message.kind === 'raft' && (to === old || to === follower));
    for (const left of [old, follower])
      for (const right of others) {
        world.cut(left, right);
        world.cut(right, left);
      }
    // Logged by the old primary and its follower, and committed by nobody.
    script.call({ kind: 'mutate', mutation: { kind: 'put', key: 'b', value: '2' } });
    const end = (script.copy(old)?.lastSeq ?? 0) + 1;
    script.until('the follower holds it', () => script.copy(follower)?.lastSeq === end);
    expect(script.copy(follower)?.commitSeq).toBeLessThan(end);
    for (const id of [old, follower]) for (const other of others) world.link(other, id, false);
    script.untilAnotherLeads(old);
    const next = script.primary();
    script.until('it has committed others in its place', () => (script.copy(next)?.commitSeq ?? 0) >= end);
    for (const other of others) {
      world.heal(other, old);
      world.heal(old, other);
      world.link(other, old, true);
    }
    script.until('the old one follows it', () => (script.copy(old)?.commitSeq ?? 0) >= end);
    script.run(500);
    const planesOf = (id: NodeId) => world.node(id).running?.node.planes.data;
    expect(planesOf(old)?.primary(partitionId(0))?.deposed).toBe(true);
    expect(script.copy(follower)?.commitSeq).toBeLessThan(end);
    deaf.stop();
    world.healAll();
    for (const other of others) world.link(other, follower, true);
    script.waitHealthy();
    script.run(500);
    const digests = [...world.nodes.keys()].map((id) => planesOf(id)?.replica(partitionId(0))?.store.digest);
    expect(new Set(digests).size).toBe(1);
  });
});

describe('a control leader that hears nobody any more, but is heard', () => {
  it('takes nobody for gone: its successor would carry that out', () => {
    const script = new Script({
      nodeCount: 5,
      rf: 2,
      controlAt: 'n5',
      world: { node: { control: { suspectEscalationMs: 600 } } },
    });
    const { world } = script;
    script.put('a', '1');
    const primary = script.primary();
    const { term } = script.partition();
    const leader = controlLeader(world)?.identity().nodeId as NodeId;
    expect(leader).not.toBe(primary);
    for (const id of world.nodes.keys()) if (id !== leader) world.cut(id, leader);
    script.until('another leads', () => ![null, leader].includes(controlLeader(world)?.identity().nodeId ?? null));
    world.healAll();
    script.run(2_000);
    expect(script.partition()).toMatchObject({ term, primary: { nodeId: primary } });
    expect(script.get('a')).toBe('1');
  });
});
