/** Opens a process cluster, cuts and freezes a node, says who runs, and waits to be killed. */
import { openProcessCluster } from '../process.ts';

const logsDir = process.argv[2] ?? '';
const opened = await openProcessCluster({
  runId: 'abandoned',
  nodeCount: 3,
  logsDir,
  environment: () => ({}),
  nodeEntry: 'harness/clusters/testing/tiny-node.ts',
  clock: { nowMs: () => performance.now(), wallMs: () => Date.now() },
  say: () => undefined,
  signal: new AbortController().signal,
});
const { cluster } = opened;
await cluster.setCuts([{ from: 'n1', to: 'n2' }]);
await cluster.pause('n3');
process.stdout.write('ready\n');
setInterval(() => undefined, 1_000);
