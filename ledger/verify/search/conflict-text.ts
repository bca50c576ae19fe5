/** The sentence for a register's contradiction. */

import type { RegisterConflict } from './register-checker.ts';

/** One sentence; `show` gives a value's text. */
export function conflictText(conflict: RegisterConflict, show: (value: number) => string): string {
  switch (conflict.kind) {
    case 'never-written':
      return `${show(conflict.value)} was seen but no operation that can have happened by then writes it`;
    case 'taken-twice':
      return `two compare-and-sets took ${show(conflict.value)} away, which was written only once`;
    case 'cycle':
      return `${show(conflict.value)} was written by a compare-and-set that needs a value which itself came after it`;
    case 'out-of-order':
      return `${show(conflict.value)} was seen before it was written, or after it had been taken away`;
    case 'overlap':
      return `${show(conflict.values[0])} and ${show(conflict.values[1])} each had to be the state before and after the other`;
    case 'denied':
      return `a compare-and-set found another value than ${show(conflict.value)} at a time when the state must have been that`;
    case 'unexplained':
      return 'no order of the operations up to here is legal and agrees with real time';
  }
}
