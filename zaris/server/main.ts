/** The process of a node: `node zaris/server/main.ts --node-id n1 --data-dir DIR …` (see config.ts for all settings). */
import { Node } from '../node/node.ts';
import { runNode } from './run-node.ts';

await runNode((options, disk, random) => new Node(options, disk, random), process.env, process.argv.slice(2));
