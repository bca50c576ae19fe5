/**
 * A simulated run as a ledger's file, row for row what the harness writes of a real one, so that the same report, re-judgement
 * and comparison work on it. The run is over when this starts; nothing depends on the order of disk and network here.
 */
import { openLedger } from '../ledger/ledger.ts';
import { defaultClientOptions } from '../zaris/client/contract.ts';
import type { SimResult } from './job.ts';

/** Rows handed in before the writer is waited for. */
const rowsAtOnce = 20_000;

export interface SimLedgerFacts {
  readonly path: string;
  readonly runId: string;
  /** Settings of the run as the report shows them. */
  readonly settings: Readonly<Record<string, unknown>>;
  readonly contract: unknown;
  readonly host: unknown;
  readonly build: string;
  /** What stands against a certificate beside the verifier's findings. */
  readonly reasons: readonly { readonly verdict: string; readonly reason: string }[];
  readonly canarySeenLive: readonly string[];
}

export async function writeLedger(result: SimResult, facts: SimLedgerFacts): Promise<void> {
  const { history } = result;
  await using ledger = await openLedger({ path: facts.path, runTag: history.runTag });
  let waiting = 0;
  const paced = async (): Promise<void> => {
    if (++waiting % rowsAtOnce === 0) await ledger.flush();
  };
  const openSessions = new Map<number, number>();
  for (const operation of history.recorded()) {
    const { operationId, invokeNs, returnNs, completion, canary } = operation;
    // Sessions that have an operation open to the end give way to another name: the file allows one at a time.
    const session = openSessions.has(operation.session) ? operation.session + 1_000_000 : operation.session;
    const intent = { operationId, session, operation: operation.operation, atNs: invokeNs };
    ledger.intent(canary ? { ...intent, canary } : intent).catch(() => undefined);
    if (completion !== null && returnNs !== null)
      ledger.outcome({ session, completion, invokeNs, returnNs }).catch(() => undefined);
    else openSessions.set(operation.session, operationId);
    await paced();
  }
  const side = async (rows: Iterable<Promise<void>>): Promise<void> => {
    for (const row of rows) {
      row.catch(() => undefined);
      await paced();
    }
  };
  await side(history.faultRows.values().map((row) => ledger.fault(row)));
  await side(history.epochRows.values().map((row) => ledger.epochChange(row)));
  await side(history.incarnationRows.values().map((row) => ledger.incarnation(row)));
  for (const { finals, replicas, retirement } of history.keyEnds()) {
    await side(finals.values().map((row) => ledger.finalRead(row)));
    await side(replicas.values().map((row) => ledger.replicaRead(row)));
    if (retirement !== null) await side([ledger.retire(retirement)]);
  }
  await side(history.digestRows.values().map((row) => ledger.digest(row)));
  await writeMeta(result, facts, (key, json) => ledger.meta(key, json));
  await ledger.flush();
}

async function writeMeta(
  result: SimResult,
  facts: SimLedgerFacts,
  meta: (key: string, json: unknown) => Promise<void>,
): Promise<void> {
  const { options, history, phases, judgement } = result;
  const canary = (history.meta('canary') ?? []) as readonly { readonly key: string }[];
  const endNs = Math.round(result.virtualMs * 1e6);
  await meta('settings', facts.settings);
  await meta('runId', facts.runId);
  await meta('host', facts.host);
  await meta('versions', [{ name: 'node.js', value: process.version }]);
  await meta('facts', {
    build: facts.build,
    engine: null,
    replicationFactor: options.rf,
    minInSync: options.minInSync,
    partitions: options.partitions,
    versions: [],
    contract: facts.contract,
    promises: { maxAttempts: defaultClientOptions.retry.maxAttempts, deadlineMs: options.requestTimeoutMs },
    peek: true,
  });
  await meta('schedule', result.schedule);
  await meta('unsupported', []);
  for (const { name, fromMs, toMs } of phases)
    await meta(`phase:${name}`, { fromNs: Math.round(fromMs * 1e6), toNs: Math.round(toMs * 1e6) });
  await meta('canary', canary);
  await meta('end', {
    interruptedBy: null,
    reasons: facts.reasons,
    readBack: { expected: judgement.counts.expectedReadBack, done: judgement.counts.doneReadBack },
    replicas: { asked: judgement.counts.replicasAsked, answered: judgement.counts.replicasAnswered },
    canaryDeleted: canary.map(({ key }) => key),
    canarySeenLive: facts.canarySeenLive,
    peakMemoryBytes: process.memoryUsage.rss(),
  });
  await meta('endedAtNs', endNs);
}
