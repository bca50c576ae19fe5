/** Running counts for the live line and the preliminary report; the verdict is judged from the ledger, never from here. */
import type { Completion, Operation } from '../../workloads/port.ts';

/** The window over which the live rate is taken, ms. */
const rateWindowMs = 5_000;

export class Tally {
  readonly counts = { ok: 0, fail: 0, info: 0 };
  acknowledgedWrites = 0;
  inFlight = 0;
  faultsPlanned = 0;
  /** Healed, or skipped. */
  faultsDone = 0;
  faultsConfirmed = 0;
  faultsOpen = 0;
  failovers = 0;
  handoffs = 0;
  losses = 0;
  private readonly marks: { atMs: number; writes: number }[] = [];

  /** An operation has ended. */
  ended(operation: Operation, completion: Completion): void {
    this.counts[completion.kind]++;
    if (completion.kind === 'ok' && operation.f !== 'read') this.acknowledgedWrites++;
  }

  get operations(): number {
    return this.counts.ok + this.counts.fail + this.counts.info;
  }

  /** Acknowledged writes per second over the last seconds; call it regularly. */
  writeRate(nowMs: number): number {
    this.marks.push({ atMs: nowMs, writes: this.acknowledgedWrites });
    while (this.marks.length > 2 && nowMs - (this.marks[0] as { atMs: number }).atMs > rateWindowMs) this.marks.shift();
    const first = this.marks[0] as { atMs: number; writes: number };
    const elapsedMs = nowMs - first.atMs;
    return elapsedMs <= 0 ? 0 : ((this.acknowledgedWrites - first.writes) * 1_000) / elapsedMs;
  }
}
