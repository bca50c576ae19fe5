import { describe, expect, it } from 'vitest';
import type { ClusterEvent } from '../../chaos/ports.ts';
import { holdsOf } from './handoff-holds.ts';

const notice = (atMs: number, name: string, fields: ClusterEvent['fields']): ClusterEvent => ({
  atMs,
  name,
  nodeId: 'n1',
  fields: { partition: 1, ...fields },
});

describe('holds of handoffs', () => {
  it('runs from the start at the old primary to the serving edge of another one', () => {
    const events = [
      notice(30, 'edge-serve', { serving: true, primary: 'n2/5' }),
      notice(10, 'handoff-started', { member: 'n1/3' }),
      notice(12, 'edge-shrink', { serving: true, primary: 'n1/3' }),
      notice(20, 'edge-handoff', { serving: false, primary: 'n2/5' }),
      notice(40, 'edge-healthy', { serving: true, primary: 'n2/5' }),
    ];
    expect(holdsOf(events)).toEqual([20]);
  });

  it('counts no aborted one, none of another partition, and none that has not ended', () => {
    const serving = { serving: true, primary: 'n2/5' };
    expect(
      holdsOf([
        notice(10, 'handoff-started', { member: 'n1/3' }),
        notice(11, 'handoff-aborted', {}),
        notice(20, 'edge-serve', serving),
        notice(30, 'handoff-started', { member: 'n1/3' }),
        notice(31, 'edge-serve', { ...serving, partition: 2 }),
      ]),
    ).toEqual([]);
  });
});
