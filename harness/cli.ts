/**
 * The command line: words in, one typed command out. Pure: it starts nothing and prints nothing.
 *
 * Invariant: whatever does not make sense is a UsageError with one sentence, before anything was started. A setting that
 * slipped through unread would make a certificate claim what was not run.
 */
import yargs, { type Argv } from 'yargs';
import { exportFormats, type ExportWish } from './commands/export-wish.ts';
import { usageFailure } from './own-parser.ts';
import { parseInteger } from './parse.ts';
import { randomSeed } from './seed.ts';
import { UsageError } from './errors.ts';
import { withScenario } from './scenario.ts';
import { withSystem } from './system-options.ts';
import { epilogue, examples } from './help.ts';
import { addRunOptions, type RawOptions, resolveSettings } from './run-options.ts';
import { optionsOf, profileOf } from './profiles.ts';
import type { CompareWish } from './commands/compare-command.ts';
import type { ConformanceWish } from './commands/conformance-command.ts';
import { clusterKinds, defaults, type RunSettings } from './settings.ts';

export type Command =
  | { readonly kind: 'run'; readonly settings: RunSettings }
  | { readonly kind: 'verify'; readonly run: string; readonly resultsDir: string }
  | { readonly kind: 'resume'; readonly run: string; readonly resultsDir: string }
  | { readonly kind: 'report'; readonly run: string; readonly resultsDir: string }
  | { readonly kind: 'check' | 'sim' | 'selftest'; readonly argv: readonly string[] }
  | { readonly kind: 'list' | 'trend'; readonly resultsDir: string }
  | { readonly kind: 'diff'; readonly before: string; readonly after: string; readonly resultsDir: string }
  | { readonly kind: 'serve'; readonly port: number; readonly resultsDir: string }
  | { readonly kind: 'prune'; readonly keep: number; readonly resultsDir: string }
  | { readonly kind: 'export'; readonly wish: ExportWish }
  | {
      readonly kind: 'reproduce';
      readonly run: string;
      readonly times: number;
      /** Look for the smallest schedule that still finds it. */
      readonly shrink: boolean;
      readonly resultsDir: string;
    }
  | { readonly kind: 'order'; readonly runs: readonly string[]; readonly resultsDir: string }
  | { readonly kind: 'verify-certificate'; readonly file: string }
  | { readonly kind: 'clean'; readonly run: string | null; readonly resultsDir: string }
  | { readonly kind: 'compare'; readonly wish: CompareWish }
  | { readonly kind: 'conformance'; readonly wish: ConformanceWish }
  | { readonly kind: 'doctor'; readonly resultsDir: string }
  /** Help or version was asked for. */
  | { readonly kind: 'text'; readonly text: string };

/** Runs of one `reproduce` at most. */
const maxTimes = 1_000;

/** Options that may stand more than once. */
const repeatable = new Set(['node-env', 'fail-if']);

/** Columns of help that is not printed to a terminal. */
const helpColumns = 110;

/** Reads the words after the program's name. Throws {@link UsageError}. */
export async function parseCommandLine(words: readonly string[], version: string): Promise<Command> {
  // The foreign-history checker has a command line of its own.
  if (words[0] === 'check') return { kind: 'check', argv: words.slice(1) };
  // So has the simulator.
  if (words[0] === 'sim' || words[0] === 'selftest') return { kind: words[0], argv: words.slice(1) };
  const argv = await withSystem(withScenario(words));
  let command: Command | null = null;
  let text = '';
  const parser = build(argv, version, (chosen) => {
    command = chosen;
  });
  await parser.parseAsync(argv, {}, (_error: Error | undefined, _parsed: unknown, output: string) => {
    text = output;
  });
  if (command !== null) return command;
  return { kind: 'text', text: text.endsWith('\n') ? text : `${text}\n` };
}

