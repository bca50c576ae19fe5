/** etcd as one of the compared systems: three members with their disks; every writer talks to the leader, which is the shortest way. */
import { join } from 'node:path';
import { Etcd3 } from 'etcd3';
import { freeHostPorts } from '../../docker/host-ports.ts';
import { type BenchContext, startProgram } from './bench-context.ts';
import type { Writer } from './load.ts';
import { eventually, type PutSystem } from './put-systems.ts';

const host = '127.0.0.1';
const memberCount = 3;
const startTimeoutMs = 30_000;

const writerOf = (etcd: Etcd3): Writer => ({
  async put(key, value) {
    await etcd.put(key).value(value);
  },
});

/** The address of the member that leads, or null while none does. */
async function findLeader(addresses: readonly string[]): Promise<string | null> {
  for (const address of addresses) {
    const etcd = new Etcd3({ hosts: address });
    try {
      const status = await etcd.maintenance.status();
      if (status.leader !== '0' && status.leader === status.header.member_id) return address;
    } finally {
      etcd.close();
    }
  }
  return null;
}

/** Starts the members and waits for a leader. */
export async function startEtcd(context: BenchContext, program: string): Promise<PutSystem> {
  await using stack = new AsyncDisposableStack();
  const ports = await freeHostPorts(2 * memberCount);
  const members = Array.from({ length: memberCount }, (_, index) => ({
    name: `m${index + 1}`,
    client: `http://${host}:${ports[2 * index]}`,
    peer: `http://${host}:${ports[2 * index + 1]}`,
  }));
  const cluster = members.map(({ name, peer }) => `${name}=${peer}`).join(',');
  const pids: number[] = [];
  for (const { name, client, peer } of members) {
    const started = await startProgram(context, `etcd-${name}`, [
      program,
      ...['--name', name, '--data-dir', join(context.workDir, 'etcd', name), '--logger', 'zap', '--log-level', 'warn'],
      ...['--listen-client-urls', client, '--advertise-client-urls', client],
      ...['--listen-peer-urls', peer, '--initial-advertise-peer-urls', peer],
      ...['--initial-cluster', cluster, '--initial-cluster-state', 'new'],
    ]);
    stack.use(started);
    pids.push(started.pid);
  }
  const addresses = members.map(({ client }) => client.slice('http://'.length));
  await eventually('etcd', startTimeoutMs, context.signal, () => findLeader(addresses));
  const started = stack.move();
  return {
    name: 'etcd, 3 members',
    promise: 'synced to the disks of a majority (2 of 3): kept also when all lose power at once',
    pids,
    async connect(count) {
      const leader = await eventually('a leader of etcd', startTimeoutMs, context.signal, () => findLeader(addresses));
      const clients = Array.from({ length: count }, () => new Etcd3({ hosts: leader }));
      return {
        writers: clients.map(writerOf),
        close: async () => {
          for (const client of clients) client.close();
        },
      };
    },
    [Symbol.asyncDispose]: () => started.disposeAsync(),
  };
}
