/**
 * What is missing before "no finding" may be called a certificate, and whether the cluster came back at all.
 *
 * Fails closed: whatever should have been looked at and was not is named here and makes a run `inconclusive`. If a gate were
 * left out, an idle run, or one whose faults never bit, would pass.
 */
import type { RunContext } from './run-context.ts';
import type { HistorySource } from './source.ts';
import type { Tally } from './tally.ts';

export type EvidenceGate =
  | 'no-acknowledged-writes'
  | 'few-writes-in-fault-windows'
  | 'fault-kind-unconfirmed'
  | 'fault-budget-exceeded'
  | 'heal-unverified'
  | 'not-read-back'
  | 'replica-silent'
  | 'replicas-not-asked'
  | 'undecided'
  | 'gap'
  | 'stopped-early';

export interface MissingEvidence {
  readonly gate: EvidenceGate;
  /** One sentence. */
  readonly detail: string;
}

export interface EvidenceRules {
  /** Acknowledged writes that must overlap a confirmed fault; 0 for runs without faults. */
  readonly minAckedInFaultWindows: number;
  /** Replicas that must have been asked for each key; null where the system has no such question. */
  readonly replicasPerKey: number | null;
  /** The run asked for faults past the budget: that they came is no doubt about it. */
  readonly mayExceedBudget: boolean;
  /** A partition every holder of which was taken may stay Lost. */
  readonly mayLosePartitions: boolean;
  /** How long after the last heal every partition must be Healthy, ns. */
  readonly recoveryBoundNs: number;
}

export function missingEvidence(
  source: HistorySource,
  context: RunContext,
  tally: Tally,
  rules: EvidenceRules,
): MissingEvidence[] {
  const missing: MissingEvidence[] = [];
  const add = (gate: EvidenceGate, detail: string): void => void missing.push({ gate, detail });
  if (tally.acknowledgedWrites === 0) add('no-acknowledged-writes', 'Not one write was acknowledged.');
  if (tally.ackedInFaultWindows < rules.minAckedInFaultWindows) {
    add(
      'few-writes-in-fault-windows',
      `${tally.ackedInFaultWindows} acknowledged writes overlap a confirmed fault; at least ${rules.minAckedInFaultWindows} are needed.`,
    );
  }
  faultEvidence(context, rules, add);
  if (tally.notReadBackCount > 0)
    add(
      'not-read-back',
      `${tally.notReadBackCount} of ${tally.expectedReadBack} keys were not read back, such as ${quote(tally.notReadBack)}.`,
    );
  const silent = tally.replicasAsked - tally.replicasAnswered;
  if (silent > 0)
    add(
      'replica-silent',
      `${silent} of ${tally.replicasAsked} answers of replicas are missing (${tally.replicasBehind} of them had not applied everything committed).`,
    );
  if (rules.replicasPerKey !== null && tally.doneReadBack > 0 && tally.leastReplicas < rules.replicasPerKey) {
    add(
      'replicas-not-asked',
      `Some keys were asked of ${tally.leastReplicas} replicas only; ${rules.replicasPerKey} hold them.`,
    );
  }
  if (tally.undecidedCount > 0)
    add(
      'undecided',
      `The order of operations on ${tally.undecidedCount} keys could not be decided within the budget, such as ${quote(tally.undecidedKeys)}.`,
    );
  for (const gap of source.gaps())
    add('gap', `Nothing was recorded for ${Math.round((gap.toNs - gap.fromNs) / 1e6)} ms: ${gap.reason}.`);
  const stopped = source.meta('stopped');
  if (stopped !== undefined) add('stopped-early', `The run stopped early: ${String(stopped)}.`);
  return missing;
}

function faultEvidence(
  context: RunContext,
  rules: EvidenceRules,
  add: (gate: EvidenceGate, detail: string) => void,
): void {
  const kinds = new Map<string, boolean>();
  for (const fault of context.faults)
    kinds.set(fault.kind, (kinds.get(fault.kind) ?? false) || fault.confirmedNs !== null);
  for (const [kind, confirmed] of kinds)
    if (!confirmed) add('fault-kind-unconfirmed', `Fault kind ${kind} was planned and never confirmed by a probe.`);
  const over = context.faults.filter((fault) => fault.overshoot).map((fault) => fault.faultId);
  if (over.length > 0 && !rules.mayExceedBudget)
    add('fault-budget-exceeded', `Faults went past the fault budget: ${quote(over)}.`);
  const open = context.injected.filter((fault) => fault.healVerifiedNs === null).map((fault) => fault.faultId);
  if (open.length > 0) add('heal-unverified', `The heal of ${open.length} faults was not verified: ${quote(open)}.`);
}

/** Reasons to say that the cluster did not come back; empty when it did. */
export function notRecovered(context: RunContext, tally: Tally, rules: EvidenceRules): string[] {
  const { recoveryBoundNs, mayLosePartitions } = rules;
  const reasons: string[] = [];
  const lastHealNs = Math.max(...context.injected.map((fault) => fault.healedNs ?? -Infinity), -Infinity);
  const last = new Map<number, { health: string; epoch: number }>();
  // Once back it has recovered: a dip long after the last heal is no part of the recovery from it.
  const backNs = new Map<number, number>();
  for (const { partition: named, health, epoch, atNs } of context.epochChanges) {
    const partition = named ?? -1;
    const known = last.get(partition);
    if (known !== undefined && epoch < known.epoch) continue;
    if (atNs > lastHealNs && !backNs.has(partition)) {
      if (known?.health === 'Healthy') backNs.set(partition, lastHealNs);
      else if (health === 'Healthy') backNs.set(partition, atNs);
    }
    last.set(partition, { health, epoch });
  }
  for (const [partition, { health }] of last) {
    const tookNs = (backNs.get(partition) ?? lastHealNs) - lastHealNs;
    if (health === 'Lost' && mayLosePartitions && context.wasTaken(partition)) continue;
    if (health !== 'Healthy') reasons.push(`Partition ${partition} is ${health} at the end.`);
    else if (lastHealNs > -Infinity && tookNs > recoveryBoundNs) {
      reasons.push(
        `Partition ${partition} took ${Math.round(tookNs / 1e6)} ms after the last heal to be Healthy; the bound is ${Math.round(recoveryBoundNs / 1e6)} ms.`,
      );
    }
  }
  for (const [partition, failed] of tally.finalReadsFailedOnly)
    if (failed && !(mayLosePartitions && context.isLostAtEnd(partition)))
      reasons.push(`No key of partition ${partition} could be read back.`);
  return reasons;
}

const namedAtMost = 5;
const quote = (names: readonly string[]): string => names.slice(0, namedAtMost).join(', ');
