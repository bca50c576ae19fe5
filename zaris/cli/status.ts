/** `zaris status`: nodes and partitions as the control plane sees them, with each copy's distance from its primary. */
import Table from 'cli-table3';
import pico from 'picocolors';
import type { ZarisClient } from '../client/client.ts';
import { memberName } from '../model/ids.ts';
import type { ClusterView, Health, NodeView, PartitionView } from '../model/view.ts';

/** A copy that does not answer within this shows as "?", ms. */
const peekTimeoutMs = 1_500;

const colours: Readonly<Record<Health, (text: string) => string>> = {
  Healthy: pico.green,
  Degraded: pico.yellow,
  Recovering: pico.yellow,
  Unavailable: pico.red,
  Lost: pico.red,
};

/** One copy's state: applied seq and digest, or null when it did not answer. */
export interface CopyLook {
  readonly node: string;
  readonly appliedSeq: number | null;
  readonly digest: string | null;
  readonly keyCount: number | null;
}

/** Asks every holder of every partition for its own copy. */
export async function lookAtCopies(client: ZarisClient, view: ClusterView): Promise<CopyLook[][]> {
  return Promise.all(
    view.partitions.map(({ partition, replicas }) =>
      Promise.all(
        replicas.map(async (node) => {
          const { copy } = await client.peek(node, partition, [], { timeoutMs: peekTimeoutMs });
          if (copy === undefined || copy.role === 'none')
            return { node, appliedSeq: null, digest: null, keyCount: null };
          return { node, appliedSeq: copy.applied.seq, digest: copy.digest, keyCount: copy.keyCount };
        }),
      ),
    ),
  );
}

/** "n1 n2 −3 n3 ?": each holder but the primary, with how many entries it is behind it. */
export function lagText(partition: PartitionView, copies: readonly CopyLook[]): string {
  const primary = copies.find((copy) => copy.node === partition.primary?.nodeId)?.appliedSeq ?? null;
  return copies
    .filter((copy) => copy.node !== partition.primary?.nodeId)
    .map(({ node, appliedSeq }) => {
      if (appliedSeq === null || primary === null) return `${node} ?`;
      return appliedSeq >= primary ? node : `${node} −${primary - appliedSeq}`;
    })
    .join('  ');
}

function nodeRow(node: NodeView, view: ClusterView): string[] {
  const led = view.partitions.filter((partition) => partition.primary?.nodeId === node.nodeId).length;
  const held = view.partitions.filter((partition) => partition.replicas.includes(node.nodeId)).length;
  const roles = [
    node.voter ? 'voter' : '',
    view.controlLeader === node.nodeId ? 'leader' : '',
    node.leaving ? 'leaving' : '',
  ];
  return [
    node.incarnation === 0 ? node.nodeId : `${node.nodeId}#${node.incarnation}`,
    node.alive ? pico.green('alive') : pico.red('silent'),
    roles.filter((role) => role !== '').join(', '),
    `${led} of ${held}`,
    node.clientAddress,
  ];
}

function partitionRow(partition: PartitionView, copies: readonly CopyLook[]): string[] {
  const { primary, health } = partition;
  const keys = copies.find((copy) => copy.node === primary?.nodeId)?.keyCount ?? null;
  const owner = primary === null ? '–' : memberName(primary) + (partition.serving ? '' : ' (not serving)');
  return [
    String(partition.partition),
    String(partition.epoch),
    String(partition.term),
    owner,
    primary?.nodeId === partition.preferredPrimary ? '' : partition.preferredPrimary,
    partition.inSync.map(memberName).join(' '),
    colours[health](health) + (partition.dataLossNumber > 0 ? pico.red(` data loss ${partition.dataLossNumber}`) : ''),
    keys === null ? '?' : String(keys),
    lagText(partition, copies),
  ];
}

const plain = { style: { head: [], border: [] }, chars: { mid: '', 'left-mid': '', 'mid-mid': '', 'right-mid': '' } };

/** The tables as text. */
export function statusText(view: ClusterView, copies: readonly (readonly CopyLook[])[]): string {
  const nodes = new Table({ head: ['node', 'state', 'control', 'leads', 'address'], ...plain });
  for (const node of view.nodes) nodes.push(nodeRow(node, view));
  const head = [
    'partition',
    'epoch',
    'term',
    'owner',
    'preferred',
    'in sync',
    'health',
    'keys',
    'copies (entries behind)',
  ];
  const partitions = new Table({ head, ...plain });
  view.partitions.forEach((partition, index) => partitions.push(partitionRow(partition, copies[index] ?? [])));
  const counts = new Map<Health, number>();
  for (const { health } of view.partitions) counts.set(health, (counts.get(health) ?? 0) + 1);
  const summary = [...counts].map(([health, count]) => colours[health](`${count} ${health}`)).join(', ');
  const title = `cluster ${view.clusterId} · rf ${view.replicationFactor}, min in-sync ${view.minInSync} · map ${view.mapVersion}, revision ${view.revision}`;
  return `${title} · ${summary}\n${nodes.toString()}\n${partitions.toString()}\n`;
}
