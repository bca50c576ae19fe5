/** The parts of a report that say what was run, where, and with which settings; read back from the ledger's meta rows. */
import { cpus, hostname, release, totalmem, type } from 'node:os';
import type { ClockOrigin } from '../../ledger/clock-origin.ts';
import type { RunReport } from '../report/model.ts';
import type { Capabilities } from '../systems/system.ts';
import { phaseNames } from '../run/phases.ts';
import { replayCommand } from './replay-command.ts';

/** Reads one meta row; undefined when it was never written. */
export type Meta = (key: string) => unknown;

/** Settings as the run wrote them: finite numbers, the mix as text. */
export type StoredSettings = Readonly<Record<string, unknown>>;

interface Facts {
  /** With the variant, as the adapter calls itself. */
  readonly name?: string;
  readonly capabilities?: Capabilities;
  readonly build?: string;
  readonly engine?: string | null;
  readonly replicationFactor?: number;
  readonly minInSync?: number;
  readonly partitions?: number;
  readonly versions?: readonly { readonly name: string; readonly value: string }[];
  readonly contract?: {
    readonly acknowledgement: string;
    readonly durable: boolean;
    readonly permittedLoss: string | null;
    readonly lossNeeds?: string;
    readonly permits?: readonly string[];
  };
}

export const factsOf = (meta: Meta): Facts => meta('facts') ?? {};
export const settingsOf = (meta: Meta): StoredSettings => (meta('settings') ?? {}) as StoredSettings;

/** A stored value as text; nothing for null. */
export function textOf(value: unknown): string {
  if (value === null || value === undefined) return '';
  return typeof value === 'string' ? value : JSON.stringify(value);
}

const number = (value: unknown): number => (typeof value === 'number' && Number.isFinite(value) ? value : 0);

/** Settings that stand elsewhere in the report, or say nothing. */
const hiddenSettings = new Set(['resultsDir', 'seed', 'durationMs']);

export function runPart(meta: Meta, endNs: number): RunReport['run'] {
  const settings = settingsOf(meta);
  const origin = meta('origin') as ClockOrigin | undefined;
  const startedMs = origin?.wallMs ?? 0;
  const seed = `0x${number(settings['seed']).toString(16)}`;
  const runId = textOf(meta('runId'));
  return {
    runId,
    startedAt: new Date(startedMs).toISOString(),
    endedAt: new Date(startedMs + endNs / 1e6).toISOString(),
    durationMs: endNs / 1e6,
    plannedMs: number(settings['durationMs']),
    seed,
    preset: '',
    chaosLevel: textOf(settings['chaosLevel']),
    cluster: settings['cluster'] === 'process' ? 'process' : settings['cluster'] === 'sim' ? 'sim' : 'docker',
    nodeCount: number(settings['nodeCount']),
    replay: settings['cluster'] === 'sim' ? textOf(settings['replay']) : replayCommand(settings, seed, runId),
  };
}

export function systemPart(meta: Meta): RunReport['system'] {
  const facts = factsOf(meta);
  return {
    name: facts.name ?? textOf(settingsOf(meta)['system']),
    build: facts.build ?? '',
    replicationFactor: facts.replicationFactor ?? 0,
    minInSync: facts.minInSync ?? 0,
    partitions: facts.partitions ?? 0,
    contract: facts.contract?.acknowledgement ?? '',
  };
}

/** The host that the run was on, as the run itself wrote it. */
export function hostPart(meta: Meta): RunReport['host'] {
  const host = (meta('host') ?? currentHost()) as Omit<RunReport['host'], 'engine'>;
  return { ...host, engine: factsOf(meta).engine ?? null };
}

/** This host. */
export function currentHost(): Omit<RunReport['host'], 'engine'> {
  return { name: hostname(), os: type(), kernel: release(), cpus: cpus().length, memoryBytes: totalmem() };
}

export function settingsPart(meta: Meta): RunReport['settings'] {
  return Object.entries(settingsOf(meta))
    .filter(([name, value]) => !hiddenSettings.has(name) && value !== null)
    .map(([name, value]) => ({ name, value: textOf(value) }));
}

export function versionsPart(meta: Meta): RunReport['versions'] {
  const versions = (meta('versions') ?? []) as RunReport['versions'];
  return [...versions, ...(factsOf(meta).versions ?? [])];
}

/** Phases as they ran; one that the harness did not live to end lasts until the last recorded instant. */
export function phasesPart(meta: Meta, lastNs: number): RunReport['phases'] {
  return phaseNames.flatMap((name) => {
    const phase = meta(`phase:${name}`) as { fromNs: number; toNs: number } | undefined;
    if (phase !== undefined) return [{ name, fromMs: phase.fromNs / 1e6, toMs: phase.toNs / 1e6 }];
    const started = meta(`started:${name}`);
    if (typeof started !== 'number' || meta('end') !== undefined || started > lastNs) return [];
    return [{ name, fromMs: started / 1e6, toMs: lastNs / 1e6 }];
  });
}
