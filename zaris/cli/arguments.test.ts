/** Wrong arguments of the `zaris` command: refused as the user's mistake before anything is connected. */
import { describe, expect, it } from 'vitest';
import { ZarisInputError } from '../client/errors.ts';
import type { OperationResult } from '../client/result.ts';
import { nodeId } from '../model/ids.ts';
import type { ClusterView } from '../model/view.ts';
import { knownNodes } from './arguments.ts';
import { exitCodeOf } from './connection.ts';
import { bench, bootstrap, put } from './commands.ts';

// Nobody listens there: what got that far would end as a connection that never comes.
const common = { url: 'zaris://127.0.0.1:1/none', json: false, timeout: 50 };
const cluster = { ...common, cluster: 'c', rf: 3, partitions: 64, nodes: 3 };
const load = {
  ...common,
  operation: 'put',
  writers: 1,
  seconds: 1,
  bytes: 10,
  keys: 10,
  connectionEach: false,
} as const;
const write = { ...common, key: 'k', value: 'v', ifAbsent: false };

/** How a command ends: its error. */
async function refusal(run: () => Promise<number>): Promise<unknown> {
  try {
    return await run();
  } catch (error) {
    return error;
  }
}

describe('zaris', () => {
  it.each([
    ['--rf is a whole number from 1 to 5, not 0', () => bootstrap({ ...cluster, rf: 0 })],
    ['--rf is a whole number from 1 to 5, not NaN', () => bootstrap({ ...cluster, rf: Number.NaN })],
    ['--min-in-sync is a whole number from 1 to 3, not 4', () => bootstrap({ ...cluster, minInSync: 4 })],
    ['--partitions is a whole number from 1 to 16384, not 0', () => bootstrap({ ...cluster, partitions: 0 })],
    ['--nodes is a whole number from 1 to 1024, not 1.5', () => bootstrap({ ...cluster, nodes: 1.5 })],
    ['--writers is a whole number from 1 to 10000, not -3', () => bench({ ...load, writers: -3 })],
    ['--seconds is a whole number from 1 to 86400, not NaN', () => bench({ ...load, seconds: Number.NaN })],
    ['--bytes is a whole number from 0 to 1048576, not -1', () => bench({ ...load, bytes: -1 })],
    ['--keys is a whole number from 1 to 1000000000, not 0', () => bench({ ...load, keys: 0 })],
    [
      '"9999999999999999999:1" is no version; write term:seq, such as 3:17',
      () => put({ ...write, ifVersion: '9999999999999999999:1' }),
    ],
    ['"3" is no version; write term:seq, such as 3:17', () => put({ ...write, ifVersion: '3' })],
  ])('says: %s', async (sentence, run) => {
    const error = await refusal(run);
    expect(error).toBeInstanceOf(ZarisInputError);
    expect((error as Error).message).toBe(sentence);
  });

  it('waits for a map no longer than the given deadline', async () => {
    expect(((await refusal(() => put(write))) as Error).message).toBe(
      'no map from zaris://127.0.0.1:1/none within 50 ms',
    );
  });

  it('tells a clear no from what may be asked again', () => {
    const result = { isSuccess: false, inDoubt: false, attempts: 1, elapsedMs: 1 } as const;
    const code = (status: string, inDoubt = false): number =>
      exitCodeOf({ ...result, inDoubt, status } as unknown as OperationResult);
    expect(['NotFound', 'Conflict', 'InvalidInput'].map((status) => code(status))).toEqual([1, 1, 1]);
    expect([code('Unavailable'), code('InvalidInput', true)]).toEqual([2, 2]);
  });

  it('knows the nodes that it is told of', () => {
    const view = { nodes: [{ nodeId: nodeId('n1') }, { nodeId: nodeId('n2') }] } as unknown as ClusterView;
    expect(knownNodes(['n2'], view)).toEqual(['n2']);
    expect(() => knownNodes(['n1', 'n9'], view)).toThrow('there is no node "n9"; this cluster has n1, n2');
  });
});
