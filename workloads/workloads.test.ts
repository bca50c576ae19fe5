import { describe, expect, it } from 'vitest';
import { Prng } from '../lib/prng.ts';
import { workloadKinds, workloadOfKey } from './catalogue.ts';
import type { KeyBook, KeyDistribution, WorkloadContext } from './context.ts';
import { indexDrawer } from './distribution.ts';
import { listElements, maxListLength } from './lists.ts';
import { MemoryStore } from './memory-store.ts';
import { defaultMix, describeMix, Mix, parseMix } from './mix.ts';
import type { Completion, Operation, Workload } from './port.ts';
import { maxRenewedTtlMs, minRenewedTtlMs } from './renewals.ts';
import { maxTtlMs, minTtlMs } from './time-to-live.ts';

class Book implements KeyBook {
  readonly live = new Set<string>();
  readonly done = new Set<string>();
  cap = Infinity;
  refuses: (key: string) => boolean = () => false;
  mayOpen(): boolean {
    return this.live.size - this.done.size < this.cap;
  }
  opened(key: string): void {
    expect(this.live.has(key)).toBe(false);
    this.live.add(key);
  }
  finished(key: string): void {
    expect(this.live.has(key)).toBe(true);
    expect(this.done.has(key)).toBe(false);
    this.done.add(key);
  }
  accepts(key: string): boolean {
    return !this.refuses(key);
  }
}

function context(overrides: Partial<WorkloadContext> = {}): WorkloadContext & { keys: Book } {
  return {
    prng: new Prng(7),
    values: { encode: (operationId) => `v${operationId}`, element: (operationId) => `e${operationId}` },
    keys: new Book(),
    distribution: 'uniform',
    readRatio: 0.3,
    activeKeys: 8,
    operationsPerKey: 20,
    rememberedKeys: 16,
    ...overrides,
  } as WorkloadContext & { keys: Book };
}

interface Step {
  readonly operation: Operation;
  readonly completion: Completion;
  readonly session: number;
}

/** Runs sessions in a seeded interleaving, so that operations overlap as they do in a run. */
function play(workload: Workload, count: number, sessions = 8, seed = 1): Step[] {
  const store = new MemoryStore();
  const prng = new Prng(seed);
  const open: ({ id: number; operation: Operation } | undefined)[] = [];
  const steps: Step[] = [];
  let id = 0;
  for (let turn = 0; steps.length < count && turn < count * 20; turn++) {
    const session = prng.below(sessions);
    const current = open[session];
    if (current === undefined) {
      const operation = workload.next(session, ++id);
      if (operation !== null) open[session] = { id, operation };
      continue;
    }
    open[session] = undefined;
    const completion: Completion = prng.chance(0.02)
      ? { kind: 'info', error: 'timeout' }
      : store.execute(current.operation, turn * 10);
    workload.completed(session, current.id, current.operation, completion);
    steps.push({ operation: current.operation, completion, session });
  }
  return steps;
}

const make = (name: string, overrides: Partial<WorkloadContext> = {}) => {
  const made = context(overrides);
  const kind = workloadKinds.find((each) => each.name === name);
  if (kind === undefined) throw new Error(name);
  return { workload: kind.make(made), book: made.keys, kind };
};

describe.each(workloadKinds.map((kind) => kind.name))('workload %s', (name) => {
  it('gives the same operations for the same seed and completions', () => {
    const first = play(make(name).workload, 400).map((step) => step.operation);
    const second = play(make(name).workload, 400).map((step) => step.operation);
    const other = play(make(name, { prng: new Prng(8) }).workload, 400).map((step) => step.operation);
    expect(first).toEqual(second);
    expect(first).not.toEqual(other);
  });

  it('names its own keys, writes each value once and needs no more than it says', () => {
    const { workload, kind } = make(name);
    const steps = play(workload, 600);
    expect(steps.length).toBe(600);
    const values = new Set<string>();
    for (const { operation } of steps) {
      expect(workloadOfKey(operation.key)).toBe(kind);
      // Registers compare and set only where the store has given a version; without one they do without.
      const isExtra = kind.name === 'registers' && operation.f === 'cas';
      if (!isExtra) expect(kind.needs).toContain(operation.f);
      if (!('value' in operation)) continue;
      const value = listElements(operation.value).at(-1) as string;
      expect(values.has(value)).toBe(false);
      values.add(value);
    }
  });

  it('finishes keys, and opens none beyond the cap', () => {
    const capped = context();
    capped.keys.cap = 300;
    const kind = workloadKinds.find((each) => each.name === name);
    const workload = (kind as (typeof workloadKinds)[number]).make(capped);
    play(workload, 2_000);
    expect(capped.keys.done.size).toBeGreaterThan(0);
    expect(capped.keys.live.size - capped.keys.done.size).toBeLessThanOrEqual(300);
  });

  it('does nothing rather than use a key that is not accepted', () => {
    const { workload, book } = make(name);
    book.refuses = () => true;
    expect(workload.next(0, 1)).toBeNull();
  });

  it('names no key after it has finished it', () => {
    const { workload, book } = make(name);
    const original = workload.next.bind(workload);
    workload.next = (session, operationId) => {
      const operation = original(session, operationId);
      if (operation !== null) expect(book.done.has(operation.key)).toBe(false);
      return operation;
    };
    play(workload, 1_500);
    expect(book.done.size).toBeGreaterThan(3);
  });
});

