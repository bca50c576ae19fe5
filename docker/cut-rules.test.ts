import { describe, expect, it } from 'vitest';
import { cutRules } from './cut-rules.ts';

const addresses = new Map([
  ['n1', '10.0.0.1'],
  ['n2', '10.0.0.2'],
  ['n3', '10.0.0.3'],
  ['client', '10.0.0.254'],
]);
const rules = (nodeId: string, cuts: readonly { from: string; to: string }[]): string[] =>
  cutRules(nodeId, cuts, addresses)
    .split('\n')
    .filter((line) => line.startsWith('-A'));

describe('cutRules', () => {
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
    const cuts = [{ from: 'n1', to: 'n2' }, { from: 'n1', to: 'n2' }, { from: 'n2', to: 'n2' }];
    expect(rules('n2', cuts)).toHaveLength(1);
  });

  it('empties both chains in the same transaction, also when nothing is cut', () => {
    expect(cutRules('n1', [], addresses)).toBe('*filter\n:ZARIS_CUT_IN - [0:0]\n:ZARIS_CUT_OUT - [0:0]\nCOMMIT\n');
  });

  it('refuses an end without address', () => {
    expect(() => cutRules('n1', [{ from: 'n9', to: 'n1' }], addresses)).toThrow('address of n9');
  });
});
