/**
 * A correct store in one Map, for tests of workloads and of the run loop. Versions are (1, n). Time is an argument.
 */
import type { Completion, Operation, Version } from './port.ts';

interface Entry {
  readonly value: string | null;
  readonly version: Version;
  readonly expiresAtMs: number;
}

export class MemoryStore {
  private readonly entries = new Map<string, Entry>();
  private seq = 0;

  /** Number of keys that hold a value at `nowMs`. */
  size(nowMs: number): number {
    let count = 0;
    for (const key of this.entries.keys()) if (this.peek(key, nowMs).value !== null) count++;
    return count;
  }

  /** The value and version of a key; a deleted or expired key has a version and no value. */
  peek(key: string, nowMs: number): { readonly value: string | null; readonly version: Version | null } {
    const entry = this.entries.get(key);
    if (entry === undefined) return { value: null, version: null };
    if (entry.value !== null && entry.expiresAtMs <= nowMs) {
      return { value: null, version: this.put(key, null, Infinity) };
    }
    return { value: entry.value, version: entry.version };
  }

  /** Runs one operation at `nowMs`. */
  execute(operation: Operation, nowMs: number): Completion {
    const current = this.peek(operation.key, nowMs);
    const conflict = (error: string): Completion => ({
      kind: 'fail',
      why: 'condition',
      error,
      version: current.version,
    });
    switch (operation.f) {
      case 'read':
        return { kind: 'ok', value: current.value, version: current.version };
      case 'write':
        return { kind: 'ok', version: this.put(operation.key, operation.value, nowMs + (operation.ttlMs ?? Infinity)) };
      case 'create':
        if (current.value !== null) return conflict('exists');
        return { kind: 'ok', version: this.put(operation.key, operation.value, Infinity) };
      case 'cas':
        if (current.value === null || !sameVersion(current.version, operation.expected))
          return conflict('version differs');
        return { kind: 'ok', version: this.put(operation.key, operation.value, Infinity) };
      case 'delete':
        if (operation.expected !== undefined && !sameVersion(current.version, operation.expected))
          return conflict('version differs');
        if (current.value === null) return conflict('absent');
        return { kind: 'ok', version: this.put(operation.key, null, Infinity) };
      case 'add': {
        const sum = String(Number(current.value ?? '0') + operation.delta);
        return { kind: 'ok', value: sum, version: this.put(operation.key, sum, Infinity) };
      }
    }
  }

  /** Plants a loss: the key is as if it had never been written. */
  forget(key: string): void {
    this.entries.delete(key);
  }

  private put(key: string, value: string | null, expiresAtMs: number): Version {
    const version: Version = [1, ++this.seq];
    this.entries.set(key, { value, version, expiresAtMs });
    return version;
  }
}

const sameVersion = (a: Version | null, b: Version): boolean => a !== null && a[0] === b[0] && a[1] === b[1];
