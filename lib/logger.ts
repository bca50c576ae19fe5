/** The logger that cores and shells are given: structured fields first, then one sentence (pino's calling order). */
export interface Logger {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

/** Drops everything; for tests and simulated nodes. */
export const silentLogger: Logger = { debug() {}, info() {}, warn() {}, error() {} };
