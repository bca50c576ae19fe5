/**
 * Starts the project's programs on a fresh machine: installs the dependencies when they are missing or out of date,
 * then runs the given entry under the Node that they bring, with signals and exit code passed through.
 *
 * Plain JavaScript, and no import but Node's own, because the system's older Node runs it before anything is installed.
 * Invariant: with --verdict, an end without the child's own verdict is 70; if it were passed on, the 1 of an uncaught
 * error would read as "a write was lost", and a crash at the wrong moment as success.
 *
 * Usage: node docker/setup/launch.mjs [--verdict] ENTRY [ARGUMENT…]
 */
import { spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const projectDir = join(dirname(fileURLToPath(import.meta.url)), '..', '..');
const modulesDir = join(projectDir, 'node_modules');
const lockFile = join(projectDir, 'package-lock.json');
const stampFile = join(modulesDir, '.setup-stamp');
const setupLock = join(projectDir, '.cache', 'setup.lock');
const nodeProgram = join(modulesDir, '.bin', 'node');

const exitEnvironment = 4;
const exitHarnessFault = 70;
const exitInterrupted = 130;
const exitUsage = 64;
const oldestNodeMajor = 24;
const lockTimeoutMs = 600_000;

class SetupError extends Error {}

const say = (line) => process.stderr.write(`${line}\n`);
const pause = (milliseconds) => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, milliseconds);
const modifiedMs = (path) => (existsSync(path) ? statSync(path).mtimeMs : 0);
const lockHash = () => createHash('sha256').update(readFileSync(lockFile)).digest('hex');

function nodeWorks() {
  const tried = spawnSync(nodeProgram, ['--version'], { encoding: 'utf8' });
  const major = /^v(\d+)\./.exec(tried.stdout ?? '')?.[1];
  return tried.status === 0 && Number(major) >= oldestNodeMajor;
}

/** True when what is installed is what the lock file says, by our stamp, else by npm's own record. */
function isInstalled() {
  if (!existsSync(modulesDir)) return false;
  if (existsSync(stampFile)) return readFileSync(stampFile, 'utf8').trim() === lockHash();
  return modifiedMs(join(modulesDir, '.package-lock.json')) >= modifiedMs(lockFile);
}

function writeStamp() {
  const draft = `${stampFile}.${process.pid}`;
  writeFileSync(draft, `${lockHash()}\n`);
  renameSync(draft, stampFile);
}

/** Is the lock's owner gone? An empty lock is one whose owner is about to write its name. */
function lockIsStale() {
  const owner = join(setupLock, 'pid');
  if (!existsSync(owner)) return Date.now() - modifiedMs(setupLock) > 10_000;
  try {
    process.kill(Number(readFileSync(owner, 'utf8')), 0);
    return false;
  } catch (error) {
    return error.code === 'ESRCH';
  }
}

function takeLock() {
  mkdirSync(dirname(setupLock), { recursive: true });
  const deadlineMs = Date.now() + lockTimeoutMs;
  for (let told = false; ; told = true) {
    try {
      mkdirSync(setupLock);
      writeFileSync(join(setupLock, 'pid'), String(process.pid));
      return;
    } catch (error) {
      if (error.code !== 'EEXIST') throw error;
    }
    if (lockIsStale()) rmSync(setupLock, { recursive: true, force: true });
    else if (Date.now() > deadlineMs)
      throw new SetupError(`Another set-up holds ${setupLock} for too long: end it, or remove that folder.`);
    else if (!told) say('Waiting for another set-up of this folder to end');
    pause(200);
  }
}

/** Node's own package fetches its binary in an install script, which some npm settings do not run. */
function fetchNodeBinary(env) {
  const packageDir = join(modulesDir, 'node');
  say('The install script of the package `node` did not run; running it now');
  spawnSync(process.execPath, ['installArchSpecificPackage.js'], { cwd: packageDir, env, stdio: ['ignore', 2, 2] });
  // npm links a program only when it is there at the time of the install.
  if (existsSync(join(packageDir, 'bin', 'node')) && !existsSync(nodeProgram)) {
    mkdirSync(dirname(nodeProgram), { recursive: true });
    symlinkSync(join('..', 'node', 'bin', 'node'), nodeProgram);
  }
}

function npmCi(env) {
  const npm = process.env.npm_execpath;
  const command = npm !== undefined && npm.endsWith('.js') ? [process.execPath, npm] : ['npm'];
  // The npm of `npm run` may itself run on the Node in node_modules, which `npm ci` is about to remove.
  if (command[0].startsWith(modulesDir)) command[0] = 'node';
  const args = [...command.slice(1), 'ci', '--no-audit', '--no-fund', '--loglevel=error'];
  return spawnSync(command[0], args, { cwd: projectDir, env, stdio: ['ignore', 2, 2] });
}

