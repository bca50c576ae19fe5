/** Hazards 3, 6, 7, 9, 21 and 22: who may lead next, and what becomes of the tails. */
import { describe, expect, it } from 'vitest';
import { type NodeId, seq as asSeq } from '../../zaris/model/ids.ts';
import type { NodeParts } from '../../zaris/node/options.ts';
import { Script } from '../testing/script.ts';
import { add, apart, broken, carriesEntries, quickSuspicion, rawPut } from './support.ts';

describe('hazards', () => {
  const tailKept = (rf: number, parts?: NodeParts): (string | null)[] => {
    const script = new Script({
      ...apart,
      rf,
      world: { ...quickSuspicion, ...(parts === undefined ? {} : { parts }) },
    });
    const first = script.primary();
    // The followers learn of the entry, but never that it was committed.
    const stop = script.drop((from, _to, message) => {
      if (message.kind === 'beat' && from === script.primary()) return true;
      return message.kind === 'append' && message.entries.length === 0 && from === first;
    });
    const result = script.put('a', '1');
    expect(result.status).toBe('Ok');
    script.world.kill(first);
    stop();
    script.untilAnotherLeads(first);
    const values = [script.get('a')];
    if (rf < 3) return values;
    const second = script.primary();
    script.world.kill(second);
    script.untilAnotherLeads(second);
    values.push(script.get('a'));
    return values;
  };

  it('3. a follower that acknowledged leads next and keeps its tail, twice in a row', () => {
    expect(tailKept(3), 'the acknowledged write, with two followers').toEqual(['1', '1']);
    expect(tailKept(2), 'the acknowledged write, with one follower').toEqual(['1']);
  });

  it('3 (twin): with the tail cut on promotion the value is gone', () => {
    const cut = broken({
      tailOnPromotion(log, commitSeq) {
        if (log.last.seq > commitSeq) log.truncateFrom(asSeq(commitSeq + 1));
      },
    });
    // With a second holder the possession proof would fetch the tail back from it: here there is none.
    expect(tailKept(2, cut)).toEqual([null]);
  });

  it.each(['both are there', 'the stale one is there first'] as const)(
    '6. a replica that missed 1,000 deletes and 1,000 overwrites never looks more complete; %s',
    (order) => {
      const script = new Script({ ...apart, world: { node: { timings: { logKeepEntries: 16 } } } });
      for (let index = 0; index < 2_000; index++) script.put(`k${index}`, 'old');
      const primary = script.primary();
      const [stale, fresh] = script.replicas() as [NodeId, NodeId];
      script.isolate(stale);
      script.until('it leaves the set', () => !script.replicas().includes(stale));
      for (let index = 0; index < 1_000; index++) script.delete(`k${index}`);
      for (let index = 1_000; index < 2_000; index++) script.put(`k${index}`, 'new');
      expect(script.copy(stale)?.keyCount).toBeGreaterThan(script.copy(fresh)?.keyCount ?? 0);
      if (order === 'the stale one is there first') script.isolate(fresh);
      script.world.kill(primary);
      script.rejoin(stale);
      if (order === 'the stale one is there first') {
        script.isolate(fresh);
        script.run(15_000);
        expect(script.partition().primary?.nodeId, 'who leads while the stale one is alone').not.toBe(stale);
        script.world.healAll();
      }
      script.until('one of them leads', () => script.partition().serving && script.primary() !== primary);
      expect(script.primary(), 'who leads').toBe(fresh);
      expect(script.get('k3'), 'a deleted key').toBeNull();
      expect(script.get('k1003'), 'an overwritten key').toBe('new');
      script.world.start(primary);
      script.waitHealthy();
      expect(script.digestsAgree(), 'copies agree').toBe(true);
    },
  );

  it.each(['leads at once', 'is cut off for a while'] as const)(
    '7. one-way loss from the primary to a replica while the leader sees both; then the primary dies, and the other %s',
    (fate) => {
      const script = new Script({ ...apart, world: quickSuspicion });
      const primary = script.primary();
      const [deaf, other] = script.replicas() as [NodeId, NodeId];
      script.world.cut(primary, deaf);
      expect(script.put('a', '1').status).toBe('Ok');
      if (fate === 'is cut off for a while') script.isolate(other);
      script.world.kill(primary);
      script.run(5_000);
      expect(script.partition().primary?.nodeId, 'who leads').not.toBe(deaf);
      script.rejoin(other);
      script.until('the other leads', () => script.partition().serving && script.primary() === other);
      expect(script.get('a'), 'the acknowledged write').toBe('1');
    },
  );

  it('9. two members cut one after the other, the last one dies: the first cut must not lead, the second may', () => {
    const script = new Script(apart);
    const primary = script.primary();
    const [first, second] = script.replicas() as [NodeId, NodeId];
    script.isolate(first);
    script.until('the first leaves', () => !script.replicas().includes(first));
    expect(script.put('a', '1').status).toBe('Ok');
    script.isolate(second);
    script.until('the second leaves', () => !script.replicas().includes(second));
    script.world.kill(primary);
    script.rejoin(first);
    script.isolate(second);
    script.run(30_000);
    expect(script.partition().primary?.nodeId ?? null, 'who leads while the second is away').toBeNull();
    expect(script.partition().health).toBe('Unavailable');
    script.world.healAll();
    script.run(5_000);
    expect(script.partition().primary?.nodeId, 'who leads when the second is back').toBe(second);
    expect(script.get('a'), 'the acknowledged write').toBe('1');
  });

  it('21. the eligible set is emptied when the set is full again: an old member of it never leads', () => {
    const script = new Script(apart);
    const primary = script.primary();
    const [one, two] = script.replicas() as [NodeId, NodeId];
    script.isolate(one);
    script.until('one leaves', () => !script.replicas().includes(one));
    script.isolate(two);
    script.until('two leaves', () => script.replicas().length === 0);
    expect(script.partition().eligible.map((member) => member.nodeId)).toEqual([two]);
    script.rejoin(one);
    script.isolate(two);
    script.until('one is back', () => script.replicas().includes(one));
    expect(script.put('a', '1').status).toBe('Ok');
    script.world.kill(primary);
    script.world.kill(one);
    script.world.healAll();
    script.run(30_000);
    expect(script.partition().primary?.nodeId ?? null, 'who leads').toBeNull();
    expect(script.partition().eligible, 'the eligible set').toEqual([]);
  });

  it('22. an old primary with an uncommitted tail rejoins: the tail is cut, the copies agree', () => {
    const script = new Script({ ...apart, world: quickSuspicion });
    script.add('n');
    const primary = script.primary();
    script.isolate(primary);
    const box = script.call(add('n'));
    // Nobody repeats this one: it must be gone with the tail, everywhere.
    script.ask(primary, rawPut(script, 'ghost', 'x'));
    script.until('the tail', () => (script.copy(primary)?.lastSeq ?? 0) > (script.copy(primary)?.commitSeq ?? 0));
    script.untilAnotherLeads(primary);
    script.until('settled', () => box.result !== null);
    expect(box.result?.status).toBe('Ok');
    expect(script.get('n')).toBe('2');
    script.world.healAll();
    script.waitHealthy();
    expect(script.digestsAgree(), 'copies agree').toBe(true);
    // It leads again, being preferred: from its own copy.
    script.until('the hand-back', () => script.primary() === primary && script.partition().serving);
    expect(script.get('ghost'), 'a write that was cut with the tail').toBeNull();
    expect(script.get('n'), 'the counter').toBe('2');
  });

  it('22. a tail that the next primary inherits, and the repeat of its sequence: it never stands twice', () => {
    const script = new Script({ ...apart, world: quickSuspicion });
    script.add('n');
    const primary = script.primary();
    const [, other] = script.replicas() as [NodeId, NodeId];
    // One replica takes the addition, the other never does: uncommitted when the primary falls, inherited by whoever has it.
    const stop = script.drop((_from, to, message) => to === other && carriesEntries(message));
    const box = script.call(add('n'));
    script.run(150);
    script.isolate(primary);
    // Nothing commits yet: the repeat finds its first attempt still pending.
    const stopAll = script.drop((_from, _to, message) => carriesEntries(message));
    stop();
    script.untilAnotherLeads(primary);
    script.run(800);
    stopAll();
    script.until('settled', () => box.result !== null);
    expect(box.result?.status).toBe('Ok');
    expect(box.result?.answer?.value, 'the sum that the repeat was given').toBe('2');
    script.world.healAll();
    script.waitHealthy();
    expect(script.get('n'), 'the counter').toBe('2');
    expect(script.digestsAgree(), 'copies agree').toBe(true);
  });
});
