/**
 * Reads Zaris's HTTP endpoints: cluster view and events.
 *
 * A status counts only when it comes from a node that leads, or follows, a control leader which is alive in that very view;
 * of several, the newest revision. Chaos's budget is read from it: a stale view would let faults add up past what is survivable.
 */
import type { ClusterView } from '../../zaris/model/view.ts';
import type { NodeAddress } from './system.ts';

/** Longest wait for one node's answer, ms. */
const answerTimeoutMs = 1_000;
/** Wait for more answers after the first good one, ms. */
const gatherMs = 60;

/** GET a JSON document from a node; null when it does not answer with 200 in time. */
export async function getJson(address: NodeAddress, path: string, timeoutMs = answerTimeoutMs): Promise<unknown> {
  try {
    const response = await fetch(`http://${address.host}:${address.httpPort}${path}`, {
      signal: AbortSignal.timeout(timeoutMs),
    });
    if (!response.ok) {
      await response.body?.cancel();
      return null;
    }
    return await response.json();
  } catch {
    return null;
  }
}

/** The view in a `/cluster` document, or null when it is none. */
export function viewOf(document: unknown): ClusterView | null {
  const view = (document as { view?: unknown } | null)?.view ?? document;
  const candidate = view as Partial<ClusterView> | null;
  return candidate !== null &&
    typeof candidate === 'object' &&
    typeof candidate.revision === 'number' &&
    Array.isArray(candidate.voters) &&
    Array.isArray(candidate.partitions)
    ? (candidate as ClusterView)
    : null;
}

/** True when the view's control leader is alive in it: what a node cut off from its quorum loses. */
export function isLed(view: ClusterView): boolean {
  return view.controlLeader !== null && view.nodes.some((node) => node.nodeId === view.controlLeader && node.alive);
}

/** The newest led view of those that answer soon; null when none did. */
export async function newestView(addresses: readonly NodeAddress[]): Promise<ClusterView | null> {
  let best: ClusterView | null = null;
  const { promise: first, resolve: haveFirst } = Promise.withResolvers<void>();
  const all = Promise.all(
    addresses.map(async (address) => {
      const view = viewOf(await getJson(address, '/cluster'));
      if (view === null || !isLed(view)) return;
      if (best === null || view.revision > best.revision) best = view;
      haveFirst();
    }),
  );
  await Promise.race([all, first.then(() => new Promise((resolve) => setTimeout(resolve, gatherMs)))]);
  return best;
}