function install() {
  const path = (process.env.PATH ?? '').split(delimiter).filter((folder) => !folder.includes('node_modules'));
  const env = { ...process.env, PATH: path.join(delimiter) };
  // Settings of the outer `npm run` are not meant for this install.
  for (const name of Object.keys(env))
    if (/^npm_(config_ignore_scripts|config_omit|config_production)$/i.test(name)) delete env[name];
  say('Installing dependencies (npm ci); this happens once');
  const result = npmCi(env);
  if (result.status !== 0) {
    const why = result.error?.message ?? (result.signal === null ? `exit code ${result.status}` : result.signal);
    throw new SetupError(
      `The dependencies could not be installed (npm ci: ${why}): check that the npm registry answers, then run it again.`,
    );
  }
  if (!nodeWorks()) fetchNodeBinary(env);
  if (!nodeWorks()) {
    throw new SetupError(
      `Node ${oldestNodeMajor} was not installed by the package \`node\`: run \`npm ci\` with install scripts allowed.`,
    );
  }
  writeStamp();
}

function setUp() {
  if (isInstalled() && nodeWorks()) {
    if (!existsSync(stampFile)) writeStamp();
    return;
  }
  takeLock();
  try {
    // Whoever held the lock before may have done it.
    if (!(isInstalled() && nodeWorks())) install();
  } finally {
    rmSync(setupLock, { recursive: true, force: true });
  }
}

/** The exit code that the child's end stands for. `verdict` is null where none is asked for. */
function exitCodeOf(code, signal, forwarded, verdict) {
  if (signal !== null) return forwarded.has(signal) ? exitInterrupted : exitHarnessFault;
  if (verdict === null || verdict() === code) return code;
  say(`launcher: the program ended with ${code} but left no verdict; this counts as a fault of the harness`);
  return exitHarnessFault;
}

function run(entry, args, wantsVerdict) {
  const folder = mkdtempSync(join(tmpdir(), 'zaris-launch-'));
  const verdictFile = join(folder, 'verdict');
  process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
  const env = {
    ...process.env,
    PATH: `${join(modulesDir, '.bin')}${delimiter}${process.env.PATH ?? ''}`,
    TESTCONTAINERS_RYUK_DISABLED: 'true',
    ...(wantsVerdict ? { ZARIS_VERDICT_FILE: verdictFile } : {}),
  };
  // A session of its own: a Ctrl-C of the terminal reaches it once, through us, and not twice.
  const child = spawn(nodeProgram, [join(projectDir, entry), ...args], { env, stdio: 'inherit', detached: true });
  const forwarded = new Set();
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
    process.on(signal, () => {
      // A closed terminal asks for the same as a polite kill.
      const sent = signal === 'SIGHUP' ? 'SIGTERM' : signal;
      forwarded.add(sent);
      child.kill(sent);
    });
  }
  process.on('SIGWINCH', () => child.kill('SIGWINCH'));
  child.on('error', (error) => {
    say(`launcher: ${nodeProgram} could not be started (${error.message})`);
    process.exit(exitHarnessFault);
  });
  const readVerdict = () =>
    existsSync(verdictFile) ? Number(readFileSync(verdictFile, 'utf8').trim() || Number.NaN) : Number.NaN;
  child.on('exit', (code, signal) => {
    if (signal !== null && !forwarded.has(signal)) say(`launcher: the program was ended by ${signal}`);
    process.exit(exitCodeOf(code, signal, forwarded, wantsVerdict ? readVerdict : null));
  });
}

function main() {
  const args = process.argv.slice(2);
  const wantsVerdict = args[0] === '--verdict';
  const [entry, ...rest] = wantsVerdict ? args.slice(1) : args;
  if (entry === undefined || !existsSync(lockFile)) {
    say('usage: node docker/setup/launch.mjs [--verdict] ENTRY [ARGUMENT…], in a folder with its package-lock.json');
    process.exit(exitUsage);
  }
  try {
    setUp();
  } catch (error) {
    if (!(error instanceof SetupError)) throw error;
    say(error.message);
    process.exit(exitEnvironment);
  }
  run(entry, rest, wantsVerdict);
}

process.on('uncaughtException', (error) => {
  say(`launcher: ${error?.stack ?? error}`);
  process.exit(exitHarnessFault);
});
main();
