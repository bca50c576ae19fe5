import { describe, expect, it } from 'vitest';
import { ipv4Number, nodeAddress, rangesOverlap, routedRanges, subnetCandidates } from './network.ts';

describe('ranges', () => {
  it.each([
    ['172.28.3.0/24', '172.28.0.0/16', true],
    ['172.28.0.0/16', '172.28.3.0/24', true],
    ['172.28.3.0/24', '172.28.4.0/24', false],
    ['10.0.0.1/8', '10.255.255.255/32', true],
    ['192.168.0.0/25', '192.168.0.128/25', false],
  ])('%s and %s overlap: %s', (left, right, overlap) => {
    expect(rangesOverlap(left, right)).toBe(overlap);
  });

  it('refuses what is no address', () => {
    expect([ipv4Number('1.2.3'), ipv4Number('1.2.3.256'), ipv4Number('0.0.1.0')]).toEqual([
      Number.NaN,
      Number.NaN,
      256,
    ]);
  });

  it('leaves out what is used and starts where it is told', () => {
    const all = subnetCandidates([], 0);
    expect(all).toHaveLength(1024);
    expect(subnetCandidates([], 5)[0]).toBe(all[5]);
    expect(subnetCandidates(['172.28.0.0/15', '172.31.0.0/16'], 0).every((range) => range.startsWith('172.30.'))).toBe(
      true,
    );
    expect(subnetCandidates(['172.16.0.0/12'], 0)).toEqual([]);
  });

  it('gives every node of a range its own address, clear of the gateway', () => {
    expect([0, 1, 199].map((index) => nodeAddress('172.28.7.0/24', index))).toEqual([
      '172.28.7.11',
      '172.28.7.12',
      '172.28.7.210',
    ]);
  });

  it('reads the kernel route table', () => {
    const text =
      'Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\neth0\t00000000\t0100000A\t3\t0\t0\t0\t00000000\nbr\t00031CAC\t00000000\t1\t0\t0\t0\t00FFFFFF\n';
    expect(routedRanges(text)).toEqual(['172.28.3.0/24']);
  });
});
