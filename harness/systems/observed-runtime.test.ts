import { describe, expect, it } from 'vitest';
import { IncarnationCounter, ObservedRuntime, OrderedLooks, type SeenRuntime, within } from './observed-runtime.ts';

const seen = (change: Partial<SeenRuntime> = {}): SeenRuntime => ({
  partition: 0,
  primary: 'n1',
  reign: 'n1#1',
  replicas: ['n1', 'n2'],
  inSync: ['n1', 'n2'],
  joining: [],
  health: 'Healthy',
  serving: true,
  ...change,
});

describe('ObservedRuntime', () => {
  it('keeps epoch and term while nothing changes', () => {
    const runtime = new ObservedRuntime();
    const first = runtime.see(seen());
    expect(runtime.see(seen({ inSync: ['n2', 'n1'] }))).toMatchObject({ epoch: first.epoch, term: first.term });
  });

  it('raises the epoch on every edge, the term only with a new reign', () => {
    const runtime = new ObservedRuntime();
    runtime.see(seen());
    expect(runtime.see(seen({ inSync: ['n1'], health: 'Degraded' }))).toMatchObject({ epoch: 2, term: 1 });
    expect(runtime.see(seen({ primary: null, serving: false, health: 'Unavailable' }))).toMatchObject({
      epoch: 3,
      term: 1,
    });
    expect(runtime.see(seen({ primary: 'n2', reign: 'n2#1' }))).toMatchObject({ epoch: 4, term: 2 });
    expect(runtime.see(seen({ primary: 'n2', reign: 'n2#2' }))).toMatchObject({ epoch: 5, term: 3 });
  });
});

describe('IncarnationCounter', () => {
  it('counts starts, and remembers the last one of a silent node', () => {
    const counter = new IncarnationCounter();
    expect([counter.of('n1', 'a'), counter.of('n1', 'a'), counter.of('n1', 'b')]).toEqual([1, 1, 2]);
    expect([counter.last('n1'), counter.last('n2')]).toEqual([2, 0]);
  });
});

describe('OrderedLooks', () => {
  it('gives a look that began after the question, and never runs two at once', async () => {
    let running = 0;
    let begun = 0;
    const looks = new OrderedLooks(async () => {
      expect(++running).toBe(1);
      const own = ++begun;
      await new Promise((resolve) => setTimeout(resolve, 5));
      running--;
      return own;
    });
    const first = looks.ask();
    const [second, third] = [looks.ask(), looks.ask()];
    expect(await Promise.all([first, second, third])).toEqual([1, 2, 2]);
    expect(await looks.ask()).toBe(3);
  });

  it('goes on after a look that failed', async () => {
    let count = 0;
    const looks = new OrderedLooks(async () => {
      if (++count === 1) throw new Error('no');
      return count;
    });
    const first = looks.ask();
    const second = looks.ask();
    await expect(first).rejects.toThrow('no');
    expect(await second).toBe(2);
  });
});

describe('within', () => {
  it('is null for what is late or fails', async () => {
    expect(await within(5, new Promise(() => undefined))).toBeNull();
    expect(await within(50, Promise.reject(new Error('no')))).toBeNull();
    expect(await within(50, Promise.resolve(7))).toBe(7);
  });
});
