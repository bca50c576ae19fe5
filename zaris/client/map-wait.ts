/**
 * What a call that waits for the map waits for. Too little, and its next attempt meets the same refusal; too much, and it waits out
 * the bound for nothing.
 */
import { type Member, type PartitionId, sameMember } from '../model/ids.ts';
import type { Call } from './call.ts';
import type { LinkTable } from './link.ts';
import type { AttemptEnd } from './retry.ts';
import type { ViewCache } from './view-cache.ts';

/** The least epoch that the map must show before this call is tried again, now that an attempt ended so. */
export function neededEpoch(call: Call, end: AttemptEnd): number {
  const named = end === 'TransportError' ? undefined : call.lastAnswer?.epoch;
  if (named === undefined || named === call.sentEpoch) return call.sentEpoch + 1;
  return Math.max(named, call.sentEpoch);
}

/**
 * True once the call's own partition shows a new enough epoch with a serving owner. After a mere connection loss also when the owner
 * of the map, the same incarnation, has greeted a newer connection: then nothing moved.
 */
export function isReleased(call: Call, partition: PartitionId, cache: ViewCache, links: LinkTable): boolean {
  const view = cache.partition(partition);
  if (view === undefined || view.health === 'Lost') return true;
  if (view.primary === null || !view.serving) return false;
  if (view.epoch >= call.needEpoch) return true;
  if (call.lastEnd !== 'TransportError') return false;
  const link = links.ofNode(view.primary.nodeId);
  if (link?.state !== 'ready' || link.member === null) return false;
  return link.readyAtMs >= call.endedAtMs && sameMember(link.member, view.primary);
}

/** The owner that the map names now, when a call's attempt is under way or in line for another one; else null. */
export function newOwnerOf(call: Call, cache: ViewCache): Member | null {
  const { sentTo, partition, state } = call;
  if (sentTo === null || partition === null || (state !== 'inFlight' && state !== 'queued')) return null;
  const primary = cache.partition(partition)?.primary ?? null;
  return primary === null || sameMember(primary, sentTo) ? null : primary;
}
