/**
 * A run that is about to lose its harness: starts two nodes, pauses one, cuts the link, says so and waits to be killed.
 * Usage: abandoned-run.ts RUN_ID IMAGE BASE LOGS
 */
import { present } from '../../lib/assert.ts';
import { DockerCluster } from '../cluster.ts';
import { connectEngine } from '../engine.ts';
import { testClock } from './engine-for-tests.ts';

const [runId, image, base, logsDir] = process.argv.slice(2);
const cluster = await DockerCluster.start({
  engine: await connectEngine(),
  clock: testClock,
  runId: present(runId, 'run id'),
  image: present(image, 'image'),
  base: present(base, 'base'),
  nodeCount: 2,
  environment: (nodeId) => ({ ZARIS_NODE_ID: nodeId }),
  logsDir: present(logsDir, 'logs folder'),
});
await cluster.pause('n1');
await cluster.setCuts([{ from: 'n1', to: 'n2' }]);
console.log('ready');
setInterval(() => {}, 60_000);
