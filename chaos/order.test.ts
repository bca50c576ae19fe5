import { describe, expect, it } from 'vitest';
import { orderDifferences, orderOf, overtaken, planLines } from './order.ts';
import { play, scenario, world } from './testing/world.ts';

const file = scenario([
  { id: 'late', at: 20_000, fault: 'kill', target: 'n2', durationMs: 3_000 },
  { id: 'first', at: 1_000, fault: 'isolate', target: 'n1', durationMs: 12_000 },
  { id: 'chained', after: { fault: 'first' }, fault: 'pause', target: 'n1', durationMs: 2_000 },
  { id: 'never', after: { event: 'nothing-says-this' }, fault: 'kill', target: 'n3' },
  { id: 'too-much', at: 3_000, fault: 'kill', target: 'all', durationMs: 2_000 },
]);

async function played(settings: Parameters<typeof world>[1] = {}) {
  const made = world(file, settings);
  await play(made);
  return orderOf(made.records);
}

describe('planned and executed order', () => {
  it('the plan is that of the file, whatever the cluster does', async () => {
    const plan = [
      'late: at 20.0 s, kill n2',
      'first: at 1.0 s, isolate n1',
      'chained: first confirmed, pause n1',
      'never: 1 × nothing-says-this, kill n3',
      'too-much: at 3.0 s, kill all',
    ].map((line) => line.replace(/ (n\d)$/, ' node:$1'));
    for (const settings of [
      {},
      { nodeCount: 7 },
      { partitionCount: 4 },
      { policy: { mayStall: true, mayExceed: true } },
    ]) {
      expect(planLines(await played(settings))).toEqual(plan);
    }
  });

  it('says who came when, what triggers waited for, and what the budget made of the rest', async () => {
    const events = new Map((await played()).map((event) => [event.faultId, event]));
    expect(events.get('first')).toMatchObject({ planned: 2, executed: 1, nodeIds: ['n1'], changes: [] });
    expect(events.get('late')).toMatchObject({ planned: 1 });
    expect(events.get('late')?.executedMs).toBeGreaterThanOrEqual(20_000);
    expect(events.get('chained')).toMatchObject({ planned: 3, executed: 2 });
    expect(events.get('never')).toMatchObject({ executed: null, executedMs: null });
    expect(events.get('never')?.changes[0]).toContain('skipped: ');
    expect(events.get('too-much')?.changes[0]).toMatch(/changed: kill n1, n2, n3, n4, n5 → |skipped: /);
  });

  it('tells two runs apart by what they did, and never by chance', async () => {
    const obedient = { name: 'a', events: await played() };
    expect(orderDifferences(obedient, { name: 'b', events: await played() })).toEqual([]);
    const bold = { name: 'b', events: await played({ policy: { mayStall: true, mayExceed: true } }) };
    const differences = orderDifferences(obedient, bold);
    expect(differences.length).toBeGreaterThan(0);
    expect(differences.every((line) => !line.startsWith('plan'))).toBe(true);
    expect(differences.some((line) => line.startsWith('too-much: a '))).toBe(true);
    const shuffled = { name: 'c', events: obedient.events.toReversed() };
    expect(orderDifferences(obedient, shuffled).filter((line) => line.startsWith('plan'))).toHaveLength(4);
  });

  it('an event that had to wait is overtaken; one in its turn is not', async () => {
    const events = await played();
    const ordered = events.filter((event) => event.due.startsWith('at ') && event.executed !== null);
    expect(overtaken(ordered)).toEqual([]);
    const swapped = ordered.map((event) => ({ ...event, executed: 10 - (event.executed as number) }));
    expect(overtaken(swapped)).toContain('first');
  });
});
