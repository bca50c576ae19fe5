/**
 * Where a run's time starts: monotonic clock, boot and wall clock at the first start, so that a resumed run keeps counting.
 *
 * After a reboot the monotonic clock starts over; then the wall clock says how long the machine was away, and time goes
 * on after the last recorded instant. If time went back here, the verifier would reorder what happened.
 */
import { readFileSync } from 'node:fs';

export interface ClockOrigin {
  readonly bootId: string;
  /** `process.hrtime` at the start of the run, nanoseconds, as text. */
  readonly monotonicNs: string;
  readonly wallMs: number;
}

/** The kernel's boot id, or `unknown` where there is none to read. */
export function currentBootId(): string {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
  } catch {
    return 'unknown';
  }
}

/** An origin at this moment. */
export function newOrigin(): ClockOrigin {
  return { bootId: currentBootId(), monotonicNs: String(process.hrtime.bigint()), wallMs: Date.now() };
}

/** The origin to count from now on, given the saved one and the last instant (ns) that the ledger holds. */
export function resumedOrigin(saved: ClockOrigin, lastNs: number): ClockOrigin {
  const bootId = currentBootId();
  if (bootId === saved.bootId && bootId !== 'unknown') return saved;
  const awayNs = Math.max(lastNs + 1_000_000, (Date.now() - saved.wallMs) * 1e6);
  return {
    bootId,
    monotonicNs: String(process.hrtime.bigint() - BigInt(Math.round(awayNs))),
    wallMs: Date.now() - awayNs / 1e6,
  };
}
