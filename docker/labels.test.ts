import { describe, expect, it } from 'vitest';
import { currentHost, currentOwner, judgeOwner, labelsOf, ownerOfLabels, startTicksOfStat } from './labels.ts';
import type { HostView, Owner } from './labels.ts';

const owner: Owner = { boot: 'b1', machine: 'm1', pidNamespace: 'p1', pid: 77, startTicks: '500' };
const host = (more: Partial<HostView> = {}, ticks: string | null = '500'): HostView => ({
  boot: 'b1',
  machine: 'm1',
  pidNamespace: 'p1',
  startTicks: () => ticks,
  ...more,
});

describe('judgeOwner', () => {
  it('calls an owner alive while its process, with its start time, is there', () => {
    expect(judgeOwner(owner, host()).kind).toBe('alive');
  });

  it.each([
    ['the process is gone', host({}, null)],
    ['the id belongs to a later process', host({}, '501')],
    ['the machine has booted since', host({ boot: 'b2' })],
    ['the machine has booted since, whatever runs under the id now', host({ boot: 'b2', pidNamespace: 'p2' })],
  ])('calls it dead when %s', (_why, view) => {
    expect(judgeOwner(owner, view).kind).toBe('dead');
  });

  it.each([
    ['another machine, even with the process gone and another boot', host({ machine: 'm2', boot: 'b2' }, null)],
    ['another process namespace, even with no such process', host({ pidNamespace: 'p2' }, null)],
    ['no start times', host({}, '')],
  ])('does not know with %s', (_why, view) => {
    expect(judgeOwner(owner, view).kind).toBe('unknown');
  });
});

describe('labels', () => {
  it('carry the owner there and back', () => {
    expect(ownerOfLabels(labelsOf('run', owner, 'node', 'n1'))).toEqual(owner);
  });

  it('give no owner when one of them is missing', () => {
    for (const name of Object.keys(labelsOf('run', owner, 'node')).filter((item) => !/run|role/.test(item))) {
      const labels = labelsOf('run', owner, 'node');
      delete labels[name];
      expect([name, ownerOfLabels(labels)]).toEqual([name, null]);
    }
  });

  it('find this very process alive', () => {
    expect(judgeOwner(currentOwner(), currentHost()).kind).toBe('alive');
  });

  it('read the start time behind a process name with brackets and spaces', () => {
    const stat = `12 (a) b (c) S ${Array.from({ length: 18 }, (_, index) => index).join(' ')} 9876 0`;
    expect(startTicksOfStat(stat)).toBe('9876');
  });
});
