/**
 * What runs on a Redis node: one server and one Sentinel, in one container or process group, so that whatever befalls the node
 * befalls both. Written as a shell script, since every image that holds Redis has a shell.
 *
 * Invariant: a node that was started before keeps the configuration that Sentinel has written since; only the very first start takes
 * the roles from here. Otherwise the first node would come back as a second primary after a failover.
 */
import type { NodeContext, NodeProgram, ProgramPorts } from '../system.ts';

/** Name of the replicated data set, for Sentinel. */
export const masterName = 'store';
/** After this long without an answer a Sentinel takes an instance for down, ms. Redis's own default is 30 s. */
const downAfterMs = 2_000;
/** Redis's default is 3 min; a failed attempt at a failover is repeated after twice this, ms. */
const failoverTimeoutMs = 3_000;

/** The Sentinel listens where the harness's second port is. */
const redisPorts: ProgramPorts = { client: 6379, cluster: 16379, http: 26379 };

function redisScript(context: NodeContext, extra: readonly string[]): string {
  const { nodes, index, dataDir, host, ports } = context;
  const [first] = nodes;
  if (first === undefined) throw new Error('a Redis cluster has a first node');
  const [firstHost, firstPort] = split(first.internalClientAddress);
  const quorum = Math.floor(nodes.length / 2) + 1;
  const redisConfig = [
    `port ${ports.client}`,
    `bind ${host}`,
    'protected-mode no',
    `dir ${dataDir}`,
    // Redis's own default when the append-only file is on: a killed process comes back with what it acknowledged.
    'appendonly yes',
    'appendfsync everysec',
    'save ""',
    'repl-diskless-sync-delay 0',
    ...(index === 0 ? [] : [`replicaof ${firstHost} ${firstPort}`]),
    ...extra,
  ];
  const sentinelConfig = [
    `port ${ports.http}`,
    `bind ${host}`,
    'protected-mode no',
    `dir ${dataDir}`,
    `sentinel monitor ${masterName} ${firstHost} ${firstPort} ${quorum}`,
    `sentinel down-after-milliseconds ${masterName} ${downAfterMs}`,
    `sentinel failover-timeout ${masterName} ${failoverTimeoutMs}`,
    `sentinel parallel-syncs ${masterName} 1`,
  ];
  return [
    'set -e',
    `cd ${dataDir}`,
    'if [ ! -f redis.conf ]; then',
    `cat > redis.conf <<'END'`,
    ...redisConfig,
    'END',
    'fi',
    'if [ ! -f sentinel.conf ]; then',
    `cat > sentinel.conf <<'END'`,
    ...sentinelConfig,
    'END',
    'fi',
    'redis-server sentinel.conf --sentinel &',
    'sentinel=$!',
    // Whoever ends the server alone ends the Sentinel too; the server keeps the process id of this shell.
    '(while kill -0 $$ 2>/dev/null; do sleep 1; done; kill -9 $sentinel) &',
    'exec redis-server redis.conf',
  ].join('\n');
}

/** "host:port" in two; ports stand after the last colon. */
function split(address: string): [host: string, port: string] {
  const colon = address.lastIndexOf(':');
  return [address.slice(0, colon), address.slice(colon + 1)];
}

/** The program of a Redis node; `extra` are lines of redis.conf that a profile adds. */
export function redisProgram(extra: readonly string[]): NodeProgram {
  return {
    source: { kind: 'packages', packages: ['redis-server'], publicImage: 'redis:7', program: 'redis-server' },
    ports: redisPorts,
    readiness: { kind: 'exchange', send: 'PING\r\n', expect: 'PONG' },
    command: (context) => ['sh', '-c', redisScript(context, extra)],
  };
}
