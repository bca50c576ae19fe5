/** Hazards 1, 2, 4, 5 and 20: members that restart empty, and additions to the in-sync set that come late. */
import { describe, expect, it } from 'vitest';
import type { NodeId } from '../../zaris/model/ids.ts';
import { Script } from '../testing/script.ts';
import { apart, carriesEntries, proposes, put, rawPut } from './support.ts';

/** Members of the in-sync set that run in an incarnation that is no longer current. */
const deadMembersInSync = (script: Script): string[] =>
  script
    .partition()
    .inSync.filter(
      ({ nodeId, incarnation }) =>
        script.view().nodes.find((node) => node.nodeId === nodeId)?.incarnation !== incarnation,
    )
    .map(({ nodeId, incarnation }) => `${nodeId}#${incarnation}`);

const incarnationOf = (script: Script, id: NodeId): number =>
  script.view().nodes.find((node) => node.nodeId === id)?.incarnation ?? 0;

/** Waits until the restart of a node is committed. */
const untilRegistered = (script: Script, id: NodeId, before: number): void =>
  script.until('the new incarnation', () => incarnationOf(script, id) > before);

/** Edges from now on that add a node to the in-sync set, as the control leader told of them. */
function additionsOf(script: Script, id: NodeId): string[] {
  const found: string[] = [];
  const told = script.world.onNotice;
  script.world.onNotice = (from, notice) => {
    told(from, notice);
    const why = String(notice.fields['why']);
    if (notice.name === 'edge-in-sync' && why.startsWith(`${id}#`) && why.endsWith(' joined')) found.push(why);
  };
  return found;
}

