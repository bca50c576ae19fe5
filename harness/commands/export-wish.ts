/** What `certify export` is asked for; apart from the command, so that reading a command line opens no ledger. */
export const exportFormats = ['jepsen-edn', 'jsonl'] as const;
export type ExportFormat = (typeof exportFormats)[number];

export interface ExportWish {
  readonly resultsDir: string;
  readonly run: string;
  readonly format: ExportFormat;
  /** Only this key, with plain values. */
  readonly key: string | null;
  /** Only the keys of this workload. */
  readonly workload: string | null;
  /** Null: standard output. */
  readonly out: string | null;
}
