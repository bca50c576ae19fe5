/**
 * Turns the complete set of one-way cuts into packet filter rules for one node. Pure.
 *
 * A cut stands at both ends: the sender drops on its way out and the receiver on its way in, so it holds even where one
 * end's rules could not be set. All rules live in two chains of our own that are replaced as a whole: whatever stood
 * there before is gone, and nothing else in the table is touched.
 */
import { present } from '../lib/assert.ts';

/** Our chains; the jumps to them stand first in INPUT and OUTPUT. */
export const chainIn = 'ZARIS_CUT_IN';
export const chainOut = 'ZARIS_CUT_OUT';

/** Packets from one end to the other are dropped. Ends are node ids or `client`. */
export interface Cut {
  readonly from: string;
  readonly to: string;
}

/** Input for `iptables-restore --noflush`: the two chains of `nodeId`, complete, in one transaction. */
export function cutRules(nodeId: string, cuts: readonly Cut[], addresses: ReadonlyMap<string, string>): string {
  const lines = new Set<string>();
  for (const cut of cuts) {
    if (cut.to === nodeId && cut.from !== nodeId) {
      lines.add(`-A ${chainIn} -s ${present(addresses.get(cut.from), `address of ${cut.from}`)}/32 -j DROP`);
    }
    if (cut.from === nodeId && cut.to !== nodeId) {
      lines.add(`-A ${chainOut} -d ${present(addresses.get(cut.to), `address of ${cut.to}`)}/32 -j DROP`);
    }
  }
  return ['*filter', `:${chainIn} - [0:0]`, `:${chainOut} - [0:0]`, ...[...lines].sort(), 'COMMIT', ''].join('\n');
}

/** The shell line that puts the chains and the jumps to them in place; harmless when they already are. */
export const installChainsScript = [
  `iptables -w 5 -N ${chainIn} 2>/dev/null`,
  `iptables -w 5 -N ${chainOut} 2>/dev/null`,
  `iptables -w 5 -C INPUT -j ${chainIn} 2>/dev/null || iptables -w 5 -I INPUT 1 -j ${chainIn} || exit 1`,
  `iptables -w 5 -C OUTPUT -j ${chainOut} 2>/dev/null || iptables -w 5 -I OUTPUT 1 -j ${chainOut} || exit 1`,
].join('\n');
