import { describe, expect, it } from 'vitest';
import { type FaultName, faultOfName } from './faults.ts';
import { cutsOf, type OpenFault, rulesFor, wantedClockOffsetMs, wantedNode, wantedRules } from './wanted.ts';

const nodeIds = ['n1', 'n2', 'n3', 'n4', 'n5'];
const open = (faultId: string, name: FaultName, ...targets: string[]): OpenFault => {
  const intent = { fault: faultOfName(name), nodeIds: targets };
  return { faultId, intent, rules: rulesFor(intent, nodeIds) };
};

describe('wanted state', () => {
  it('down beats paused beats running, in any order', () => {
    const kill = open('a', 'kill', 'n1');
    const pause = open('b', 'pause', 'n1');
    expect(wantedNode([kill, pause], 'n1').kind).toBe('down');
    expect(wantedNode([pause, kill], 'n1').kind).toBe('down');
    expect(wantedNode([pause], 'n1').kind).toBe('paused');
    expect(wantedNode([pause, kill], 'n2').kind).toBe('running');
    expect(wantedNode([open('c', 'isolate', 'n1')], 'n1').kind).toBe('running');
  });

  it('a heal leaves what another fault wants', () => {
    const first = open('a', 'isolate', 'n1');
    const second = open('b', 'halves', 'n1', 'n2');
    const both = cutsOf(wantedRules([first, second]));
    const one = cutsOf(wantedRules([second]));
    expect(both.length).toBe(8 + 12 - 6);
    expect(one).toEqual(cutsOf(second.rules));
    expect(wantedRules([])).toEqual([]);
  });

  it('of two strengths the stronger stands', () => {
    const weak = open('a', 'loss', 'n1');
    const strong: OpenFault = {
      ...weak,
      faultId: 'b',
      rules: weak.rules.map((rule) => ({ ...rule, percent: 90 })) as OpenFault['rules'],
    };
    expect(wantedRules([strong, weak]).every((rule) => rule.kind === 'loss' && rule.percent === 90)).toBe(true);
    expect(wantedRules([strong, weak])).toEqual(wantedRules([weak, strong]));
  });

  it('clock: the last open fault counts', () => {
    expect(wantedClockOffsetMs([open('a', 'clock', 'n1')], 'n1')).toBe(3_600_000);
    expect(wantedClockOffsetMs([open('a', 'clock', 'n1')], 'n2')).toBe(0);
  });
});
