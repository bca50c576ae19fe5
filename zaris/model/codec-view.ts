/**
 * Checks of the large parts of an answer: cluster view, scan items, a node's own copy. They travel as maps (rare, and good to read
 * in a trace). A client that took an unchecked view would route by `undefined`.
 */
import type { CopyReport, ScanItem } from './client-wire.ts';
import type { Member, Version } from './ids.ts';
import { maxKeyBytes, maxPeekKeys, maxScanItems, maxValueBytes } from './limits.ts';
import { segmentCount, type ClusterView, type NodeView, type PartitionView } from './view.ts';
import { CodecError, readArray, readBoolean, readInt, readRecord, readText } from './wire-check.ts';

const healths: readonly string[] = ['Healthy', 'Degraded', 'Recovering', 'Unavailable', 'Lost'];
const roles: readonly string[] = ['primary', 'replica', 'joiner', 'none'];
const maxNodes = 1024;

function checkMember(raw: unknown, what: string): Member {
  const member = readRecord(raw, what);
  readText(member['nodeId'], `${what} node id`);
  readInt(member['incarnation'], `${what} incarnation`);
  return raw as Member;
}

function checkVersion(raw: unknown): Version {
  const version = readRecord(raw, 'version');
  readInt(version['term'], 'version term');
  readInt(version['seq'], 'version seq');
  return raw as Version;
}

function checkPartition(raw: unknown, index: number): PartitionView {
  const partition = readRecord(raw, 'partition view');
  if (readInt(partition['partition'], 'partition') !== index) throw new CodecError('partition views are out of order');
  readText(partition['preferredPrimary'], 'preferred primary');
  for (const replica of readArray(partition['replicas'], 'replicas', null, maxNodes)) readText(replica, 'replica');
  readInt(partition['epoch'], 'epoch');
  readInt(partition['term'], 'term');
  if (partition['primary'] !== null) checkMember(partition['primary'], 'primary');
  for (const member of readArray(partition['inSync'], 'in-sync set', null, maxNodes))
    checkMember(member, 'in-sync member');
  for (const member of readArray(partition['eligible'], 'eligible', null, maxNodes))
    checkMember(member, 'eligible member');
  if (!healths.includes(partition['health'] as string)) throw new CodecError('health: no such word');
  readBoolean(partition['serving'], 'serving');
  readInt(partition['dataLossNumber'], 'data-loss number');
  return raw as PartitionView;
}

function checkNode(raw: unknown): NodeView {
  const node = readRecord(raw, 'node view');
  readText(node['nodeId'], 'node id');
  readInt(node['incarnation'], 'incarnation');
  readText(node['clientAddress'], 'client address');
  for (const flag of ['alive', 'voter', 'leaving']) readBoolean(node[flag], flag);
  return raw as NodeView;
}

function checkVoter(raw: unknown): void {
  const voter = readRecord(raw, 'voter');
  readText(voter['nodeId'], 'node id of a voter');
  readText(voter['diskId'], 'disk id of a voter');
}

/** A view as it came off the wire, checked; partitions stand in order of their index, and are all there or (before the first map) none. */
export function checkView(raw: unknown): ClusterView {
  const view = readRecord(raw, 'view');
  readInt(view['revision'], 'revision');
  readText(view['clusterId'], 'cluster id');
  readInt(view['mapVersion'], 'map version');
  readInt(view['replicationFactor'], 'replication factor');
  readInt(view['minInSync'], 'min in-sync');
  const count = readInt(view['partitionCount'], 'partition count', 0, segmentCount);
  if (view['controlLeader'] !== null) readText(view['controlLeader'], 'control leader');
  readArray(view['nodes'], 'nodes', null, maxNodes).forEach(checkNode);
  readArray(view['voters'], 'voters', null, maxNodes).forEach(checkVoter);
  const partitions = readArray(view['partitions'], 'partitions', null, segmentCount);
  if (partitions.length !== 0 && partitions.length !== count)
    throw new CodecError('a view holds all partitions or none');
  partitions.forEach(checkPartition);
  return raw as ClusterView;
}

/** Items of a scan. */
export function checkItems(raw: unknown): readonly ScanItem[] {
  for (const item of readArray(raw, 'items', null, maxScanItems)) {
    const { key, value, version } = readRecord(item, 'item');
    readText(key, 'key', maxKeyBytes);
    readText(value, 'value', maxValueBytes);
    checkVersion(version);
  }
  return raw as readonly ScanItem[];
}

/** A node's report on its own copy. */
export function checkCopy(raw: unknown): CopyReport {
  const copy = readRecord(raw, 'copy');
  if (!roles.includes(copy['role'] as string)) throw new CodecError('role: no such word');
  checkVersion(copy['applied']);
  readInt(copy['commitSeq'], 'commit seq');
  readText(copy['digest'], 'digest');
  readInt(copy['keyCount'], 'key count');
  for (const entry of readArray(copy['values'], 'values', null, maxPeekKeys)) {
    const { key, value, version } = readRecord(entry, 'value');
    readText(key, 'key', maxKeyBytes);
    if (value !== undefined) readText(value, 'value', maxValueBytes);
    if (version !== undefined) checkVersion(version);
  }
  return raw as CopyReport;
}
