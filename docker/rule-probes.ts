/**
 * Sees whether a rule that only weakens a link takes effect, by counting datagrams at the receiver. Pure but for the
 * plan's use; the numbers decide, and what they cannot decide is `unknown`.
 */
import type { EffectProbe, LinkRule } from '../chaos/ports.ts';
import { burstBytes } from './link-rules.ts';

/** How many datagrams of which size to send. */
export interface ProbePlan {
  readonly count: number;
  readonly payloadBytes: number;
}

/** What came of it. */
export interface ProbeCount {
  readonly sent: number;
  readonly arrived: number;
  readonly elapsedMs: number;
}

const headerBytes = 28;
const mostDatagrams = 2_000;
const ratePayloadBytes = 1_200;
/** A fresh bucket lets about two bursts pass (measured); more than that must be sent to see the limit. */
const burstSlack = 2.5;
const burstsSent = 4;
/** Part of the promised loss that must be seen; a sample of it scatters. */
const leastShareOfLoss = 1 / 3;

/** The plan that can show this rule; null when none can. */
export function planProbe(rule: LinkRule): ProbePlan | null {
  if (rule.kind === 'loss') {
    return { count: Math.min(400, Math.max(40, Math.ceil(500 / rule.percent))), payloadBytes: 16 };
  }
  if (rule.kind === 'rate') {
    const bytes = burstsSent * burstBytes(rule.bytesPerSecond) + 64 * 1024;
    const count = Math.ceil(bytes / (ratePayloadBytes + headerBytes));
    return count > mostDatagrams ? null : { count, payloadBytes: ratePayloadBytes };
  }
  return null;
}

/** What the count says about the rule. */
export function judgeRule(rule: LinkRule, count: ProbeCount): EffectProbe['effect'] {
  const lost = count.sent - count.arrived;
  if (rule.kind === 'loss') return (lost / count.sent) * 100 >= rule.percent * leastShareOfLoss ? 'seen' : 'absent';
  if (rule.kind === 'rate') {
    const packetBytes = ratePayloadBytes + headerBytes;
    const allowed = burstSlack * burstBytes(rule.bytesPerSecond) + (rule.bytesPerSecond * count.elapsedMs) / 1000;
    // Sent too slowly to go over the limit, it shows nothing when all of it arrives.
    if (lost === 0) return allowed < 0.9 * count.sent * packetBytes ? 'absent' : 'unknown';
    return count.arrived * packetBytes <= allowed && count.arrived <= 0.8 * count.sent ? 'seen' : 'unknown';
  }
  return 'unknown';
}

/** The script that sends the datagrams, each from a socket of its own, so that no answer to one stops the next. */
export function floodScript(address: string, port: number, plan: ProbePlan): string {
  return `p=$(printf '%${plan.payloadBytes - 1}s' x); for ((i = 0; i < ${plan.count}; i++)); do echo "$p" 2>/dev/null >/dev/udp/${address}/${port}; done; true`;
}
