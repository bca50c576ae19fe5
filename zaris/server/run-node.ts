/**
 * Process duties around a shell: signals, exit codes, the last log line. A process that lives on after an error it does not
 * understand may acknowledge what it cannot keep, so it never does.
 */
import { pino } from 'pino';
import { ConfigError, readConfig, type ServerConfig } from './config.ts';
import { ControlDiskError } from './control-disk.ts';
import { type CreateNode, NodeShell, randomSeed, systemClock } from './shell.ts';

const usageExitCode = 64;
/** Beyond the node's own bound on a graceful stop, ms. */
const exitGraceMs = 3_000;
const defaultShutdownMs = 10_000;
/** Time for the last answers to leave, ms. */
const lingerMs = 50;

/** Reads the configuration and runs a node until it ends; the process exits with its code. */
export async function runNode(
  createNode: CreateNode,
  environment: NodeJS.ProcessEnv,
  flags: readonly string[],
): Promise<void> {
  let config: ServerConfig;
  try {
    config = readConfig(environment, flags);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    process.stderr.write(`${error.message}\n`);
    process.exit(usageExitCode);
  }
  const logger = pino({ level: config.logLevel, base: { nodeId: config.nodeId } });
  const die = (error: unknown): void => {
    logger.fatal({ err: error }, 'an error that nobody expected; this node ends');
    process.exit(1);
  };
  process.on('uncaughtException', die);
  process.on('unhandledRejection', die);
  const exit = (code: number): void => {
    setTimeout(() => {
      logger.info({ code }, 'a node ends');
      process.exit(code);
    }, lingerMs);
  };
  let shell: NodeShell;
  try {
    shell = await NodeShell.start({ config, createNode, logger, clock: systemClock, seed: randomSeed(), onExit: exit });
  } catch (error) {
    const isKnown = error instanceof ControlDiskError || (error as NodeJS.ErrnoException).code !== undefined;
    if (!isKnown) throw error;
    logger.fatal({ reason: (error as Error).message }, 'a node could not start');
    process.exit(1);
  }
  let isStopping = false;
  const stop = (signal: string): void => {
    if (isStopping) return exit(1);
    isStopping = true;
    logger.info({ signal }, 'a node is asked to end');
    shell.shutdown();
    const boundMs = (config.control.shutdownMs ?? defaultShutdownMs) + exitGraceMs;
    setTimeout(() => {
      logger.error({ boundMs }, 'a graceful stop took too long');
      process.exit(1);
    }, boundMs).unref();
  };
  process.on('SIGTERM', () => stop('SIGTERM'));
  process.on('SIGINT', () => stop('SIGINT'));
}