describe('promises of single workloads', () => {
  it('set writes every key once', () => {
    const written = play(make('set').workload, 800).flatMap(({ operation }) =>
      operation.f === 'write' ? [operation.key] : [],
    );
    expect(written.length).toBeGreaterThan(400);
    expect(new Set(written).size).toBe(written.length);
  });

  it('registers mix reads, writes, deletes and successful compare-and-set', () => {
    const steps = play(make('registers').workload, 2_000);
    const succeeded = new Map<string, number>();
    for (const { operation, completion } of steps) {
      if (completion.kind === 'ok') succeeded.set(operation.f, (succeeded.get(operation.f) ?? 0) + 1);
    }
    for (const f of ['read', 'write', 'delete', 'cas']) expect(succeeded.get(f) ?? 0, f).toBeGreaterThan(50);
  });

  it('cas chains advance mostly by successful steps', () => {
    const steps = play(make('cas').workload, 1_000, 4);
    const cas = steps.filter(({ operation }) => operation.f === 'cas');
    expect(cas.filter(({ completion }) => completion.kind === 'ok').length).toBeGreaterThan(cas.length / 3);
    expect(steps.some(({ operation }) => operation.f === 'write')).toBe(false);
  });

  it('lists grow by one element at a time and stay within their bound', () => {
    let longest = 0;
    for (const { operation } of play(make('lists', { operationsPerKey: 200 }).workload, 3_000)) {
      if ('value' in operation) longest = Math.max(longest, listElements(operation.value).length);
    }
    expect(longest).toBe(maxListLength);
  });

  it('create-once really races: some creates lose', () => {
    const creates = play(make('create').workload, 1_000).filter(({ operation }) => operation.f === 'create');
    const lost = creates.filter(({ completion }) => completion.kind === 'fail').length;
    expect(lost).toBeGreaterThan(50);
    expect(lost).toBeLessThan(creates.length);
  });

  it('churn deletes what it wrote, and reads absent keys', () => {
    const steps = play(make('churn').workload, 1_500);
    expect(steps.filter(({ operation }) => operation.f === 'delete').length).toBeGreaterThan(200);
    expect(
      steps.some(
        ({ operation, completion }) => operation.f === 'read' && completion.kind === 'ok' && completion.value === null,
      ),
    ).toBe(true);
  });

  it('ttl draws within its bounds and sees values both alive and expired', () => {
    const steps = play(make('ttl').workload, 4_000);
    const seen = { alive: 0, expired: 0 };
    for (const { operation, completion } of steps) {
      if (operation.f === 'write') {
        expect(operation.ttlMs).toBeGreaterThanOrEqual(minTtlMs);
        expect(operation.ttlMs).toBeLessThanOrEqual(maxTtlMs);
      } else if (completion.kind === 'ok') seen[completion.value === null ? 'expired' : 'alive']++;
    }
    expect(seen.alive).toBeGreaterThan(50);
    expect(seen.expired).toBeGreaterThan(50);
  });

  it('renewals overwrite values that will expire, and are about to, by values that will and by values that stay', () => {
    const steps = play(make('renewals').workload, 4_000);
    const last = new Map<string, number | undefined>();
    const renewed = { expiring: 0, staying: 0 };
    const seen = { alive: 0, expired: 0 };
    for (const { operation, completion } of steps) {
      if (operation.f === 'read' && completion.kind === 'ok') seen[completion.value === null ? 'expired' : 'alive']++;
      if (operation.f !== 'write') continue;
      if (last.get(operation.key) !== undefined) renewed[operation.ttlMs === undefined ? 'staying' : 'expiring']++;
      last.set(operation.key, operation.ttlMs);
      if (operation.ttlMs === undefined) continue;
      expect(operation.ttlMs).toBeGreaterThanOrEqual(minRenewedTtlMs);
      expect(operation.ttlMs).toBeLessThanOrEqual(maxRenewedTtlMs);
    }
    for (const count of [renewed.expiring, renewed.staying, seen.alive, seen.expired])
      expect(count).toBeGreaterThan(200);
  });

  it('recreate races: creates both win and lose, deletes too, and deleted keys come back', () => {
    const steps = play(make('recreate').workload, 2_000);
    const ends = { create: { ok: 0, fail: 0 }, delete: { ok: 0, fail: 0 } };
    const deleted = new Set<string>();
    let cameBack = 0;
    for (const { operation, completion } of steps) {
      const { f, key } = operation;
      if ((f !== 'create' && f !== 'delete') || completion.kind === 'info') continue;
      ends[f][completion.kind]++;
      if (completion.kind === 'fail') continue;
      if (f === 'delete') deleted.add(key);
      else if (deleted.delete(key)) cameBack++;
    }
    for (const count of [ends.create.ok, ends.create.fail, ends.delete.ok, ends.delete.fail, cameBack])
      expect(count).toBeGreaterThan(100);
  });

  it('registers delete by name of the version too, and some of these deletes come too late', () => {
    const deletes = play(make('registers').workload, 4_000).filter(
      ({ operation }) => operation.f === 'delete' && operation.expected !== undefined,
    );
    const refused = deletes.filter(({ completion }) => completion.kind === 'fail').length;
    expect(refused).toBeGreaterThan(2);
    expect(deletes.length - refused).toBeGreaterThan(20);
  });

  it('counters add small positive numbers', () => {
    for (const { operation } of play(make('counters').workload, 300)) {
      if (operation.f === 'add') expect(operation.delta >= 1 && operation.delta <= 9).toBe(true);
    }
  });
});

