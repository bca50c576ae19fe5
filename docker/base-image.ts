/**
 * Owns the base image `zaris-base:<hash>`: Debian with the network and clock tools that faults need, and Node 24.
 *
 * The tag names everything that goes in, so an image of that name is never rebuilt. It comes from a public image where
 * a registry answers, else from Debian's packages; both ways give the same tools. A base without its tools would turn
 * every fault into one that cannot be injected.
 */
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  copyFileSync,
  mkdtempSync,
  openSync,
  readFileSync,
  readdirSync,
  readSync,
  closeSync,
  realpathSync,
} from 'node:fs';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import type Docker from 'dockerode';
import { lastLine, runCommand } from './command.ts';
import { installDebianPackages } from './engine.ts';
import { EnvironmentError, messageOf } from './errors.ts';
import { currentOwner, labelsOf } from './labels.ts';
import { processIsGone } from './netns.ts';

/** What the base holds on top of Debian's minimum, in both ways of making it. */
export const basePackages = ['iptables', 'iproute2', 'libfaketime', 'procps'] as const;

const recipe = 1;
const rootsDir = '/var/tmp';
const rootPrefix = 'zaris-base-';
const debianSuite = 'bookworm';
const publicImage = 'debian:bookworm-slim';
const firstProgressTimeoutMs = 8_000;
const pullTimeoutMs = 90_000;
const prepareTimeoutMs = 180_000;
const bootstrapTimeoutMs = 600_000;
const searchPath = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';
const leftOut = [
  'dev/*',
  'proc/*',
  'sys/*',
  'tmp/*',
  'run/*',
  'var/cache/apt/*',
  'var/lib/apt/lists/*',
  'usr/share/doc/*',
  'usr/share/man/*',
  'usr/share/locale/*',
];

export interface BaseImageOptions {
  readonly docker: Docker;
  /** The project's folder, whose `node_modules/node` gives the binary. */
  readonly projectDir: string;
  readonly say: (line: string) => void;
  /** Ask a registry first? Default true. */
  readonly registry?: boolean;
}

/** The real Node binary that the npm package `node` installed. Throws EnvironmentError when it is not there. */
export function nodeBinary(projectDir: string): { readonly path: string; readonly version: string } {
  const packageDir = join(projectDir, 'node_modules', 'node');
  try {
    const path = realpathSync(join(packageDir, 'bin', 'node'));
    const head = Buffer.alloc(4);
    const file = openSync(path, 'r');
    readSync(file, head, 0, 4, 0);
    closeSync(file);
    if (head.toString('latin1') !== '\x7fELF') throw new Error(`${path} is no Linux program`);
    const about = JSON.parse(readFileSync(join(packageDir, 'package.json'), 'utf8')) as { version: string };
    return { path, version: about.version };
  } catch (error) {
    throw new EnvironmentError(
      `The Node binary for the node image is missing (${messageOf(error)}): run \`npm ci\` first.`,
    );
  }
}

/** Does the engine hold this image? */
export async function hasImage(docker: Docker, tag: string): Promise<boolean> {
  try {
    await docker.getImage(tag).inspect();
    return true;
  } catch (error) {
    if ((error as { statusCode?: number }).statusCode === 404) return false;
    throw error;
  }
}

/** Returns the tag of the base image, making it first when the engine does not hold it. Throws EnvironmentError. */
export async function ensureBaseImage(options: BaseImageOptions): Promise<string> {
  const node = nodeBinary(options.projectDir);
  const hash = createHash('sha256')
    .update(JSON.stringify([recipe, debianSuite, basePackages, node.version, process.arch]))
    .digest('hex');
  const repository = 'zaris-base';
  const tag = hash.slice(0, 12);
  const name = `${repository}:${tag}`;
  if (await hasImage(options.docker, name)) return name;
  if (options.registry !== false && (await pull(options))) {
    try {
      await fromPublicImage(options, node.path, repository, tag);
      return name;
    } catch (error) {
      options.say(`The public image could not be prepared (${messageOf(error)}); using Debian's packages`);
    }
  }
  await fromDebianPackages(options, node.path, repository, tag);
  return name;
}

/** Reads an engine's progress stream to its end; rejects on the first error in it. */
export async function followProgress(
  docker: Docker,
  stream: NodeJS.ReadableStream,
  onProgress: () => void = () => {},
): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    docker.modem.followProgress(
      stream,
      (error: Error | null, output: { error?: string }[] | null) => {
        const failed = output?.find((line) => line.error !== undefined)?.error;
        if (error !== null) reject(error);
        else if (failed === undefined) resolve();
        else reject(new Error(failed));
      },
      onProgress,
    );
  });
}

function pull(options: BaseImageOptions): Promise<boolean> {
  return pullImage(options.docker, publicImage, (reason) =>
    options.say(`No registry gives ${publicImage} (${reason}); building the base image from Debian's packages`),
  );
}

