/**
 * Owns the node image `zaris-node:<hash>`: the base, the sources a node runs, and the packages they import.
 *
 * The tag is a hash of all content, so a run always tests the sources it was started from: a stale image would certify
 * yesterday's code.
 */
import { createHash } from 'node:crypto';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import type Docker from 'dockerode';
import { ensureBaseImage, followProgress, hasImage, tarOf } from './base-image.ts';
import { dependencyClosure } from './closure.ts';
import type { ClosurePackage, LockFile } from './closure.ts';
import { EnvironmentError, messageOf } from './errors.ts';

/** The packages that a node's server imports; the image holds these and what they depend on. */
export const serverPackages = ['cluster-key-slot', 'crc-32', 'msgpackr', 'pino', 'prom-client'] as const;

/** The server that an image starts unless told otherwise. */
export const defaultEntry = 'zaris/server/main.ts';

const imageLabel = 'zaris.image';
const keptImages = 10;

export interface NodeImageOptions {
  readonly docker: Docker;
  /** Folder with package.json, package-lock.json and node_modules. */
  readonly projectDir: string;
  readonly say: (line: string) => void;
  /** Tree that the sources are taken from; default the project. */
  readonly sourceDir?: string;
  /** File that the node runs, relative to the tree; default {@link defaultEntry}. */
  readonly entry?: string;
  /** Folders to copy besides `lib` and `zaris`, relative to the tree. */
  readonly extraFolders?: readonly string[];
  /** Ask a registry for the base? Default true. */
  readonly registry?: boolean;
}

/** A node image that the engine holds. */
export interface NodeImage {
  readonly name: string;
  readonly base: string;
  /** True when this call had to build it. */
  readonly built: boolean;
}

const isSource = (path: string): boolean => !path.endsWith('.test.ts') && !path.includes('/node_modules');

/** The files below `folders` in `root`, relative, sorted; tests left out. */
export function sourceFiles(root: string, folders: readonly string[]): string[] {
  const files: string[] = [];
  for (const folder of folders) {
    for (const item of readdirSync(join(root, folder), { recursive: true, withFileTypes: true })) {
      if (!item.isFile()) continue;
      const path = relative(root, join(item.parentPath, item.name));
      if (isSource(path)) files.push(path);
    }
  }
  return [...new Set(files)].sort();
}

/** The hash that names an image: the base, the packages with their versions, every source file and the entry. */
export function contentHash(
  root: string,
  files: readonly string[],
  packages: readonly ClosurePackage[],
  rest: readonly string[],
): string {
  const hash = createHash('sha256').update(JSON.stringify([packages.map((item) => [item.path, item.version]), rest]));
  for (const file of files) {
    const content = readFileSync(join(root, file));
    hash.update(`\0${file}\0${content.length}\0`).update(content);
  }
  return hash.digest('hex').slice(0, 16);
}

/** Returns the image for these sources, building it when the engine does not hold it. Throws EnvironmentError. */
export async function ensureNodeImage(options: NodeImageOptions): Promise<NodeImage> {
  const root = options.sourceDir ?? options.projectDir;
  const entry = options.entry ?? defaultEntry;
  if (!existsSync(join(root, entry))) {
    throw new EnvironmentError(`There is no ${entry} in ${root} for the node image: check the build folder.`);
  }
  const base = await ensureBaseImage(options);
  const folders = [...new Set(['lib', 'zaris', ...(options.extraFolders ?? [])])];
  const files = sourceFiles(root, folders);
  if (!files.includes(entry)) {
    throw new EnvironmentError(
      `The entry ${entry} is in none of the folders that the node image copies (${folders.join(', ')}).`,
    );
  }
  const lock = JSON.parse(readFileSync(join(options.projectDir, 'package-lock.json'), 'utf8')) as LockFile;
  const packages = dependencyClosure(lock, serverPackages);
  const tag = contentHash(root, files, packages, [base, entry]);
  const name = `zaris-node:${tag}`;
  if (await hasImage(options.docker, name)) return { name, base, built: false };
  options.say(`Building the node image ${name}`);
  await build(options, { root, files, packages, base, entry, name });
  await pruneImages(options.docker, name);
  return { name, base, built: true };
}

interface BuildPlan {
  readonly root: string;
  readonly files: readonly string[];
  readonly packages: readonly ClosurePackage[];
  readonly base: string;
  readonly entry: string;
  readonly name: string;
}

function stage(options: NodeImageOptions, plan: BuildPlan, folder: string): void {
  for (const item of plan.packages) {
    const from = join(options.projectDir, item.path);
    if (!existsSync(from)) {
      if (item.optional) continue;
      throw new EnvironmentError(`The package in ${item.path} is not installed: run \`npm ci\`.`);
    }
    cpSync(from, join(folder, 'packages', item.path), {
      recursive: true,
      // Nested packages are items of their own; the rest of a nested node_modules is not needed.
      filter: (path) => !path.slice(from.length).includes('/node_modules'),
    });
  }
  for (const file of plan.files) {
    const target = join(folder, 'sources', file);
    mkdirSync(dirname(target), { recursive: true });
    cpSync(join(plan.root, file), target);
  }
  const about = { name: 'zaris-node', private: true, type: 'module' };
  writeFileSync(join(folder, 'sources', 'package.json'), `${JSON.stringify(about)}\n`);
  const lines = [
    `FROM ${plan.base}`,
    `LABEL ${imageLabel}=node`,
    'WORKDIR /app',
    'COPY packages/ /app/',
    'COPY sources/ /app/',
    `CMD ${JSON.stringify(['node', `/app/${plan.entry}`])}`,
  ];
  writeFileSync(join(folder, 'Dockerfile'), `${lines.join('\n')}\n`);
}

async function build(options: NodeImageOptions, plan: BuildPlan): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'zaris-node-'));
  try {
    mkdirSync(join(folder, 'packages'));
    stage(options, plan, folder);
    const archive = tarOf(['-C', folder, '.']);
    const progress = await options.docker.buildImage(archive.stream, { t: plan.name, rm: true, forcerm: true });
    await followProgress(options.docker, progress);
    await archive.done;
  } catch (error) {
    if (error instanceof EnvironmentError) throw error;
    throw new EnvironmentError(
      `The engine could not build the node image (${messageOf(error)}): see its log and free disk space.`,
    );
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Removes the oldest node images beyond a bound; one that a container uses stays, the engine refuses that. */
async function pruneImages(docker: Docker, current: string): Promise<void> {
  const images = await docker.listImages({ filters: { label: [`${imageLabel}=node`] } });
  const old = images.sort((a, b) => b.Created - a.Created).slice(keptImages);
  for (const image of old) {
    for (const name of image.RepoTags ?? []) {
      if (name !== current && name.startsWith('zaris-node:'))
        await docker
          .getImage(name)
          .remove()
          .catch(() => {});
    }
  }
}
