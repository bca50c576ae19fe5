/** Three whole nodes in this process, over real sockets and disks: the node, its shell and the client together. */
import { randomInt } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { silentLogger } from '../../lib/logger.ts';
import { type ConnectOptions, ZarisClient } from '../client/client.ts';
import { ZarisConnectError, ZarisUnauthorizedError } from '../client/errors.ts';
import { Node } from '../node/node.ts';
import { readConfig } from './config.ts';
import { NodeShell, systemClock } from './shell.ts';

const cleanUp: (() => unknown)[] = [];
afterEach(async () => {
  for (const undo of cleanUp.splice(0).reverse()) await undo();
});

const pem = (name: string): string => new URL(`./testing/${name}`, import.meta.url).pathname;

/** Below the range that outgoing connections draw from: a restarted node must find its port free. */
async function freePorts(count: number): Promise<number[]> {
  const ports: number[] = [];
  while (ports.length < count) {
    const port = randomInt(20_000, 32_000);
    const server = createServer();
    const isFree = await new Promise<boolean>((resolve) => {
      server.once('error', () => resolve(false));
      server.listen(port, '127.0.0.1', () => resolve(true));
    });
    if (!isFree) continue;
    await new Promise((resolve) => server.close(resolve));
    if (!ports.includes(port)) ports.push(port);
  }
  return ports;
}

interface TestCluster {
  readonly url: string;
  readonly addresses: readonly string[];
  readonly shells: NodeShell[];
  /** Starts node `index` (again) on its disk. */
  start(index: number): Promise<void>;
}

async function startCluster(settings: Record<string, string>, scheme = 'zaris'): Promise<TestCluster> {
  const directory = await mkdtemp(join(tmpdir(), 'zaris-cluster-'));
  cleanUp.push(() => rm(directory, { recursive: true, force: true }));
  const ports = await freePorts(6);
  const [clientPorts, clusterPorts] = [ports.slice(0, 3), ports.slice(3)];
  const peers = clusterPorts.map((port, index) => `n${index + 1}=127.0.0.1:${port}`).join(',');
  const shells: NodeShell[] = [];
  const start = async (index: number): Promise<void> => {
    const config = readConfig(
      {
        ZARIS_NODE_ID: `n${index + 1}`,
        ZARIS_DATA_DIR: join(directory, `n${index + 1}`),
        ZARIS_HOST: '127.0.0.1',
        ZARIS_CLIENT_PORT: String(clientPorts[index]),
        ZARIS_CLUSTER_PORT: String(clusterPorts[index]),
        ZARIS_HTTP_PORT: '0',
        ZARIS_ADVERTISE_CLIENT: `127.0.0.1:${clientPorts[index]}`,
        ZARIS_ADVERTISE_CLUSTER: `127.0.0.1:${clusterPorts[index]}`,
        ZARIS_PEERS: peers,
        ...settings,
      },
      [],
    );
    const shell = await NodeShell.start({
      config,
      createNode: (options, disk, random) => new Node(options, disk, random),
      logger: silentLogger,
      clock: systemClock,
      seed: 100 + index,
      onExit: () => undefined,
    });
    shells[index] = shell;
    cleanUp.push(() => shell.close());
  };
  for (const index of [0, 1, 2]) await start(index);
  const addresses = clientPorts.map((port) => `127.0.0.1:${port}`);
  return { url: `${scheme}://${addresses.join(',')}/test`, addresses, shells, start };
}

async function bootstrap(cluster: TestCluster, options: ConnectOptions): Promise<ZarisClient> {
  const settings = { clusterId: 'test', replicationFactor: 3, minInSync: 2, partitionCount: 4, initialNodes: 3 };
  const client = await ZarisClient.connect(cluster.url, { environment: {}, ...options, connectTimeoutMs: 0 });
  const result = await client.admin({ kind: 'bootstrap', settings }, cluster.addresses[0] as string);
  expect(result).toMatchObject({ status: 'Ok' });
  await client.close();
  const ready = await ZarisClient.connect(cluster.url, { environment: {}, connectTimeoutMs: 60_000, ...options });
  cleanUp.push(() => ready.close());
  return ready;
}

describe('three nodes', { timeout: 180_000 }, () => {
  it('keep every acknowledged write when one is closed at once, and take it back', async () => {
    const cluster = await startCluster({});
    const client = await bootstrap(cluster, {});
    const keys = Array.from({ length: 40 }, (_, index) => `key-${index}`);
    const before = await client.putMany(keys.map((key) => [key, `${key}/1`]));
    expect(before.filter((result) => !result.isSuccess)).toEqual([]);
    await (cluster.shells[0] as NodeShell).close();
    const after = await Promise.all(keys.map((key) => client.add(`count-${key}`, 1)));
    expect(after.filter((result) => result.value !== '1')).toEqual([]);
    const read = await client.getMany(keys);
    expect(read.map((result) => result.value)).toEqual(keys.map((key) => `${key}/1`));
    await cluster.start(0);
    const again = await Promise.all(keys.map((key) => client.add(`count-${key}`, 1)));
    expect(again.filter((result) => result.value !== '2')).toEqual([]);
    const items = await client.scan('key-', { limit: 1000 });
    expect(items.items.map((item) => item.key)).toEqual([...keys].sort());
  });

  it('with TLS and a token: the right client works, every stranger gets one clear error', async () => {
    const tls = { ZARIS_TLS_CERT: pem('node.pem'), ZARIS_TLS_KEY: pem('node.key'), ZARIS_TLS_CA: pem('ca.pem') };
    const cluster = await startCluster({ ...tls, ZARIS_TOKEN: 'sesame' }, 'zariss');
    const { readFile } = await import('node:fs/promises');
    const ca = await readFile(pem('ca.pem'), 'utf8');
    const otherCa = await readFile(pem('other-ca.pem'), 'utf8');
    const client = await bootstrap(cluster, { token: 'sesame', tls: { ca } });
    expect(await client.put('k', 'v')).toMatchObject({ status: 'Ok' });
    const connect = (url: string, options: ConnectOptions): Promise<unknown> =>
      ZarisClient.connect(url, { environment: {}, connectTimeoutMs: 20_000, ...options }).catch(
        (error: unknown) => error,
      );
    expect(await connect(cluster.url, { token: 'wrong', tls: { ca } })).toBeInstanceOf(ZarisUnauthorizedError);
    expect(await connect(cluster.url, { tls: { ca } })).toBeInstanceOf(ZarisUnauthorizedError);
    expect(await connect(cluster.url, { token: 'sesame', tls: { ca: otherCa } })).toBeInstanceOf(
      ZarisUnauthorizedError,
    );
    expect(await connect(cluster.url, { token: 'sesame', tls: { ca, servername: 'elsewhere' } })).toBeInstanceOf(
      ZarisUnauthorizedError,
    );
    // Who gets no answer at all tries until its time is over.
    const plain = { token: 'sesame', connectTimeoutMs: 1_500 };
    expect(await connect(cluster.url.replace('zariss', 'zaris'), plain)).toBeInstanceOf(ZarisConnectError);
  });
});
