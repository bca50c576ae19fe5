import { describe, expect, it } from 'vitest';
import type { LinkRule } from '../chaos/ports.ts';
import { linkRules } from './link-rules.ts';

const addresses = new Map([
  ['n1', '10.0.0.1'],
  ['n2', '10.0.0.2'],
  ['n3', '10.0.0.3'],
  ['client', '10.0.0.254'],
]);
const linesOf = (nodeId: string, all: readonly LinkRule[]): string[] =>
  linkRules(nodeId, all, addresses)
    .split('\n')
    .filter((line) => line.startsWith('-A'));
const rules = (nodeId: string, cuts: readonly { from: string; to: string }[]): string[] =>
  linesOf(
    nodeId,
    cuts.map((cut) => ({ kind: 'drop', ...cut })),
  );

describe('link rules', () => {
  it('stands at both ends, in one direction only', () => {
    const cuts = [{ from: 'n1', to: 'n2' }];
    expect(rules('n1', cuts)).toEqual(['-A ZARIS_CUT_OUT -d 10.0.0.2/32 -j DROP']);
    expect(rules('n2', cuts)).toEqual(['-A ZARIS_CUT_IN -s 10.0.0.1/32 -j DROP']);
    expect(rules('n3', cuts)).toEqual([]);
  });

  it('knows the client as an end', () => {
    expect(rules('n3', [{ from: 'client', to: 'n3' }])).toEqual(['-A ZARIS_CUT_IN -s 10.0.0.254/32 -j DROP']);
    expect(rules('n3', [{ from: 'n3', to: 'client' }])).toEqual(['-A ZARIS_CUT_OUT -d 10.0.0.254/32 -j DROP']);
  });

  it('does not repeat a rule, nor cut a node from itself', () => {
    const cuts = [
      { from: 'n1', to: 'n2' },
      { from: 'n1', to: 'n2' },
      { from: 'n2', to: 'n2' },
    ];
    expect(rules('n2', cuts)).toHaveLength(1);
  });

  it('empties both chains in the same transaction, also when nothing is cut', () => {
    expect(linkRules('n1', [], addresses)).toBe('*filter\n:ZARIS_CUT_IN - [0:0]\n:ZARIS_CUT_OUT - [0:0]\nCOMMIT\n');
  });

  it('refuses an end without address', () => {
    expect(() => rules('n1', [{ from: 'n9', to: 'n1' }])).toThrow('address of n9');
  });

  it('weakens a link at one end only: the receiver, or the node where the other end is the client', () => {
    const loss = (from: string, to: string): LinkRule => ({ kind: 'loss', from, to, percent: 30 });
    expect(linesOf('n1', [loss('n1', 'n2')])).toEqual([]);
    expect(linesOf('n2', [loss('n1', 'n2')])).toEqual([
      '-A ZARIS_CUT_IN -s 10.0.0.1/32 -m statistic --mode random --probability 0.300000 -j DROP',
    ]);
    expect(linesOf('n2', [loss('n2', 'client')])).toEqual([
      '-A ZARIS_CUT_OUT -d 10.0.0.254/32 -m statistic --mode random --probability 0.300000 -j DROP',
    ]);
  });

  it('puts what blocks before what weakens, and refuses what it cannot do', () => {
    const all: LinkRule[] = [
      { kind: 'rate', from: 'n1', to: 'n2', bytesPerSecond: 100_000 },
      { kind: 'reset', from: 'n3', to: 'n2' },
      { kind: 'drop', from: 'n1', to: 'n2' },
    ];
    expect(linesOf('n2', all)).toEqual([
      '-A ZARIS_CUT_IN -s 10.0.0.1/32 -j DROP',
      '-A ZARIS_CUT_IN -s 10.0.0.3/32 -p tcp ! --tcp-flags RST RST -j REJECT --reject-with tcp-reset',
      '-A ZARIS_CUT_IN -s 10.0.0.1/32 -m hashlimit --hashlimit-above 100000b/s --hashlimit-burst 100000b --hashlimit-mode srcip --hashlimit-name zrin1 -j DROP',
    ]);
    expect(() => linesOf('n2', [{ kind: 'delay', from: 'n1', to: 'n2', delayMs: 5, jitterMs: 0 }])).toThrow(
      'no latency fault',
    );
  });
});
