/** Looks at a link of the process cluster with a connection of its own, from the source address of the end that calls. */
import { connect } from 'node:net';
import type { Endpoint, LinkRule, ProbeResult } from '../../chaos/ports.ts';

const host = '127.0.0.1';
const baseTimeoutMs = 700;
/** Longest wait that rules which only slow a link can ask for. */
const maxPatienceMs = 8_000;
const token = Buffer.from('probe');

/** How long an answer may take under these rules, which slow a link down but do not cut it. */
export function patienceMs(rules: readonly LinkRule[], from: Endpoint, to: Endpoint): number {
  let ms = baseTimeoutMs;
  for (const rule of rules) {
    if (![rule.from, rule.to].includes(from) || ![rule.from, rule.to].includes(to)) continue;
    if (rule.kind === 'delay') ms += 2 * (rule.delayMs + rule.jitterMs);
    if (rule.kind === 'loss' || rule.kind === 'rate') ms += 2_000;
  }
  return Math.min(ms, maxPatienceMs);
}

/** Connects, sends a few bytes and waits for them to come back. */
export function probeEcho(
  port: number,
  localAddress: string | null,
  timeoutMs: number,
): Promise<Omit<ProbeResult, 'atMs'>> {
  return new Promise((resolve) => {
    const socket = connect({ host, port, ...(localAddress === null ? {} : { localAddress }) });
    const finish = (outcome: ProbeResult['outcome'], evidence: string): void => {
      clearTimeout(timer);
      socket.destroy();
      resolve({ outcome, evidence });
    };
    const timer = setTimeout(() => finish('unreachable', `no answer in ${timeoutMs} ms`), timeoutMs);
    socket.on('connect', () => socket.write(token));
    socket.on('data', () => finish('reachable', 'answered'));
    socket.on('end', () => finish('unreachable', 'closed without an answer'));
    socket.on('error', (error: NodeJS.ErrnoException) => {
      const isReset = error.code === 'ECONNRESET' || error.code === 'ECONNREFUSED' || error.code === 'EPIPE';
      finish(isReset ? 'unreachable' : 'unknown', error.code ?? error.message);
    });
  });
}