function build(argv: readonly string[], version: string, choose: (command: Command) => void): Argv {
  const results = {
    string: true,
    requiresArg: true,
    default: defaults.results,
    describe: 'Folder of the results',
  } as const;
  const parser = yargs([...argv])
    .scriptName('certify')
    .usage(
      'Certifies that a replicated store loses no acknowledged write: runs it, breaks it, and judges what it kept.\n\nUsage: $0 [run] [options]',
    )
    .command(
      ['run', '$0'],
      'Run a cluster under load and faults, then judge it (the default)',
      (each) => addRunOptions(each, optionsOf(profileOf(argv))),
      (options) => choose({ kind: 'run', settings: resolveSettings(options as unknown as RawOptions, randomSeed) }),
    )
    .command(
      'verify [run]',
      'Judge the ledger of a run again, offline, or check its certificate',
      (each) =>
        each
          .positional('run', { type: 'string', describe: 'Run id, folder, or latest' })
          .option('certificate', {
            string: true,
            requiresArg: true,
            describe: 'Check this certificate.json against the files beside it; nothing is written',
          })
          .option('results', results),
      (options) => choose(verifyOf(options)),
    )
    .command(
      'resume <run>',
      'Go on with a run whose harness died, or judge what there is where it cannot go on',
      (each) =>
        each.positional('run', { type: 'string', describe: 'Run id, folder, or latest' }).option('results', results),
      (options) => choose({ kind: 'resume', run: String(options.run), resultsDir: options.results }),
    )
    .command(
      'report <run>',
      'Write the reports of a run again from its report.json',
      (each) =>
        each.positional('run', { type: 'string', describe: 'Run id, folder, or latest' }).option('results', results),
      (options) => choose({ kind: 'report', run: String(options.run), resultsDir: options.results }),
    )
    .command(
      'sim',
      'Certify on virtual time: one seed, or a sweep over many ("certify sim --help")',
      {},
      () => undefined,
    )
    .command(
      'selftest',
      'Show that deliberately broken stores are caught, simulated or in containers ("certify selftest --help")',
      {},
      () => undefined,
    )
    .command('check', 'Judge a history of another tool ("certify check --help")', {}, () => undefined)
    .command(
      'reproduce <run>',
      'Play a run again several times and say how often what it found came again',
      (each) =>
        each
          .positional('run', { type: 'string', describe: 'Run id, folder, or latest' })
          .option('times', { string: true, requiresArg: true, default: '5', describe: 'How many times' })
          .option('shrink', {
            boolean: true,
            default: false,
            describe: 'Look for the smallest schedule that still finds it, then play that so many times',
          })
          .option('results', results),
      (options) =>
        choose({
          kind: 'reproduce',
          shrink: options.shrink,
          run: String(options.run),
          times: parseInteger(options.times, '--times', 1, maxTimes),
          resultsDir: options.results,
        }),
    )
    .command(
      'order <run..>',
      'Planned and executed order of the faults of runs, and what triggers and the budget changed',
      (each) =>
        each
          .positional('run', { type: 'string', array: true, describe: 'Run ids, folders, or latest' })
          .option('results', results),
      (options) => choose({ kind: 'order', runs: (options.run ?? []).map(String), resultsDir: options.results }),
    )
    .command(
      'export <run>',
      'Write the history of a run for other tools',
      (each) =>
        each
          .positional('run', { type: 'string', describe: 'Run id, folder, or latest' })
          .option('format', {
            string: true,
            requiresArg: true,
            choices: exportFormats,
            default: 'jepsen-edn' as const,
            describe: "jepsen-edn: Jepsen's operations, values are the ids of the writes; jsonl: every row",
          })
          .option('key', { string: true, requiresArg: true, describe: 'Only this key, with plain values' })
          .option('workload', { string: true, requiresArg: true, describe: 'Only the keys of this workload' })
          .option('out', { string: true, requiresArg: true, describe: 'File to write (default: standard output)' })
          .option('results', results),
      (options) =>
        choose({
          kind: 'export',
          wish: {
            resultsDir: options.results,
            run: String(options.run),
            format: options.format,
            key: options.key ?? null,
            workload: options.workload ?? null,
            out: options.out ?? null,
          },
        }),
    )
    .command(
      'list',
      'List the runs in the results folder',
      (each) => each.option('results', results),
      (options) => choose({ kind: 'list', resultsDir: options.results }),
    )
    .command(
      'diff <before> <after>',
      'What changed between two runs',
      (each) =>
        each
          .positional('before', { type: 'string', describe: 'Run id' })
          .positional('after', { type: 'string', describe: 'Run id, or latest' })
          .option('results', results),
      (options) =>
        choose({
          kind: 'diff',
          before: String(options.before),
          after: String(options.after),
          resultsDir: options.results,
        }),
    )
    .command(
      'compare <runs..>',
      'Runs of several systems side by side: what each lost, how soon each came back',
      (each) =>
        each
          .positional('runs', { type: 'string', array: true, demandOption: true, describe: 'Run ids, or latest' })
          .option('out', { string: true, requiresArg: true, describe: 'Files to write, without .md and .html' })
          .option('results', results),
      (options) =>
        choose({
          kind: 'compare',
          wish: { runs: options.runs.map(String), resultsDir: options.results, out: options.out ?? null },
        }),
    )
    .command(
      'conformance <system>',
      'Tell the author of an adapter what is wrong with it',
      (each) =>
        each
          .positional('system', {
            type: 'string',
            demandOption: true,
            describe: 'A name, or a file such as ./my-system.ts',
          })
          .option('cluster', {
            string: true,
            requiresArg: true,
            choices: clusterKinds,
            default: 'docker' as const,
            describe: 'Where the nodes run',
          }),
      (options) => choose({ kind: 'conformance', wish: { system: options.system, cluster: options.cluster } }),
    )
    .command(
      'trend',
      'The newest run against the noise of those before it',
      (each) => each.option('results', results),
      (options) => choose({ kind: 'trend', resultsDir: options.results }),
    )
    .command(
      'serve',
      'Show the results in a browser, to this machine only',
      (each) =>
        each
          .option('port', {
            string: true,
            requiresArg: true,
            default: '7880',
            describe: 'Port on 127.0.0.1; 0 takes any',
          })
          .option('results', results),
      (options) =>
        choose({
          kind: 'serve',
          port: parseInteger(options.port, '--port', 0, 65_535),
          resultsDir: options.results,
        }),
    )
    .command(
      'prune',
      'Remove the oldest runs; kept ones and the latest stay',
      (each) =>
        each
          .option('keep', {
            string: true,
            requiresArg: true,
            demandOption: true,
            describe: 'How many of the newest runs stay',
          })
          .option('results', results),
      (options) =>
        choose({
          kind: 'prune',
          keep: parseInteger(options.keep, '--keep', 0, Number.MAX_SAFE_INTEGER),
          resultsDir: options.results,
        }),
    )
    .command(
      'clean [run]',
      'Remove what runs left on the engine: everything whose owner is dead, or one kept run',
      (each) =>
        each.positional('run', { type: 'string', describe: 'A kept run to remove too' }).option('results', results),
      (options) => choose({ kind: 'clean', run: options.run ?? null, resultsDir: options.results }),
    )
    .command(
      'doctor',
      'Say what this machine can and cannot do',
      (each) => each.option('results', results),
      (options) => choose({ kind: 'doctor', resultsDir: options.results }),
    );
  for (const [line, doc] of examples) parser.example(line, doc);
  return parser
    .epilogue(epilogue)
    .parserConfiguration({
      'duplicate-arguments-array': true,
      'camel-case-expansion': true,
      'boolean-negation': false,
      'parse-numbers': false,
    })
    .strict()
    .check((options) => {
      for (const name of Object.keys(options)) {
        const count = argv.filter((word) => word === `--${name}` || word.startsWith(`--${name}=`)).length;
        if (count > 1 && !repeatable.has(name)) throw new UsageError(`--${name} stands twice; give it once.`);
      }
      return true;
    })
    .version(version)
    .alias('h', 'help')
    .wrap(helpColumns)
    .exitProcess(false)
    .showHelpOnFail(false)
    .fail(usageFailure(usageSentence));
}

interface VerifyOptions {
  readonly run?: string | undefined;
  readonly certificate?: string | undefined;
  readonly results: string;
}

function verifyOf({ run, certificate, results }: VerifyOptions): Command {
  if (certificate !== undefined) {
    if (run !== undefined)
      throw new UsageError('A certificate names its own run; give --certificate or a run, not both.');
    return { kind: 'verify-certificate', file: certificate };
  }
  if (run === undefined)
    throw new UsageError(
      'certify verify needs a run, such as latest, or --certificate FILE; "certify list" shows the runs.',
    );
  return { kind: 'verify', run, resultsDir: results };
}

/** Makes a sentence of what the parser says. */
function usageSentence(message: string): string {
  const unknown = /^Unknown arguments?: (.*)$/.exec(message);
  if (unknown !== null) {
    const [first = ''] = (unknown[1] as string).split(', ');
    return `There is no option or command "${first}"; "certify --help" lists what there is.`;
  }
  return `${message}; "certify --help" explains the options.`;
}
