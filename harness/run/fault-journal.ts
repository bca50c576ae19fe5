/**
 * Chaos's journal, kept in the ledger: one row per step, the whole step as evidence, so that the faults of a run can be told
 * from its file alone. It also counts, for the live line and for telling our faults from a node's own death.
 */
import type { FaultJournal, FaultRecord } from '../../chaos/journal.ts';
import { faultName } from '../../chaos/faults.ts';
import type { RunLedger } from './ports.ts';
import type { RunClock } from './run-clock.ts';
import type { Tally } from './tally.ts';

/** How long after its heal a fault may still explain that a node is not running, ms. */
const afterHealMs = 5_000;

interface Known {
  name: string;
  nodeIds: readonly string[];
  partitions: readonly number[];
  confirmed: boolean;
  open: boolean;
  closedAtMs: number;
}

export class LedgerFaultJournal implements FaultJournal {
  private readonly ledger: Pick<RunLedger, 'fault'>;
  private readonly clock: RunClock;
  private readonly tally: Tally;
  private readonly faults = new Map<string, Known>();

  constructor(ledger: Pick<RunLedger, 'fault'>, clock: RunClock, tally: Tally) {
    this.ledger = ledger;
    this.clock = clock;
    this.tally = tally;
  }

  async append(record: FaultRecord): Promise<void> {
    const known = this.note(record);
    await this.ledger.fault({
      faultId: record.faultId,
      kind: known.name,
      stage: record.step,
      atNs: this.clock.nsOf(record.atMs),
      wallMs: this.clock.wallOf(record.atMs),
      targets: known.nodeIds,
      partitions: record.step === 'overshoot' ? (record.partitions ?? []) : known.partitions,
      evidence: record,
    });
  }

  /** Takes in what an earlier harness of this run wrote; nothing is written again. */
  restore(records: readonly FaultRecord[]): void {
    for (const record of records) this.note(record);
  }

  /** True when a fault has ended or frozen this node, at any time, so that starting it again is ours to do. */
  hasHeld(nodeId: string): boolean {
    return [...this.faults.values()].some((fault) => fault.nodeIds.includes(nodeId));
  }

  /** The faults that may explain what happens to a node now: open ones, and those just healed. */
  explains(nodeId: string): readonly string[] {
    const nowMs = this.clock.nowMs();
    return [...this.faults]
      .filter(([, fault]) => fault.nodeIds.includes(nodeId) && (fault.open || nowMs - fault.closedAtMs < afterHealMs))
      .map(([faultId]) => faultId);
  }

  private note(record: FaultRecord): Known {
    let known = this.faults.get(record.faultId);
    if (known === undefined) {
      known = { name: 'unknown', nodeIds: [], partitions: [], confirmed: false, open: false, closedAtMs: -Infinity };
      this.faults.set(record.faultId, known);
    }
    switch (record.step) {
      case 'planned':
        this.tally.faultsPlanned++;
        known.name = faultName(record.fault);
        break;
      case 'changed':
        known.name = faultName(record.fault);
        break;
      case 'injecting':
        known.name = faultName(record.fault);
        known.nodeIds = record.nodeIds;
        known.partitions = record.partition === null ? [] : [record.partition];
        this.setOpen(known, true);
        break;
      case 'confirmed':
        if (!known.confirmed) this.tally.faultsConfirmed++;
        known.confirmed = true;
        break;
      case 'healed':
        this.tally.faultsDone++;
        this.setOpen(known, false);
        break;
      case 'skipped':
        this.tally.faultsDone++;
        break;
      case 'injected':
      case 'unconfirmed':
      case 'healing':
      case 'heal-verified':
      case 'heal-unverified':
      case 'overshoot':
      case 'failed':
        break;
    }
    return known;
  }

  private setOpen(known: Known, open: boolean): void {
    if (known.open === open) return;
    known.open = open;
    known.closedAtMs = open ? Infinity : this.clock.nowMs();
    this.tally.faultsOpen += open ? 1 : -1;
  }
}
