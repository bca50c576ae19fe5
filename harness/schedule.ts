/** The schedule of a run: drawn from its seed, or read from a file. */
import { readFileSync } from 'node:fs';
import { defaultFaults, expandSchedule } from '../chaos/expand.ts';
import { type FaultName, partitionShapes, type Target } from '../chaos/faults.ts';
import type { SystemStatus } from '../chaos/ports.ts';
import { type Schedule, scheduleVersion } from '../chaos/schedule.ts';
import { parseSchedule, ScheduleError } from '../chaos/schedule-file.ts';
import { Prng } from '../lib/prng.ts';
import { messageOf, UsageError } from './errors.ts';
import type { RunSettings } from './settings.ts';

/** Events of the cluster that a drawn fault may strike at. */
const strikeMoments: readonly string[] = ['failover', 'edge-serving', 'snapshot-started'];

/** Reads the settings' schedule file, or null when they name none. Throws {@link UsageError}. */
export function readScheduleFile(settings: RunSettings): Schedule | null {
  if (settings.scheduleFile === null) return null;
  try {
    const text = readFileSync(settings.scheduleFile, 'utf8');
    const nodeIds = Array.from({ length: settings.nodeCount }, (_, index) => `n${index + 1}`);
    return parseSchedule(text, { nodeIds, partitionCount: settings.partitionCount });
  } catch (error) {
    if (!(error instanceof ScheduleError) && (error as NodeJS.ErrnoException).code === undefined) throw error;
    throw new UsageError(`The schedule ${settings.scheduleFile} cannot be used (${messageOf(error)}).`);
  }
}

/**
 * The schedule that a run plays. `unsupported`: what the host cannot do; such faults are drawn only when asked for by name.
 * `absentRoles`: see {@link absentRolesOf}.
 */
export function scheduleOf(
  settings: RunSettings,
  unsupported: ReadonlyMap<string, string>,
  absentRoles: readonly Target['kind'][] = [],
): Schedule {
  const file = readScheduleFile(settings);
  if (file !== null) return file;
  const { seed, durationMs, chaosLevel: level, nodeCount } = settings;
  if (level === 'none') {
    return {
      version: scheduleVersion,
      name: null,
      seed,
      level: null,
      durationMs,
      healFromMs: durationMs,
      events: [],
      expect: null,
      workload: {},
      cluster: {},
    };
  }
  const faults = settings.faultNames ?? drawable(defaultFaults(level), unsupported, nodeCount);
  return expandSchedule(
    { seed, durationMs, level, faults, nodeCount, moments: strikeMoments, absentRoles },
    new Prng(seed).fork('schedule'),
  );
}

/**
 * Whether the run may move nodes' wall clocks: asked for by name or in the schedule's file, or drawn at its level. Known before the
 * cluster starts, since a node whose clock can be moved runs under a library that costs it time at every look at the clock.
 */
export function movesClocks(settings: RunSettings): boolean {
  const file = readScheduleFile(settings);
  if (file !== null) return file.events.some(({ fault }) => fault.kind === 'clock');
  const { chaosLevel: level, faultNames } = settings;
  return level !== 'none' && (faultNames ?? defaultFaults(level)).includes('clock');
}

/** Roles that the system does not know, by its own status: in many stores no partition has a node that it belongs to. */
export function absentRolesOf(status: SystemStatus | null): readonly Target['kind'][] {
  if (status === null || status.partitions.length === 0) return [];
  return status.partitions.every(({ preferredPrimary }) => preferredPrimary === null) ? ['preferred-primary'] : [];
}

/** Faults of a level that this host can do; shapes count as partitions. */
function drawable(
  faults: readonly FaultName[],
  unsupported: ReadonlyMap<string, string>,
  nodeCount: number,
): readonly FaultName[] {
  const able = faults.filter((name) => !unsupported.has(name) && !(isShape(name) && unsupported.has('partition')));
  return nodeCount > 1 ? able : able.filter((name) => !isShape(name));
}

const isShape = (name: FaultName): boolean => partitionShapes.some((shape) => shape === name);
