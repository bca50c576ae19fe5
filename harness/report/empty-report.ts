/**
 * A report of a run of which nothing is known yet: verdict `harness-fault`, exit 70. The harness fills it in; whatever it
 * could not fill still reads as "nothing is claimed", never as a pass.
 */
import { reportFormatVersion, type RunReport } from './model.ts';

/** A fresh one each time; fields are the caller's to replace. */
export function emptyReport(): RunReport {
  return {
    formatVersion: reportFormatVersion,
    preliminary: true,
    run: {
      runId: '',
      startedAt: '',
      endedAt: null,
      durationMs: 0,
      plannedMs: 0,
      seed: '',
      preset: '',
      chaosLevel: '',
      cluster: 'docker',
      nodeCount: 0,
      replay: '',
    },
    verdict: {
      kind: 'harness-fault',
      exitCode: 70,
      headline: 'The harness gave no verdict; nothing is claimed',
      missing: [],
      contract: 'durable',
      permittedLosses: 0,
      permittedAnomalies: 0,
      interruptedBy: null,
    },
    strength: {
      perFailoverBound95: null,
      perWriteBound95: null,
      failovers: 0,
      handoffs: 0,
      judged: 0,
      exposed: 0,
      superseded: 0,
      neverRead: 0,
    },
    counts: {
      operations: [],
      acknowledgedWrites: 0,
      sessions: 0,
      keys: 0,
      retiredKeys: 0,
      readBack: { expected: 0, done: 0 },
      replicas: { asked: 0, answered: 0 },
    },
    performance: { ackedPerSecond: 0, latencyMs: null },
    system: { name: '', build: '', replicationFactor: 0, minInSync: 0, partitions: 0, contract: '' },
    host: { name: '', os: '', kernel: '', cpus: 0, memoryBytes: 0, engine: null },
    settings: [],
    versions: [],
    phases: [],
    series: {
      fromMs: 0,
      bucketMs: 1000,
      ackedPerSecond: [],
      p50Ms: [],
      p99Ms: [],
      maxMs: [],
      inFlight: [],
      refusals: [],
    },
    faults: [],
    overlapShare: 0,
    epochs: [],
    nodes: [],
    findings: { total: 0, totals: [], groups: [], items: [] },
    recovery: [],
    coverage: { kinds: [], roles: [], confirmed: [], notInjected: [] },
    canary: { outcome: 'not-run', checks: [] },
    promises: [],
    gates: [],
    limits: [],
    ledger: { bytes: 0, gaps: [] },
    peakMemoryBytes: 0,
  };
}
