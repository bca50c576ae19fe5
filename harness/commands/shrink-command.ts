/**
 * `certify reproduce RUN --shrink`: the smallest schedule that still finds what the run found, by playing candidates for real, and
 * how often that one finds it.
 *
 * Invariant: only what came out of real runs is said; a candidate counts as failing once one of its plays found a kind that the
 * run itself had found. The runs lie in the run's own folder, so that lists and trends do not take them for nightly runs.
 */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { parseSchedule, formatSchedule } from '../../chaos/schedule-file.ts';
import type { Schedule } from '../../chaos/schedule.ts';
import { shrinkSchedule } from '../../chaos/shrink.ts';
import { UsageError } from '../errors.ts';
import { openRunFolder, writeWhole } from '../results.ts';
import type { Interruption } from '../run/interruption.ts';
import { certify } from '../run/run.ts';
import { readScheduleFile } from '../schedule.ts';
import type { RunSettings } from '../settings.ts';
import { exitCodeOf } from '../verdict.ts';
import { findingsOf, isHit, type Replay, replaySettings, summaryOf } from './reproduce-command.ts';
import { realWorld } from './real-world.ts';

/** Plays of one candidate: one that fails half of the time is missed by all of them once in eight times. */
const playsPerCandidate = 3;
/** Candidates tried at most; each costs up to so many runs. */
const maxTrials = 60;

const say = (line: string): void => void process.stdout.write(`${line}\n`);

/** Shrinks, writes `smallest.json` into the run's folder, and plays it `times` times. Exit 0 when something smaller was found or none is. */
export async function shrinkCommand(
  resultsDir: string,
  run: string,
  times: number,
  interruption: Interruption,
): Promise<number> {
  const folder = openRunFolder(resultsDir, run);
  const settings = replaySettings(folder);
  const wanted = findingsOf(folder);
  if (wanted.length === 0)
    throw new UsageError(
      `Run ${folder.runId} found nothing, so there is nothing to shrink; "certify reproduce" plays it again.`,
    );
  const whole = readScheduleFile(settings);
  if (whole === null) throw new UsageError(`There is no schedule in ${folder.path}.`);
  const player = new Player(settings, join(folder.path, 'shrink'), wanted, interruption);
  say(
    `Shrinking the ${whole.events.length} faults of ${folder.runId}, which found ${wanted.join(', ')}; at most ${maxTrials} schedules.`,
  );
  const shrunk = await shrinkSchedule(whole, {
    maxTrials,
    signal: interruption.early,
    fails: (schedule) => player.fails(schedule),
    onTrial: ({ schedule, failed, count }) =>
      say(
        `Schedule ${count}: ${schedule.events.length} faults, ${schedule.durationMs / 1_000} s: ${failed ? 'FOUND IT' : 'nothing'}`,
      ),
  });
  if (shrunk.schedule === null) {
    if (interruption.early.aborted) return exitCodeOf('interrupted');
    say(`It did not come again in ${playsPerCandidate} plays of the whole schedule: nothing was shrunk.`);
    return exitCodeOf('inconclusive');
  }
  const file = join(folder.path, 'smallest.json');
  writeWhole(file, formatSchedule(shrunk.schedule));
  const { events, durationMs } = shrunk.schedule;
  say(
    `Smallest after ${shrunk.trials} schedules: ${events.length} of ${whole.events.length} faults, ${durationMs / 1_000} s${shrunk.isMinimal ? '' : ' (stopped early: something smaller may do)'}.`,
  );
  say(`Written to ${file}`);
  const replays: Replay[] = [];
  while (replays.length < times && !interruption.early.aborted) replays.push(await player.play(shrunk.schedule));
  for (const line of summaryOf(replays, wanted)) say(line);
  return interruption.early.aborted ? exitCodeOf('interrupted') : 0;
}

/** Plays schedules with the settings of the run. */
class Player {
  private readonly settings: RunSettings;
  private readonly wanted: readonly string[];
  private readonly interruption: Interruption;
  private count = 0;

  constructor(settings: RunSettings, resultsDir: string, wanted: readonly string[], interruption: Interruption) {
    mkdirSync(resultsDir, { recursive: true });
    this.settings = { ...settings, resultsDir };
    this.wanted = wanted;
    this.interruption = interruption;
  }

  async fails(schedule: Schedule): Promise<boolean> {
    for (let play = 0; play < playsPerCandidate && !this.interruption.early.aborted; play++) {
      if (isHit(await this.play(schedule), this.wanted)) return true;
    }
    return false;
  }

  async play(schedule: Schedule): Promise<Replay> {
    const scheduleFile = join(this.settings.resultsDir, `schedule-${++this.count}.json`);
    const text = formatSchedule(schedule);
    writeWhole(scheduleFile, text);
    const { durationMs } = parseSchedule(text);
    const settings = { ...this.settings, scheduleFile, durationMs };
    const { folder, judged } = await certify(settings, await realWorld(settings, this.interruption));
    return { runId: folder.runId, verdict: judged.verdict, found: findingsOf(folder) };
  }
}
