/**
 * A node's configuration, from the environment (`ZARIS_NODE_ID=n1`) or flags (`--node-id n1`, which win). Everything is checked
 * before anything is opened; a wrong setting is one sentence. Every timing of the node can be set: `suspectEscalationMs` is
 * ZARIS_SUSPECT_ESCALATION_MS.
 */
import { readFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { getHeapStatistics } from 'node:v8';
import { nodeId, type NodeId } from '../model/ids.ts';
import { silentConnectionMs } from '../model/limits.ts';
import { type ControlTimings, defaultControlTimings } from '../node/options.ts';
import { defaultTimings, type Timings } from '../partition/timings.ts';
import type { TlsFiles } from './access.ts';
import { splitHostPort } from './host-port.ts';

/** The user's mistake in a setting; the message is all that is shown. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
}

export interface ServerConfig {
  readonly nodeId: NodeId;
  readonly dataDirectory: string;
  readonly host: string;
  /** 0 takes any free port. */
  readonly clientPort: number;
  readonly clusterPort: number;
  readonly httpPort: number;
  /** host:port; null: the host's name and the port in use. */
  readonly advertiseClient: string | null;
  readonly advertiseCluster: string | null;
  readonly peers: readonly { readonly nodeId: NodeId; readonly address: string }[];
  readonly token: string | null;
  readonly tls: TlsFiles | null;
  readonly memoryLimitBytes: number;
  readonly maxConnections: number;
  readonly silentConnectionMs: number;
  readonly logLevel: string;
  readonly timings: Partial<Timings>;
  readonly control: Partial<ControlTimings>;
  /** Settings that nobody reads; told at start, since a misspelt one would be found out in an incident. */
  readonly unknown: readonly string[];
}

type Settings = ReadonlyMap<string, string>;
const logLevels = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'];
/** Part of the V8 heap that data may fill before writes are refused. */
const defaultMemoryShare = 0.75;
const defaultMaxConnections = 1_024;
/** Read by clients, which may share the environment. */
const clientSettings = [
  'ZARIS_REQUEST_TIMEOUT',
  'ZARIS_CLIENT_MAP_REFRESH_WAIT_MS',
  'ZARIS_DISABLE_RETRIES',
  'ZARIS_URL',
];

/** `suspectEscalationMs` → `ZARIS_SUSPECT_ESCALATION_MS`. */
const settingName = (field: string): string =>
  `ZARIS_${field.replace(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase()}`;

function settingsOf(
  environment: Readonly<Record<string, string | undefined>>,
  flags: readonly string[],
): Map<string, string> {
  const settings = new Map<string, string>();
  for (const [name, value] of Object.entries(environment)) {
    if (name.startsWith('ZARIS_') && value !== undefined) settings.set(name, value);
  }
  for (let index = 0; index < flags.length; index++) {
    const flag = flags[index] as string;
    const match = /^--([a-z][a-z0-9-]*)(?:=(.*))?$/s.exec(flag);
    if (match === null) throw new ConfigError(`"${flag}" is no flag; write --name value`);
    const value = match[2] ?? flags[++index];
    if (value === undefined) throw new ConfigError(`--${match[1]} needs a value`);
    settings.set(`ZARIS_${(match[1] as string).toUpperCase().replaceAll('-', '_')}`, value);
  }
  return settings;
}

class Reader {
  readonly used = new Set<string>(clientSettings);
  private readonly settings: Settings;

  constructor(settings: Settings) {
    this.settings = settings;
  }

  text(name: string): string | null {
    this.used.add(name);
    const value = this.settings.get(name);
    return value === undefined || value === '' ? null : value;
  }

  required(name: string, example: string): string {
    const value = this.text(name);
    if (value === null) throw new ConfigError(`${name} is not set; write for example ${name}=${example}`);
    return value;
  }

  number(name: string, low: number, high: number): number | null {
    const value = this.text(name);
    if (value === null) return null;
    const number = Number(value);
    if (!(number >= low && number <= high))
      throw new ConfigError(`${name} is "${value}"; write a number from ${low} to ${high}`);
    return number;
  }

  address(name: string): string | null {
    const value = this.text(name);
    if (value !== null && splitHostPort(value) === null)
      throw new ConfigError(`${name} is "${value}"; write host:port`);
    return value;
  }

