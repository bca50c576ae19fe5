/**
 * Faults as data: what can be done to a cluster, to whom, and which stage a fault has reached.
 *
 * Invariant: a name in this file is the only name of a fault, in schedules, journals and reports; each has one meaning. If
 * two names meant one thing, or one name two, a report would count evidence for a fault that never happened.
 * Source: DESIGN §6.
 */
import { unreachable } from '../lib/assert.ts';

/** How a partition is cut. `isolate`, `one-way-in` and `one-way-out` cut the targets from every other node. */
export const partitionShapes = ['halves', 'isolate', 'majorities-ring', 'bridge', 'one-way-in', 'one-way-out'] as const;
export type PartitionShape = (typeof partitionShapes)[number];

export type Fault =
  /** SIGKILL; the heal starts the process again, empty. */
  | { readonly kind: 'kill' }
  /** SIGTERM, and SIGKILL after `graceMs`; the heal starts the process again. */
  | { readonly kind: 'stop'; readonly graceMs: number }
  | { readonly kind: 'pause' }
  /** Killed by the kernel for memory; the heal starts the process again. */
  | { readonly kind: 'oom' }
  /** Packets between nodes; with `clients`, also those between the clients and the targets. */
  | { readonly kind: 'partition'; readonly shape: PartitionShape; readonly clients: boolean }
  /** Packets between the clients and the targets, both ways; nodes still hear each other. */
  | { readonly kind: 'client-partition' }
  /** Connections with the targets are refused and reset. */
  | { readonly kind: 'reset' }
  | { readonly kind: 'loss'; readonly percent: number }
  | { readonly kind: 'latency'; readonly delayMs: number; readonly jitterMs: number }
  | { readonly kind: 'bandwidth'; readonly bytesPerSecond: number }
  | { readonly kind: 'clock'; readonly offsetMs: number }
  /** Killed, and its disk taken away too. */
  | { readonly kind: 'wipe' }
  /** One more node; nothing to heal. */
  | { readonly kind: 'scale-out' }
  /** Stopped gracefully and removed for good; nothing to heal. */
  | { readonly kind: 'scale-in'; readonly graceMs: number }
  /** Every target stopped and started again, one after the other, each back in its sets before the next. */
  | { readonly kind: 'rolling-restart'; readonly graceMs: number };

/** The names people use: a kind, or for partitions the shape. */
export const faultNames = [
  'kill',
  'stop',
  'pause',
  'oom',
  ...partitionShapes,
  'client-partition',
  'reset',
  'loss',
  'latency',
  'bandwidth',
  'clock',
  'wipe',
  'scale-out',
  'scale-in',
  'rolling-restart',
] as const;
export type FaultName = (typeof faultNames)[number];

/** The one name of a fault in schedules, matrices and reports. */
export function faultName(fault: Fault): FaultName {
  return fault.kind === 'partition' ? fault.shape : fault.kind;
}

/** Default time that a graceful stop gets before SIGKILL. */
export const defaultGraceMs = 5_000;

/** A fault of this name with ordinary parameters. */
export function faultOfName(name: FaultName): Fault {
  switch (name) {
    case 'kill':
    case 'pause':
    case 'oom':
    case 'client-partition':
    case 'reset':
    case 'wipe':
    case 'scale-out':
      return { kind: name };
    case 'stop':
    case 'scale-in':
    case 'rolling-restart':
      return { kind: name, graceMs: defaultGraceMs };
    case 'halves':
    case 'isolate':
    case 'majorities-ring':
    case 'bridge':
    case 'one-way-in':
    case 'one-way-out':
      return { kind: 'partition', shape: name, clients: false };
    case 'loss':
      return { kind: 'loss', percent: 30 };
    case 'latency':
      return { kind: 'latency', delayMs: 150, jitterMs: 100 };
    case 'bandwidth':
      return { kind: 'bandwidth', bytesPerSecond: 64 * 1024 };
    case 'clock':
      return { kind: 'clock', offsetMs: 3_600_000 };
    default:
      return unreachable(name, 'fault name');
  }
}

