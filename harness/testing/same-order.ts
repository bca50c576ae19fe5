/** What must be so wherever {@link orderSchedule} is played. For tests. */
import { expect } from 'vitest';
import { orderDifferences, type OrderedEvent, overtaken, planLines } from '../../chaos/order.ts';
import { orderSchedule } from './order-worlds.ts';

/** Both planned the same; nothing that has a time came out of its turn; what triggers and budget changed is told. */
export function expectSameOrder(name: string, real: readonly OrderedEvent[], simulator: readonly OrderedEvent[]): void {
  expect(planLines(real)).toHaveLength(orderSchedule.events.length);
  expect(planLines(simulator)).toEqual(planLines(real));
  expect(real.map((event) => event.faultId)).toEqual(orderSchedule.events.map((event) => event.id));
  for (const events of [real, simulator]) {
    const byId = new Map(events.map((event) => [event.faultId, event]));
    // A trigger comes after what it waits for.
    expect(overtaken(events)).toEqual([]);
    expect(byId.get('cut')).toMatchObject({ nodeIds: ['n2'], changes: [] });
    expect(byId.get('lame')?.executed as number).toBeGreaterThan(byId.get('cut')?.executed as number);
    expect(byId.get('nobody')?.executed).toBeNull();
    // The budget never let all be killed: fewer, or nothing.
    expect(byId.get('all')?.changes[0]).toMatch(/^(changed: kill n1, n2, n3, n4, n5 → |skipped: )/);
    expect(byId.get('all')?.nodeIds.length).toBeLessThan(3);
  }
  const differences = orderDifferences({ name, events: real }, { name: 'sim', events: simulator });
  expect(differences.filter((line) => line.startsWith('plan'))).toEqual([]);
}
