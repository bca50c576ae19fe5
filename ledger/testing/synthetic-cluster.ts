/** The cluster behind a synthetic ledger: a node dies every so often, its partitions fail over, and go back when it is well again. */

/** How far apart kills are, how long a node stays away, how long a partition then has no primary, when it is given back; ns. */
const killEveryNs = 20e9;
const openNs = 8e9;
const outageNs = 0.8e9;
const healthyAfterNs = 3e9;
const handBackAfterNs = 6e9;

export interface SyntheticEdge {
  readonly partition: number;
  readonly epoch: number;
  readonly term: number;
  readonly node: number;
  readonly kind: 'failover' | 'handoff' | 'edge';
  readonly health: string;
  readonly atNs: number;
}

interface Partition {
  epoch: number;
  term: number;
  seq: number;
  primary: number;
  readonly replicas: readonly number[];
  isServing: boolean;
}

interface Due {
  readonly atNs: number;
  readonly run: () => void;
}

export class SyntheticCluster {
  readonly faults: { readonly atNs: number; readonly openNs: number; readonly node: number }[] = [];
  readonly edges: SyntheticEdge[] = [];
  private readonly partitions: Partition[];
  private readonly nodeCount: number;
  private due: Due[] = [];

  constructor(partitionCount: number, nodeCount: number, copies: number) {
    this.nodeCount = nodeCount;
    this.partitions = Array.from({ length: partitionCount }, (_, index) => {
      const replicas = Array.from({ length: copies }, (_each, offset) => 1 + ((index + offset) % nodeCount));
      return { epoch: 1, term: 1, seq: 0, primary: replicas[0] as number, replicas, isServing: true };
    });
  }

  /** Lays out the kills of [fromNs, toNs) and tells the first edges. */
  plan(fromNs: number, toNs: number): void {
    for (let index = 0; index < this.partitions.length; index++) this.tell(index, 'edge', 'Healthy', fromNs - 1.5e9);
    for (let atNs = fromNs + 2e9; atNs === fromNs + 2e9 || atNs + killEveryNs < toNs; atNs += killEveryNs) {
      const node = 1 + (this.faults.length % this.nodeCount);
      this.faults.push({ atNs, openNs, node });
      this.due.push({ atNs, run: () => this.kill(node) });
      this.due.push({ atNs: atNs + outageNs, run: () => this.failOver(node, atNs + outageNs) });
      const backNs = atNs + openNs;
      this.due.push({ atNs: backNs + healthyAfterNs, run: () => this.healthy(node, backNs + healthyAfterNs) });
      this.due.push({ atNs: backNs + handBackAfterNs, run: () => this.handBack(node, backNs + handBackAfterNs) });
    }
    this.due.sort((a, b) => b.atNs - a.atNs);
  }

  /** Lets everything happen that is due by `nowNs`. */
  advance(nowNs: number): void {
    for (let next = this.due.at(-1); next !== undefined && next.atNs <= nowNs; next = this.due.at(-1)) {
      this.due.pop();
      next.run();
    }
  }

  serves(partition: number): boolean {
    return this.of(partition).isServing;
  }

  epochOf(partition: number): number {
    return this.of(partition).epoch;
  }

  primaryOf(partition: number): number {
    return this.of(partition).primary;
  }

  replicasOf(partition: number): readonly number[] {
    return this.of(partition).replicas;
  }

  nextVersion(partition: number): readonly [term: number, seq: number] {
    const at = this.of(partition);
    return [at.term, ++at.seq];
  }

  private of(partition: number): Partition {
    return this.partitions[partition] as Partition;
  }

  private kill(node: number): void {
    for (const partition of this.partitions) if (partition.primary === node) partition.isServing = false;
  }

  private failOver(node: number, atNs: number): void {
    for (const [index, partition] of this.partitions.entries()) {
      if (!partition.replicas.includes(node)) continue;
      partition.epoch++;
      if (partition.primary === node) {
        partition.term = partition.epoch;
        partition.primary = partition.replicas.find((each) => each !== node) as number;
        partition.isServing = true;
        this.tell(index, 'failover', 'Degraded', atNs);
      } else this.tell(index, 'edge', 'Degraded', atNs);
    }
  }

  private healthy(node: number, atNs: number): void {
    for (const [index, partition] of this.partitions.entries()) {
      if (!partition.replicas.includes(node)) continue;
      partition.epoch++;
      this.tell(index, 'edge', 'Healthy', atNs);
    }
  }

  private handBack(node: number, atNs: number): void {
    for (const [index, partition] of this.partitions.entries()) {
      if (partition.replicas[0] !== node || partition.primary === node) continue;
      partition.epoch++;
      partition.term = partition.epoch;
      partition.primary = node;
      this.tell(index, 'handoff', 'Healthy', atNs);
    }
  }

  private tell(index: number, kind: SyntheticEdge['kind'], health: string, atNs: number): void {
    const { epoch, term, primary } = this.of(index);
    this.edges.push({ partition: index, epoch, term, node: primary, kind, health, atNs });
  }
}
