/** A run that is in memory: for the simulator, for forged runs and for tests. */
import type { DigestRow, EpochChangeRow, FaultRow, GapRow, IncarnationRow } from '../rows.ts';
import { type HistoryRow, historyOf, type KeyHistory } from './history.ts';
import type { HistorySource, OperationDetails } from './source.ts';

/** One key's rows; `operationId`s are those of the run. */
export interface MemoryKey {
  readonly name: string;
  readonly rows: readonly HistoryRow[];
  readonly canary?: boolean;
  readonly retired?: boolean;
}

export interface MemoryRun {
  readonly keys: readonly MemoryKey[];
  readonly faults?: readonly FaultRow[];
  readonly epochChanges?: readonly EpochChangeRow[];
  readonly incarnations?: readonly IncarnationRow[];
  readonly digests?: readonly DigestRow[];
  readonly gaps?: readonly GapRow[];
  readonly meta?: Readonly<Record<string, unknown>>;
  /** Names by node number; default "n" and the number. */
  readonly nodes?: readonly string[];
  readonly details?: (operationId: number) => OperationDetails | null;
  readonly extremes?: { readonly attempts: number; readonly durationNs: number };
}

export class MemorySource implements HistorySource {
  private readonly run: MemoryRun;

  constructor(run: MemoryRun) {
    this.run = run;
  }

  meta(key: string): unknown {
    return this.run.meta?.[key];
  }

  faults(): Iterable<FaultRow> {
    return this.run.faults ?? [];
  }

  epochChanges(): Iterable<EpochChangeRow> {
    return this.run.epochChanges ?? [];
  }

  incarnations(): Iterable<IncarnationRow> {
    return this.run.incarnations ?? [];
  }

  digests(): Iterable<DigestRow> {
    return this.run.digests ?? [];
  }

  gaps(): Iterable<GapRow> {
    return this.run.gaps ?? [];
  }

  nodeName(nodeId: number): string {
    return this.run.nodes?.[nodeId] ?? `n${nodeId}`;
  }

  details(operationId: number): OperationDetails | null {
    return this.run.details?.(operationId) ?? { session: 0, attempts: 1, error: null };
  }

  extremes(): { readonly attempts: number; readonly durationNs: number } {
    return this.run.extremes ?? { attempts: 0, durationNs: 0 };
  }

  *histories(): Iterable<KeyHistory> {
    for (const [index, key] of this.run.keys.entries()) {
      const history = historyOf(key.rows, key.name, index + 1);
      history.canary = key.canary ?? false;
      history.retired = key.retired ?? false;
      yield history;
    }
  }
}