  file(name: string): string | null {
    const path = this.text(name);
    if (path === null) return null;
    try {
      return readFileSync(path, 'utf8');
    } catch (cause) {
      throw new ConfigError(`${name}: ${path} cannot be read`, { cause });
    }
  }

  timings<T extends object>(defaults: T): Partial<T> {
    const found: Record<string, number> = {};
    for (const field of Object.keys(defaults)) {
      const value = this.number(settingName(field), 0, Number.MAX_SAFE_INTEGER);
      if (value !== null) found[field] = value;
    }
    return found as Partial<T>;
  }
}

function readTls(reader: Reader): TlsFiles | null {
  const cert = reader.file('ZARIS_TLS_CERT');
  const key = reader.file('ZARIS_TLS_KEY');
  const ca = reader.file('ZARIS_TLS_CA');
  const servername = reader.text('ZARIS_TLS_SERVERNAME');
  if (cert === null && key === null && ca === null) return null;
  if (cert === null || key === null) throw new ConfigError('TLS needs both ZARIS_TLS_CERT and ZARIS_TLS_KEY');
  return { cert, key, ca, servername };
}

function readPeers(reader: Reader): ServerConfig['peers'] {
  const text = reader.text('ZARIS_PEERS');
  if (text === null) return [];
  return text.split(',').map((part) => {
    const [id, address] = part.trim().split('=');
    if (!id || address === undefined || splitHostPort(address) === null) {
      throw new ConfigError(`ZARIS_PEERS has "${part}"; write n1=host:port,n2=host:port`);
    }
    return { nodeId: nodeId(id), address };
  });
}

/** Configuration of a node. Throws {@link ConfigError}. */
export function readConfig(
  environment: Readonly<Record<string, string | undefined>>,
  flags: readonly string[],
): ServerConfig {
  const settings = settingsOf(environment, flags);
  const reader = new Reader(settings);
  const id = reader.required('ZARIS_NODE_ID', 'n1');
  if (!/^[\w.-]{1,64}$/.test(id))
    throw new ConfigError(`ZARIS_NODE_ID is "${id}"; write letters, digits, dots and dashes, at most 64`);
  const port = (name: string, fallback: number): number => reader.number(name, 0, 65_535) ?? fallback;
  const timings = reader.timings<Timings>(defaultTimings);
  const control = reader.timings<ControlTimings>(defaultControlTimings);
  const clientIdleMs = timings.clientIdleMs ?? defaultTimings.clientIdleMs;
  const memoryMegabytes = reader.number('ZARIS_MEMORY_LIMIT_MB', 1, 1e9);
  const logLevel = reader.text('ZARIS_LOG_LEVEL') ?? 'info';
  if (!logLevels.includes(logLevel))
    throw new ConfigError(`ZARIS_LOG_LEVEL is "${logLevel}"; write one of ${logLevels.join(', ')}`);
  const config = {
    nodeId: nodeId(id),
    dataDirectory: reader.required('ZARIS_DATA_DIR', '/var/lib/zaris'),
    host: reader.text('ZARIS_HOST') ?? '0.0.0.0',
    clientPort: port('ZARIS_CLIENT_PORT', 7861),
    clusterPort: port('ZARIS_CLUSTER_PORT', 7811),
    httpPort: port('ZARIS_HTTP_PORT', 7802),
    advertiseClient: reader.address('ZARIS_ADVERTISE_CLIENT'),
    advertiseCluster: reader.address('ZARIS_ADVERTISE_CLUSTER'),
    peers: readPeers(reader),
    token: reader.text('ZARIS_TOKEN'),
    tls: readTls(reader),
    memoryLimitBytes:
      memoryMegabytes === null
        ? getHeapStatistics().heap_size_limit * defaultMemoryShare
        : memoryMegabytes * 1024 * 1024,
    maxConnections: reader.number('ZARIS_MAX_CONNECTIONS', 1, 100_000) ?? defaultMaxConnections,
    silentConnectionMs: Math.min(silentConnectionMs, clientIdleMs / 2),
    logLevel,
    timings,
    control,
  };
  return { ...config, unknown: [...settings.keys()].filter((name) => !reader.used.has(name)) };
}

/** What a node announces when nothing else is configured. */
export const defaultAdvertise = (port: number): string => `${hostname()}:${port}`;
