/**
 * The program `certify`: one command line, one exit code.
 *
 * Invariant: every end has an exit code of DESIGN §9, also told through the file that the launcher names; whatever nobody caught is
 * 70. Signals are taken from the first moment on, so that no early Ctrl-C leaves containers behind.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { type Command, parseCommandLine } from './cli.ts';
import { messageOf, UsageError } from './errors.ts';
import { Interruption } from './run/interruption.ts';
import { exitCodeOf, usageExitCode } from './verdict.ts';

/** Set by the launcher: the exit code is written there by every orderly end. */
const verdictFileVariable = 'ZARIS_VERDICT_FILE';

const say = (line: string): void => void process.stderr.write(`${line}\n`);

// Whoever reads the output may stop reading ("certify … | head"): the run goes on to its verdict.
for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined);

async function execute(command: Command, interruption: Interruption): Promise<number> {
  switch (command.kind) {
    case 'text':
      process.stdout.write(command.text);
      return 0;
    case 'run':
      return (await import('./commands/run-command.ts')).runCommand(command.settings, interruption);
    case 'verify':
      return (await import('./commands/verify-command.ts')).verifyCommand(command.resultsDir, command.run);
    case 'resume':
      return (await import('./commands/resume-command.ts')).resumeCommand(
        command.resultsDir,
        command.run,
        interruption,
      );
    case 'report':
      return (await import('./commands/verify-command.ts')).reportCommand(command.resultsDir, command.run);
    case 'check':
      return (await import('./commands/check-command.ts')).checkCommand(command.argv);
    case 'sim':
      return (await import('./commands/sim-command.ts')).simCommand(command.argv, interruption);
    case 'selftest':
      return (await import('./commands/selftest-command.ts')).selfTestCommand(command.argv, interruption);
    case 'list':
      return (await import('./commands/results-commands.ts')).listCommand(command.resultsDir);
    case 'diff':
      return (await import('./commands/results-commands.ts')).diffCommand(
        command.resultsDir,
        command.before,
        command.after,
      );
    case 'trend':
      return (await import('./commands/results-commands.ts')).trendCommand(command.resultsDir);
    case 'serve':
      return (await import('./commands/results-commands.ts')).serveCommand(
        command.resultsDir,
        command.port,
        interruption,
      );
    case 'prune':
      return (await import('./commands/results-commands.ts')).pruneCommand(command.resultsDir, command.keep);
    case 'export':
      return (await import('./commands/export-command.ts')).exportCommand(command.wish);
    case 'reproduce':
      if (command.shrink)
        return (await import('./commands/shrink-command.ts')).shrinkCommand(
          command.resultsDir,
          command.run,
          command.times,
          interruption,
        );
      return (await import('./commands/reproduce-command.ts')).reproduceCommand(
        command.resultsDir,
        command.run,
        command.times,
        interruption,
      );
    case 'order':
      return (await import('./commands/order-command.ts')).orderCommand(command.resultsDir, command.runs);
    case 'verify-certificate':
      return (await import('./commands/certificate-command.ts')).verifyCertificateCommand(command.file);
    case 'compare':
      return (await import('./commands/compare-command.ts')).compareCommand(command.wish);
    case 'conformance':
      return (await import('./commands/conformance-command.ts')).conformanceCommand(command.wish);
    case 'clean':
      return (await import('./commands/engine-commands.ts')).cleanCommand(command.run, command.resultsDir);
    case 'doctor':
      return (await import('./commands/engine-commands.ts')).doctorCommand(command.resultsDir);
  }
}

/** The exit code of an error that ended the program, said in one sentence. */
function exitCodeOfError(error: unknown): number {
  if (error instanceof UsageError) {
    say(`certify: ${error.message}`);
    return usageExitCode;
  }
  if (error instanceof Error && (error.name === 'EnvironmentError' || error.name === 'LedgerFileError')) {
    say(`certify: ${error.message}`);
    return error.name === 'EnvironmentError' ? exitCodeOf('environment') : usageExitCode;
  }
  say(`certify: fault of the harness: ${messageOf(error)}`);
  if (error instanceof Error && error.stack !== undefined) say(error.stack);
  return exitCodeOf('harness-fault');
}

/** Ends the process; the verdict file is written last. */
function end(exitCode: number): never {
  const file = process.env[verdictFileVariable];
  if (file !== undefined && file !== '') {
    try {
      writeFileSync(file, String(exitCode));
    } catch (error) {
      say(`certify: the verdict file could not be written (${messageOf(error)})`);
      process.exit(exitCodeOf('harness-fault'));
    }
  }
  process.exit(exitCode);
}

async function main(): Promise<void> {
  const interruption = new Interruption();
  const fatal = (error: unknown): void => {
    // The run loop is told to end early and cleans up; a second error, or none listening, ends at once.
    if (interruption.fatal(error)) return;
    end(exitCodeOfError(error));
  };
  process.on('uncaughtException', fatal);
  process.on('unhandledRejection', fatal);
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => interruption.received(signal));
  const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as {
    version: string;
  };
  let exitCode: number;
  try {
    exitCode = await execute(await parseCommandLine(process.argv.slice(2), version), interruption);
  } catch (error) {
    exitCode = exitCodeOfError(error);
  }
  end(exitCode);
}

void main();
