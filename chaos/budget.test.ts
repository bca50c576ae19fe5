import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  type Charge,
  chargeFor,
  fitToBudget,
  holders,
  type Intent,
  judge,
  overshoot,
  settle,
  settleMs,
  tollOf,
  uncoveredPartitions,
} from './budget.ts';
import { destroysMemory, type FaultName, faultNames, faultOfName } from './faults.ts';
import type { PartitionStatus, SystemStatus } from './ports.ts';

const nodeIds = ['n1', 'n2', 'n3', 'n4', 'n5'];

const partition = (
  index: number,
  inSync: readonly string[],
  replicas: readonly string[] = inSync,
): PartitionStatus => ({
  partition: index,
  epoch: 1,
  term: 1,
  primary: inSync[0] ?? null,
  preferredPrimary: replicas[0] ?? null,
  replicas,
  inSync,
  eligible: [],
  joining: [],
  health: 'Healthy',
  serving: true,
});

const status = (partitions: readonly PartitionStatus[], changes: Partial<SystemStatus> = {}): SystemStatus => ({
  atMs: 10_000,
  leader: 'n1',
  voters: nodeIds,
  nodes: nodeIds.map((nodeId) => ({ nodeId, incarnation: 1, alive: true })),
  minInSync: 2,
  partitions,
  ...changes,
});

const intent = (name: FaultName, ...targets: string[]): Intent => ({ fault: faultOfName(name), nodeIds: targets });
const strict = { mayStall: false };
const lax = { mayStall: true };
const whole = status([
  partition(0, ['n1', 'n2', 'n3']),
  partition(1, ['n2', 'n3', 'n4']),
  partition(2, ['n3', 'n4', 'n5']),
]);
const charged = (name: FaultName, targets: string[], at: SystemStatus = whole): Charge =>
  chargeFor(name, intent(name, ...targets), at, nodeIds);
const healed = (charge: Charge, atMs: number): Charge => ({ ...charge, healVerifiedAtMs: atMs });
const isAllowed = (at: SystemStatus, charges: readonly Charge[], what: Intent, policy = strict): boolean =>
  judge(at, charges, what, nodeIds, policy).kind === 'allowed';

describe('a cut leaves a set to one side of it', () => {
  // As it happened in a soak: n5 leads with n1 beside it, n3 beyond the cut. Right after the heal n5 drops n3, which it has not heard yet.
  const p39 = status([partition(0, ['n5', 'n1', 'n3'])]);
  const halves = charged('halves', ['n1', 'n5'], p39);

  it('one of the side that leads may be taken, both may not, though the third holder is under no fault', () => {
    expect(isAllowed(p39, [halves], intent('kill', 'n1'))).toBe(true);
    const killed = charged('kill', ['n1'], p39);
    expect(isAllowed(p39, [halves, killed], intent('kill', 'n5'))).toBe(false);
    expect(isAllowed(p39, [healed(halves, p39.atMs - 1_000), killed], intent('kill', 'n5'))).toBe(false);
  });

  it('the other side may replace the primary: it is not taken whole either', () => {
    const at = status([partition(0, ['n5', 'n2', 'n3'])]);
    const cut = charged('isolate', ['n5'], at);
    const killed = charged('kill', ['n2'], at);
    expect(isAllowed(at, [cut, killed], intent('kill', 'n3'))).toBe(false);
  });

  it('an isolated primary may be killed alone: the last that it drops is eligible', () => {
    expect(isAllowed(p39, [charged('isolate', ['n5'], p39)], intent('kill', 'n5'))).toBe(true);
  });
});

