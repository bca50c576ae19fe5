/**
 * Works out which installed packages a node image needs: the transitive production dependencies of a few roots, read
 * from the lock file. Pure. A package left out would show only when the server starts in its container.
 */

/** The part of a package-lock.json (version 3) that matters here. */
export interface LockFile {
  readonly packages: Readonly<Record<string, LockEntry>>;
}

export interface LockEntry {
  readonly version?: string;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}

/** One package of the closure: its folder relative to the project, and its version. */
export interface ClosurePackage {
  readonly path: string;
  readonly version: string;
  readonly optional: boolean;
}

/** Where `name` is found from the package in `from`, by the nesting rule of node_modules; null when the lock has none. */
export function resolveInLock(lock: LockFile, from: string, name: string): string | null {
  let base = from;
  for (;;) {
    const candidate = base === '' ? `node_modules/${name}` : `${base}/node_modules/${name}`;
    if (lock.packages[candidate] !== undefined) return candidate;
    if (base === '') return null;
    const cut = base.lastIndexOf('/node_modules/');
    base = cut === -1 ? '' : base.slice(0, cut);
  }
}

/** The closure of `roots`, sorted by path. Throws when a required package is not in the lock. */
export function dependencyClosure(lock: LockFile, roots: readonly string[]): ClosurePackage[] {
  const found = new Map<string, ClosurePackage>();
  const queue = roots.map((name) => ({ name, from: '', optional: false }));
  for (let item = queue.pop(); item !== undefined; item = queue.pop()) {
    const path = resolveInLock(lock, item.from, item.name);
    if (path === null) {
      if (item.optional) continue;
      throw new Error(`package-lock.json has no package ${item.name} (needed by ${item.from || 'the node image'})`);
    }
    const known = found.get(path);
    if (known !== undefined && (!known.optional || item.optional)) continue;
    const entry = lock.packages[path] ?? {};
    found.set(path, { path, version: entry.version ?? '', optional: item.optional });
    for (const name of Object.keys(entry.dependencies ?? {})) {
      // npm lists an optional dependency under both names.
      const optional = item.optional || entry.optionalDependencies?.[name] !== undefined;
      queue.push({ name, from: path, optional });
    }
    for (const name of Object.keys(entry.optionalDependencies ?? {})) queue.push({ name, from: path, optional: true });
  }
  return [...found.values()].sort((a, b) => (a.path < b.path ? -1 : 1));
}
