/** The `zaris` command. Exit codes: 0 done, 1 a clear no (NotFound, Conflict, InvalidInput), 2 unsettled, 64 wrong usage. */
import yargs from 'yargs';
import { ZarisError, ZarisInputError } from '../client/errors.ts';
import { bench, bootstrap, drain, get, incr, put, rebalance, remove, scan, status } from './commands.ts';
import { defaultUrl, exitUnsettled, exitUsage } from './connection.ts';

let exitCode = 0;
const ends = async (code: Promise<number>): Promise<void> => {
  exitCode = await code;
};

const common = yargs(process.argv.slice(2))
  .scriptName('zaris')
  .strict()
  .demandCommand(1, 'which command? See zaris --help')
  .option('url', {
    type: 'string',
    default: process.env['ZARIS_URL'] ?? defaultUrl,
    describe: 'zaris://host:port,host:port/store (ZARIS_URL)',
  })
  .option('token', {
    type: 'string',
    default: process.env['ZARIS_TOKEN'],
    defaultDescription: 'ZARIS_TOKEN',
    describe: 'shared token of the cluster',
  })
  .option('ca', { type: 'string', describe: 'PEM file of the authority to trust (zariss://)' })
  .option('client-cert', { type: 'string', describe: 'PEM file of the client certificate' })
  .option('client-key', { type: 'string', describe: 'PEM file of the client key' })
  .option('servername', { type: 'string', describe: 'name to expect in the nodes’ certificates' })
  .option('translate', { type: 'string', describe: 'where nodes are reached from here: n1=host:port,n2=host:port' })
  .option('timeout', { type: 'number', describe: 'deadline of an operation, ms' })
  .option('json', { type: 'boolean', default: false, describe: 'print everything as JSON' });

const cli = common
  .command(
    'get <key>',
    'read a key',
    (y) => y.positional('key', { type: 'string', demandOption: true }),
    (args) => ends(get(args)),
  )
  .command(
    'put <key> <value>',
    'write a key',
    (y) =>
      y
        .positional('key', { type: 'string', demandOption: true })
        .positional('value', { type: 'string', demandOption: true })
        .option('if-absent', { type: 'boolean', default: false, describe: 'only when the key is absent' })
        .option('if-version', { type: 'string', describe: 'only when the current version is term:seq' })
        .option('ttl', { type: 'number', describe: 'time to live, ms' }),
    (args) => ends(put(args)),
  )
  .command(
    'delete <key>',
    'delete a key',
    (y) =>
      y
        .positional('key', { type: 'string', demandOption: true })
        .option('if-version', { type: 'string', describe: 'only when the current version is term:seq' }),
    (args) => ends(remove(args)),
  )
  .command(
    'incr <key>',
    'add to a counter',
    (y) =>
      y
        .positional('key', { type: 'string', demandOption: true })
        .option('by', { type: 'number', default: 1 })
        .option('min', { type: 'number', describe: 'refuse a sum below' })
        .option('max', { type: 'number', describe: 'refuse a sum above' }),
    (args) => ends(incr(args)),
  )
  .command(
    'scan [prefix]',
    'list keys with a prefix, in order',
    (y) => y.positional('prefix', { type: 'string', default: '' }).option('limit', { type: 'number', default: 100 }),
    (args) => ends(scan(args)),
  )
  .command(
    'status',
    'nodes, partitions, epochs, owners, health, lag',
    (y) => y,
    (args) => ends(status(args)),
  )
  .command(
    'bench',
    'operations per second and latencies, closed loop',
    (y) =>
      y
        .option('operation', { choices: ['put', 'get', 'incr'] as const, default: 'put' as const })
        .option('writers', { type: 'number', default: 16 })
        .option('seconds', { type: 'number', default: 5 })
        .option('bytes', { type: 'number', default: 100, describe: 'size of a value' })
        .option('keys', { type: 'number', default: 10_000 })
        .option('connection-each', {
          type: 'boolean',
          default: false,
          describe: 'one client per writer instead of one for all',
        }),
    (args) => ends(bench(args)),
  )
  .command(
    'bootstrap',
    'make the node at the first address of the URL the start of a new cluster',
    (y) =>
      y
        .option('cluster', { type: 'string', default: 'default', describe: 'name of the cluster' })
        .option('rf', { type: 'number', default: 3, describe: 'copies of each partition, 1 to 5' })
        .option('min-in-sync', { type: 'number', describe: 'fewest in-sync copies for writes (2 for rf ≥ 3, else 1)' })
        .option('partitions', { type: 'number', default: 64 })
        .option('nodes', { type: 'number', default: 3, describe: 'the first map waits for this many nodes' }),
    (args) => ends(bootstrap(args)),
  )
  .command(
    'drain <node>',
    'hand over every partition that a node leads',
    (y) => y.positional('node', { type: 'string', demandOption: true }),
    (args) => ends(drain(args)),
  )
  .command(
    'rebalance',
    'plan a new map over the nodes that are there',
    (y) =>
      y.option('leaving', {
        type: 'string',
        default: '',
        coerce: (text: string) => text.split(',').filter((id) => id !== ''),
        describe: 'nodes that leave for good: n4,n5',
      }),
    (args) => ends(rebalance(args)),
  )
  .fail((message, error) => {
    throw error ?? new ZarisInputError(message.replace(/\s+/g, ' '));
  });

try {
  await cli.parseAsync();
} catch (error) {
  if (!(error instanceof ZarisError)) throw error;
  process.stderr.write(`${error.message}\n`);
  exitCode = error instanceof ZarisInputError ? exitUsage : exitUnsettled;
}
process.exitCode = exitCode;
