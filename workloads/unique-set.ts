/**
 * Unique-key inserts: every write makes a key of its own, once. Nothing supersedes a write, so every acknowledged one is
 * judged at the end; the strongest evidence for durability. A share of operations reads keys that the session wrote.
 */
import { type WorkloadContext, SessionStreams } from './context.ts';
import type { Completion, Operation, Workload } from './port.ts';

/** Fresh names tried before a session gives up finding one that the key book accepts. */
const maxNames = 6;

export class UniqueSet implements Workload {
  readonly name = 'set';
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
    if (recent.length > 0 && prng.chance(this.context.readRatio)) {
      const key = prng.pick(recent);
      if (this.context.keys.accepts(key)) return { f: 'read', key };
    }
    if (!this.context.keys.mayOpen()) return null;
    for (let attempt = 0; attempt < maxNames; attempt++) {
      const key = `s${this.context.keyTag ?? ''}${(this.made++).toString(36)}`;
      if (!this.context.keys.accepts(key)) continue;
      this.context.keys.opened(key);
      return { f: 'write', key, value: this.context.values.encode(operationId) };
    }
    return null;
  }

  completed(session: number, _operationId: number, operation: Operation, _completion: Completion): void {
    if (operation.f !== 'write') return;
    const recent = (this.recent[session] ??= []);
    recent.push(operation.key);
    if (recent.length > this.context.rememberedKeys) this.context.keys.finished(recent.shift() as string);
  }
}