describe('memory', () => {
  it('two of three may be killed, not the third', () => {
    expect(isAllowed(whole, [], intent('kill', 'n1'))).toBe(true);
    expect(isAllowed(whole, [charged('kill', ['n1'])], intent('kill', 'n2'))).toBe(true);
    expect(isAllowed(whole, [charged('kill', ['n1', 'n2'])], intent('kill', 'n3'), lax)).toBe(false);
  });

  it('the only member in sync may not be killed, even if nobody else is charged', () => {
    expect(isAllowed(status([partition(0, ['n1'], ['n1', 'n2', 'n3'])]), [], intent('kill', 'n1'), lax)).toBe(false);
    expect(isAllowed(status([partition(0, ['n1'], ['n1', 'n2', 'n3'])]), [], intent('kill', 'n2'))).toBe(true);
  });

  it('a member of the ELR counts', () => {
    const one = { ...partition(0, ['n1'], ['n1', 'n2', 'n3']), eligible: ['n2'] };
    expect(isAllowed(status([one]), [], intent('kill', 'n1'))).toBe(true);
  });

  it('a copy that the map no longer asks for does not count once all that it asks for are in sync: it is dropped at any moment', () => {
    const moved = status([partition(0, ['n1', 'n3'], ['n1'])]);
    expect(isAllowed(moved, [], intent('kill', 'n1'))).toBe(false);
    expect(isAllowed(moved, [], intent('stop', 'n1'))).toBe(false);
    expect(isAllowed(moved, [], intent('kill', 'n3'))).toBe(true);
    const three = status([partition(0, ['n1', 'n2', 'n3'], ['n1', 'n2'])]);
    expect(isAllowed(three, [], intent('kill', 'n1'))).toBe(true);
    expect(isAllowed(three, [charged('kill', ['n2'], three)], intent('kill', 'n1'))).toBe(false);
    expect(judge(three, [charged('kill', ['n2'], three)], intent('kill', 'n1'), nodeIds, strict)).toMatchObject({
      reason: expect.stringContaining('no longer in the map: n3') as string,
    });
    // Beyond the cut, n3 may be dropped as well, and n2 is gone.
    const cut = charged('isolate', ['n1'], three);
    expect(isAllowed(three, [cut, charged('kill', ['n2'], three)], intent('kill', 'n1'))).toBe(false);
  });

  it('until then it stays, and counts', () => {
    const moving = status([partition(0, ['n1', 'n3'], ['n1', 'n2'])]);
    expect(isAllowed(moving, [], intent('kill', 'n1'))).toBe(true);
  });

  it('what is paused or cut off does not count beside a kill: it may fall behind', () => {
    const two = status([partition(0, ['n1', 'n2'])]);
    expect(isAllowed(two, [charged('pause', ['n2'], two)], intent('kill', 'n1'), lax)).toBe(false);
    expect(isAllowed(two, [charged('isolate', ['n2'], two)], intent('kill', 'n1'), lax)).toBe(false);
    expect(isAllowed(two, [charged('majorities-ring', nodeIds, two)], intent('kill', 'n1'), lax)).toBe(false);
  });

  it('a pause alone loses nothing; whether it may stall a partition is the policy’s word', () => {
    const sole = status([partition(0, ['n1'], ['n1', 'n2', 'n3'])]);
    expect(isAllowed(sole, [], intent('pause', 'n1'), lax)).toBe(true);
    expect(isAllowed(sole, [], intent('pause', 'n1'), strict)).toBe(false);
    expect(isAllowed(status([partition(0, ['n1'])]), [], intent('pause', 'n1'), strict)).toBe(true);
  });

  it('a node that died by itself counts as gone', () => {
    const dead = status([partition(0, ['n1', 'n2'])], {
      nodes: nodeIds.map((nodeId) => ({ nodeId, incarnation: 1, alive: nodeId !== 'n2' })),
    });
    expect(isAllowed(dead, [], intent('kill', 'n1'), lax)).toBe(false);
  });
});

