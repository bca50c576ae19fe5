/** The systems that can be certified, by name. */
import type { System } from './system.ts';
import { zaris } from './zaris.ts';

const systems: readonly System[] = [zaris];

export const systemNames = (): readonly string[] => systems.map((system) => system.name);

/** The system of this name; the command line has checked that there is one. */
export function systemNamed(name: string): System {
  const found = systems.find((system) => system.name === name);
  if (found === undefined) throw new Error(`no system "${name}"`);
  return found;
}
