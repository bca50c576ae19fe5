/** Made-up findings beside the faults of a made-up timeline; hostile keys among them. For tests and screenshots only. */
import type { Prng } from '../../../lib/prng.ts';
import type { FindingDraft } from '../group-findings.ts';
import type { FindingKind, KeyEvent, ReplicaAnswer, Sighting } from '../model-finding.ts';
import type { Fault } from '../model-timeline.ts';

/** A key that must never run. */
export const scriptKey = '<script>alert(1)</script>';
/** A key that must never move a cursor. */
export const controlKey = 'bell\u0007esc\u001b[2Jnull\u0000rtl\u202eend';

export interface FindingPlan {
  readonly kind: FindingKind;
  readonly count: number;
  readonly fault: Fault;
  readonly spreadMs: number;
  readonly prefix: string;
}

const keyOf = (plan: FindingPlan, index: number): string => {
  if (plan.kind === 'lost' && index === 0) return scriptKey;
  if (plan.kind === 'lost' && index === 1) return controlKey;
  return `user:${plan.prefix}${1000 + index * 7}`;
};

function replicasOf(plan: FindingPlan, index: number, node: string, value: string): ReplicaAnswer[] {
  const names = ['n1', 'n3', 'n4'];
  return names.map((name, place): ReplicaAnswer => {
    const role = place === 0 ? 'primary' : 'replica';
    if (index % 9 === 4 && place === 2) return { node: name, role, answer: 'no-answer', value: null, version: null };
    if (plan.kind === 'lost' && index % 6 === 3) {
      return { node: name, role, answer: 'older', value: `older than ${value}`, version: '7/12' };
    }
    if (plan.kind === 'diverged' && name === node)
      return { node: name, role, answer: 'has-it', value, version: '8/1204' };
    return { node: name, role, answer: 'absent', value: null, version: null };
  });
}

function makeFinding(random: Prng, plan: FindingPlan, index: number): FindingDraft {
  const injectedMs = plan.fault.stages.injectedMs ?? 0;
  const acknowledged =
    plan.kind === 'stale' ? injectedMs + random.between(40, 900) : injectedMs - random.between(3, plan.spreadMs);
  const invoked = acknowledged - random.between(1, 6);
  const node = plan.fault.targets[0] ?? 'n1';
  const partition = 16 + (index % 3);
  const epoch = 8 + (index % 2);
  const operationId = 400_000 + index * 31;
  const session = 1 + (index % 24);
  const value = `op-${operationId}:3f9a`;
  const seen: Sighting = {
    atMs: acknowledged + 2,
    operationId: operationId + 4,
    session: session + 1,
    value,
    version: `${epoch}/1204`,
    node,
    epoch,
  };
  const missed: Sighting = {
    atMs: injectedMs + random.between(1_200, 3_000),
    operationId: operationId + 90,
    session: session + 2,
    value: null,
    version: null,
    node: 'n4',
    epoch: epoch + 1,
  };
  const timeline: KeyEvent[] = [
    { kind: 'write', atMs: invoked, endMs: acknowledged, outcome: 'ok', text: `write ${value}`, node, epoch },
    { kind: 'read', atMs: seen.atMs - 1, endMs: seen.atMs, outcome: 'ok', text: `read ${value}`, node, epoch },
    {
      kind: 'fault',
      atMs: injectedMs,
      endMs: plan.fault.stages.healedMs,
      outcome: '',
      text: `${plan.fault.kind} of ${node} (${plan.fault.id})`,
      node,
      epoch: null,
    },
    {
      kind: 'epoch',
      atMs: injectedMs + 480,
      endMs: null,
      outcome: '',
      text: `failover of partition ${partition} to n4`,
      node: 'n4',
      epoch: epoch + 1,
    },
    {
      kind: 'read',
      atMs: missed.atMs - 2,
      endMs: missed.atMs,
      outcome: 'ok',
      text: 'read: absent',
      node: 'n4',
      epoch: epoch + 1,
    },
    {
      kind: 'heal',
      atMs: plan.fault.stages.healedMs ?? injectedMs + 4_000,
      endMs: null,
      outcome: '',
      text: `${plan.fault.id} healed`,
      node,
      epoch: null,
    },
    {
      kind: 'read-back',
      atMs: injectedMs + 60_000,
      endMs: null,
      outcome: 'ok',
      text: 'read back: absent on every replica',
      node: 'n4',
      epoch: epoch + 1,
    },
  ];
  return {
    id: `${plan.kind.charAt(0).toUpperCase()}${plan.prefix}${index + 1}`,
    kind: plan.kind,
    key: keyOf(plan, index),
    reason: `expected ${value} (acknowledged, nothing replaced it), read back absent`,
    operation: {
      operationId,
      session,
      f: plan.kind === 'stale' ? 'read' : 'write',
      value,
      version: `${epoch}/1204`,
      invokedAtMs: invoked,
      acknowledgedAtMs: acknowledged,
      attempts: 1 + (index % 2),
    },
    partition,
    epoch,
    node,
    openFaults: plan.kind === 'stale' ? [plan.fault.id] : [],
    lastSeen: index % 4 === 3 ? null : seen,
    firstMissed: missed,
    replicas: replicasOf(plan, index, node, value),
    timeline,
  };
}

/** Drafts for several plans, ids unique as long as the prefixes differ per kind. */
export function makeFindings(random: Prng, plans: readonly FindingPlan[]): FindingDraft[] {
  return plans.flatMap((plan) => Array.from({ length: plan.count }, (_, index) => makeFinding(random, plan, index)));
}