describe('charges', () => {
  const kill = healed(charged('kill', ['n2']), 9_000);
  const restarted = (incarnation: number, ...partitions: PartitionStatus[]): SystemStatus =>
    status(partitions, {
      nodes: nodeIds.map((nodeId) => ({ nodeId, incarnation: nodeId === 'n2' ? incarnation : 1, alive: true })),
    });

  it('a killed member stays charged until its new incarnation is back in every set', () => {
    expect(
      settle([kill], restarted(1, partition(0, ['n1', 'n2', 'n3']), partition(1, ['n2', 'n3', 'n4']))),
    ).toHaveLength(1);
    expect(
      settle([kill], restarted(2, partition(0, ['n1', 'n2', 'n3']), partition(1, ['n3', 'n4'], ['n2', 'n3', 'n4']))),
    ).toHaveLength(1);
    expect(
      settle([kill], restarted(2, partition(0, ['n1', 'n2', 'n3']), partition(1, ['n2', 'n3', 'n4']))),
    ).toHaveLength(0);
  });

  it('not before its heal is verified', () => {
    expect(settle([{ ...kill, healVerifiedAtMs: null }], restarted(2, partition(0, ['n1', 'n2', 'n3'])))).toHaveLength(
      1,
    );
  });

  it('a new map may relieve it of the duty', () => {
    expect(settle([kill], restarted(2, partition(0, ['n1', 'n3']), partition(1, ['n3', 'n4'])))).toHaveLength(0);
  });

  it('but not while a set still names what was killed: the last real holder would be taken (seed 1000053)', () => {
    // n2 is surplus to the map and still counted; its death is not committed yet.
    const before = status([partition(0, ['n1', 'n2'], ['n1'])]);
    const charge = healed(charged('kill', ['n2'], before), 9_000);
    expect(isAllowed(before, settle([charge], before), intent('stop', 'n1'), lax)).toBe(false);
    const after = status([partition(0, ['n1'])], {
      nodes: nodeIds.map((nodeId) => ({ nodeId, incarnation: nodeId === 'n2' ? 2 : 1, alive: true })),
    });
    expect(settle([charge], after)).toHaveLength(0);
  });

  it('a paused member stays charged a little after the heal: its removal may be on its way', () => {
    const pause = healed(charged('pause', ['n2']), 10_000);
    expect(settle([pause], { ...whole, atMs: 10_000 + settleMs - 1 })).toHaveLength(1);
    expect(settle([pause], { ...whole, atMs: 10_000 + settleMs })).toHaveLength(0);
    // A silent replica leaves after 1 s; the status may still show it when the removal is already proposed.
    const early = { ...status([partition(0, ['n1', 'n2'])]), atMs: 11_500 };
    expect(isAllowed(early, settle([pause], early), intent('kill', 'n1'), lax)).toBe(false);
  });

  it('a wiped voter is charged until its replacement is committed', () => {
    const disks = (n2: string, incarnation = 2): SystemStatus => ({
      ...restarted(incarnation, partition(0, ['n1', 'n2', 'n3']), partition(1, ['n2', 'n3', 'n4'])),
      voterDisks: Object.fromEntries(nodeIds.map((nodeId) => [nodeId, nodeId === 'n2' ? n2 : 'old'])),
    });
    const wipe = healed(charged('wipe', ['n2'], disks('old', 1)), 9_000);
    expect(settle([wipe], disks('old'))).toHaveLength(1);
    expect(isAllowed(disks('old'), [wipe, charged('isolate', ['n1'])], intent('isolate', 'n5'))).toBe(false);
    expect(settle([wipe], disks('new'))).toHaveLength(0);
    expect(isAllowed(disks('new'), settle([wipe], disks('new')), intent('isolate', 'n5'))).toBe(true);
  });

  it('without disk identities: until it was seen gone and is back', () => {
    const back = restarted(2, partition(0, ['n1', 'n2', 'n3']), partition(1, ['n2', 'n3', 'n4']));
    const wipe = healed(charged('wipe', ['n2']), 9_000);
    expect(settle([wipe], back)).toHaveLength(1);
    const gone = settle([wipe], { ...back, voters: ['n1', 'n3', 'n4', 'n5'] });
    expect(gone).toHaveLength(1);
    expect(settle(gone, back)).toHaveLength(0);
  });
});

describe('control majority', () => {
  const empty = status([]);
  it('two of five voters, not three', () => {
    expect(isAllowed(empty, [charged('pause', ['n1'], empty)], intent('isolate', 'n2'))).toBe(true);
    expect(isAllowed(empty, [charged('pause', ['n1', 'n2'], empty)], intent('kill', 'n3'))).toBe(false);
  });
  it('a voter restarted with its disk votes again, though its memory is still charged', () => {
    const kills = [healed(charged('kill', ['n2']), 1), healed({ ...charged('kill', ['n3']), faultId: 'other' }, 1)];
    expect(isAllowed({ ...whole, partitions: [] }, kills, intent('isolate', 'n5'))).toBe(true);
  });
  it('what is under a fault already may be hit again', () => {
    expect(isAllowed(empty, [charged('isolate', ['n1', 'n2'], empty)], intent('kill', 'n1'))).toBe(true);
  });
});

