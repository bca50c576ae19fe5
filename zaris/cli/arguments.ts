/**
 * Checks of what stands on the command line, before anything is connected. A number that the wire refuses would end as a closed
 * connection, which reads like trouble in the cluster; a node that is not there would be answered Ok, and nobody would move.
 */
import { ZarisInputError } from '../client/errors.ts';
import type { ClusterView } from '../model/view.ts';

/** The number, when it is whole and from `low` to `high`. Throws ZarisInputError. */
export function wholeNumber(option: string, value: number, low: number, high: number): number {
  if (Number.isInteger(value) && value >= low && value <= high) return value;
  throw new ZarisInputError(`${option} is a whole number from ${low} to ${high}, not ${value}`);
}

/** The names, when the cluster has a node under each of them. Throws ZarisInputError. */
export function knownNodes(names: readonly string[], view: Pick<ClusterView, 'nodes'> | null): readonly string[] {
  const known = (view?.nodes ?? []).map((node) => node.nodeId as string);
  const stranger = names.find((name) => !known.includes(name));
  if (stranger === undefined) return names;
  throw new ZarisInputError(`there is no node "${stranger}"; this cluster has ${known.join(', ')}`);
}
