import { describe, expect, it } from 'vitest';
import { Prng } from '../../../lib/prng.ts';
import { unlimitedBudget } from '../search/budget.ts';
import type { ForeignOperation } from './history.ts';
import { judgeKv } from './kv.ts';
import { readKvLog } from './kv-log.ts';

const event = (process: number, type: string, f: string, key: string, value: string | null): string =>
  `{:process ${process}, :type :${type}, :f :${f}, :key "${key}", :value ${value === null ? 'nil' : JSON.stringify(value)}}`;
const judge = (text: string) => judgeKv(readKvLog(text).operations, unlimitedBudget());

describe('kv-log', () => {
  it('refuses a completion that repeats another value than its invocation', () => {
    const lines = [event(0, 'invoke', 'put', 'a', 'x'), event(0, 'ok', 'put', 'a', 'y')];
    expect(() => judge(lines.join('\n'))).toThrow("line 2: the value differs from the invocation's, of line 1");
    lines[1] = event(0, 'ok', 'put', 'a', null);
    expect(judge(lines.join('\n'))).toMatchObject({ verdict: 'valid' });
  });

  it('reads puts, appends and gets; a key starts empty', () => {
    const lines = [
      event(0, 'invoke', 'get', 'a', null),
      event(0, 'ok', 'get', 'a', ''),
      event(0, 'invoke', 'append', 'a', 'x'),
      event(1, 'invoke', 'get', 'a', null),
      event(1, 'ok', 'get', 'a', 'x'),
      event(0, 'ok', 'append', 'a', 'x'),
      event(1, 'invoke', 'put', 'a', 'y'),
      event(1, 'ok', 'put', 'a', 'y'),
      event(1, 'invoke', 'get', 'a', null),
      event(1, 'ok', 'get', 'a', 'y'),
    ];
    expect(judge(lines.join('\r\n'))).toMatchObject({ verdict: 'valid', keys: 1 });
    lines[9] = event(1, 'ok', 'get', 'a', 'xy');
    expect(judge(lines.join('\n'))).toMatchObject({
      verdict: 'invalid',
      evidence: { key: 'a', operation: { line: 9, completeLine: 10 }, statesPossible: ['"y"'] },
    });
  });

  it.each([
    ['{:process 0, :type :invoke, :f :get, :key "a", :value nil', 'line 1: a form that starts here is never closed'],
    [
      `${event(0, 'invoke', 'get', 'a', null)}\n${event(0, 'ok', 'get', 'b', '')}`,
      'line 2: process 0 completes :get but its open',
    ],
    [`${event(0, 'invoke', 'get', 'a', null)}\n${event(0, 'ok', 'get', 'a', null)}`, 'line 2: :ok :get needs a string'],
    [event(0, 'invoke', 'delete', 'a', null), 'line 1: :f is none of'],
    ['1 2', 'line 1: not one map'],
    ['\n', 'the file holds no event'],
  ])('refuses %j', (text, reason) => {
    expect(() => readKvLog(text)).toThrow(reason);
  });
});

/** Brute force over orders, from the definition. */
function isLinearizable(operations: readonly ForeignOperation[]): boolean {
  const must = operations.filter(({ outcome }) => outcome === 'ok');
  const seen = new Set<string>();
  const visit = (done: ReadonlySet<ForeignOperation>, state: string): boolean => {
    if (must.every((operation) => done.has(operation))) return true;
    const key = `${operations.map((operation) => (done.has(operation) ? 1 : 0)).join('')}${state}`;
    if (seen.has(key)) return false;
    seen.add(key);
    return operations.some((operation) => {
      if (done.has(operation)) return false;
      if (must.some((other) => other !== operation && !done.has(other) && other.completedAt < operation.invokedAt))
        return false;
      const text = String(operation.input);
      if (operation.f === 'get' && (operation.outcome !== 'ok' || operation.output !== state)) return false;
      const next = operation.f === 'get' ? state : operation.f === 'put' ? text : state + text;
      return visit(new Set([...done, operation]), next);
    });
  };
  return visit(new Set(), '');
}

/** Random operations on one key; texts repeat, so that one get can be explained in many ways. */
function randomOperations(prng: Prng): ForeignOperation[] {
  const count = prng.between(2, 7);
  const length = prng.pick([3, 6, 14]);
  const points: { operation: ForeignOperation; at: number }[] = [];
  for (let index = 0; index < count; index++) {
    const invokedAt = prng.below(2 * count);
    const isUnknown = prng.chance(0.15);
    const duration = prng.below(length);
    const f = prng.pick(['get', 'get', 'append', 'append', 'put']);
    const input = f === 'get' ? null : prng.pick(['x', 'y', 'xy']);
    const completedAt = isUnknown ? Infinity : invokedAt + duration;
    const operation: ForeignOperation = {
      process: `${index}`,
      f,
      key: 'k',
      input,
      output: input,
      outcome: isUnknown ? 'info' : 'ok',
      invokedAt,
      completedAt,
      invokeLine: index + 1,
      completeLine: null,
    };
    points.push({ operation, at: isUnknown && prng.chance(0.5) ? Infinity : invokedAt + prng.float() * duration });
  }
  let state = '';
  for (const { operation, at } of points.toSorted((x, y) => x.at - y.at)) {
    if (at === Infinity) continue;
    if (operation.f === 'get') operation.output = prng.chance(0.08) ? `${state}x` : prng.chance(0.08) ? 'xy' : state;
    else state = operation.f === 'put' ? String(operation.input) : state + String(operation.input);
  }
  return points.map(({ operation }) => operation).sort((x, y) => x.invokedAt - y.invokedAt);
}

describe('model kv', () => {
  it('agrees with brute force on 4,000 small histories', () => {
    const prng = new Prng(21);
    let invalid = 0;
    for (let index = 0; index < 4_000; index++) {
      const operations = randomOperations(prng);
      const expected = isLinearizable(operations) ? 'valid' : 'invalid';
      if (expected === 'invalid') invalid++;
      expect([index, judgeKv(operations, unlimitedBudget()).verdict]).toEqual([index, expected]);
    }
    expect(invalid).toBeGreaterThan(400);
    expect(invalid).toBeLessThan(3_000);
  });
});
