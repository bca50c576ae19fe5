/** Time as an argument: who needs it is given one of these, so that the simulator can own it. */
export interface Clock {
  /** Monotonic milliseconds (fractions allowed), from an arbitrary origin; never goes back, ignores wall-clock jumps. */
  nowMs(): number;
  /** Wall clock, milliseconds since the Unix epoch; for people, never for decisions. */
  wallMs(): number;
}
