import { describe, expect, it } from 'vitest';
import type { PartitionStatus, SystemStatus } from '../../chaos/ports.ts';
import type { DigestRow, ReplicaReadRow } from '../../ledger/rows.ts';
import type { Phase } from '../../ledger/rows.ts';
import type { Peeked } from '../systems/system.ts';
import { askReplicas } from './autopsy.ts';
import { RunClock } from './run-clock.ts';

const partition = 45;

const statusWith = (change: Partial<PartitionStatus>): SystemStatus => ({
  atMs: 0,
  leader: 'n1',
  voters: ['n1', 'n3', 'n5'],
  nodes: [],
  minInSync: 2,
  partitions: [
    {
      partition,
      epoch: 211,
      term: 209,
      primary: 'n5',
      preferredPrimary: 'n5',
      replicas: ['n5', 'n1', 'n3'],
      inSync: ['n5', 'n1', 'n3'],
      eligible: [],
      joining: [],
      health: 'Healthy',
      serving: true,
      ...change,
    },
  ],
});

const copyOf = (nodeId: string, role: string, seq: number, value: string | null): Peeked => ({
  nodeId,
  incarnation: 1,
  role,
  applied: [seq === 0 ? 0 : 209, seq],
  commitSeq: seq,
  digest: '',
  keyCount: 1,
  keys: [{ key: 'k', value, version: value === null ? null : [1, 65] }],
});

/** Asks the three copies of a partition; what was recorded. */
async function ask(
  phase: Phase,
  copies: Readonly<Record<string, Peeked | null>>,
  after: SystemStatus | null = statusWith({}),
): Promise<{ readonly asked: number; readonly answered: number; readonly rows: ReplicaReadRow[] }> {
  const rows: ReplicaReadRow[] = [];
  let nowMs = 0;
  const clock = new RunClock({ nowMs: () => (nowMs += 1_000), wallMs: () => 0 }, 0);
  const result = await askReplicas(
    {
      system: { peek: async (nodeId) => copies[nodeId] ?? null, status: { status: async () => after } },
      ledger: {
        replicaRead: async (row) => void rows.push(row),
        digest: async (_row: DigestRow) => undefined,
        flush: async () => undefined,
      },
      clock,
      phase,
      signal: new AbortController().signal,
    },
    statusWith({}),
    partition,
    ['k'],
  );
  return { ...result, rows };
}

const sound = {
  n5: copyOf('n5', 'primary', 20, 'v'),
  n1: copyOf('n1', 'replica', 20, 'v'),
  n3: copyOf('n3', 'replica', 20, 'v'),
};

describe('autopsy', () => {
  it('records every copy against what the primary had committed', async () => {
    const { asked, answered, rows } = await ask('retire', sound);
    expect([asked, answered]).toEqual([3, 3]);
    expect(rows.map((row) => row.kind === 'answered' && row.commitSeq)).toEqual([20, 20, 20]);
  });

  // A soak: the status was 16 s old, its primary had been killed and was back, empty; 58 keys were called diverged.
  it('believes nothing of a restarted, empty node that the status calls primary', async () => {
    const copies = {
      ...sound,
      n5: copyOf('n5', 'joiner', 0, null),
      n1: copyOf('n1', 'primary', 21, 'v'),
    };
    const retired = await ask('retire', copies, statusWith({ primary: 'n1', term: 212 }));
    expect(retired.answered).toBeLessThan(retired.asked);
    expect(retired.rows).toEqual([]);
    const final = await ask('final', copies);
    expect(final.answered).toBe(0);
    expect(final.rows.map((row) => row.kind)).toEqual(['missing', 'missing', 'missing']);
  });

  it('retires nothing on answers that straddle a change of primary', async () => {
    for (const after of [statusWith({ term: 212 }), statusWith({ primary: 'n1' }), null]) {
      const { asked, answered, rows } = await ask('retire', sound, after);
      expect(answered).toBeLessThan(asked);
      expect(rows).toEqual([]);
    }
  });

  it('records a silent and a lagging copy at the end as missing evidence', async () => {
    const { asked, answered, rows } = await ask('final', { ...sound, n1: null, n3: copyOf('n3', 'replica', 19, null) });
    expect([asked, answered]).toEqual([3, 1]);
    expect(rows.map((row) => row.kind)).toEqual(['answered', 'missing', 'answered']);
  });
});
