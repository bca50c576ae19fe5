/**
 * Owns the images of systems that are not ours: public ones where a registry answers, Debian's packages on our base where none does,
 * or a user's own files on our base.
 *
 * The name is a hash of everything that goes in, so an image of that name is never made twice, and a run names exactly what it ran.
 */
import { createHash } from 'node:crypto';
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type Docker from 'dockerode';
import { type BaseImageOptions, ensureBaseImage, followProgress, hasImage, pullImage, tarOf } from './base-image.ts';
import { lastLine } from './command.ts';
import { EnvironmentError, messageOf } from './errors.ts';
import { currentOwner, labelsOf } from './labels.ts';
import { execInContainer } from './netns.ts';
import { sourceFiles } from './image.ts';

/** What an image is made from. */
export type SystemImageSource =
  | {
      readonly kind: 'packages';
      readonly packages: readonly string[];
      readonly publicImage: string | null;
      readonly program: string;
    }
  | { readonly kind: 'image'; readonly image: string }
  | { readonly kind: 'folder'; readonly path: string };

/** Where the files of a folder stand in its image. */
export const folderInImage = '/app';

const repository = 'zaris-system';
const recipe = 1;
const installTimeoutMs = 300_000;

/** An image that the engine holds, and the base for seats. */
export interface SystemImage {
  readonly name: string;
  readonly base: string;
  /** Where it came from, for the report. */
  readonly origin: string;
}

/** Returns the image of a system, making it when the engine does not hold it. Throws EnvironmentError. */
export async function ensureSystemImage(options: BaseImageOptions, source: SystemImageSource): Promise<SystemImage> {
  const base = await ensureBaseImage(options);
  switch (source.kind) {
    case 'image':
      if (!(await pullImage(options.docker, source.image, () => undefined)))
        throw new EnvironmentError(
          `The engine does not hold the image ${source.image} and no registry gives it: build it or pull it by hand first.`,
        );
      return { name: source.image, base, origin: source.image };
    case 'packages':
      return { ...(await fromPackages(options, base, source)), base };
    case 'folder':
      return { ...(await fromFolder(options, base, source.path)), base };
  }
}

type Made = Omit<SystemImage, 'base'>;

const tagOf = (content: unknown): string =>
  createHash('sha256')
    .update(JSON.stringify([recipe, content]))
    .digest('hex')
    .slice(0, 16);

async function fromPackages(
  options: BaseImageOptions,
  base: string,
  { packages, publicImage, program }: Extract<SystemImageSource, { kind: 'packages' }>,
): Promise<Made> {
  const { docker, say } = options;
  const asked = options.registry !== false && publicImage !== null;
  if (asked && (await hasImage(docker, publicImage))) return { name: publicImage, origin: publicImage };
  const tag = tagOf([base, packages]);
  const name = `${repository}:${tag}`;
  const origin = `Debian packages ${packages.join(', ')}`;
  if (await hasImage(docker, name)) return { name, origin };
  const why = (reason: string): void => say(`No registry gives ${publicImage} (${reason}); using ${origin}`);
  if (asked && (await pullImage(docker, publicImage, why))) return { name: publicImage, origin: publicImage };
  say(`Building the image ${name} from ${origin} (once)`);
  await install(docker, { base, packages, program, tag });
  return { name, origin };
}

interface Installation {
  readonly base: string;
  readonly packages: readonly string[];
  readonly program: string;
  readonly tag: string;
}

/** Installs in a container of the base, where nothing is started, and keeps the result. */
async function install(docker: Docker, { base, packages, program, tag }: Installation): Promise<void> {
  const script = [
    'set -e',
    `printf '#!/bin/sh\\nexit 101\\n' > /usr/sbin/policy-rc.d && chmod 755 /usr/sbin/policy-rc.d`,
    'apt-get update -qq',
    `DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends ${packages.join(' ')}`,
    'rm -rf /var/lib/apt/lists/* /var/cache/apt/*',
    `command -v ${program}`,
  ].join('\n');
  const container = await docker.createContainer({
    Image: base,
    Cmd: ['sleep', 'infinity'],
    Labels: labelsOf('image', currentOwner(), 'node'),
  });
  try {
    await container.start();
    const done = await execInContainer(docker, container.id, ['bash', '-c', script], installTimeoutMs);
    if (done.exitCode !== 0) throw new Error(lastLine(done));
    await container.commit({ repo: repository, tag });
  } catch (error) {
    throw new EnvironmentError(
      `The packages ${packages.join(', ')} could not be installed in a container (${messageOf(error)}): check its way to a Debian mirror.`,
    );
  } finally {
    await container.remove({ force: true, v: true });
  }
}

async function fromFolder(options: BaseImageOptions, base: string, path: string): Promise<Made> {
  const files = sourceFiles(path, ['.']);
  const content = files.map((file) => [
    file,
    createHash('sha256')
      .update(readFileSync(join(path, file)))
      .digest('hex'),
  ]);
  const name = `${repository}:${tagOf([base, content])}`;
  if (await hasImage(options.docker, name)) return { name, origin: path };
  options.say(`Building the image ${name} from ${path}`);
  const staged = mkdtempSync(join(tmpdir(), 'zaris-system-'));
  try {
    cpSync(path, join(staged, 'files'), { recursive: true });
    const lines = [`FROM ${base}`, `WORKDIR ${folderInImage}`, `COPY files/ ${folderInImage}/`];
    writeFileSync(join(staged, 'Dockerfile'), `${lines.join('\n')}\n`);
    const archive = tarOf(['-C', staged, '.']);
    const progress = await options.docker.buildImage(archive.stream, { t: name, rm: true, forcerm: true });
    await followProgress(options.docker, progress);
    await archive.done;
    return { name, origin: path };
  } catch (error) {
    throw new EnvironmentError(`The engine could not build an image from ${path} (${messageOf(error)}): see its log.`);
  } finally {
    rmSync(staged, { recursive: true, force: true });
  }
}
