/**
 * Looks whether a rule takes effect, by sending through pipes of the same code and the same settings that carry the traffic.
 *
 * Each look is at one kind of rule alone, so that another fault on the same link is neither taken for this one nor hides
 * it. Invariant: `seen` and `absent` are measured on bytes; what the measure cannot tell apart is `unknown`.
 */
import { PassThrough } from 'node:stream';
import { unreachable } from '../../../lib/assert.ts';
import type { EffectProbe, LinkRule } from '../../../chaos/ports.ts';
import { LinkPipe, type PipeWorld } from './link-pipe.ts';
import { DirectedLink, type LinkSettings } from './link-table.ts';

export type Effect = Omit<EffectProbe, 'atMs'>;

/** A byte that took longer than this was lost at least once: the pipe's first retransmission comes after 200 ms. */
const lateMs = 150;
const packetTimeoutMs = 500;
const delaySamples = 16;
const mostLossSamples = 400;
const leastLossSamples = 40;
/** Part of the promised loss that must be seen; a sample of it scatters. */
const leastShareOfLoss = 1 / 3;
/** A throttle is looked at for about this long. */
const rateLookMs = 400;
const mostRateBytes = 4 * 1024 * 1024;
const leastRateBytes = 256;

/** Does a byte get through this direction, whatever stands in the other? Milliseconds it took, or null. */
export function sendOne(link: DirectedLink, world: PipeWorld, timeoutMs = packetTimeoutMs): Promise<number | null> {
  return sendBytes(link, world, 1, timeoutMs);
}

function sendBytes(link: DirectedLink, world: PipeWorld, byteCount: number, timeoutMs: number): Promise<number | null> {
  return new Promise((resolve) => {
    const source = new PassThrough();
    const sink = new PassThrough();
    const startMs = world.nowMs();
    let arrived = 0;
    const finish = (result: number | null): void => {
      clearTimeout(timer);
      pipe.close();
      resolve(result);
    };
    const timer = setTimeout(() => finish(null), timeoutMs);
    const pipe = new LinkPipe(
      source,
      link,
      world,
      () => finish(null),
      () => finish(null),
    );
    pipe.connect(sink);
    sink.on('data', (bytes: Uint8Array) => {
      arrived += bytes.byteLength;
      if (arrived >= byteCount) finish(world.nowMs() - startMs);
    });
    source.write(new Uint8Array(byteCount));
  });
}

/** The link with nothing but the settings that this kind of rule makes. */
function only(link: DirectedLink, kind: LinkRule['kind']): DirectedLink {
  const { settings } = link;
  const alone = new DirectedLink(link.from, link.to);
  const pick: Partial<LinkSettings> =
    kind === 'loss'
      ? { lossPercent: settings.lossPercent }
      : kind === 'delay'
        ? { delayMs: settings.delayMs, jitterMs: settings.jitterMs }
        : { bytesPerSecond: settings.bytesPerSecond };
  alone.set({ ...alone.settings, ...pick });
  return alone;
}

/** Looks for a rule of this strength on the link. */
export async function lookForRule(link: DirectedLink, rule: LinkRule, world: PipeWorld): Promise<Effect> {
  switch (rule.kind) {
    case 'drop':
    case 'reset': {
      const took = await sendOne(link, world);
      return took === null
        ? { effect: 'seen', evidence: `nothing arrived within ${packetTimeoutMs} ms` }
        : { effect: 'absent', evidence: `a byte arrived after ${took.toFixed(1)} ms` };
    }
    case 'delay':
      return lookForDelay(only(link, 'delay'), rule.delayMs, world);
    case 'loss':
      return lookForLoss(only(link, 'loss'), rule.percent, world);
    case 'rate':
      return lookForRate(only(link, 'rate'), rule.bytesPerSecond, world);
    default:
      return unreachable(rule, 'link rule');
  }
}

async function lookForDelay(link: DirectedLink, delayMs: number, world: PipeWorld): Promise<Effect> {
  const took = await Promise.all(
    Array.from({ length: delaySamples }, () => sendOne(link, world, 4 * delayMs + packetTimeoutMs)),
  );
  const sorted = took.map((ms) => ms ?? Infinity).sort((a, b) => a - b);
  const middle = sorted[delaySamples / 2] as number;
  const evidence = `half of ${delaySamples} bytes took ${middle.toFixed(1)} ms or more`;
  if (middle >= 0.7 * delayMs) return { effect: 'seen', evidence };
  return { effect: middle < 0.3 * delayMs ? 'absent' : 'unknown', evidence };
}

async function lookForLoss(link: DirectedLink, percent: number, world: PipeWorld): Promise<Effect> {
  const count = Math.min(mostLossSamples, Math.max(leastLossSamples, Math.ceil(500 / percent)));
  const took = await Promise.all(Array.from({ length: count }, () => sendOne(link, world, lateMs)));
  const late = took.filter((ms) => ms === null || ms > lateMs).length;
  const evidence = `${late} of ${count} single bytes had to be sent again`;
  if ((late / count) * 100 >= percent * leastShareOfLoss) return { effect: 'seen', evidence };
  return { effect: late === 0 ? 'absent' : 'unknown', evidence };
}

async function lookForRate(link: DirectedLink, bytesPerSecond: number, world: PipeWorld): Promise<Effect> {
  const wanted = Math.ceil((bytesPerSecond * rateLookMs) / 1_000);
  const byteCount = Math.max(leastRateBytes, Math.min(mostRateBytes, wanted));
  const expectedMs = (byteCount / bytesPerSecond) * 1_000;
  const took = await sendBytes(link, world, byteCount, 4 * expectedMs + packetTimeoutMs);
  const evidence = `${byteCount} bytes took ${took === null ? 'too long' : `${took.toFixed(0)} ms`}; the limit makes them take ${expectedMs.toFixed(0)} ms`;
  if (took === null || took >= 0.7 * expectedMs) return { effect: 'seen', evidence };
  return { effect: took < 0.3 * expectedMs ? 'absent' : 'unknown', evidence };
}
