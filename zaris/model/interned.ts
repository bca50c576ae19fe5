/**
 * One string object per client id. The same few ids stand in every request and entry; equal strings that are one object are compared
 * by address, and a log of entries keeps one copy instead of thousands. Nothing depends on it but time and memory.
 */

/** Names remembered; when full, all are forgotten, and it starts anew. */
const maxInterned = 4_096;
const names = new Map<string, string>();
/** The newest answer: whoever sends many at once sends them under one name. */
let newest = '';

/** A string equal to `name`; mostly the same object for equal names. */
export function interned(name: string): string {
  if (name === newest) return newest;
  const known = names.get(name);
  newest = known ?? name;
  if (known !== undefined) return known;
  if (names.size >= maxInterned) names.clear();
  names.set(name, name);
  return name;
}
