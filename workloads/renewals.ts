/**
 * Values with a time to live that are overwritten around their expiry: with another time to live, or with none. If an old expiry
 * took the new value with it, or a new one were forgotten, an acknowledged write would be gone without a failure anywhere.
 */
import { SessionStreams, type WorkloadContext } from './context.ts';
import type { Completion, Operation, Workload } from './port.ts';

/** Bounds of each time to live that is drawn, ms: short, so that many run out between two writes of a key. */
export const minRenewedTtlMs = 100;
export const maxRenewedTtlMs = 2_000;
/** Keys that a session writes again, and how often each. */
const keysPerSession = 4;
const writesPerKey = 12;
const readShare = 0.35;
const newKeyShare = 0.15;
/** Of the writes; the others have no time to live, and stay until the next. */
const ttlShare = 0.6;
const maxNames = 6;

interface Renewed {
  readonly key: string;
  writes: number;
}

export class Renewals implements Workload {
  readonly name = 'renewals';
  private readonly context: WorkloadContext;
  private readonly streams: SessionStreams;
  private readonly own: Renewed[][] = [];
  private made = 0;

  constructor(context: WorkloadContext) {
    this.context = context;
    this.streams = new SessionStreams(context.prng);
  }

  next(session: number, operationId: number): Operation | null {
    const prng = this.streams.of(session);
    const own = (this.own[session] ??= []);
    const known = own.length === 0 ? null : prng.pick(own);
    if (known !== null && this.context.keys.accepts(known.key)) {
      if (prng.chance(readShare)) return { f: 'read', key: known.key };
      if (own.length >= keysPerSession || !prng.chance(newKeyShare)) return this.write(known, session, operationId);
    }
    if (own.length >= keysPerSession) return null;
    const fresh = this.open();
    if (fresh === null) return null;
    own.push(fresh);
    return this.write(fresh, session, operationId);
  }

  completed(session: number, _operationId: number, operation: Operation, _completion: Completion): void {
    const own = this.own[session] ?? [];
    const at = own.findIndex(({ key }) => key === operation.key);
    const renewed = own[at];
    if (renewed === undefined || renewed.writes < writesPerKey || operation.f === 'read') return;
    own.splice(at, 1);
    this.context.keys.finished(renewed.key);
  }

  private write(renewed: Renewed, session: number, operationId: number): Operation {
    const prng = this.streams.of(session);
    renewed.writes += 1;
    const write = { f: 'write', key: renewed.key, value: this.context.values.encode(operationId) } as const;
    return prng.chance(ttlShare) ? { ...write, ttlMs: prng.between(minRenewedTtlMs, maxRenewedTtlMs) } : write;
  }

  private open(): Renewed | null {
    if (!this.context.keys.mayOpen()) return null;
    for (let attempt = 0; attempt < maxNames; attempt++) {
      const key = `e${this.context.keyTag ?? ''}${(this.made++).toString(36)}`;
      if (!this.context.keys.accepts(key)) continue;
      this.context.keys.opened(key);
      return { key, writes: 0 };
    }
    return null;
  }
}
