/** Builds an image from a user's folder with a Dockerfile; what runs is named by the identity that the engine gives it. */
import { createHash } from 'node:crypto';
import { resolve } from 'node:path';
import { type BaseImageOptions, ensureBaseImage, followProgress, tarOf } from './base-image.ts';
import { EnvironmentError, messageOf } from './errors.ts';
import type { SystemImage } from './system-image.ts';

const repository = 'zaris-own';

/** Builds it anew each time; the engine's own cache makes that quick. Throws EnvironmentError when the build fails. */
export async function buildOwnImage(options: BaseImageOptions, folder: string): Promise<SystemImage> {
  const base = await ensureBaseImage(options);
  const path = resolve(folder);
  const name = `${repository}:${createHash('sha256').update(path).digest('hex').slice(0, 12)}`;
  options.say(`Building the image of ${path}`);
  try {
    const archive = tarOf(['-C', path, '.']);
    const progress = await options.docker.buildImage(archive.stream, { t: name, rm: true, forcerm: true });
    await followProgress(options.docker, progress);
    await archive.done;
  } catch (error) {
    throw new EnvironmentError(`The image of ${path} could not be built (${messageOf(error)}): mend its Dockerfile.`);
  }
  return { name, base, origin: path };
}
