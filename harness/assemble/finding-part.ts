/**
 * Findings of the verifier as the report shows them: with values named, replicas, and the life of the key around them.
 */
import { encodeValue } from '../../ledger/values.ts';
import type { LedgerReader } from '../../ledger/reader.ts';
import type { StoredOperation } from '../../ledger/stored-operations.ts';
import type { Finding as Found, Sighting as Seen } from '../../ledger/verify/finding.ts';
import { faultName } from '../report/finding-words.ts';
import type { FindingDraft } from '../report/group-findings.ts';
import type { Finding, KeyEvent, ReplicaAnswer, Sighting } from '../report/model-finding.ts';
import type { EpochChange, Fault } from '../report/model-timeline.ts';

/** Events shown of one key, around the finding. */
const maxEvents = 40;
/** Faults and epoch changes this long before and after a key's operations belong to its life, ms. */
const aroundMs = 5_000;

export interface FindingContext {
  readonly reader: LedgerReader;
  readonly runTag: string;
  readonly faults: readonly Fault[];
  readonly epochs: readonly EpochChange[];
}

const versionText = (version: readonly [number, number] | null): string | null =>
  version === null ? null : `${version[0]}.${version[1]}`;

/** Drafts in the order given, their lives untold yet; ids number them. */
export const findingDrafts = (findings: readonly Found[], context: FindingContext): FindingDraft[] =>
  findings.map((finding, index) => draftOf(finding, `L${index + 1}`, context));

/** The findings that are listed, each with the life of its key. One pass over the ledger serves them all. */
export function withLives(listed: readonly Finding[], found: readonly Found[], context: FindingContext): Finding[] {
  const wanted = new Set(listed.map((finding) => finding.key));
  const keyIds = new Set(
    found.flatMap(({ key, keyId }) => (keyId !== null && key !== null && wanted.has(key) ? [keyId] : [])),
  );
  if (keyIds.size === 0) return [...listed];
  const lives = Map.groupBy(
    context.reader.operations(`WHERE key_id IN (${[...keyIds].join(',')})`),
    (operation) => operation.key,
  );
  return listed.map((finding): Finding => {
    const life = lives.get(finding.key) ?? [];
    return life.length === 0 ? finding : { ...finding, timeline: timelineOf(life, finding, context) };
  });
}

function draftOf(finding: Found, id: string, context: FindingContext): FindingDraft {
  const { operation } = finding;
  const partition = finding.partition ?? operation?.partition ?? null;
  const primary = context.epochs.findLast((change) => change.partition === partition)?.owner ?? null;
  return {
    id,
    kind: finding.kind,
    key: finding.key ?? '',
    reason: finding.reason,
    operation: {
      operationId: operation?.operationId ?? 0,
      session: operation?.session ?? 0,
      f: operation?.f ?? 'none',
      value: operation === null ? null : valueOf(context.runTag, operation.operationId, null),
      version: versionText(operation?.version ?? null),
      invokedAtMs: (operation?.invokeNs ?? finding.witness?.atNs ?? 0) / 1e6,
      acknowledgedAtMs:
        operation === null || operation.returnNs === null || operation.outcome !== 'ok'
          ? null
          : operation.returnNs / 1e6,
      attempts: operation?.attempts ?? 0,
    },
    partition,
    epoch: operation?.epoch ?? epochAt(partition, operation, context.epochs),
    node: operation?.node ?? null,
    openFaults: [...finding.openFaults],
    lastSeen: sightingOf(finding.lastSeen, context.runTag),
    firstMissed: sightingOf(finding.firstMissed, context.runTag),
    replicas: finding.replicas.map((replica): ReplicaAnswer => ({
      node: replica.node,
      role: replica.node === primary ? 'primary' : 'replica',
      answer: replica.answer,
      value: valueOf(context.runTag, replica.observed, null),
      version: versionText(replica.version),
    })),
    timeline: [],
  };
}

/** The partition's epoch when the operation was acknowledged, for systems whose answers do not carry it; null where nothing is known. */
function epochAt(
  partition: number | null,
  operation: Found['operation'],
  epochs: readonly EpochChange[],
): number | null {
  if (partition === null || operation === null || operation.returnNs === null) return null;
  const atMs = operation.returnNs / 1e6;
  return epochs.findLast((change) => change.partition === partition && change.atMs <= atMs)?.epoch ?? null;
}

