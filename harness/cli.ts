/**
 * The command line: words in, one typed command out. Pure: it starts nothing and prints nothing.
 *
 * Invariant: whatever does not make sense is a UsageError with one sentence, before anything was started. A setting that
 * slipped through unread would make a certificate claim what was not run.
 */
import yargs, { type Argv } from 'yargs';
import { randomSeed } from './seed.ts';
import { UsageError } from './errors.ts';
import { epilogue, examples } from './help.ts';
import { addRunOptions, type RawOptions, resolveSettings } from './run-options.ts';
import { optionsOf, profileOf } from './profiles.ts';
import { defaults, type RunSettings } from './settings.ts';

export type Command =
  | { readonly kind: 'run'; readonly settings: RunSettings }
  | { readonly kind: 'verify'; readonly run: string; readonly resultsDir: string }
  | { readonly kind: 'resume'; readonly run: string; readonly resultsDir: string }
  | { readonly kind: 'report'; readonly run: string; readonly resultsDir: string }
  | { readonly kind: 'check'; readonly argv: readonly string[] }
  | { readonly kind: 'list'; readonly resultsDir: string }
  | { readonly kind: 'clean'; readonly run: string | null; readonly resultsDir: string }
  | { readonly kind: 'doctor' }
  /** Help or version was asked for. */
  | { readonly kind: 'text'; readonly text: string };

/** Columns of help that is not printed to a terminal. */
const helpColumns = 110;

/** Reads the words after the program's name. Throws {@link UsageError}. */
export async function parseCommandLine(argv: readonly string[], version: string): Promise<Command> {
  // The foreign-history checker has a command line of its own.
  if (argv[0] === 'check') return { kind: 'check', argv: argv.slice(1) };
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
      'verify <run>',
      'Judge the ledger of a run again, offline',
      (each) =>
        each.positional('run', { type: 'string', describe: 'Run id, folder, or latest' }).option('results', results),
      (options) => choose({ kind: 'verify', run: String(options.run), resultsDir: options.results }),
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
    .command('check', 'Judge a history of another tool ("certify check --help")', {}, () => undefined)
    .command(
      'list',
      'List the runs in the results folder',
      (each) => each.option('results', results),
      (options) => choose({ kind: 'list', resultsDir: options.results }),
    )
    .command(
      'clean [run]',
      'Remove what runs left on the engine: everything whose owner is dead, or one kept run',
      (each) =>
        each.positional('run', { type: 'string', describe: 'A kept run to remove too' }).option('results', results),
      (options) => choose({ kind: 'clean', run: options.run ?? null, resultsDir: options.results }),
    )
    .command('doctor', 'Say what this machine can and cannot do', {}, () => choose({ kind: 'doctor' }));
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
    .version(version)
    .alias('h', 'help')
    .wrap(helpColumns)
    .exitProcess(false)
    .showHelpOnFail(false)
    .fail((message: string | null, error: Error | undefined) => {
      // The parser's own errors are the user's; anything else is ours.
      if (error instanceof Error && error.name !== 'YError') throw error;
      throw new UsageError(usageSentence(message ?? error?.message ?? 'the command line makes no sense'));
    }) as Argv;
}

/** Makes a sentence of what the parser says. */
function usageSentence(message: string): string {
  const unknown = /^Unknown arguments?: (.*)$/.exec(message);
  if (unknown !== null) {
    const [first = ''] = (unknown[1] as string).split(', ');
    return `There is no option or command "${first}"; "certify --help" lists what there is.`;
  }
  return `${message.replace(/\s+/g, ' ').replace(/\.$/, '')}; "certify --help" explains the options.`;
}
