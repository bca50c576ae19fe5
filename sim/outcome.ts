/**
 * What one simulated run came to, in one word and in plain data: what a sweep collects, prints and sends between threads.
 *
 * Worse comes first. Gates about which faults happened to be confirmed say nothing on the store, so a sweep does not fail on
 * them; everything that should have been looked at and was not does fail.
 */
import type { EvidenceGate } from '../ledger/verify/evidence.ts';
import type { Finding } from '../ledger/verify/finding.ts';
import type { SimResult } from './job.ts';

export type OutcomeKind =
  /** The verifier reports a finding. */
  | 'violated'
  /** A checker saw an invariant broken, or an assertion stopped a node. */
  | 'invariant'
  | 'not-recovered'
  /** The faults took more than the contract promises to survive: nothing can be said. */
  | 'overshoot'
  /** Evidence is missing that the simulator should always have. */
  | 'no-evidence'
  | 'passed';

export interface Outcome {
  readonly seed: number;
  readonly kind: OutcomeKind;
  /** One sentence per reason, the first says most. */
  readonly reasons: readonly string[];
  readonly traceHash: string;
  readonly operations: number;
  readonly acknowledgedWrites: number;
  readonly confirmedFaults: number;
  readonly failovers: number;
  readonly handoffs: number;
  readonly exposed: number;
  readonly virtualMs: number;
  readonly wallMs: number;
  readonly events: number;
  readonly coverage: readonly (readonly [string, number])[];
}

/** Gates that depend on the luck of a short run. */
const luckOfTheDraw: readonly EvidenceGate[] = [
  'fault-kind-unconfirmed',
  'few-writes-in-fault-windows',
  'no-acknowledged-writes',
];
const maxReasons = 5;

export function outcomeOf(result: SimResult): Outcome {
  const [kind, reasons] = judged(result);
  const { judgement } = result;
  return {
    seed: result.seed,
    kind,
    reasons: reasons.slice(0, maxReasons),
    traceHash: result.traceHash,
    operations: result.history.operationCount,
    acknowledgedWrites: judgement.counts.acknowledgedWrites,
    confirmedFaults: result.confirmedFaults,
    failovers: result.failovers,
    handoffs: result.handoffs,
    exposed: judgement.strength.exposed,
    virtualMs: result.virtualMs,
    wallMs: result.wallMs,
    events: result.events,
    coverage: [...result.coverage.counts],
  };
}

const atMs = (ns: number): string => `at ${Math.round(ns / 1e6)} ms`;
const placed = (node: string | null, epoch: number | null): string =>
  `${node === null ? '' : `, ${node}`}${epoch === null ? '' : `, epoch ${epoch}`}`;

/** "lost (interval) r7: why [partition 4; write 812 at 8870 ms, n3, epoch 9; looked at 9012 ms, n1, epoch 10; open: e10]". */
function findingText({ kind, rule, key, reason, partition, operation, ...finding }: Finding): string {
  const seen = finding.firstMissed ?? finding.witness;
  const where = [
    ...(partition === null ? [] : [`partition ${partition}`]),
    ...(operation === null
      ? []
      : [
          `${operation.f} ${operation.operationId} ${atMs(operation.returnNs ?? operation.invokeNs)}${placed(operation.node, operation.epoch)}`,
        ]),
    ...(seen === null || seen.operationId === operation?.operationId
      ? []
      : [`looked ${atMs(seen.atNs)}${placed(seen.node, seen.epoch)}`]),
    ...(finding.openFaults.length === 0 ? [] : [`open: ${finding.openFaults.join(', ')}`]),
  ];
  const circumstances = where.length === 0 ? '' : ` [${where.join('; ')}]`;
  return `${kind} (${rule})${key === null ? '' : ` ${key}`}: ${reason}${circumstances}`;
}

function judged(result: SimResult): [OutcomeKind, string[]] {
  const { judgement } = result;
  const findings = judgement.findings.filter((finding) => finding.kind !== 'unknown');
  const breaches = result.breaches.map(({ atMs, where, why }) => `${where} at ${Math.round(atMs)} ms: ${why}`);
  if (result.overshoots.length > 0) return ['overshoot', [...result.overshoots]];
  if (findings.length > 0) {
    return ['violated', [...findings.map(findingText), ...breaches]];
  }
  if (breaches.length > 0) return ['invariant', breaches];
  const down = [...(result.notRecovered === null ? [] : [result.notRecovered]), ...result.environmentErrors];
  if (down.length > 0) return ['not-recovered', down];
  const missing = judgement.missingEvidence
    .filter((each) => !luckOfTheDraw.includes(each.gate))
    .map((each) => each.detail);
  if (missing.length > 0) return ['no-evidence', missing];
  if (judgement.canary.outcome === 'missed') {
    return [
      'no-evidence',
      judgement.canary.checks
        .filter((check) => check.planted !== check.reported)
        .map((check) => `canary ${check.name} (${check.where}): ${check.reported} of ${check.planted} reported`),
    ];
  }
  return ['passed', []];
}
