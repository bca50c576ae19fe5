/** Each checker shown red: on a broken store that breaks what it guards, or on a literal step where no store does. */
import { describe, expect, it } from 'vitest';
import { brokenStoreOf } from '../broken/catalogue.ts';
import { drawOptions } from '../options.ts';
import { runSim } from '../run-seed.ts';
import type { World } from '../world.ts';
import { AnswerChecker } from './answers.ts';
import { CommittedChecker } from './committed.ts';
import type { CheckerContext, Stepped } from './context.ts';
import { MonotoneChecker } from './monotone.ts';
import { OnePrimaryChecker } from './one-primary.ts';

const maxSeeds = 6;

/** Everything that checkers said of a broken store, seed after seed, until `expected` was among it. */
async function breachesOf(name: string, expected: RegExp): Promise<string[]> {
  const store = brokenStoreOf(name);
  if (store === undefined) throw new Error(name);
  const said: string[] = [];
  for (let seed = 1; seed <= maxSeeds && !said.some((why) => expected.test(why)); seed++) {
    const result = await runSim({ seed, options: drawOptions(seed, store.pins), store, checkers: true });
    said.push(...result.breaches.map(({ why }) => why));
  }
  return said;
}

describe('checkers on broken stores', () => {
  it.each([
    ['ack-before-replication', /the acknowledged entry \(\d+, \d+\) is not in its log/],
    ['tail-cut-on-promotion', /committed logs differ at \d+/],
    ['no-exactly-once', /sequence \d+ of c\d+ took effect at \d+ and at \d+/],
    ['no-lease', /a read was answered under epoch \d+ although term \d+ had committed/],
    ['reused-term', /has two primaries/],
    ['replica-skips-entries', /differs from .* at the same position/],
  ])('%s: %s', async (name, expected) => {
    expect(await breachesOf(name, expected)).toContainEqual(expect.stringMatching(expected));
  });
});

describe('checkers on literal steps', () => {
  const heard = (): { context: CheckerContext; said: string[] } => {
    const said: string[] = [];
    return { said, context: { world: {} as World, breach: (_where, why) => void said.push(why) } };
  };
  const state = (over: object): unknown => ({
    revision: 5,
    mapVersion: 1,
    placements: [{ preferredPrimary: 'n1', replicas: ['n1'] }],
    audit: [],
    runtimes: [{ partition: 0, epoch: 4, term: 3, dataLossNumber: 0 }],
    ...over,
  });
  const step = (over: object, effects: object[] = []): Stepped =>
    ({ processName: 'n1-1', stateMoved: true, effects, state: state(over) }) as unknown as Stepped;

  it.each([
    ['the control revision', { revision: 4 }, /control revision went back from 5 to 4/],
    ['a partition that is gone', { runtimes: [] }, /number of partitions went back from 1 to 0/],
    ['the map version', { mapVersion: 0 }, /map version went back/],
    [
      'an epoch',
      { runtimes: [{ partition: 0, epoch: 3, term: 3, dataLossNumber: 0 }] },
      /epoch of partition 0 went back from 4 to 3/,
    ],
    [
      'a term',
      { runtimes: [{ partition: 0, epoch: 5, term: 2, dataLossNumber: 0 }] },
      /term of partition 0 went back from 3 to 2/,
    ],
    [
      'a data-loss number without its audit event',
      { runtimes: [{ partition: 0, epoch: 5, term: 5, dataLossNumber: 1 }] },
      /without an audit event/,
    ],
  ])('monotone: %s', (_what, over, expected) => {
    const { context, said } = heard();
    const checker = new MonotoneChecker(context);
    checker.stepped(step({}));
    expect(said).toEqual([]);
    checker.stepped(step(over));
    expect(said).toContainEqual(expect.stringMatching(expected));
  });

  it('monotone: a map that a promotion changed', () => {
    const { context, said } = heard();
    const checker = new MonotoneChecker(context);
    checker.stepped(step({}));
    checker.stepped(step({ placements: [] }, [{ kind: 'notice', notice: { name: 'edge-promotion' } }]));
    expect(said).toContainEqual(expect.stringMatching(/the map changed under version 1/));
  });

  it('one primary: serving without a proof of possession', () => {
    const { context, said } = heard();
    const checker = new OnePrimaryChecker(context);
    const fields = { partition: 0, term: 7, primary: 'n1#1', serving: true };
    checker.noticed('n1' as never, { name: 'edge-serving', level: 'info', fields }, false);
    expect(said).toContainEqual(expect.stringMatching(/without having proved possession/));
  });

  it('answers: an Ok above the commit index', () => {
    const { context, said } = heard();
    const checker = new AnswerChecker(context, new CommittedChecker(context));
    const node = { running: { node: { planes: { data: { replica: () => ({ commitSeq: 8 }) } } } } };
    const request = { op: 'mutate', id: 1, partition: 0 };
    const answer = { id: 1, status: 'Ok', partition: 0, epoch: 3, version: { term: 1, seq: 9 } };
    checker.stepped({
      node,
      processName: 'n1-1',
      event: { kind: 'request', connection: 4, request },
      effects: [{ kind: 'reply', connection: 4, answer }],
    } as unknown as Stepped);
    expect(said).toContainEqual(expect.stringMatching(/Ok for \(1, 9\) above the commit index 8/));
  });
});