function sightingOf(seen: Seen | null, runTag: string): Sighting | null {
  if (seen === null) return null;
  return {
    atMs: seen.atNs / 1e6,
    operationId: seen.operationId,
    session: seen.session,
    value: valueOf(runTag, seen.observed, seen.number),
    version: versionText(seen.version),
    node: seen.node,
    epoch: seen.epoch,
  };
}

/** The value that names an operation, at its shortest; null for absent. */
function valueOf(runTag: string, observed: number | null, sum: number | null): string | null {
  if (observed === null) return sum === null ? null : String(sum);
  if (observed === -1) return 'a value of another run';
  if (observed === -2) return 'a corrupt value';
  return encodeValue(runTag, observed, 0);
}

function timelineOf(life: readonly StoredOperation[], finding: Finding, context: FindingContext): KeyEvent[] {
  const { partition } = finding;
  const events = [
    ...life.map((operation) => operationEvent(operation, context.runTag)),
    ...[finding.lastSeen, finding.firstMissed].flatMap(readBackEvent),
  ];
  const fromMs = events.reduce((least, { atMs }) => Math.min(least, atMs), Infinity) - aroundMs;
  const toMs = events.reduce((most, { atMs, endMs }) => Math.max(most, endMs ?? atMs), -Infinity) + aroundMs;
  const inside = (atMs: number | null): atMs is number => atMs !== null && atMs >= fromMs && atMs <= toMs;
  for (const fault of context.faults) {
    const { injectedMs, healedMs } = fault.stages;
    const text = faultName(fault);
    if (inside(injectedMs))
      events.push({
        kind: 'fault',
        atMs: injectedMs,
        endMs: healedMs,
        outcome: '',
        text,
        node: fault.targets[0] ?? null,
        epoch: null,
      });
    if (inside(healedMs))
      events.push({
        kind: 'heal',
        atMs: healedMs,
        endMs: null,
        outcome: '',
        text: `healed: ${text}`,
        node: fault.targets[0] ?? null,
        epoch: null,
      });
  }
  for (const change of context.epochs) {
    if (change.partition !== partition || !inside(change.atMs)) continue;
    events.push({
      kind: 'epoch',
      atMs: change.atMs,
      endMs: null,
      outcome: '',
      text: `${change.kind === 'edge' ? '' : `${change.kind}, `}${change.health}, term ${change.term}`,
      node: change.owner,
      epoch: change.epoch,
    });
  }
  // The events nearest to the write, to the last look that saw it and to the first that did not, in the order of time.
  const moments = [finding.operation.invokedAtMs, finding.lastSeen?.atMs, finding.firstMissed?.atMs].filter(
    (atMs) => atMs !== undefined,
  );
  const distance = ({ atMs }: KeyEvent): number => Math.min(...moments.map((moment) => Math.abs(moment - atMs)));
  const near = events.toSorted((a, b) => distance(a) - distance(b)).slice(0, maxEvents);
  return near.toSorted((a, b) => a.atMs - b.atMs);
}

/** A look that was no operation of the run: the read-back. */
function readBackEvent(seen: Sighting | null): KeyEvent[] {
  if (seen === null || seen.operationId !== null) return [];
  const { atMs, node, epoch, value } = seen;
  return [
    { kind: 'read-back', atMs, endMs: null, outcome: 'ok', text: `read-back: ${value ?? 'absent'}`, node, epoch },
  ];
}

function operationEvent(operation: StoredOperation, runTag: string): KeyEvent {
  const { f, operationId, outcome, invokeNs, returnNs, node, epoch, observed, number } = operation;
  const kind = f === 'read' ? 'read' : f === 'delete' ? 'delete' : 'write';
  const shown =
    f === 'read'
      ? outcome === 'ok'
        ? (valueOf(runTag, observed, number) ?? 'absent')
        : ''
      : f === 'delete'
        ? ''
        : encodeValue(runTag, operationId, 0);
  const why = operation.error === null ? '' : ` (${operation.error})`;
  return {
    kind,
    atMs: invokeNs / 1e6,
    endMs: returnNs === null ? null : returnNs / 1e6,
    outcome,
    text: `${f} #${operationId} by session ${operation.session}${shown === '' ? '' : `: ${shown}`}${why}`,
    node,
    epoch,
  };
}
