/** Hazards 12, 14, 19 and 24: copies and primaries on the move: handoffs, migration, new copies, snapshots. */
import { describe, expect, it } from 'vitest';
import { type NodeId, nodeId } from '../../zaris/model/ids.ts';
import { Script } from '../testing/script.ts';
import { apart, carriesEntries, proposes, put, rawGet, rawPut } from './support.ts';

/** Terms in which two members were assigned. */
function sharedTerms(script: Script): string[] {
  const assigned = new Map<string, string>();
  const shared = new Set<string>();
  for (const { notice } of script.notices) {
    const { primary, term, partition } = notice.fields;
    if (!notice.name.startsWith('edge-') || typeof primary !== 'string') continue;
    const place = `partition ${partition} term ${term}`;
    if ((assigned.get(place) ?? primary) !== primary) shared.add(place);
    assigned.set(place, primary);
  }
  return [...shared];
}

const edges = (script: Script, name: string): number =>
  script.notices.filter(({ notice }) => notice.name === `edge-${name}` && notice.level === 'info').length;

describe('hazards', () => {
  /** The preferred primary is back and in sync, on a slow node; the release in its favour is proposed, and held back. */
  const releasing = () => {
    const script = new Script({ ...apart, world: { serviceMs: { n1: 2 } } });
    const preferred = script.primary();
    script.restart(preferred);
    script.untilAnotherLeads(preferred);
    const old = script.primary();
    expect(script.put('a', '1').status).toBe('Ok');
    const releases = script.hold((_from, _to, message) => proposes(message, 'handoff'));
    const withdrawals = script.hold((_from, _to, message) => proposes(message, 'withdraw'));
    let sequence = 0;
    /** A read and a write, put to the old primary. */
    const ask = () => {
      sequence += 1;
      return [script.ask(old, rawGet(script, 'a')), script.ask(old, rawPut(script, 'b', 'x', sequence))];
    };
    script.until('the release', () => releases.messages.length > 0);
    return { script, preferred, old, releases, withdrawals, ask };
  };

  it('12. a release is held back: its primary answers nothing until a committed entry settles it, and a late release does nothing', () => {
    const { script, preferred, old, releases, withdrawals, ask } = releasing();
    for (let round = 0; round < 2; round++) {
      script.until('the release', () => releases.messages.length > 0);
      const asked = ask();
      script.until('the withdrawal', () => withdrawals.messages.length > 0);
      asked.push(...ask());
      script.run(700);
      const answered = asked.filter(({ answer }) => answer !== null && answer.status !== 'Unavailable');
      expect(answered, 'answers while the release is open').toEqual([]);
      const late = releases.messages.length;
      const before = edges(script, 'withdrawn');
      withdrawals.deliver();
      script.until('withdrawn', () => edges(script, 'withdrawn') > before);
      expect(script.put('c', String(round)).status).toBe('Ok');
      releases.deliver(late);
      script.run(300);
      expect(script.primary(), 'who leads after the late release').toBe(old);
      expect(script.get('c')).toBe(String(round));
    }
    releases.stop();
    withdrawals.stop();
    script.until('the hand-back', () => script.primary() === preferred && script.partition().serving);
    expect(script.get('a'), 'the acknowledged write').toBe('1');
    expect(sharedTerms(script), 'terms with two primaries').toEqual([]);
  });

  it('12. the release commits while its withdrawal is on the way: the withdrawal does nothing', () => {
    const { script, preferred, old, releases, withdrawals } = releasing();
    script.until('the withdrawal', () => withdrawals.messages.length > 0);
    releases.stop();
    releases.deliver(1);
    script.until('the handoff', () => script.primary() === preferred);
    expect(script.partition().term, 'a later term').toBeGreaterThan(1);
    withdrawals.deliver();
    script.until('it serves', () => script.partition().serving);
    script.run(500);
    expect(script.primary(), 'who leads after the late withdrawal').toBe(preferred);
    expect(edges(script, 'withdrawn')).toBe(0);
    expect(script.copy(old)?.role).toBe('replica');
    expect(script.get('a'), 'the acknowledged write').toBe('1');
    expect(sharedTerms(script), 'terms with two primaries').toEqual([]);
  });

  it('12. handoffs aborted again and again under load: no write is lost', () => {
    const script = new Script({ ...apart, world: { serviceMs: { n1: 2 } } });
    const preferred = script.primary();
    script.restart(preferred);
    script.untilAnotherLeads(preferred);
    let lost = 0;
    const stop = script.drop((_from, _to, message) => {
      if (!proposes(message, 'handoff')) return false;
      lost += 1;
      return lost <= 12;
    });
    const boxes: ReturnType<Script['call']>[] = [];
    for (let index = 0; index < 200; index++) {
      boxes.push(script.call(put(`k${index}`, 'v')));
      script.run(50);
    }
    stop();
    script.until('all settled', () => boxes.every((box) => box.result !== null));
    script.until('the hand-back', () => script.primary() === preferred && script.partition().serving);
    expect(lost, 'releases that were lost').toBeGreaterThanOrEqual(12);
    expect(boxes.filter((box) => box.result?.status !== 'Ok')).toEqual([]);
    for (let index = 0; index < 200; index++) expect(script.get(`k${index}`), `k${index}`).toBe('v');
    expect(sharedTerms(script), 'terms with two primaries').toEqual([]);
  });

  it.each([0, 20, 60, 150, 300, 600, 1_200, 2_500])(
    '14. leader, source and target killed %i ms into a migration',
    (afterMs) => {
      for (const victim of ['leader', 'source', 'target'] as const) {
        const script = new Script({
          nodeCount: 5,
          partitionCount: 4,
          world: { node: { timings: { snapshotItems: 4, logKeepEntries: 8 } } },
        });
        for (let index = 0; index < 60; index++) script.put(`k${index}`, 'v');
        const added = nodeId('n6');
        script.world.addNode(added);
        script.world.start(added);
        script.until('the new node', () => script.view().nodes.some((node) => node.nodeId === added && node.alive));
        const leader = script.view().controlLeader as NodeId;
        script.do({ kind: 'admin', target: { nodeId: leader }, command: { kind: 'rebalance', leaving: [] } });
        script.run(afterMs);
        const id = victim === 'leader' ? leader : victim === 'source' ? script.primary(0) : added;
        script.world.kill(id);
        script.run(500);
        script.world.start(id);
        script.waitHealthy();
        for (let index = 0; index < 60; index++) expect(script.get(`k${index}`), `${victim} k${index}`).toBe('v');
        for (let index = 0; index < 4; index++) expect(script.digestsAgree(index), 'copies agree').toBe(true);
      }
    },
  );

  it.each([
    'has joined',
    'has joined, after a snapshot that took two seconds',
    'has joined, deaf since it was proposed',
    'has replaced the surplus copy',
  ] as const)('14. every copy but the new one dies when it %s: it holds all that was acknowledged', (moment) => {
    const script = new Script({ ...apart, world: { node: { timings: { snapshotItems: 4, logKeepEntries: 8 } } } });
    for (let index = 0; index < 60; index++) script.put(`k${index}`, 'v');
    const surplus = script.replicas()[0] as NodeId;
    const acked: string[] = [];
    for (let index = 0; index < 300; index++) {
      script.world.at(script.world.nowMs + 4 * index, () => {
        const key = `w${index}`;
        script.client.call(put(key, 'v'), ({ status }) => void (status === 'Ok' && acked.push(key)));
      });
    }
    if (moment === 'has joined, deaf since it was proposed') {
      let proposed = false;
      script.drop((_from, to, message) => {
        proposed ||= proposes(message, 'expand');
        return proposed && carriesEntries(message) && to === target();
      });
    }
    if (moment === 'has joined, after a snapshot that took two seconds') {
      const beginMs = script.world.nowMs;
      script.drop((_from, _to, message) => message.kind === 'snapshot-chunk' && script.world.nowMs < beginMs + 2_000);
    }
    /** Who is to hold a copy and did not before. */
    const target = (): NodeId | undefined => script.partition().replicas.find((id) => !holders.includes(id));
    const holders = [...script.partition().replicas];
    const leader = script.view().controlLeader as NodeId;
    for (let times = 0; target() === undefined && times < 5; times++) {
      const command = { kind: 'rebalance', leaving: [surplus] } as const;
      script.ask(leader, { op: 'admin', id: 1, command });
      script.run(50);
    }
    const fresh = target() as NodeId;
    const sets = (): string[] => script.partition().inSync.map((member) => member.nodeId);
    if (moment === 'has replaced the surplus copy')
      script.until('the surplus copy left', () => !sets().includes(surplus));
    else script.until('it joined', () => sets().includes(fresh));
    expect(acked.length, 'writes acknowledged meanwhile').toBeGreaterThan(5);
    for (const id of holders) script.world.kill(id);
    script.run(1_000);
    for (const id of holders) script.world.start(id);
    script.run(4_000);
    expect(script.partition().health, 'health').not.toBe('Lost');
    const missing = [...acked].filter((key) => script.get(key) === null);
    expect(missing, 'acknowledged and missing').toEqual([]);
    for (let index = 0; index < 60; index++) expect(script.get(`k${index}`), `k${index}`).toBe('v');
  });

  it('19. two of three holders gone for good: reads at once, writes after the first new copy, three copies again', () => {
    const script = new Script({ ...apart, world: { node: { control: { nodeLeftMs: 4_000 } } } });
    script.put('a', '1');
    const gone = script.replicas();
    const { epoch } = script.partition();
    for (const replica of gone) script.world.kill(replica);
    script.until('alone', () => script.replicas().length === 0 && script.partition().serving, 5_000);
    // The lease needs the eligible member that is gone: it has run out, and the control plane must vouch for the term.
    script.run(500);
    expect(script.partition().epoch - epoch, 'edges: each of the two left once').toBe(2);
    const atMs = script.world.nowMs;
    expect(script.get('a')).toBe('1');
    expect(script.world.nowMs - atMs, 'time of the first read, ms').toBeLessThan(2_000);
    const hasNewCopy = (): boolean =>
      script.partition().inSync.some(({ nodeId: id }) => id !== script.primary() && !gone.includes(id));
    const early: ReturnType<Script['ask']>[] = [];
    while (!hasNewCopy() && early.length < 1_000) {
      early.push(script.ask(script.primary(), rawPut(script, 'b', 'x', early.length + 1)));
      script.world.run(script.world.nowMs + 20, hasNewCopy);
    }
    const acknowledged = early.filter(({ answer }) => answer?.status === 'Ok');
    expect(acknowledged, 'writes acknowledged with a single copy').toEqual([]);
    expect(early.length).toBeGreaterThan(10);
    expect(hasNewCopy()).toBe(true);
    script.run(1_000);
    expect(script.put('c', '1').status, 'a write with a new copy').toBe('Ok');
    script.until('three copies', () => script.partition().inSync.length === 3);
    expect(script.partition().inSync.filter((member) => gone.includes(member.nodeId))).toEqual([]);
    expect(script.get('a')).toBe('1');
    script.run(500);
    expect(script.digestsAgree(), 'copies agree').toBe(true);
  });

  it.each(['starts empty', 'missed the deletes'] as const)(
    '24. a snapshot whose source dies, with deletes in between, to a learner that %s: nothing comes back',
    (learnerState) => {
      const timings = { logKeepEntries: 8, logBoundEntries: 16, snapshotItems: 1 };
      const script = new Script({ ...apart, world: { node: { timings } } });
      for (let index = 0; index < 120; index++) script.put(`k${index}`, 'v');
      const source = script.primary();
      const learner = script.replicas()[0] as NodeId;
      if (learnerState === 'starts empty') script.restart(learner);
      else {
        script.isolate(learner);
        script.until('it left', () => !script.replicas().includes(learner));
        for (let index = 0; index < 20; index++) script.delete(`k${index}`);
        script.rejoin(learner);
      }
      const chunks = { ofSource: 0, ofSuccessor: 0 };
      script.drop((from, to, message) => {
        if (message.kind !== 'snapshot-chunk' || to !== learner) return false;
        if (from === source) return (chunks.ofSource += 1) > 40;
        chunks.ofSuccessor += 1;
        return false;
      });
      script.until('half-way', () => chunks.ofSource > 40);
      for (let index = 0; index < 60; index++) script.delete(`k${index}`);
      expect(script.replicas(), 'the learner is not in sync yet').not.toContain(learner);
      script.world.kill(source);
      script.untilAnotherLeads(source);
      script.until('it is in sync', () => script.replicas().includes(learner));
      expect(chunks.ofSuccessor, 'chunks of the new source').toBeGreaterThan(40);
      // Whoever else holds a copy goes: the learner's is the one that counts.
      script.world.kill(script.primary());
      script.world.start(source);
      script.until('it leads', () => script.partition().serving && script.primary() === learner);
      const deleted = Array.from({ length: 60 }, (_, index) => `k${index}`);
      const back = deleted.filter((key) => script.get(key) !== null);
      expect(back, 'deleted and back').toEqual([]);
      for (let index = 60; index < 120; index++) expect(script.get(`k${index}`), `k${index}`).toBe('v');
      script.until('a second copy', () => script.replicas().includes(source));
      script.run(500);
      expect(script.digestsAgree(), 'copies agree').toBe(true);
    },
  );
});
