/**
 * Turns the complete set of link rules into packet filter rules for one node. Pure.
 *
 * A cut stands at both ends: the sender drops on its way out and the receiver on its way in, so it holds even where one
 * end's rules could not be set. What weakens a link stands at one end only, the receiver's where that is a node, or it
 * would bite twice. All rules live in two chains of our own that are replaced as a whole: whatever stood there before is
 * gone, and nothing else in the table is touched.
 */
import { present, unreachable } from '../lib/assert.ts';
import type { LinkRule } from '../chaos/ports.ts';

/** Our chains; the jumps to them stand first in INPUT and OUTPUT. */
export const chainIn = 'ZARIS_CUT_IN';
export const chainOut = 'ZARIS_CUT_OUT';

/** Packets from one end to the other are dropped. Ends are node ids or `client`. */
export interface Cut {
  readonly from: string;
  readonly to: string;
}

/** The end that is no node: the harness and its clients, seen by nodes under the network's gateway. */
export const clientEnd = 'client';

const leastBurstBytes = 16 * 1024;

/** Bytes that pass at once before a rate limit bites; iptables takes no burst below one second's worth. */
export const burstBytes = (bytesPerSecond: number): number => Math.max(leastBurstBytes, Math.ceil(bytesPerSecond));

/** Where a rule is set: packets that come in from, or go out to, an address. */
interface Side {
  readonly chain: string;
  readonly match: string;
  /** By what hashlimit tells its buckets apart. */
  readonly mode: string;
  readonly tag: string;
}

function sidesOf(rule: LinkRule, nodeId: string, addresses: ReadonlyMap<string, string>): Side[] {
  if (rule.from === rule.to) return [];
  const address = (end: string): string => present(addresses.get(end), `address of ${end}`);
  const sides: Side[] = [];
  if (rule.to === nodeId) {
    sides.push({ chain: chainIn, match: `-s ${address(rule.from)}/32`, mode: 'srcip', tag: `i${rule.from}` });
  }
  const outToo = rule.kind === 'drop' || rule.to === clientEnd;
  if (rule.from === nodeId && outToo) {
    sides.push({ chain: chainOut, match: `-d ${address(rule.to)}/32`, mode: 'dstip', tag: `o${rule.to}` });
  }
  return sides;
}

function lineOf(rule: LinkRule, side: Side): string {
  const head = `-A ${side.chain} ${side.match}`;
  switch (rule.kind) {
    case 'drop':
      return `${head} -j DROP`;
    case 'reset':
      // Resets themselves pass, or those of the other direction's rule would never arrive.
      return `${head} -p tcp ! --tcp-flags RST RST -j REJECT --reject-with tcp-reset`;
    case 'loss':
      return `${head} -m statistic --mode random --probability ${(rule.percent / 100).toFixed(6)} -j DROP`;
    case 'rate': {
      const limit = `--hashlimit-above ${Math.ceil(rule.bytesPerSecond)}b/s --hashlimit-burst ${burstBytes(rule.bytesPerSecond)}b`;
      return `${head} -m hashlimit ${limit} --hashlimit-mode ${side.mode} --hashlimit-name zr${side.tag} -j DROP`;
    }
    case 'delay':
      throw new Error('The packet filter cannot delay packets, so this cluster knows no latency fault.');
    default:
      return unreachable(rule, 'link rule');
  }
}

/** Cuts and resets come before what only weakens: a packet that is dropped anyway must not use up a rate. */
const order = (rule: LinkRule): number => ['drop', 'reset', 'loss', 'rate', 'delay'].indexOf(rule.kind);

/** Input for `iptables-restore --noflush`: the two chains of `nodeId`, complete, in one transaction. */
export function linkRules(nodeId: string, rules: readonly LinkRule[], addresses: ReadonlyMap<string, string>): string {
  const lines = new Set<string>();
  for (const rule of [...rules].sort((a, b) => order(a) - order(b))) {
    for (const side of sidesOf(rule, nodeId, addresses)) lines.add(lineOf(rule, side));
  }
  return ['*filter', `:${chainIn} - [0:0]`, `:${chainOut} - [0:0]`, ...lines, 'COMMIT', ''].join('\n');
}

/** The shell line that puts the chains and the jumps to them in place; harmless when they already are. */
export const installChainsScript = [
  `iptables -w 5 -N ${chainIn} 2>/dev/null`,
  `iptables -w 5 -N ${chainOut} 2>/dev/null`,
  `iptables -w 5 -C INPUT -j ${chainIn} 2>/dev/null || iptables -w 5 -I INPUT 1 -j ${chainIn} || exit 1`,
  `iptables -w 5 -C OUTPUT -j ${chainOut} 2>/dev/null || iptables -w 5 -I OUTPUT 1 -j ${chainOut} || exit 1`,
].join('\n');