describe('mix', () => {
  it('reads its own description back', () => {
    const parsed = parseMix(describeMix(defaultMix));
    expect(parsed).toEqual({ mix: defaultMix });
  });

  it.each([
    ['regsters:4', /no workload "regsters"/],
    ['set:0', /positive number/],
    ['set:-1', /positive number/],
    ['set:x', /positive number/],
    ['set:', /positive number/],
    ['set:1:2', /positive number/],
    ['set:1,set:2', /twice/],
    ['', /no workload ""/],
  ])('refuses %j with one sentence', (text, expected) => {
    const parsed = parseMix(text);
    expect('error' in parsed && parsed.error).toMatch(expected);
  });

  it('draws workloads by weight', () => {
    const parsed = parseMix('set:3,registers:1');
    if ('error' in parsed) throw new Error(parsed.error);
    const steps = play(new Mix(parsed.mix, context()), 2_000);
    const share = steps.filter(({ operation }) => operation.key.startsWith('s')).length / steps.length;
    expect(share).toBeGreaterThan(0.7);
    expect(share).toBeLessThan(0.8);
  });
});

describe('distributions', () => {
  const counts = (distribution: KeyDistribution): number[] => {
    const draw = indexDrawer(distribution, 100);
    const prng = new Prng(3);
    const result = new Array<number>(100).fill(0);
    for (let index = 0; index < 50_000; index++) {
      const drawn = draw(prng);
      result[drawn] = (result[drawn] as number) + 1;
    }
    return result;
  };

  it('uniform touches every index alike', () => {
    const drawn = counts('uniform');
    expect(Math.min(...drawn)).toBeGreaterThan(400);
    expect(Math.max(...drawn)).toBeLessThan(600);
  });

  it('zipf halves from the first to the second, and reaches the last', () => {
    const drawn = counts('zipf') as [number, number, ...number[]];
    expect(drawn[0] / drawn[1]).toBeGreaterThan(1.8);
    expect(drawn[0] / drawn[1]).toBeLessThan(2.2);
    expect(drawn.at(-1)).toBeGreaterThan(0);
  });

  it('hot sends half to the first index', () => {
    expect((counts('hot')[0] as number) / 50_000).toBeCloseTo(0.505, 1);
  });
});
