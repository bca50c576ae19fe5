/** `certify check`: judges a history that another tool wrote. */
import yargs from 'yargs';
import { foreignFormats, foreignModels } from '../../ledger/verify/foreign/check-file.ts';
import { runCheck } from '../../ledger/verify/foreign/check-command.ts';
import { UsageError } from '../errors.ts';
import { usageFailure } from '../own-parser.ts';

/** Prints the judgement as JSON and returns 0 valid, 1 invalid, 3 unknown, 64 for a file that cannot be read. */
export async function checkCommand(argv: readonly string[]): Promise<number> {
  let text = '';
  const parser = yargs([...argv])
    .scriptName('certify check')
    .usage(
      'Judges a history of another tool and prints the result as JSON.\n\nUsage: $0 FILE --format FORMAT --model MODEL [--initial VALUE]',
    )
    .options({
      format: {
        string: true,
        requiresArg: true,
        demandOption: true,
        describe: 'How the file is written',
        choices: foreignFormats,
      },
      model: {
        string: true,
        requiresArg: true,
        demandOption: true,
        describe: 'What it is judged against',
        choices: foreignModels,
      },
      initial: { string: true, requiresArg: true, describe: 'Initial value of a register' },
      'budget-ms': { number: true, requiresArg: true, describe: 'Time after which the answer is unknown' },
      'memory-mib': { number: true, requiresArg: true, describe: 'Memory of a search' },
    })
    .epilogue('Exit codes: 0 valid, 1 invalid, 3 unknown, 64 when the file or an option cannot be used.')
    .parserConfiguration({ 'parse-positional-numbers': false })
    .strictOptions()
    .version(false)
    .wrap(110)
    .exitProcess(false)
    .showHelpOnFail(false)
    .fail(usageFailure((said) => `${said}; "certify check --help" explains the options.`));
  const parsed = await parser.parseAsync(
    [...argv],
    {},
    (_error: Error | undefined, _parsed: unknown, output: string) => {
      text = output;
    },
  );
  if (text !== '') {
    process.stdout.write(`${text}\n`);
    return 0;
  }
  const files = parsed._.map(String);
  const [file] = files;
  if (file === undefined || files.length > 1)
    throw new UsageError(
      'certify check judges one file at a time; name it, as in "certify check history.edn --format jepsen-edn --model cas-register".',
    );
  const output = await runCheck({
    file,
    format: parsed.format,
    model: parsed.model,
    ...(parsed.initial === undefined ? {} : { initial: parsed.initial }),
    ...(parsed['budget-ms'] === undefined ? {} : { budgetMs: parsed['budget-ms'] }),
    ...(parsed['memory-mib'] === undefined ? {} : { memoryMiB: parsed['memory-mib'] }),
  });
  process.stdout.write(`${JSON.stringify(output.json, null, 2)}\n`);
  return output.exitCode;
}
