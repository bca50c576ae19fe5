/** How the `zaris` command reaches a cluster: options shared by all commands, and what a result means for the exit code. */
import { readFileSync } from 'node:fs';
import { type ConnectOptions, defaultConnectTimeoutMs, ZarisClient } from '../client/client.ts';
import { ZarisInputError } from '../client/errors.ts';
import type { OperationResult } from '../client/result.ts';
import { isAddress, parseUrl } from '../client/settings.ts';

export const exitOk = 0;
/** A clear no: NotFound, Conflict or InvalidInput. */
export const exitNo = 1;
/** No answer, a refusal, or a mutation in doubt. */
export const exitUnsettled = 2;
export const exitUsage = 64;

export const defaultUrl = 'zaris://127.0.0.1:7861/default';

/** Options of every command, as yargs gives them. */
export interface CommonArguments {
  readonly url: string;
  readonly token?: string | undefined;
  readonly ca?: string | undefined;
  readonly clientCert?: string | undefined;
  readonly clientKey?: string | undefined;
  readonly servername?: string | undefined;
  readonly translate?: string | undefined;
  readonly timeout?: number | undefined;
  readonly json: boolean;
}

function readPem(option: string, path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (cause) {
    throw new ZarisInputError(`--${option}: ${path} cannot be read`, { cause });
  }
}

function translation(text: string): (nodeId: string, address: string) => string {
  const known = new Map<string, string>();
  for (const part of text.split(',')) {
    const [id, address] = part.split('=');
    if (!id || address === undefined || !isAddress(address))
      throw new ZarisInputError(`--translate has "${part}"; write n1=host:port,n2=host:port`);
    known.set(id, address);
  }
  return (nodeId, address) => known.get(nodeId) ?? address;
}

function tlsOf(args: CommonArguments): NonNullable<ConnectOptions['tls']> {
  return {
    ...(args.ca === undefined ? {} : { ca: readPem('ca', args.ca) }),
    ...(args.clientCert === undefined ? {} : { cert: readPem('client-cert', args.clientCert) }),
    ...(args.clientKey === undefined ? {} : { key: readPem('client-key', args.clientKey) }),
    ...(args.servername === undefined ? {} : { servername: args.servername }),
  };
}

/** The wait for the first map is part of an operation's deadline, where one is given that ends before the usual wait. */
const waitOf = (timeoutMs: number | undefined): { readonly connectTimeoutMs?: number } =>
  timeoutMs !== undefined && timeoutMs > 0 && timeoutMs < defaultConnectTimeoutMs
    ? { connectTimeoutMs: timeoutMs }
    : {};

/** A client as the common options say. `waitForMap` false: for a cluster that may have none yet. */
export function connectClient(args: CommonArguments, waitForMap = true): Promise<ZarisClient> {
  const { isTls } = parseUrl(args.url);
  return ZarisClient.connect(args.url, {
    ...(args.token === undefined ? {} : { token: args.token }),
    ...(isTls ? { tls: tlsOf(args) } : {}),
    ...(args.translate === undefined ? {} : { translate: translation(args.translate) }),
    ...(args.timeout === undefined ? {} : { requestTimeoutMs: args.timeout }),
    ...(waitForMap ? waitOf(args.timeout) : { connectTimeoutMs: 0 }),
  });
}

/** First configured address; administrative commands start there. */
export const firstSeed = (args: CommonArguments): string => parseUrl(args.url).seeds[0] as string;

const clearNos: ReadonlySet<string> = new Set(['NotFound', 'Conflict', 'InvalidInput']);

/** Exit code of one result. */
export function exitCodeOf(result: OperationResult): number {
  if (result.isSuccess) return exitOk;
  return clearNos.has(result.status) && !result.inDoubt ? exitNo : exitUnsettled;
}

/** Prints one result: the value alone for a successful read, else one line; everything with `json`. */
export function printResult(result: OperationResult, args: CommonArguments, isRead: boolean): void {
  if (args.json) {
    process.stdout.write(`${JSON.stringify(result)}\n`);
    return;
  }
  if (result.isSuccess && isRead) {
    process.stdout.write(`${result.value ?? ''}\n`);
    return;
  }
  const { version, reason } = result;
  const parts: string[] = [result.status];
  if (result.isSuccess && result.value !== undefined) parts.push(result.value);
  if (version !== undefined) parts.push(`version ${version.term}:${version.seq}`);
  if (result.inDoubt) parts.push('in doubt: it may have run');
  if (result.attempts > 1) parts.push(`${result.attempts} attempts`);
  if (reason !== undefined) parts.push(reason);
  const stream = result.isSuccess ? process.stdout : process.stderr;
  stream.write(`${parts.join(' · ')}\n`);
}
