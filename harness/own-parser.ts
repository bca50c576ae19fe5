/** For commands with a command line of their own: words in, typed options or the help text out. Prints and starts nothing. */
import yargs, { type Argv } from 'yargs';
import { UsageError } from './errors.ts';

/** Columns of help that is not printed to a terminal. */
const helpColumns = 110;

export type OwnWords<T> =
  | { readonly kind: 'options'; readonly options: T }
  /** Help was asked for. */
  | { readonly kind: 'text'; readonly text: string };

/** An option that takes one word. */
export const word = { string: true, requiresArg: true } as const;

/** For a parser's `fail`: its own errors are the user's, told in one sentence; anything else is ours, and thrown on. */
export const usageFailure =
  (sentenceOf: (message: string) => string) =>
  (message: string | null, error: Error | undefined): never => {
    if (error instanceof Error && error.name !== 'YError') throw error;
    const said = message ?? error?.message ?? 'the command line makes no sense';
    throw new UsageError(sentenceOf(said.replace(/\s+/g, ' ').replace(/\.$/, '')));
  };

/** Reads the words after the command's name. Throws {@link UsageError} with one sentence where they make no sense. */
export async function parseOwn<T>(
  argv: readonly string[],
  build: (parser: Argv) => Argv<T>,
  name: string,
): Promise<OwnWords<T>> {
  let text = '';
  const parser = build(yargs([...argv]).scriptName(`certify ${name}`))
    .parserConfiguration({ 'parse-numbers': false, 'camel-case-expansion': false })
    .strict()
    .version(false)
    .alias('h', 'help')
    .wrap(helpColumns)
    .exitProcess(false)
    .showHelpOnFail(false)
    .fail(usageFailure((said) => `${said}; "certify ${name} --help" explains the options.`));
  const options = (await parser.parseAsync(
    [...argv],
    {},
    (_error: Error | undefined, _parsed: unknown, output: string) => {
      text = output;
    },
  )) as T;
  return text === '' ? { kind: 'options', options } : { kind: 'text', text };
}
