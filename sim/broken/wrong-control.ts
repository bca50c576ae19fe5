/** Stores whose control plane decides or records something wrong: who may lead, in which term, who is who. */
import type { ControlCommand } from '../../zaris/control/commands.ts';
import type { ControlState, PartitionRuntime } from '../../zaris/control/state.ts';
import type { Controller } from '../../zaris/control/controller.ts';
import { type Incarnation, type Member, hasMember, memberName } from '../../zaris/model/ids.ts';
import type { Node } from '../../zaris/node/node.ts';
import type { Possession, PossessionInput } from '../../zaris/partition/rules.ts';
import { type BrokenStore, exchange, inside } from './store.ts';

const base = {
  durationMs: '60000',
  chaos: 'brutal',
  moments: 'true',
  nodes: '5',
  lossChance: '0',
  slowNodeMs: '0',
  requestTimeoutMs: '10000',
} as const;

const stateOf = (node: Node): ControlState => node.planes.control.state;
const controllerOf = (node: Node): Controller => inside(node.planes.control)['controller'] as Controller;

/** The control log takes any current member of the map as a candidate, in a set or not. */
function anyCandidate(node: Node): void {
  const state = stateOf(node);
  exchange<[PartitionRuntime, Member], unknown>(state, 'promote', (promote) => (runtime, candidate) => {
    if (!hasMember(runtime.inSync, candidate)) runtime.inSync = [...runtime.inSync, candidate];
    return promote(runtime, candidate);
  });
}

/** Live members that the map assigns. */
function assigned(node: Node, runtime: PartitionRuntime, nowMs: number): Member[] {
  const state = stateOf(node);
  const isUsable = (inside(controllerOf(node))['isUsable'] as (member: Member, nowMs: number) => boolean).bind(
    controllerOf(node),
  );
  return state
    .placement(runtime.partition)
    .replicas.map((id) => state.current(id))
    .filter((member): member is Member => member !== null && isUsable(member, nowMs));
}

export const countProof: BrokenStore = {
  name: 'count-based-proof',
  doc: 'whoever has as many keys as the others may lead, whatever set it is in',
  expects: ['lost', 'stale', 'resurrected'],
  pins: {
    ...base,
    rf: '3',
    faults: 'pause,isolate,kill',
    mix: 'registers:3,counters:2,lists:1',
    activeKeys: '16',
    operationsPerKey: '1000',
    meanLatencyMs: '1',
  },
  rules: {
    provePossession({ self, own, ownKeyCount, answers }) {
      const others = answers.filter(
        ({ member, keyCount, last }) => member.nodeId !== self.nodeId && keyCount > ownKeyCount && last.seq > own.seq,
      );
      const fuller = others.sort((a, b) => b.keyCount - a.keyCount)[0];
      return fuller === undefined ? { kind: 'possessed' } : { kind: 'synchronise', source: fuller.member };
    },
  },
  alter(node) {
    anyCandidate(node);
    // The preferred primary first: with equal counts anybody will do.
    exchange<[PartitionRuntime, number], Member | null>(controllerOf(node), 'candidate', () => (runtime, nowMs) => {
      const live = assigned(node, runtime, nowMs).filter((member) => runtime.primary?.nodeId !== member.nodeId);
      return live.find((member) => !hasMember(runtime.inSync, member)) ?? live[0] ?? null;
    });
  },
};

export const uncleanElection: BrokenStore = {
  name: 'eligible-set-ignored',
  doc: 'with no in-sync member in reach any live replica is promoted, instead of waiting for an eligible one',
  expects: ['lost', 'stale', 'resurrected', 'diverged'],
  pins: {
    ...base,
    rf: '2',
    faults: 'kill,pause,isolate',
    meanLatencyMs: '1',
    partitions: '16',
    suspectEscalationMs: '1500',
  },
  policy: { mayStall: true },
  alter(node) {
    anyCandidate(node);
    exchange<[PartitionRuntime, number], Member | null>(
      controllerOf(node),
      'candidate',
      (candidate) => (runtime, nowMs) => {
        const live = assigned(node, runtime, nowMs);
        return candidate({ ...runtime, eligible: [] }, nowMs) ?? live[0] ?? null;
      },
    );
  },
};

/** A source that turned out to have nothing more is not asked for ever (it may be a successor, empty, under the same name). */
function askOnce(node: Node): void {
  const asked = new Set<string>();
  const { rules } = node.planes.data;
  inside(node.planes.data)['rules'] = {
    ...rules,
    provePossession(input: PossessionInput): Possession {
      const proof = rules.provePossession(input);
      if (proof.kind !== 'synchronise') return proof;
      const question = `${memberName(proof.source)} ${input.own.term} ${input.own.seq}`;
      if (asked.has(question)) return { kind: 'possessed' };
      asked.add(question);
      return proof;
    },
  };
}

export const noIncarnation: BrokenStore = {
  name: 'no-incarnation',
  doc: 'takes a restarted process for its predecessor',
  expects: ['lost', 'stale', 'resurrected', 'diverged', 'phantom'],
  pins: { ...base, rf: '3', faults: 'kill', restartMs: '40', logKeepEntries: '16', partitions: '4' },
  alter(node) {
    askOnce(node);
    exchange<[ControlCommand & { kind: 'register' }], unknown>(stateOf(node), 'register', (register) => (command) => {
      const state = stateOf(node);
      const known = state.node(command.nodeId);
      const before = known?.incarnation;
      const sets = state.runtimes.map(({ primary, serving, released, health, inSync, eligible }) => ({
        primary,
        serving,
        released,
        health,
        inSync,
        eligible,
      }));
      const result = register(command);
      if (known !== undefined && before !== undefined && known.incarnation !== before) {
        (known as { incarnation: Incarnation }).incarnation = before;
        state.runtimes.forEach((runtime, index) => Object.assign(runtime, sets[index]));
      }
      return result;
    });
  },
};

export const reusedTerm: BrokenStore = {
  name: 'reused-term',
  doc: 'assigns a new primary without raising the term',
  expects: ['lost', 'stale', 'duplicated', 'diverged', 'fencing', 'phantom', 'not-linearizable'],
  pins: { ...base, rf: '3', faults: 'isolate,kill,pause' },
  alter(node) {
    exchange<[PartitionRuntime, Member, boolean], void>(
      stateOf(node),
      'assign',
      (assign) => (runtime, primary, released) => {
        const { term } = runtime;
        assign(runtime, primary, released);
        runtime.term = term;
      },
    );
  },
};
