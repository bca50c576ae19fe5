/**
 * A light check while the run goes on: keys that were written once and acknowledged must be found by every later read.
 *
 * It only raises an early alarm; the verdict never rests on it. Memory is bounded: the oldest keys are forgotten first.
 */
import { workloadOfKey } from '../../workloads/catalogue.ts';
import type { Completion, Operation } from '../../workloads/port.ts';

/** Acknowledged keys that are remembered. */
const rememberedKeys = 100_000;

export interface LiveLoss {
  readonly key: string;
  readonly expected: string;
  /** Null: absent. */
  readonly found: string | null;
  readonly canary: boolean;
}

export class LiveCheck {
  private readonly acknowledged = new Map<string, string>();
  /** Planted early and looked at late: never forgotten to make room. */
  private readonly canaries = new Map<string, string>();
  private readonly lostKeys = new Set<string>();
  private readonly onLoss: (loss: LiveLoss) => void;

  constructor(onLoss: (loss: LiveLoss) => void) {
    this.onLoss = onLoss;
  }

  /** Looks at one completion of an operation on any key; raises each lost key once. */
  saw(operation: Operation, completion: Completion, canary = false): void {
    if (completion.kind !== 'ok' || (!canary && workloadOfKey(operation.key)?.name !== 'set')) return;
    if (operation.f === 'write' && canary) {
      this.canaries.set(operation.key, operation.value);
      return;
    }
    if (operation.f === 'write') {
      this.acknowledged.set(operation.key, operation.value);
      if (this.acknowledged.size > rememberedKeys)
        this.acknowledged.delete(this.acknowledged.keys().next().value as string);
      return;
    }
    if (operation.f !== 'read') {
      this.forget(operation.key);
      return;
    }
    const expected = (canary ? this.canaries : this.acknowledged).get(operation.key);
    const found = completion.value ?? null;
    if (expected === undefined || found === expected || this.lostKeys.has(operation.key)) return;
    this.lostKeys.add(operation.key);
    this.onLoss({ key: operation.key, expected, found, canary });
  }

  /** The key will be deleted on purpose. */
  forget(key: string): void {
    this.acknowledged.delete(key);
    this.canaries.delete(key);
  }
}
