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
  let shell: NodeShell | null = null;
  const asked: string[] = [];
  const handOver = (node: NodeShell): void => {
    logger.info({ signal: asked[0] }, 'a node is asked to end');
    node.shutdown();
    const boundMs = (config.control.shutdownMs ?? defaultShutdownMs) + exitGraceMs;
    setTimeout(() => {
      logger.error({ boundMs }, 'a graceful stop took too long');
      process.exit(1);
    }, boundMs).unref();
  };
  const stop = (signal: string): void => {
    if (asked.push(signal) > 1) exit(1);
    else if (shell !== null) handOver(shell);
  };
  // Before the start, which takes a while: a node that is asked to end meanwhile ends in order as soon as it is there.
  process.on('SIGTERM', () => stop('SIGTERM'));
  process.on('SIGINT', () => stop('SIGINT'));
  try {
    shell = await NodeShell.start({ config, createNode, logger, clock: systemClock, seed: randomSeed(), onExit: exit });
  } catch (error) {
    const isKnown = error instanceof ControlDiskError || (error as NodeJS.ErrnoException).code !== undefined;
    if (!isKnown) throw error;
    logger.fatal({ reason: (error as Error).message }, 'a node could not start');
    process.exit(1);
  }
  if (asked.length > 0) handOver(shell);
}