describe('fitting and overshoot', () => {
  it('takes the first that is allowed and says why', () => {
    const sole = status([partition(0, ['n1'], ['n1', 'n2', 'n3'])]);
    const fit = fitToBudget(sole, [], [intent('kill', 'n1'), intent('kill', 'n2')], nodeIds, lax);
    expect(fit).toMatchObject({ kind: 'changed', intent: { nodeIds: ['n2'] } });
    expect(fit.kind === 'changed' && fit.why).toContain('partition 0 would keep no copy');
    expect(fitToBudget(sole, [], [intent('kill', 'n1')], nodeIds, lax).kind).toBe('denied');
    expect(fitToBudget(sole, [], [], nodeIds, lax).kind).toBe('denied');
  });

  it('past the budget only when asked, and what loses every copy is named', () => {
    const all = intent('kill', ...nodeIds);
    expect(fitToBudget(whole, [], [all, intent('kill', 'n1')], nodeIds, lax)).toMatchObject({
      kind: 'changed',
      intent: { nodeIds: ['n1'] },
    });
    expect(fitToBudget(whole, [], [all], nodeIds, { ...lax, mayExceed: true })).toEqual({
      kind: 'allowed',
      intent: all,
    });
    expect(uncoveredPartitions(whole, [], all, nodeIds)).toEqual([0, 1, 2]);
    expect(uncoveredPartitions(whole, [], intent('kill', 'n2', 'n3', 'n4'), nodeIds)).toEqual([1]);
    expect(uncoveredPartitions(whole, [charged('kill', ['n5'])], intent('kill', 'n3', 'n4'), nodeIds)).toEqual([2]);
    expect(uncoveredPartitions(whole, [], intent('pause', ...nodeIds), nodeIds)).toEqual([]);
  });

  it('an overshoot is seen: the set shrank to what was killed', () => {
    const kill = charged('kill', ['n1']);
    expect(overshoot(whole, [kill])).toBeNull();
    expect(overshoot(status([partition(0, ['n1'], ['n1', 'n2', 'n3'])]), [kill])).toMatchObject({ partitions: [0] });
    expect(overshoot(status([{ ...partition(4, []), health: 'Lost' }]), [])).toEqual({
      why: 'partition 4 is Lost',
      partitions: [],
    });
  });

  it('no overshoot once the new incarnation is in the set', () => {
    const back = status([partition(0, ['n1'], ['n1', 'n2'])], {
      nodes: nodeIds.map((nodeId) => ({ nodeId, incarnation: 2, alive: true })),
    });
    expect(overshoot(back, [healed(charged('kill', ['n1']), 1)])).toBeNull();
  });
});

describe('never past the budget, whatever the status', () => {
  const member = fc.subarray(nodeIds, { minLength: 1, maxLength: 3 });
  const anyPartition = fc.record({
    replicas: fc.shuffledSubarray(nodeIds, { minLength: 1, maxLength: 3 }),
    keep: fc.integer({ min: 1, max: 3 }),
    elr: fc.boolean(),
  });
  const anyStatus = fc
    .tuple(fc.array(anyPartition, { minLength: 1, maxLength: 6 }), fc.subarray(nodeIds, { minLength: 4 }))
    .map(([list, alive]) =>
      status(
        list.map(({ replicas, keep, elr }, index) => ({
          ...partition(index, replicas.slice(0, keep), replicas),
          eligible: elr ? replicas.slice(keep, keep + 1) : [],
        })),
        { nodes: nodeIds.map((nodeId) => ({ nodeId, incarnation: 1, alive: alive.includes(nodeId) })) },
      ),
    );
  const anyIntent = fc
    .tuple(fc.constantFrom(...faultNames), member)
    .map(([name, targets]): Intent => intent(name, ...targets));

  it('an allowed series leaves a live holder outside every fault wherever memory goes, and a voters’ majority', () => {
    let allowedCount = 0;
    fc.assert(
      fc.property(
        anyStatus,
        fc.array(anyIntent, { minLength: 1, maxLength: 6 }),
        fc.boolean(),
        (at, intents, mayStall) => {
          let charges: readonly Charge[] = [];
          intents.forEach((one, index) => {
            if (!isAllowed(at, charges, one, { mayStall })) return;
            allowedCount += 1;
            charges = [...charges, chargeFor(`f${index}`, one, at, nodeIds)];
          });
          // The oracle, by other means: nodes by name, straight from the intents that were allowed.
          const memoryGone = new Set(
            charges.flatMap((charge) => (charge.departures.length > 0 ? charge.toll.destroys : [])),
          );
          const touched = new Set(charges.flatMap((charge) => [...charge.toll.drops]));
          for (const one of at.partitions) {
            const alive = (nodeId: string): boolean => at.nodes.some((node) => node.nodeId === nodeId && node.alive);
            const holding = holders(one);
            if (!holding.some((nodeId) => memoryGone.has(nodeId))) continue;
            expect(holding.some((nodeId) => alive(nodeId) && !memoryGone.has(nodeId) && !touched.has(nodeId))).toBe(
              true,
            );
          }
          const silenced = new Set(charges.flatMap((charge) => charge.toll.silences));
          if (silenced.size > 0) {
            const voting = at.voters.filter(
              (voter) => !silenced.has(voter) && at.nodes.some((node) => node.nodeId === voter && node.alive),
            );
            expect(voting.length).toBeGreaterThanOrEqual(3);
          }
        },
      ),
      { seed: 7, numRuns: 2_000 },
    );
    expect(allowedCount).toBeGreaterThan(1_000);
  });

  it('whatever destroys memory says so in its toll', () => {
    for (const name of faultNames)
      expect(tollOf(intent(name, 'n1'), nodeIds).destroys.length > 0).toBe(destroysMemory(faultOfName(name)));
  });
});
