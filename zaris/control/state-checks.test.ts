/** Every check of the control state fires: each is shown a state that breaks it, and one that does not. */
import { describe, expect, it } from 'vitest';
import { assert } from '../../lib/assert.ts';
import { type Member, epoch, incarnation, nodeId, partitionId, term } from '../model/ids.ts';
import type { PartitionCommand } from './commands.ts';
import { checkEdge, checkForward, checkRuntime } from './state-checks.ts';
import { type ControlData, ControlState, type PartitionRuntime } from './state.ts';

const member = (name: string, start = 1): Member => ({ nodeId: nodeId(name), incarnation: incarnation(start) });
const [n1, n2, n3] = [member('n1'), member('n2'), member('n3')];
const partition = partitionId(0);

const runtime = (over: Partial<PartitionRuntime> = {}): PartitionRuntime => ({
  partition,
  epoch: epoch(7),
  term: term(5),
  primary: n1,
  released: false,
  serving: true,
  inSync: [n1, n2],
  eligible: [],
  health: 'Degraded',
  dataLossNumber: 1,
  ...over,
});

const data = (over: Partial<ControlData>): ControlData => ({
  revision: 9,
  settings: null,
  nodes: [],
  mapVersion: 3,
  placements: [],
  runtimes: [runtime()],
  audit: [],
  forgotten: [],
  ...over,
});

describe('checks of the control state', () => {
  it('a snapshot that goes back in anything that only grows', () => {
    const before = data({});
    expect(() => checkForward(assert, before, data({}))).not.toThrow();
    expect(() => checkForward(assert, before, data({ revision: 8 }))).toThrow('never goes back');
    expect(() => checkForward(assert, before, data({ mapVersion: 2 }))).toThrow('the map version');
    expect(() => checkForward(assert, before, data({ runtimes: [runtime({ epoch: epoch(6) })] }))).toThrow(
      'epoch and term',
    );
    expect(() => checkForward(assert, before, data({ runtimes: [runtime({ term: term(4) })] }))).toThrow(
      'epoch and term',
    );
    expect(() => checkForward(assert, before, data({ runtimes: [runtime({ dataLossNumber: 0 })] }))).toThrow(
      'data-loss',
    );
  });

  it('a runtime whose sets count somebody who holds nothing', () => {
    const cluster = { minInSync: 2, isCurrent: ({ incarnation: start }: Member) => start === 1 };
    const check = (over: Partial<PartitionRuntime>) => () => checkRuntime(assert, runtime(over), cluster);
    expect(check({})).not.toThrow();
    expect(check({ inSync: [n1], eligible: [n2] })).not.toThrow();
    expect(check({ term: term(8) })).toThrow('a term is an epoch');
    expect(check({ primary: n3 })).toThrow('who leads is in sync');
    expect(check({ primary: null })).toThrow('only who leads serves');
    expect(check({ inSync: [n1, member('n2', 2)] })).toThrow('an in-sync member is a current incarnation');
    expect(check({ inSync: [n1], eligible: [member('n2', 2)] })).toThrow('an eligible member is a current incarnation');
    expect(check({ inSync: [n1], eligible: [n1] })).toThrow('outside the in-sync set');
    expect(check({ eligible: [n3] })).toThrow('beside a set that may commit');
  });

  it('a command that moves counts it must not, or leaves those it must', () => {
    const before = { term: term(5), dataLossNumber: 1 };
    const expectEpoch = epoch(6);
    const promote: PartitionCommand = { kind: 'promote', partition, expectEpoch, candidate: n1 };
    const withdraw: PartitionCommand = { kind: 'withdraw', partition, expectEpoch, by: n1 };
    const evict: PartitionCommand = { kind: 'evict', partition, expectEpoch, members: [n1] };
    const audit = { revision: 9, partition, dataLossNumber: 2, text: '' };
    const check =
      (command: PartitionCommand, over: Partial<PartitionRuntime>, event = undefined as typeof audit | undefined) =>
      () =>
        checkEdge(assert, command, before, { runtime: runtime(over), audit: event });
    const later = { term: term(7) };
    expect(check(promote, later)).not.toThrow();
    expect(check(withdraw, {})).not.toThrow();
    expect(check(evict, { ...later, dataLossNumber: 2 }, audit)).not.toThrow();
    expect(check(withdraw, { epoch: epoch(6) })).toThrow('every edge raises the epoch');
    expect(check(promote, {})).toThrow('an assignment raises the term');
    expect(check(withdraw, later)).toThrow('only an assignment moves the term');
    expect(check(promote, { ...later, dataLossNumber: 2 })).toThrow('only an eviction');
    expect(check(evict, later, audit)).toThrow('raises the data-loss number by one');
    expect(check(evict, { ...later, dataLossNumber: 2 })).toThrow('audit event');
    expect(check(evict, { ...later, dataLossNumber: 2 }, { ...audit, partition: partitionId(1) })).toThrow(
      'audit event',
    );
  });

  it('a batch without a planned regeneration that changes the map', () => {
    const state = new ControlState();
    const inside = state as unknown as { command: (command: unknown) => void; data: ControlData };
    inside.command = () => {
      inside.data.placements = [{ preferredPrimary: n1.nodeId, replicas: [n1.nodeId] }];
    };
    const drain = { kind: 'set-leaving', nodeId: n1.nodeId, leaving: false, drain: true } as const;
    expect(() => state.apply(1, { commands: [drain] })).toThrow('only a planned regeneration changes the map');
    const map = { kind: 'set-map', expectMapVersion: 0, placements: [] } as const;
    expect(() => state.apply(2, { commands: [map] })).not.toThrow();
  });
});
