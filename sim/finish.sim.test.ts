import { describe, expect, it } from 'vitest';
import type { ReplicaReadRow } from '../ledger/rows.ts';
import { askReplicas, isLevel } from './finish.ts';
import type { SimRun } from './run-seed.ts';
import { Script } from './testing/script.ts';

describe('autopsy of a simulated partition', () => {
  it('believes nothing of a primary that was restarted, empty, before anybody noticed', () => {
    const script = new Script({ nodeCount: 5, controlAt: 'n5' });
    script.put('a', '1');
    script.waitHealthy();
    const { partition } = script.partition();
    const rows: ReplicaReadRow[] = [];
    const history = { replicaRead: (row: ReplicaReadRow) => void rows.push(row), digest: () => undefined };
    const run = { world: script.world, history } as unknown as SimRun;
    script.until('every copy has applied it', () => isLevel(run, partition));
    expect(askReplicas(run, partition, ['a'], 'final')).toBe(true);
    expect(rows.map(({ kind }) => kind)).toEqual(['answered', 'answered', 'answered']);
    rows.length = 0;
    const primary = script.primary();
    script.world.kill(primary);
    script.world.start(primary);
    script.until('its new process runs', () => script.world.node(primary).running !== null);
    expect(script.primary()).toBe(primary);
    expect(isLevel(run, partition)).toBe(false);
    expect(askReplicas(run, partition, ['a'], 'final')).toBe(false);
    expect(rows.every(({ kind }) => kind === 'missing')).toBe(true);
  });
});
