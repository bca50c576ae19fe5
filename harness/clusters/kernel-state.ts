/** What the kernel says of a process. */
import { readFileSync } from 'node:fs';

/** Its letter for what the process does: R, S, D, T (stopped), Z (dead, not yet collected); null where it does not tell. */
export function kernelState(pid: number): string | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const at = stat.lastIndexOf(')') + 2;
    return stat.slice(at, at + 1);
  } catch {
    return null;
  }
}
