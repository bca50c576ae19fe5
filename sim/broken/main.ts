/** The process of a node of a broken store, named by ZARIS_BROKEN; everything else as in zaris/server/main.ts. For the self-test on containers. */
import { runNode } from '../../zaris/server/run-node.ts';
import { brokenStoreOf, brokenStores } from './catalogue.ts';
import { brokenNode } from './store.ts';

const usageExitCode = 64;
const name = process.env['ZARIS_BROKEN'] ?? '';
const store = brokenStoreOf(name);
if (store === undefined) {
  process.stderr.write(
    `ZARIS_BROKEN must name a broken store (${brokenStores.map((each) => each.name).join(', ')}), not "${name}".\n`,
  );
  process.exit(usageExitCode);
}
await runNode((options, disk, random) => brokenNode(store, options, disk, random), process.env, process.argv.slice(2));
