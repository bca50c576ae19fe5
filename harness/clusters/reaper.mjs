/**
 * A process beside the harness that outlives it by a moment: kills nodes that were frozen when the harness died, since a
 * frozen process cannot notice anything itself. Reads lines from its standard input: `+PID` frozen, `-PID` thawed, `keep` kill
 * nobody. At the end of input it kills whoever is still frozen, and ends.
 */
import { createInterface } from 'node:readline';

const frozen = new Set();
let keep = false;
// Asked to end with its terminal or group, it waits for the harness's own end instead.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => undefined);
const lines = createInterface({ input: process.stdin });
lines.on('line', (line) => {
  if (line === 'keep') keep = true;
  else if (line.startsWith('+')) frozen.add(Number(line.slice(1)));
  else if (line.startsWith('-')) frozen.delete(Number(line.slice(1)));
});
lines.on('close', () => {
  for (const pid of keep ? [] : frozen) {
    try {
      process.kill(pid, 'SIGKILL');
    } catch {
      // It is gone already.
    }
  }
  process.exit(0);
});
