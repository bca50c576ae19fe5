/**
 * From the word behind `--system` to a system: one of ours by name, or a user's own from a file.
 *
 * A file that is no adapter is refused before anything is started, with one sentence for each thing that is wrong with it.
 */
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { messageOf, UsageError } from './errors.ts';
import { shapeProblems } from './conformance/shape.ts';
import { describeSystems, systemNamed } from './systems/catalogue.ts';
import type { System } from './systems/system.ts';

/** A file, not a name. */
const isPath = (name: string): boolean => /[/\\]|\.[cm]?[jt]s$/.test(name);

/** The system meant. Throws UsageError. */
export async function loadSystem(name: string): Promise<System> {
  if (isPath(name)) return loadFile(name);
  const found = await systemNamed(name);
  if (found === null)
    throw new UsageError(
      `There is no system "${name}"; there are ${describeSystems()}, or give a file such as ./my-system.ts.`,
    );
  return found;
}

/** What a file exports as `system`, looked at but not started. */
async function loadFile(name: string): Promise<System> {
  const path = resolve(name);
  if (!existsSync(path)) throw new UsageError(`There is no file "${name}" to load a system from.`);
  let exported: { readonly system?: unknown };
  try {
    exported = (await import(pathToFileURL(path).href)) as { readonly system?: unknown };
  } catch (error) {
    throw new UsageError(`The system in ${name} could not be loaded (${messageOf(error)}).`);
  }
  if (exported.system === undefined)
    throw new UsageError(`${name} exports no "system"; write "export const system: System = { … }".`);
  const problems = shapeProblems(exported.system);
  if (problems.length > 0) throw new UsageError(`The system in ${name} cannot be used: ${problems.join(' ')}`);
  return exported.system as System;
}
