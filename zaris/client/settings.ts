/**
 * Where a client's settings come from: the URL, the options of the call, the environment. Everything is validated before a socket
 * is opened; a setting that was silently ignored would be found out in an incident.
 */
import { ZarisInputError } from './errors.ts';

export interface ParsedUrl {
  readonly isTls: boolean;
  /** host:port each. */
  readonly seeds: readonly string[];
  /** Name of the store, the path of the URL; may be empty. For people: nothing checks it. */
  readonly store: string;
}

const urlPattern = /^(zariss?):\/\/([^/]+)(?:\/([\w.-]*))?$/;
const addressPattern = /^(?:\[[0-9a-fA-F:.]+\]|[\w.-]+):(\d{1,5})$/;

/** True for `host:port`. */
export function isAddress(text: string): boolean {
  const port = Number(addressPattern.exec(text)?.[1] ?? 0);
  return port >= 1 && port <= 65_535;
}

/** Parts of `zaris://host:port,host:port/store`. Throws {@link ZarisInputError}. */
export function parseUrl(url: string): ParsedUrl {
  const match = urlPattern.exec(url);
  if (match === null) throw new ZarisInputError(`"${url}" is no Zaris URL; write zaris://host:port,host:port/store`);
  const seeds = (match[2] as string).split(',');
  for (const seed of seeds) {
    if (!isAddress(seed)) throw new ZarisInputError(`"${seed}" in the URL is no host:port`);
  }
  return { isTls: match[1] === 'zariss', seeds, store: match[3] ?? '' };
}

/** host and port of an address that {@link isAddress} accepts; brackets of IPv6 removed. */
export function splitAddress(address: string): { readonly host: string; readonly port: number } {
  const colon = address.lastIndexOf(':');
  return { host: address.slice(0, colon).replace(/^\[|\]$/g, ''), port: Number(address.slice(colon + 1)) };
}

type Environment = Readonly<Record<string, string | undefined>>;

export interface EnvironmentSettings {
  /** Infinity for `infinite`. */
  readonly requestTimeoutMs?: number;
  readonly mapRefreshWaitMs?: number;
  readonly isRetryDisabled?: boolean;
}

const unitMs: Readonly<Record<string, number>> = { '': 1, ms: 1, s: 1000, m: 60_000, h: 3_600_000 };

function durationMs(name: string, text: string): number {
  const match = /^(\d+(?:\.\d+)?)(ms|s|m|h)?$/.exec(text.trim());
  const value = match === null ? 0 : Number(match[1]) * (unitMs[match[2] ?? ''] as number);
  if (!(value > 0))
    throw new ZarisInputError(
      `${name} is "${text}"; write a duration above zero, such as 60s, 1500ms or 1500 (milliseconds)`,
    );
  return value;
}

/** ZARIS_REQUEST_TIMEOUT, ZARIS_CLIENT_MAP_REFRESH_WAIT_MS and ZARIS_DISABLE_RETRIES. Throws {@link ZarisInputError}. */
export function readEnvironment(environment: Environment): EnvironmentSettings {
  const timeout = environment['ZARIS_REQUEST_TIMEOUT'];
  const wait = environment['ZARIS_CLIENT_MAP_REFRESH_WAIT_MS'];
  const disable = environment['ZARIS_DISABLE_RETRIES'];
  if (disable !== undefined && disable !== 'true' && disable !== 'false') {
    throw new ZarisInputError(`ZARIS_DISABLE_RETRIES is "${disable}"; write true or false`);
  }
  if (wait !== undefined && !/^\d+$/.test(wait)) {
    throw new ZarisInputError(`ZARIS_CLIENT_MAP_REFRESH_WAIT_MS is "${wait}"; write whole milliseconds`);
  }
  return {
    ...(timeout === undefined
      ? {}
      : { requestTimeoutMs: timeout === 'infinite' ? Infinity : durationMs('ZARIS_REQUEST_TIMEOUT', timeout) }),
    ...(wait === undefined ? {} : { mapRefreshWaitMs: Number(wait) }),
    ...(disable === undefined ? {} : { isRetryDisabled: disable === 'true' }),
  };
}