describe('hazards', () => {
  it.each(['after it is up again', 'before it is down'] as const)(
    '1. the last in-sync member restarts empty: the others do not truncate to it; they are back %s',
    (order) => {
      const script = new Script(apart);
      script.put('a', '1');
      const primary = script.primary();
      const replicas = script.replicas();
      for (const replica of replicas) {
        script.world.pause(replica);
        script.until('it leaves the set', () => !script.replicas().includes(replica));
      }
      const back = (): void => replicas.forEach((id) => script.world.resume(id));
      if (order === 'before it is down') back();
      script.restart(primary);
      script.run(500);
      back();
      script.waitHealthy();
      expect(script.get('a'), 'the acknowledged write').toBe('1');
      expect(script.digestsAgree(), 'copies agree').toBe(true);
    },
  );

  it('2. a joiner that restarts between catch-up and its addition is refused', () => {
    const script = new Script(apart);
    for (let index = 0; index < 20; index++) script.put(`k${index}`, 'v');
    const joiner = script.replicas()[0] as NodeId;
    const additions = script.hold((_from, _to, message) => proposes(message, 'expand'));
    script.restart(joiner);
    script.until('the proposal', () => additions.messages.length > 0);
    const late = additions.messages.length;
    const before = incarnationOf(script, joiner);
    script.restart(joiner);
    untilRegistered(script, joiner, before);
    // A member that is gone is dropped again at once: what counts is that it never stood there.
    const joined = additionsOf(script, joiner);
    additions.deliver(late);
    script.run(300);
    expect(joined, 'additions of a dead incarnation').toEqual([]);
    additions.stop();
    script.waitHealthy();
    expect(script.get('k7')).toBe('v');
    expect(script.digestsAgree(), 'copies agree').toBe(true);
  });

  it('2. a joiner that restarts right after its addition leaves the set with the same entry that registers it', () => {
    const script = new Script(apart);
    script.put('a', '1');
    const joiner = script.replicas()[0] as NodeId;
    script.restart(joiner);
    script.until('it left', () => !script.replicas().includes(joiner));
    script.until('it joined', () => script.replicas().includes(joiner));
    const before = incarnationOf(script, joiner);
    script.restart(joiner);
    untilRegistered(script, joiner, before);
    expect(deadMembersInSync(script), 'dead incarnations in the set').toEqual([]);
    script.waitHealthy();
    expect(script.get('a')).toBe('1');
  });

  it.each(['leads next', 'is cut off while the other leads'] as const)(
    '4. a primary killed and restarted faster than detection, after sending an entry to one replica only, which %s',
    (fate) => {
      const script = new Script(apart);
      script.put('a', 'old');
      const primary = script.primary();
      // With equal positions the lower node id is promoted: the other one.
      const [other, one] = script.replicas().sort() as [NodeId, NodeId];
      const stop = script.drop((_from, to, message) => to === other && carriesEntries(message));
      const before = script.copy(one)?.lastSeq ?? 0;
      const box = script.call(put('a', 'new'));
      // Nobody repeats this one: it stands or falls with the replica's tail, and on every copy alike.
      script.ask(primary, rawPut(script, 'ghost', 'x'));
      script.until('one replica holds both', () => (script.copy(one)?.lastSeq ?? 0) >= before + 2);
      if (fate !== 'leads next') script.isolate(one);
      else script.run(250);
      script.restart(primary);
      stop();
      script.until('the call to settle', () => box.result !== null);
      expect(box.result?.status).toBe('Ok');
      if (fate !== 'leads next') {
        script.waitServing();
        expect(script.copy(one)?.lastSeq, 'the tail is still there').toBeGreaterThan(0);
      }
      script.world.healAll();
      script.waitHealthy();
      expect(script.get('a'), 'the acknowledged write').toBe('new');
      expect(script.digestsAgree(), 'copies agree').toBe(true);
      const promoted = script.notices.filter(({ notice }) => notice.name === 'edge-promotion');
      expect(promoted.length, 'a restart is a failover').toBeGreaterThan(0);
    },
  );

  it('5. the preferred primary restarts empty: no hand-back before it is in sync', () => {
    const timings = { logKeepEntries: 8, snapshotItems: 4 };
    const script = new Script({ ...apart, world: { node: { timings } } });
    const preferred = script.primary();
    script.world.kill(preferred);
    script.untilAnotherLeads(preferred);
    for (let index = 0; index < 50; index++) script.put(`k${index}`, String(index));
    const heldKeys: number[] = [];
    const strangers: string[] = [];
    script.world.onNotice = (_from, { name, fields }) => {
      if (name !== 'edge-handoff' && name !== 'edge-promotion') return;
      const primary = String(fields['primary']);
      if (!String(fields['inSync']).split(',').includes(primary)) strangers.push(`${name} ${primary}`);
      if (primary.startsWith(preferred)) heldKeys.push(script.copy(preferred)?.keyCount ?? 0);
    };
    // Catching up takes far longer than a beat: whoever hands back too early has the time to.
    const beginMs = script.world.nowMs;
    script.drop((_from, _to, message) => message.kind === 'snapshot-chunk' && script.world.nowMs < beginMs + 2_000);
    script.world.start(preferred);
    script.until('the hand-back', () => script.primary() === preferred);
    expect(Math.min(...heldKeys), 'keys held by the preferred primary when it is assigned').toBe(50);
    expect(strangers, 'assigned without being in sync').toEqual([]);
    script.waitServing();
    for (let index = 0; index < 50; index++) expect(script.get(`k${index}`)).toBe(String(index));
  });

  /** A joiner whose addition is proposed, and kept from the control leader; then it falls silent. */
  const proposedAndSilent = () => {
    const script = new Script(apart);
    const joiner = script.replicas()[0] as NodeId;
    script.isolate(joiner);
    script.until('it leaves', () => !script.replicas().includes(joiner));
    const additions = script.hold((_from, _to, message) => proposes(message, 'expand'));
    script.rejoin(joiner);
    script.until('the proposal', () => additions.messages.length > 0);
    script.isolate(joiner);
    return { script, joiner, additions };
  };

  it('20. a delayed addition commits after the primary stopped waiting for that joiner: refused by its epoch', () => {
    const { script, joiner, additions } = proposedAndSilent();
    const late = additions.messages.length;
    script.until('withdrawn', () => script.notices.some(({ notice }) => notice.name === 'edge-withdrawn'));
    expect(script.put('a', '1').status).toBe('Ok');
    const joined = additionsOf(script, joiner);
    additions.deliver(late);
    script.run(500);
    expect(joined, 'late additions that were applied').toEqual([]);
    expect(script.replicas()).not.toContain(joiner);
    additions.stop();
    script.world.healAll();
    script.waitHealthy();
    expect(script.get('a'), 'the acknowledged write').toBe('1');
  });

  it('20. the addition commits first: until then the primary waits for the joiner, and a late withdrawal does nothing', () => {
    const { script, joiner, additions } = proposedAndSilent();
    const withdrawals = script.hold((_from, _to, message) => proposes(message, 'withdraw'));
    const box = script.call(put('a', '1'));
    script.until('the withdrawal', () => withdrawals.messages.length > 0);
    script.run(1_000);
    expect(box.result, 'acknowledged while the addition was open').toBeNull();
    additions.deliver(1);
    script.until('it is added', () => script.replicas().includes(joiner));
    withdrawals.deliver();
    additions.stop();
    withdrawals.stop();
    script.until('the call to settle', () => box.result !== null);
    expect(script.replicas(), 'the set when it was acknowledged').not.toContain(joiner);
    script.world.healAll();
    script.waitHealthy();
    expect(script.get('a'), 'the acknowledged write').toBe('1');
  });
});