/** Names for a group or in common use, and what they stand for. */
const aliases: Readonly<Record<string, readonly FaultName[]>> = {
  partition: partitionShapes,
  restart: ['stop'],
  all: faultNames,
};

/** What `--faults kill,pause,…` may say; null when the word is unknown. */
export function faultNamesOfWord(word: string): readonly FaultName[] | null {
  const known = faultNames.find((name) => name === word);
  if (known !== undefined) return [known];
  return Object.hasOwn(aliases, word) ? (aliases[word] ?? null) : null;
}

/** Every word that {@link faultNamesOfWord} knows, for messages. */
export const faultWords: readonly string[] = [...faultNames, ...Object.keys(aliases)];

/** True for faults that undo themselves or are not undone: no hold, no heal action. */
export function isPermanent(fault: Fault): boolean {
  return fault.kind === 'scale-out' || fault.kind === 'scale-in';
}

/** True for faults after which the memory of the target is gone. */
export function destroysMemory(fault: Fault): boolean {
  switch (fault.kind) {
    case 'kill':
    case 'stop':
    case 'oom':
    case 'wipe':
    case 'scale-in':
    case 'rolling-restart':
      return true;
    case 'pause':
    case 'partition':
    case 'client-partition':
    case 'reset':
    case 'loss':
    case 'latency':
    case 'bandwidth':
    case 'clock':
    case 'scale-out':
      return false;
    default:
      return unreachable(fault, 'fault kind');
  }
}

/** Which node, said by its role; resolved against live status at the moment of injection. */
export type Target =
  | { readonly kind: 'node'; readonly nodeId: string }
  | { readonly kind: 'random'; readonly count: number }
  /** As many nodes as a majority can do without. */
  | { readonly kind: 'minority' }
  | { readonly kind: 'all' }
  | { readonly kind: 'control-leader' }
  | {
      readonly kind: 'primary' | 'replica' | 'preferred-primary' | 'joiner';
      /** Index of a partition, or one drawn at injection. */
      readonly partition: number | 'random';
    };

export const targetKinds = [
  'node',
  'random',
  'minority',
  'all',
  'control-leader',
  'primary',
  'replica',
  'preferred-primary',
  'joiner',
] as const satisfies readonly Target['kind'][];

export const partitionTargetKinds = ['primary', 'replica', 'preferred-primary', 'joiner'] as const;

/** Short form, as schedules may write it: `control-leader`, `primary:7`, `primary`, `random:2`, `node:n3`. */
export function targetText(target: Target): string {
  switch (target.kind) {
    case 'node':
      return `node:${target.nodeId}`;
    case 'random':
      return target.count === 1 ? 'random' : `random:${target.count}`;
    case 'minority':
    case 'all':
    case 'control-leader':
      return target.kind;
    case 'primary':
    case 'replica':
    case 'preferred-primary':
    case 'joiner':
      return target.partition === 'random' ? target.kind : `${target.kind}:${target.partition}`;
    default:
      return unreachable(target, 'target kind');
  }
}

/** Inverse of {@link targetText}; a bare node id needs `node:`. Null when the text names no target. */
export function targetOfText(text: string): Target | null {
  const colon = text.indexOf(':');
  const kind = colon < 0 ? text : text.slice(0, colon);
  const rest = colon < 0 ? null : text.slice(colon + 1);
  const number = rest !== null && /^\d{1,9}$/.test(rest) ? Number(rest) : null;
  if (kind === 'node') return rest === null || rest === '' ? null : { kind, nodeId: rest };
  if (kind === 'random') {
    if (rest === null) return { kind, count: 1 };
    return number === null || number < 1 ? null : { kind, count: number };
  }
  if (kind === 'minority' || kind === 'all' || kind === 'control-leader') return rest === null ? { kind } : null;
  const ofPartition = partitionTargetKinds.find((known) => known === kind);
  if (ofPartition === undefined) return null;
  if (rest === null) return { kind: ofPartition, partition: 'random' };
  return number === null ? null : { kind: ofPartition, partition: number };
}
