/**
 * One writer per partition, each with one write under way at a time, and what they saw: every acknowledgement, and every change of who acknowledged.
 *
 * Invariant: a write counts from its call to its acknowledgement, retries of the client included: what an application waits for.
 */
import { ZarisClient } from '../../zaris/client/client.ts';
import { partitionOf } from '../../zaris/model/segments.ts';

export interface Acknowledgement {
  readonly partition: number;
  readonly startedAtMs: number;
  readonly atMs: number;
  /** Term of the written version: it grows with every assignment of a primary, and with nothing else. */
  readonly term: number;
  readonly attempts: number;
}

const clientCount = 8;
/** Pause of a writer after each write, ms: the machine must have room for a failover beside the load. */
const paceMs = 20;
const valueBytes = 100;
const refusedPauseMs = 50;

/** A key of each partition. */
function keysByPartition(partitionCount: number): string[] {
  const keys: string[] = [];
  for (let index = 0, found = 0; found < partitionCount; index++) {
    const key = `failover-${index}`;
    const partition = partitionOf(key, partitionCount);
    if (keys[partition] !== undefined) continue;
    keys[partition] = key;
    found++;
  }
  return keys;
}

/** Starts writing at construction by {@link startWriters}; ends on disposal. */
export class PartitionWriters implements AsyncDisposable {
  private readonly clients: readonly ZarisClient[];
  private readonly running: Promise<void>[];
  private isOver = false;
  /** Called for every acknowledgement. */
  onAcknowledged: (ack: Acknowledgement) => void = () => undefined;
  /** Writes that ended without an acknowledgement, by status. */
  readonly failures: Record<string, number> = {};
  acknowledged = 0;

  constructor(clients: readonly ZarisClient[], partitionCount: number) {
    this.clients = clients;
    this.running = keysByPartition(partitionCount).map((key, partition) => this.run(key, partition));
  }

  private async run(key: string, partition: number): Promise<void> {
    const client = this.clients[partition % this.clients.length] as ZarisClient;
    const value = 'v'.repeat(valueBytes);
    while (!this.isOver) {
      const startedAtMs = performance.now();
      const { isSuccess, status, attempts, version } = await client.put(key, value);
      const atMs = performance.now();
      if (isSuccess) {
        this.acknowledged++;
        this.onAcknowledged({ partition, startedAtMs, atMs, term: version?.term ?? 0, attempts });
      } else this.failures[status] = (this.failures[status] ?? 0) + 1;
      await new Promise((resolve) => setTimeout(resolve, isSuccess ? paceMs : refusedPauseMs));
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.isOver = true;
    await Promise.all(this.running);
    for (const client of this.clients) await client.close();
  }
}

/** Connects some clients with default options and starts a writer for each partition. */
export async function startWriters(url: string, partitionCount: number): Promise<PartitionWriters> {
  const clients = await Promise.all(Array.from({ length: clientCount }, () => ZarisClient.connect(url)));
  return new PartitionWriters(clients, partitionCount);
}
