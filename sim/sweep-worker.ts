/** One thread of a sweep: plays the seeds that it is sent, one after the other. */
import { parentPort } from 'node:worker_threads';
import { present } from '../lib/assert.ts';
import { drawOptions } from './options.ts';
import { outcomeOf } from './outcome.ts';
import { runSim } from './run-seed.ts';
import type { SweepReply, SweepTask } from './sweep.ts';

const port = present(parentPort, 'a parent thread');

async function play({ seed, pins, isTwice }: SweepTask): Promise<SweepReply> {
  const options = drawOptions(seed, pins);
  const outcome = outcomeOf(await runSim({ seed, options, checkers: true }));
  if (!isTwice) return { kind: 'played', outcome, secondHash: null };
  const again = await runSim({ seed, options, checkers: true });
  return { kind: 'played', outcome, secondHash: again.traceHash };
}

port.on('message', (task: SweepTask) => {
  play(task).then(
    (reply) => port.postMessage(reply),
    (error: unknown) =>
      port.postMessage({
        kind: 'broke',
        seed: task.seed,
        why: error instanceof Error ? (error.stack ?? error.message) : String(error),
      } satisfies SweepReply),
  );
});
