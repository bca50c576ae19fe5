/**
 * What the cluster promised apart from single keys: one primary per (partition, term), epochs that never go back, equal
 * digests at equal positions, clients within their attempts and deadlines.
 */
import type { Finding, FindingKind, FindingRule } from './finding.ts';
import type { RunContext } from './run-context.ts';
import type { HistorySource } from './source.ts';
import type { Tally } from './tally.ts';

/** What a client promised; null where it promised nothing. */
export interface ClientPromises {
  readonly maxAttempts: number | null;
  readonly deadlineNs: number | null;
  /** How late timers of the process that the clients run in were at worst in this run: its machine's doing, not the client's. */
  readonly latenessNs?: number;
}

/** Time that a client may need beyond its deadline to notice it (timers, a busy machine), ns. */
export const deadlineSlackNs = 2e9;

export function checkCluster(
  source: HistorySource,
  context: RunContext,
  tally: Tally,
  promises: ClientPromises,
): Finding[] {
  return [...checkFencing(source, context, tally), ...checkDigests(source), ...checkPromises(tally, promises)];
}

function checkFencing(source: HistorySource, context: RunContext, tally: Tally): Finding[] {
  const findings: Finding[] = [];
  const primaries = new Map<string, string>();
  const terms = new Map<number, { epoch: number; term: number }>();
  const edges = new Map<string, string>();
  for (const change of [...context.epochChanges].sort((a, b) => a.epoch - b.epoch)) {
    const partition = change.partition ?? -1;
    const member = change.node === null ? null : `${change.node}#${change.incarnation ?? '?'}`;
    if (member !== null) {
      const place = `${partition}/${change.term}`;
      const known = primaries.get(place);
      if (known === undefined) primaries.set(place, member);
      else if (known !== member)
        findings.push(
          bare(
            'fencing',
            'two-primaries',
            partition,
            `partition ${partition} had two primaries in term ${change.term}: ${known} and ${member}`,
          ),
        );
    }
    const edge = `${partition}/${change.epoch}`;
    const content = `${change.term}/${member}`;
    const before = edges.get(edge);
    // Several watchers may report one edge; two different edges under one epoch are a violation.
    if (before !== undefined && before !== content)
      findings.push(
        bare(
          'fencing',
          'epoch-went-back',
          partition,
          `partition ${partition} had two different runtimes under epoch ${change.epoch}: ${before} and ${content}`,
        ),
      );
    edges.set(edge, content);
    // In the order of epochs, not of observation: a watcher may hear of two edges in either order.
    const last = terms.get(partition);
    if (last !== undefined && change.term < last.term) {
      findings.push(
        bare(
          'fencing',
          'epoch-went-back',
          partition,
          `partition ${partition} has term ${last.term} under epoch ${last.epoch} and term ${change.term} under the later epoch ${change.epoch}`,
        ),
      );
    }
    terms.set(partition, { epoch: change.epoch, term: change.term });
  }
  for (const [place, [first, second]] of tally.servedTwice) {
    const partition = Math.floor(place / 4294967296);
    findings.push(
      bare(
        'fencing',
        'two-primaries',
        partition,
        `${source.nodeName(first)} and ${source.nodeName(second)} both acknowledged writes of partition ${partition} under epoch ${place % 4294967296}`,
      ),
    );
  }
  return findings;
}

function checkDigests(source: HistorySource): Finding[] {
  const findings: Finding[] = [];
  const known = new Map<string, { digest: string; node: string }>();
  for (const row of source.digests()) {
    const place = `${row.partition}/${row.appliedTerm}/${row.appliedSeq}`;
    const first = known.get(place);
    if (first === undefined) known.set(place, { digest: row.digest, node: row.node });
    else if (first.digest !== row.digest) {
      findings.push(
        bare(
          'diverged',
          'digest',
          row.partition,
          `${first.node} and ${row.node} differ in partition ${row.partition} at the same position (${row.appliedTerm}, ${row.appliedSeq})`,
        ),
      );
    }
  }
  return findings;
}

function checkPromises(tally: Tally, promises: ClientPromises): Finding[] {
  const findings: Finding[] = [];
  const { attempts, durationNs } = tally.extremes;
  const { latenessNs = 0 } = promises;
  if (promises.maxAttempts !== null && attempts > promises.maxAttempts) {
    findings.push(
      bare(
        'client-promise',
        'attempts',
        null,
        `an operation took ${attempts} attempts; the client promises at most ${promises.maxAttempts}`,
      ),
    );
  }
  if (promises.deadlineNs !== null && durationNs > promises.deadlineNs + deadlineSlackNs + latenessNs) {
    findings.push(
      bare(
        'client-promise',
        'deadline',
        null,
        `an operation took ${Math.round(durationNs / 1e6)} ms; the client promises an answer within ${Math.round(promises.deadlineNs / 1e6)} ms (timers here were never more than ${Math.round(latenessNs / 1e6)} ms late)`,
      ),
    );
  }
  return findings;
}

function bare(kind: FindingKind, rule: FindingRule, partition: number | null, reason: string): Finding {
  return {
    kind,
    rule,
    reason,
    keyId: null,
    key: null,
    partition: partition === -1 ? null : partition,
    operation: null,
    witness: null,
    lastSeen: null,
    firstMissed: null,
    replicas: [],
    openFaults: [],
  };
}
