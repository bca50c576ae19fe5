/** Chaos's journal in the history of a simulated run: one row per step, as the harness keeps it in the ledger. */
import { faultName } from '../chaos/faults.ts';
import type { FaultJournal, FaultRecord } from '../chaos/journal.ts';
import type { SimHistory } from './history.ts';
import { nsOf } from './load.ts';

interface Known {
  name: string;
  nodeIds: readonly string[];
  partitions: readonly number[];
}

export class SimFaultJournal implements FaultJournal {
  private readonly history: SimHistory;
  private readonly known = new Map<string, Known>();
  readonly confirmed = new Set<string>();

  constructor(history: SimHistory) {
    this.history = history;
  }

  async append(record: FaultRecord): Promise<void> {
    let fault = this.known.get(record.faultId);
    if (fault === undefined) this.known.set(record.faultId, (fault = { name: 'unknown', nodeIds: [], partitions: [] }));
    if (record.step === 'planned' || record.step === 'changed' || record.step === 'injecting')
      fault.name = faultName(record.fault);
    if (record.step === 'injecting') {
      fault.nodeIds = record.nodeIds;
      fault.partitions = record.partition === null ? [] : [record.partition];
    }
    if (record.step === 'confirmed') this.confirmed.add(record.faultId);
    this.history.faultRows.push({
      faultId: record.faultId,
      kind: fault.name,
      stage: record.step,
      atNs: nsOf(record.atMs),
      wallMs: record.atMs,
      targets: fault.nodeIds,
      partitions: fault.partitions,
      evidence: record,
    });
  }
}
