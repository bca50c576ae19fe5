/**
 * Values with a time to live: written once per key, then read at scattered moments before and after they must expire.
 * Gone before its time is a loss; still there long after it, an expiry that never happened.
 */
import { SessionStreams, type WorkloadContext } from './context.ts';
import type { Completion, Operation, Workload } from './port.ts';

/** Bounds of the time to live that is drawn for each key, ms. */
export const minTtlMs = 500;
export const maxTtlMs = 8_000;
/** Keys that a session remembers for its reads: few, so that most are read around their expiry. */
const rememberedKeys = 24;
const readShare = 0.6;
const maxNames = 6;

export class TimeToLive implements Workload {
  readonly name = 'ttl';
  private readonly context: WorkloadContext;
  private readonly streams: SessionStreams;
  private readonly recent: string[][] = [];
  private made = 0;

  constructor(context: WorkloadContext) {
    this.context = context;
    this.streams = new SessionStreams(context.prng);
  }

  next(session: number, operationId: number): Operation | null {
    const prng = this.streams.of(session);
    const recent = (this.recent[session] ??= []);
    if (recent.length > 0 && prng.chance(readShare)) {
      const key = prng.pick(recent);
      if (this.context.keys.accepts(key)) return { f: 'read', key };
    }
    if (!this.context.keys.mayOpen()) return null;
    for (let attempt = 0; attempt < maxNames; attempt++) {
      const key = `t${this.context.keyTag ?? ''}${(this.made++).toString(36)}`;
      if (!this.context.keys.accepts(key)) continue;
      this.context.keys.opened(key);
      return {
        f: 'write',
        key,
        value: this.context.values.encode(operationId),
        ttlMs: prng.between(minTtlMs, maxTtlMs),
      };
    }
    return null;
  }

  completed(session: number, _operationId: number, operation: Operation, _completion: Completion): void {
    if (operation.f !== 'write') return;
    const recent = (this.recent[session] ??= []);
    recent.push(operation.key);
    if (recent.length > rememberedKeys) this.context.keys.finished(recent.shift() as string);
  }
}
