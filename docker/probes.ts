/**
 * Looks at links and nodes from where the packets start, so that a fault counts only when it was seen to bite.
 *
 * A refused connection is an answer: the link carried it both ways. Silence is unreachable only within its own time
 * limit; whatever else goes wrong is `unknown`, which is no evidence either way.
 */
import { readFileSync } from 'node:fs';
import { get } from 'node:http';
import { connect } from 'node:net';
import type { Clock } from '../lib/clock.ts';
import type { ProbeResult } from '../chaos/ports.ts';
import type { CommandResult } from './command.ts';

/** A port that nobody listens on: the answer comes from the kernel, and no server sees a stray connection. */
export const probePort = 9;
const connectTimeoutMs = 700;
const healthTimeoutMs = 1_000;

type Outcome = Omit<ProbeResult, 'atMs'>;

/** The script that tries one TCP connection from the network namespace it runs in. */
export function connectScript(target: ProbeTarget): string {
  return `timeout ${connectTimeoutMs / 1000} bash --norc -c 'exec 3<>/dev/tcp/${target.address}/${target.port}'`;
}

/** Where a connection is tried: a refusal there is a rule's doing while somebody listens, and else the kernel's answer. */
export interface ProbeTarget {
  readonly address: string;
  readonly port: number;
  readonly listens: boolean;
}

function judgeRefusal(link: string, listens: boolean): Outcome {
  return listens
    ? { outcome: 'unreachable', evidence: `${link}: refused, though somebody listens` }
    : { outcome: 'reachable', evidence: `${link}: refused, so answered` };
}

/** What the connect script's end says about the link. */
export function judgeConnect(result: CommandResult, link: string, listens = false): Outcome {
  const said = result.stderr.trim().split('\n').at(-1) ?? '';
  if (result.exitCode === 0) return { outcome: 'reachable', evidence: `${link}: connected` };
  if (/connection refused|reset by peer/i.test(said)) return judgeRefusal(link, listens);
  if (result.exitCode === 124)
    return { outcome: 'unreachable', evidence: `${link}: no answer in ${connectTimeoutMs} ms` };
  if (/no route|network is unreachable|host is down|timed out|not permitted/i.test(said)) {
    return { outcome: 'unreachable', evidence: `${link}: ${said}` };
  }
  return { outcome: 'unknown', evidence: `${link}: probe ended with ${result.exitCode} ${said}` };
}

/** Tries one TCP connection from this process. */
export function probeConnect(target: ProbeTarget, link: string): Promise<Outcome> {
  return new Promise((resolve) => {
    const socket = connect({ host: target.address, port: target.port });
    const finish = (outcome: Outcome): void => {
      clearTimeout(timer);
      socket.destroy();
      resolve(outcome);
    };
    const timer = setTimeout(
      () => finish({ outcome: 'unreachable', evidence: `${link}: no answer in ${connectTimeoutMs} ms` }),
      connectTimeoutMs,
    );
    socket.on('connect', () => finish({ outcome: 'reachable', evidence: `${link}: connected` }));
    socket.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'ECONNREFUSED' || error.code === 'ECONNRESET') {
        finish(judgeRefusal(link, target.listens));
      } else if (['EHOSTUNREACH', 'ENETUNREACH', 'ETIMEDOUT', 'EHOSTDOWN'].includes(error.code ?? '')) {
        finish({ outcome: 'unreachable', evidence: `${link}: ${error.code}` });
      } else {
        finish({ outcome: 'unknown', evidence: `${link}: ${error.code ?? error.message}` });
      }
    });
  });
}

/** Does somebody listen on `port`, by the text of /proc/net/tcp and tcp6? */
export function hasListener(tables: string, port: number): boolean {
  const suffix = `:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  return tables.split('\n').some((line) => {
    const [, local, , state] = line.trim().split(/\s+/);
    return state === '0A' && local?.endsWith(suffix) === true;
  });
}

/** Asks a health endpoint; any HTTP answer is an answer, its status stands in the evidence. */
export function probeHealth(clock: Clock, port: number, path: string, nodeId: string): Promise<ProbeResult> {
  return new Promise((resolve) => {
    const finish = (outcome: ProbeResult['outcome'], evidence: string): void => {
      clearTimeout(timer);
      resolve({ outcome, evidence: `${nodeId} ${path}: ${evidence}`, atMs: clock.nowMs() });
    };
    const request = get({ host: '127.0.0.1', port, path, agent: false }, (response) => {
      response.resume();
      finish('reachable', `HTTP ${response.statusCode}`);
      request.destroy();
    });
    const timer = setTimeout(() => {
      finish('unreachable', `no answer in ${healthTimeoutMs} ms`);
      request.destroy();
    }, healthTimeoutMs);
    request.on('error', (error: NodeJS.ErrnoException) => finish('unreachable', error.code ?? error.message));
  });
}

/** Where a node is asked, with what, and what its answer must contain. */
export interface Exchange {
  readonly host: string;
  readonly port: number;
  readonly send: string;
  readonly expect: string;
}

/** Most characters of an answer that are looked at. */
const exchangeChars = 4_096;

/** Asks over a connection of its own: only an answer shows that the process runs, the kernel takes connections for a frozen one too. */
export function probeExchange(clock: Clock, exchange: Exchange, nodeId: string): Promise<ProbeResult> {
  return new Promise((resolve) => {
    const socket = connect({ host: exchange.host, port: exchange.port });
    let heard = '';
    const finish = (outcome: ProbeResult['outcome'], evidence: string): void => {
      clearTimeout(timer);
      socket.destroy();
      resolve({ outcome, evidence: `${nodeId}: ${evidence}`, atMs: clock.nowMs() });
    };
    const timer = setTimeout(() => finish('unreachable', `no answer in ${healthTimeoutMs} ms`), healthTimeoutMs);
    socket.on('connect', () => socket.write(exchange.send));
    socket.on('data', (chunk: Buffer) => {
      heard = (heard + chunk.toString()).slice(-exchangeChars);
      if (heard.includes(exchange.expect)) finish('reachable', `answered ${exchange.expect}`);
    });
    socket.on('end', () => finish('unreachable', 'closed the connection without the answer'));
    socket.on('error', (error: NodeJS.ErrnoException) => finish('unreachable', error.code ?? error.message));
  });
}

/** The kernel's count of datagrams that came in for a port nobody listens on, in the namespace of `pid`. */
export function datagramsWithoutListener(pid: number | 'self'): number {
  return readNoPorts(readFileSync(`/proc/${pid}/net/snmp`, 'utf8'));
}

/** Reads `Udp: NoPorts` from the text of /proc/net/snmp; NaN when it is not in there. */
export function readNoPorts(snmp: string): number {
  const [names, values] = snmp
    .split('\n')
    .filter((line) => line.startsWith('Udp: '))
    .map((line) => line.split(' '));
  const index = names?.indexOf('NoPorts') ?? -1;
  return index < 0 ? Number.NaN : Number(values?.[index]);
}
