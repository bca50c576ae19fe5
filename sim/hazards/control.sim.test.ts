/** Hazards 13, 15 and 18: the control plane: lost partitions, votes across restarts, voters without their disks. */
import { describe, expect, it } from 'vitest';
import type { NodeId } from '../../zaris/model/ids.ts';
import type { PeerMessage } from '../../zaris/model/peer-wire.ts';
import type { RaftVoteRequest } from '../../zaris/model/raft-wire.ts';
import { Script } from '../testing/script.ts';
import { apart, quickSuspicion, rawGet } from './support.ts';

describe('hazards', () => {
  it('13. all holders die: Lost, never NotFound; eviction raises the data-loss number', () => {
    const control = { evictAfterMs: 20_000, controlSessionMs: 3_000 };
    const script = new Script({ ...apart, world: { node: { control } } });
    script.put('a', '1');
    const holders = script.partition().inSync.map((member) => member.nodeId);
    for (const id of holders) script.world.kill(id);
    script.run(300);
    for (const id of holders) script.world.start(id);
    const early = script.call({ kind: 'get', key: 'a' }, script.newClient('early'), 60_000);
    script.run(5_000);
    expect(script.partition().health, 'health').toBe('Lost');
    expect(early.result?.status, 'a read that began before it was known').toBe('Lost');
    expect(script.do({ kind: 'get', key: 'a' }).status, 'a read').toBe('Lost');
    expect(script.partition().dataLossNumber).toBe(0);
    script.run(40_000);
    expect(script.partition().dataLossNumber, 'the data-loss number').toBe(1);
    const audit = [...script.world.nodes.values()].flatMap(
      (node) => node.running?.node.planes.control.state.audit ?? [],
    );
    expect(audit.length, 'an audit event on every node').toBe(5);
    script.waitServing();
    expect(script.get('a')).toBeNull();
    expect(script.put('a', '2').status).toBe('Ok');
    expect(script.get('a')).toBe('2');
  });

  it('15. restarted voters never make two leaders of one raft term', () => {
    const script = new Script({ nodeCount: 5 });
    const ids = [...script.world.nodes.keys()];
    for (let round = 0; round < 12; round++) {
      const leader = script.view().controlLeader as NodeId;
      script.isolate(leader);
      script.run(4_000 + 40 * round);
      for (const id of ids) if (id !== leader) script.restart(id);
      script.run(300);
      script.world.healAll();
      script.run(5_000);
    }
    const leaders = new Map<number, string>();
    for (const { nodeId: id, notice } of script.notices) {
      if (notice.name !== 'control-leader') continue;
      const raftTerm = Number(notice.fields['raftTerm']);
      expect(leaders.get(raftTerm) ?? id).toBe(id);
      leaders.set(raftTerm, id);
    }
    expect(leaders.size).toBeGreaterThan(3);
  });

  it.each(['after its vote is on disk', 'before its vote is on disk'] as const)(
    '15. a voter is killed %s, and a rival of the same term asks it when it is back: one vote in a term',
    (moment) => {
      const script = new Script({ nodeCount: 5 });
      const old = script.view().controlLeader as NodeId;
      const votes = new Map<string, Set<string>>();
      let asked: RaftVoteRequest | null = null;
      let isRivalAnswered = false;
      let rival: NodeId | null = null;
      const raftOf = (message: PeerMessage) => (message.kind === 'raft' ? message.message : null);
      script.drop((from, to, message) => {
        const raft = raftOf(message);
        if (raft?.kind === 'vote' && asked === null && to !== old) asked = raft;
        if (raft?.kind === 'voteAnswer') {
          if (raft.granted) {
            const place = `${from} in ${raft.raftTerm}`;
            votes.set(place, (votes.get(place) ?? new Set()).add(to));
          }
          isRivalAnswered ||= asked !== null && from === asked.receiver.nodeId && to === rival;
        }
        // Whoever wins does not reach the voter: it must know by itself.
        return raft?.kind === 'append' && asked !== null && to === asked.receiver.nodeId;
      });
      const isAsked = (): boolean => asked !== null;
      script.isolate(old);
      script.until('a candidate asks', isAsked);
      const request = asked as unknown as RaftVoteRequest;
      const voter = request.receiver.nodeId;
      const candidate = request.sender.nodeId;
      if (moment === 'after its vote is on disk')
        script.until(
          'it votes',
          () => votes.size > 0 && [...votes.keys()].some((place) => place.startsWith(`${voter} `)),
        );
      else {
        let hasTaken = false;
        script.world.onStep = (node, event) => {
          const raft = event.kind === 'message' ? raftOf(event.message) : null;
          if (node.nodeId === voter && raft?.kind === 'vote') hasTaken = true;
        };
        script.until('it takes the request', () => hasTaken);
        script.world.onStep = null;
      }
      script.restart(voter);
      rival = [...script.world.nodes.keys()].find((id) => ![old, voter, candidate].includes(id)) as NodeId;
      const rivalVoter = script.world.node(rival).running?.node.planes.control.raft.self;
      if (rivalVoter === undefined) throw new Error('the rival does not run');
      script.run(5);
      script.world.inject(rival, voter, { kind: 'raft', message: { ...request, sender: rivalVoter } });
      script.run(50);
      expect(isRivalAnswered, 'the voter answered the rival').toBe(true);
      const twice = [...votes].filter(([, recipients]) => recipients.size > 1);
      expect(twice, 'votes given twice').toEqual([]);
    },
  );

  it('18. voters wiped one after the other, a majority too: no empty cluster that answers NotFound', () => {
    const script = new Script({ nodeCount: 5 });
    script.put('a', '1');
    const holders = script.partition().inSync.map((member) => member.nodeId);
    for (const id of script.world.nodes.keys()) {
      if (holders.includes(id)) continue;
      script.restart(id, { wipe: true });
      script.until('a voter again', () => script.view().nodes.every((node) => node.voter && node.alive));
      expect(script.get('a')).toBe('1');
    }
    const keep = holders.slice(0, 2);
    for (const id of script.world.nodes.keys()) if (!keep.includes(id)) script.world.kill(id);
    for (const id of script.world.nodes.keys()) {
      if (keep.includes(id)) continue;
      script.world.wipe(id);
      script.world.start(id);
    }
    const { revision } = script.view();
    script.run(60_000);
    const box = script.call({ kind: 'get', key: 'a' }, script.client, 10_000);
    script.until('settled', () => box.result !== null);
    expect(box.result?.status, 'a read').not.toBe('NotFound');
    for (const node of script.world.nodes.values()) {
      const view = node.running?.node.view();
      const isNew = view !== undefined && view.partitionCount > 0 && view.revision > revision;
      expect(isNew, `a control entry committed by wiped voters, at ${node.nodeId}`).toBe(false);
    }
  });

  it('18. a majority is wiped that had elected a newer primary than the rest knows of: the old one does not go on', () => {
    const control = { ...quickSuspicion.node.control, controlSessionMs: 3_000 };
    const script = new Script({ ...apart, minInSync: 1, world: { node: { control } } });
    script.put('a', 'old');
    const primary = script.primary();
    const [companion, successor] = script.replicas() as [NodeId, NodeId];
    const others = [...script.world.nodes.keys()].filter((id) => id !== primary && id !== companion);
    for (const id of [primary, companion]) script.isolate(id, others);
    script.until('the successor leads', () => script.partition().serving && script.primary() === successor);
    // By a client that never knew the old primary, and so left nothing of this write there.
    const stranger = script.newClient('stranger', { seeds: [`${successor}:7861`] });
    expect(script.put('a', 'new', stranger).status).toBe('Ok');
    for (const id of others) script.world.kill(id);
    for (const id of others) script.world.wipe(id);
    script.world.healAll();
    for (const id of others) script.world.start(id);
    for (let round = 0; round < 12; round++) {
      script.run(5_000);
      const asked = [...script.world.nodes.keys()].map((id) => script.ask(id, rawGet(script, 'a')));
      script.run(6_000);
      const answered = asked.flatMap(({ answer }) => (answer === null ? [] : [answer.value ?? answer.status]));
      expect(answered, 'answers after the newer history is gone').not.toContain('old');
      expect(answered).not.toContain('NotFound');
    }
  });
});
