import { describe, expect, it } from 'vitest';
import type { ClusterView } from '../../zaris/model/view.ts';
import { statusOfView } from './zaris-status.ts';

describe('the status that a view tells', () => {
  it('counts a voter whose disk is gone until its replacement is committed', () => {
    const nodes = ['n1', 'n2', 'n3', 'n4'].map((nodeId) => ({
      nodeId,
      incarnation: 1,
      alive: true,
      voter: nodeId !== 'n3',
    }));
    const voters = nodes.map(({ nodeId }) => ({ nodeId, diskId: nodeId === 'n3' ? 'gone' : `d-${nodeId}` }));
    const view = { controlLeader: 'n2', minInSync: 1, nodes, voters, partitions: [] } as unknown as ClusterView;
    const status = statusOfView(view, 5);
    expect(status.voters).toEqual(['n1', 'n2', 'n3', 'n4']);
    expect(status.voterDisks).toEqual({ n1: 'd-n1', n2: 'd-n2', n3: 'gone', n4: 'd-n4' });
  });
});
