/**
 * The program `bench`: measures, certifies nothing. `npm run bench` runs everything, `npm run bench -- puts|pipeline|failover|silence|planned|ledger|verify-scale|profile`
 * one of them, `--quick` a short version, `--docker` failovers in containers. Figures go to standard output, progress to standard error.
 *
 * Ctrl-C ends the measurement and cleans up; a second one ends at once, and kills what local processes there are.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import yargs from 'yargs';
import { messageOf } from '../errors.ts';
import { atExit, type BenchContext } from './bench-context.ts';
import { describeMachine } from './cpu-time.ts';

const benches: Readonly<Record<string, () => Promise<(context: BenchContext) => Promise<void>>>> = {
  puts: async () => (await import('./puts.ts')).benchPuts,
  pipeline: async () => (await import('./pipeline.ts')).benchPipeline,
  failover: async () => (await import('./failover.ts')).benchFailover,
  silence: async () => (await import('./silence.ts')).benchSilence,
  planned: async () => (await import('./planned.ts')).benchPlanned,
  ledger: async () => (await import('./ledger.ts')).benchLedger,
  'verify-scale': async () => (await import('./verify-scale.ts')).benchVerifyScale,
  profile: async () => (await import('./profile.ts')).benchProfile,
};
const names = Object.keys(benches);
const exitUsage = 64;
const exitInterrupted = 130;

interface Arguments {
  readonly chosen: readonly string[];
  readonly isQuick: boolean;
  readonly isDocker: boolean;
}

async function readArguments(argv: readonly string[]): Promise<Arguments | null> {
  const parsed = await yargs([...argv])
    .scriptName('npm run bench --')
    .usage(`$0 [${names.join('|')}] [--quick] [--docker]\n\nMeasures Zaris and the ledger; without a name, everything.`)
    .option('quick', { type: 'boolean', default: false, describe: 'A short version, to see that it works' })
    .option('docker', { type: 'boolean', default: false, describe: 'Failovers in containers, not local processes' })
    .strictOptions()
    .version(false)
    .exitProcess(false)
    .fail((message: string | null, error: Error | undefined) => {
      throw error ?? new Error(message ?? 'the command line makes no sense');
    })
    .parseAsync();
  if (parsed['help'] === true) return null;
  const chosen = parsed._.map(String);
  const unknown = chosen.find((name) => !names.includes(name));
  if (unknown !== undefined) throw new Error(`there is no bench "${unknown}"; there are ${names.join(', ')}`);
  return { chosen: chosen.length === 0 ? names : chosen, isQuick: parsed.quick, isDocker: parsed.docker };
}

const say = (line: string): void => void process.stderr.write(`${line}\n`);

/** Runs the chosen ones, one after the other; one that fails does not take the others with it. */
async function run(chosen: readonly string[], context: BenchContext): Promise<number> {
  let exitCode = 0;
  for (const name of chosen) {
    context.print(
      `\n== ${name}${context.isQuick ? ' (quick: figures of a few seconds)' : ''}\n${describeMachine(context.workDir)}`,
    );
    try {
      await (
        await (benches[name] as (typeof benches)[string])()
      )(context);
    } catch (error) {
      if (context.signal.aborted) return exitInterrupted;
      context.print(`${name} failed: ${messageOf(error)}`);
      if (error instanceof Error && error.stack !== undefined) say(error.stack);
      exitCode = 1;
    }
  }
  return exitCode;
}

async function main(): Promise<number> {
  let args: Arguments | null;
  try {
    args = await readArguments(process.argv.slice(2));
  } catch (error) {
    say(`bench: ${messageOf(error)}`);
    return exitUsage;
  }
  if (args === null) return 0;
  const interruption = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.on(signal, () => {
      if (interruption.signal.aborted) process.exit(exitInterrupted);
      say('Ending; once more to end at once.');
      interruption.abort(new Error('interrupted'));
    });
  }
  const workDir = mkdtempSync(join(tmpdir(), 'zaris-bench-'));
  atExit(() => rmSync(workDir, { recursive: true, force: true }));
  return run(args.chosen, {
    isQuick: args.isQuick,
    isDocker: args.isDocker,
    workDir,
    signal: interruption.signal,
    print: (text) => void process.stdout.write(`${text}\n`),
    say,
  });
}

process.exit(await main());
