/**
 * Owns the way to a Docker engine: the one that answers, else one installed from Debian's packages and started here.
 *
 * It never falls back in silence to anything that is no engine: a certificate about local processes that claims
 * containers would be worthless. What it cannot get ends in an EnvironmentError that names the alternatives.
 */
import { spawn } from 'node:child_process';
import { closeSync, existsSync, openSync, readFileSync, unlinkSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import Docker from 'dockerode';
import { lastLine, runCommand } from './command.ts';
import { EnvironmentError, messageOf } from './errors.ts';

/** An engine that answered. `local` means that its processes are in this host's process table. */
export interface Engine {
  readonly docker: Docker;
  readonly version: string;
  readonly apiVersion: string;
  readonly local: boolean;
  /** Where it listens, for messages. */
  readonly address: string;
}

export interface EnsureEngineOptions {
  /** Told one line at a time what is being done that takes long. */
  readonly say: (line: string) => void;
  /** May packages be installed and a daemon be started? Default true; DOCKER_HOST in the environment forbids it. */
  readonly install?: boolean;
  /** Where a daemon started here writes its log. */
  readonly daemonLogFile?: string;
}

const defaultSocket = '/var/run/docker.sock';
const daemonPidFile = '/var/run/docker.pid';
const answerTimeoutMs = 4_000;
const daemonStartTimeoutMs = 60_000;
const aptTimeoutMs = 900_000;
const enginePackages = ['docker.io', 'iptables', 'cgroupfs-mount', 'ca-certificates'];
const otherWays = 'or run without an engine: `--cluster process` (local processes) or `certify sim` (the simulator)';

/** The address in DOCKER_HOST, or the default socket. */
export function engineAddress(env: NodeJS.ProcessEnv = process.env): string {
  const host = env['DOCKER_HOST'];
  return host === undefined || host === '' ? `unix://${defaultSocket}` : host;
}

/** Why a given process id is no reason not to start: true when `pid` is a running dockerd. */
export function isDaemonProcess(pid: number): boolean {
  try {
    return readFileSync(`/proc/${pid}/comm`, 'utf8').trim() === 'dockerd';
  } catch {
    return false;
  }
}

/** Asks the engine for its version. Rejects with an Error that says why it does not answer. */
export async function connectEngine(timeoutMs = answerTimeoutMs): Promise<Engine> {
  const address = engineAddress();
  const docker = new Docker();
  const timer = new AbortController();
  try {
    const answer = await Promise.race([
      docker.version(),
      sleep(timeoutMs, undefined, { signal: timer.signal }).then(() => {
        throw new Error(`no answer within ${timeoutMs} ms`);
      }),
    ]);
    const local = address.startsWith('unix://') && process.platform === 'linux';
    return { docker, version: answer.Version, apiVersion: answer.ApiVersion, local, address };
  } finally {
    timer.abort();
  }
}

/** Returns an engine that answers, installing and starting one where that is possible. Throws EnvironmentError. */
export async function ensureEngine(options: EnsureEngineOptions): Promise<Engine> {
  let why: string;
  try {
    return await connectEngine();
  } catch (error) {
    why = messageOf(error);
  }
  if ((process.env['DOCKER_HOST'] ?? '') !== '') {
    throw new EnvironmentError(
      `No Docker engine answers at DOCKER_HOST=${engineAddress()} (${why}): start it, or unset DOCKER_HOST to have one installed, ${otherWays}.`,
    );
  }
  const obstacle = options.install === false ? 'installing one was not allowed' : installObstacle();
  if (obstacle !== null) {
    throw new EnvironmentError(
      `No Docker engine answers at ${engineAddress()} (${why}) and ${obstacle}: install and start Docker, ${otherWays}.`,
    );
  }
  await installPackages(options.say);
  return await startDaemon(options);
}

function installObstacle(): string | null {
  if (process.platform !== 'linux') return 'this is not Linux';
  if (process.getuid?.() !== 0) return 'this user is not root, so none can be installed or started';
  if (!existsSync('/usr/bin/apt-get')) return 'this is no Debian-like system with apt-get';
  return null;
}

/** Installs Debian packages that are missing. Throws EnvironmentError. */
export async function installDebianPackages(packages: readonly string[], say: (line: string) => void): Promise<void> {
  say(`Installing Debian packages: ${packages.join(' ')}`);
  const env = { DEBIAN_FRONTEND: 'noninteractive' };
  const options = ['-o', 'DPkg::Lock::Timeout=300', '-o', 'Acquire::Retries=3', '-qq'];
  // A third-party source that does not answer fails the update though Debian's own is fine; the install decides.
  const update = await runCommand('apt-get', [...options, 'update'], { env, timeoutMs: aptTimeoutMs });
  const install = await runCommand('apt-get', [...options, 'install', '-y', '--no-install-recommends', ...packages], {
    env,
    timeoutMs: aptTimeoutMs,
  });
  if (install.exitCode === 0) return;
  const reason = update.exitCode === 0 ? lastLine(install) : `${lastLine(update)}; ${lastLine(install)}`;
  throw new EnvironmentError(
    `Could not install ${packages.join(', ')} (${reason}): install them by hand with apt-get, ${otherWays}.`,
  );
}

async function installPackages(say: (line: string) => void): Promise<void> {
  const present = (await runCommand('sh', ['-c', 'command -v dockerd && command -v iptables'])).exitCode === 0;
  if (!present) await installDebianPackages(enginePackages, say);
}

/** A pid file whose process is no dockerd makes the next dockerd refuse to start. */
function removeStalePidFile(say: (line: string) => void): void {
  if (!existsSync(daemonPidFile)) return;
  const pid = Number(readFileSync(daemonPidFile, 'utf8').trim());
  if (Number.isInteger(pid) && pid > 0 && isDaemonProcess(pid)) return;
  say(`Removing ${daemonPidFile}, left by a Docker daemon that is gone`);
  unlinkSync(daemonPidFile);
}

async function mountControlGroups(): Promise<void> {
  const mounted = (await runCommand('sh', ['-c', 'grep -q " /sys/fs/cgroup" /proc/self/mounts'])).exitCode === 0;
  if (!mounted) await runCommand('cgroupfs-mount', []);
}

async function startDaemon(options: EnsureEngineOptions): Promise<Engine> {
  // The packages may have started it already.
  const already = await connectEngine(1_000).catch(() => null);
  if (already !== null) return already;
  const logFile = options.daemonLogFile ?? '/var/log/dockerd.log';
  let exit: string | null = null;
  if (existsSync('/run/systemd/system')) {
    options.say('Starting the Docker engine through systemd');
    const started = await runCommand('systemctl', ['start', 'docker'], { timeoutMs: daemonStartTimeoutMs });
    if (started.exitCode !== 0) exit = lastLine(started);
  } else {
    options.say(`Starting a Docker engine (dockerd, log in ${logFile}); it stays up for the next runs`);
    removeStalePidFile(options.say);
    await mountControlGroups();
    const log = openSync(logFile, 'a');
    const daemon = spawn('dockerd', [], { detached: true, stdio: ['ignore', log, log] });
    closeSync(log);
    daemon.on('error', (error) => (exit = messageOf(error)));
    daemon.on('exit', (code, signal) => (exit = `dockerd ended with ${signal ?? `exit code ${code}`}`));
    daemon.unref();
  }
  return await waitForDaemon(() => exit, logFile);
}

async function waitForDaemon(exitReason: () => string | null, logFile: string): Promise<Engine> {
  const deadlineMs = performance.now() + daemonStartTimeoutMs;
  let why = 'it was never asked';
  while (performance.now() < deadlineMs) {
    try {
      return await connectEngine(2_000);
    } catch (error) {
      why = messageOf(error);
    }
    // Another run may be starting one at the same time: its pid file makes ours end, and that one answers soon.
    const exit = exitReason();
    if (exit !== null && !existsSync(daemonPidFile)) {
      why = exit;
      break;
    }
    await sleep(200);
  }
  throw new EnvironmentError(`The Docker engine did not start (${why}): see ${logFile}, ${otherWays}.`);
}