/** Makes sure that the engine holds an image by name, asking a registry for it; `onFailure` is told why there is none. */
export async function pullImage(docker: Docker, name: string, onFailure: (reason: string) => void): Promise<boolean> {
  if (await hasImage(docker, name)) return true;
  const abort = new AbortController();
  let timer = setTimeout(() => abort.abort(new Error('no progress')), firstProgressTimeoutMs);
  const overall = setTimeout(() => abort.abort(new Error('too slow')), pullTimeoutMs);
  try {
    const stream = await docker.pull(name, { abortSignal: abort.signal });
    await followProgress(docker, stream, () => {
      clearTimeout(timer);
      timer = setTimeout(() => abort.abort(new Error('no progress')), firstProgressTimeoutMs);
    });
    return true;
  } catch (error) {
    onFailure(messageOf(error));
    return false;
  } finally {
    clearTimeout(timer);
    clearTimeout(overall);
  }
}

async function fromPublicImage(
  options: BaseImageOptions,
  node: string,
  repository: string,
  tag: string,
): Promise<void> {
  options.say(`Preparing the base image from ${publicImage}`);
  const script = [
    'set -e',
    'apt-get update -qq',
    `DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends libstdc++6 ${basePackages.join(' ')}`,
    'rm -rf /var/lib/apt/lists/* /var/cache/apt/*',
    'node --version',
  ].join('\n');
  const container = await options.docker.createContainer({
    Image: publicImage,
    Cmd: ['bash', '-c', script],
    Labels: labelsOf('image', currentOwner(), 'node'),
  });
  try {
    const archive = tarOf(['-C', join(node, '..'), '--transform', 's,^,usr/local/bin/,', 'node']);
    await container.putArchive(archive.stream, { path: '/' });
    await archive.done;
    await container.start();
    const timeout = setTimeout(() => void container.kill().catch(() => {}), prepareTimeoutMs);
    const ended = (await container.wait().finally(() => clearTimeout(timeout))) as { StatusCode: number };
    if (ended.StatusCode !== 0) throw new Error(`its package installation ended with ${ended.StatusCode}`);
    await container.commit({ repo: repository, tag, changes: `ENV PATH=${searchPath}` });
  } finally {
    await container.remove({ force: true, v: true });
  }
}

/** A tar stream from the system's `tar`; `done` rejects when it failed. */
export function tarOf(args: readonly string[]): { readonly stream: Readable; readonly done: Promise<void> } {
  const child = spawn('tar', ['-c', '--numeric-owner', ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
  let problem = '';
  child.stderr.on('data', (chunk: Buffer) => (problem += chunk.toString()));
  const done = new Promise<void>((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (code) => (code === 0 ? resolve() : reject(new Error(`tar failed: ${problem.trim()}`))));
  });
  // Whoever awaits the engine first must not turn a failed tar into an unhandled rejection.
  done.catch(() => {});
  return { stream: child.stdout, done };
}

async function fromDebianPackages(
  options: BaseImageOptions,
  node: string,
  repository: string,
  tag: string,
): Promise<void> {
  const otherWays =
    'pull a base by hand (`docker pull debian:bookworm-slim`), or use `--cluster process` or `certify sim`';
  if (process.platform !== 'linux' || process.getuid?.() !== 0) {
    throw new EnvironmentError(
      `No registry gives ${publicImage} and only root on Linux can build it from Debian's packages: ${otherWays}.`,
    );
  }
  const present = (await runCommand('sh', ['-c', 'command -v debootstrap'])).exitCode === 0;
  if (!present) await installDebianPackages(['debootstrap'], options.say);
  options.say(`Building the base image from Debian's packages (about a minute, once)`);
  await removeAbandonedRoots();
  const root = mkdtempSync(join(rootsDir, `${rootPrefix}${process.pid}-`));
  try {
    const made = await runCommand(
      'debootstrap',
      ['--variant=minbase', `--include=${basePackages.join(',')}`, debianSuite, root],
      { timeoutMs: bootstrapTimeoutMs },
    );
    if (made.exitCode !== 0) {
      throw new EnvironmentError(`debootstrap could not build the base image (${lastLine(made)}): ${otherWays}.`);
    }
    copyFileSync(node, join(root, 'usr/local/bin/node'));
    const archive = tarOf([...leftOut.map((path) => `--exclude=./${path}`), '-C', root, '.']);
    const progress = await options.docker.importImage(archive.stream, {
      repo: repository,
      tag,
      changes: `ENV PATH=${searchPath}`,
    });
    await followProgress(options.docker, progress);
    await archive.done;
  } catch (error) {
    if (error instanceof EnvironmentError) throw error;
    throw new EnvironmentError(`The engine did not take the base image (${messageOf(error)}): ${otherWays}.`);
  } finally {
    await removeRoot(root);
  }
}

/** Roots of builds whose process was killed; named by its id. */
async function removeAbandonedRoots(): Promise<void> {
  for (const name of readdirSync(rootsDir)) {
    const pid = new RegExp(`^${rootPrefix}(\\d+)-`).exec(name)?.[1];
    if (pid !== undefined && processIsGone(Number(pid))) await removeRoot(join(rootsDir, name));
  }
}

/** Removes a half or fully made root without ever crossing into a file system that is mounted in it. */
async function removeRoot(root: string): Promise<void> {
  for (const mount of ['proc', 'sys', 'dev']) await runCommand('umount', ['-l', join(root, mount)]);
  await runCommand('rm', ['-rf', '--one-file-system', root], { timeoutMs: 60_000 });
}
