/** The one account of what open faults have taken from the budget (budget.ts); all faults of a run share it. */
import { type Charge, settle } from './budget.ts';
import type { SystemStatus } from './ports.ts';

/** Charges, in the order they were made. Changed synchronously only: judged and charged in one turn, or two faults share one copy. */
export class Account {
  charges: readonly Charge[] = [];

  /** Takes off what this status shows to be back. */
  settle(status: SystemStatus): void {
    this.charges = settle(this.charges, status);
  }

  without(faultId: string): readonly Charge[] {
    return this.charges.filter((charge) => charge.faultId !== faultId);
  }

  /** Makes or replaces the fault's entry. */
  enter(charge: Charge): void {
    this.charges = [...this.without(charge.faultId), charge];
  }

  /** Takes the entry off: the fault was not injected. */
  discharge(faultId: string): void {
    this.charges = this.without(faultId);
  }

  /** From now on the entry goes as soon as a status shows its members to be back. */
  healVerified(faultId: string, atMs: number): void {
    this.charges = this.charges.map((charge) =>
      charge.faultId === faultId ? { ...charge, healVerifiedAtMs: atMs } : charge,
    );
  }

  isCharged(faultId: string): boolean {
    return this.charges.some((charge) => charge.faultId === faultId);
  }
}
