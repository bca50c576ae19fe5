/** The kit finds nothing in a store that keeps to the port, and names each planted defect in one sentence. */
import { describe, expect, it } from 'vitest';
import type { Cluster } from '../../chaos/ports.ts';
import { MemoryWorld } from '../testing/memory-world.ts';
import type { RunningSystem, System } from '../systems/system.ts';
import type { Completion, Operation, StoreClient } from '../../workloads/port.ts';
import { checkRunning } from './live.ts';

interface Defect {
  /** Takes the place of the client's answer. */
  readonly answer?: (operation: Operation, honest: Completion, calls: number) => Completion | Promise<Completion>;
  readonly running?: (honest: RunningSystem) => Partial<RunningSystem>;
  readonly capabilities?: Partial<System['capabilities']>;
}

function subject(defect: Defect = {}) {
  const world = new MemoryWorld(3);
  const definition = world.asSystem();
  const plan = { clusterId: 'c', nodeCount: 3, replicationFactor: 3, minInSync: 2, partitionCount: 4 };
  const honest = definition.connect({ plan, addresses: [], nowMs: () => performance.now() });
  let calls = 0;
  const client = (session: number): StoreClient => {
    const inner = honest.client(session);
    return {
      execute: async (operation) => {
        const completion = await inner.execute(operation);
        return defect.answer === undefined ? completion : await defect.answer(operation, completion, ++calls);
      },
      close: () => inner.close(),
    };
  };
  const running: RunningSystem = { ...honest, client, ...defect.running?.({ ...honest, client }) };
  const capabilities = { ...definition.capabilities, ...defect.capabilities };
  return { definition: { ...definition, capabilities }, running, cluster: world as Cluster };
}

/** A sound store settles at once, and only a test that fails waits so long; some defects never settle. */
const problemsOf = async (defect?: Defect): Promise<Record<string, string>> => {
  const checks = await checkRunning({ ...subject(defect), settleLimitMs: defect === undefined ? 20_000 : 6_000 });
  return Object.fromEntries(checks.flatMap(({ name, problem }) => (problem === null ? [] : [[name, problem]])));
};

describe('the conformance kit', () => {
  it('has nothing against a store that keeps to the port', async () => {
    expect(await problemsOf()).toEqual({});
  }, 120_000);

  const acknowledgesAll: Defect['answer'] = (_, honest) =>
    honest.kind === 'info' ? { kind: 'ok', value: 'x' } : honest;
  const defects: readonly (readonly [what: string, check: string, sentence: RegExp, Defect])[] = [
    [
      'reads of nothing fail',
      'write and read',
      /never written answered .*must be \{ kind: "ok", value: null \}/,
      {
        answer: (operation, honest) =>
          operation.f === 'read' && honest.kind === 'ok' && honest.value === null
            ? { kind: 'fail', why: 'condition', error: '404' }
            : honest,
      },
    ],
    [
      'writes that do nothing',
      'write and read',
      /its value must be the 3 characters/,
      {
        answer: (operation, honest) =>
          operation.f === 'read' && honest.kind === 'ok' && honest.value === 'two'
            ? { ...honest, value: 'one' }
            : honest,
      },
    ],
    [
      'values cut short',
      'values as they are',
      /its value must be the 65536 characters/,
      {
        answer: (operation, honest) =>
          operation.f === 'read' && honest.kind === 'ok'
            ? { ...honest, value: honest.value?.slice(0, 100) ?? null }
            : honest,
      },
    ],
    [
      'deleted keys that stay',
      'delete',
      /its value must be null, as the key was deleted/,
      {
        answer: (operation, honest) =>
          operation.f === 'read' && operation.key === 'conformance-deleted' ? { kind: 'ok', value: 'one' } : honest,
      },
    ],
    [
      'creates that overwrite',
      'create',
      /A create of a key that is there answered/,
      { answer: (operation, honest) => (operation.f === 'create' ? { kind: 'ok', version: [0, 1] } : honest) },
    ],
    [
      'versions that stand still',
      'versions',
      /versions must rise/,
      { answer: (_, honest) => (honest.kind === 'ok' ? { ...honest, version: [1, 1] } : honest) },
    ],
    [
      'versions that are missing',
      'versions',
      /without a version/,
      { answer: (_, honest) => (honest.kind === 'ok' ? { ...honest, version: null } : honest) },
    ],
    [
      'compare-and-set that does not compare',
      'compare-and-set',
      /on an old version answered/,
      { answer: (operation, honest) => (operation.f === 'cas' ? { kind: 'ok', version: [9, 9] } : honest) },
    ],
    [
      'counters that count wrong',
      'counters',
      /must be the sums as text/,
      { answer: (operation, honest) => (operation.f === 'add' ? { kind: 'ok', value: '3' } : honest) },
    ],
    [
      'an execute that rejects',
      'write and read',
      /it must never reject/,
      {
        answer: (operation) =>
          operation.f === 'read' ? Promise.reject(new Error('boom')) : { kind: 'ok', version: [1, 1] },
      },
    ],
    [
      'acknowledging on dead nodes',
      'killed nodes',
      /acknowledged although every node is dead/,
      { answer: acknowledgesAll },
    ],
    [
      'a status that is null',
      'status',
      /null although bootstrap\(\) has resolved/,
      { running: () => ({ status: { status: async () => null } }) },
    ],
    [
      'keys outside of the partitions',
      'placement',
      /whole number from 0 to 3/,
      { running: () => ({ partitionOf: () => 99 }) },
    ],
    [
      'a peek that answers for the dead',
      'killed nodes',
      /must be null, so that the silence is recorded/,
      {
        running: (honest) => ({
          peek: async (nodeId, partition, keys) =>
            (await honest.peek(nodeId, partition, keys)) ?? {
              nodeId,
              incarnation: 1,
              role: 'replica',
              applied: [0, 0],
              commitSeq: 0,
              digest: '',
              keyCount: 0,
              keys: [],
            },
        }),
      },
    ],
    [
      'a primary that does not say so',
      'peek',
      /says the role "replica", but status.status\(\) calls that node the primary/,
      {
        running: (honest) => ({
          peek: async (...asked) => {
            const copy = await honest.peek(...asked);
            return copy === null ? null : { ...copy, role: 'replica' };
          },
        }),
      },
    ],
    [
      'an offer that it does not make',
      'what it does not offer',
      /must be "fail" with why "invalid"/,
      { capabilities: { counters: false } },
    ],
  ];

  it.concurrent.each(defects)(
    'finds %s',
    async (_what, check, sentence, defect) => {
      const problems = await problemsOf(defect);
      expect(problems[check]).toMatch(sentence);
    },
    120_000,
  );
});
