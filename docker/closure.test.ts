import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { dependencyClosure, resolveInLock } from './closure.ts';
import type { LockFile } from './closure.ts';
import { serverPackages } from './image.ts';

const lock: LockFile = {
  packages: {
    '': {},
    'node_modules/a': { version: '1.0.0', dependencies: { b: '^1', c: '^2' } },
    'node_modules/b': { version: '1.1.0', dependencies: { c: '^1' } },
    'node_modules/b/node_modules/c': { version: '1.0.0', dependencies: { a: '*' } },
    'node_modules/c': { version: '2.0.0', optionalDependencies: { d: '*', gone: '*' } },
    'node_modules/d': { version: '3.0.0' },
    'node_modules/unused': { version: '9.0.0' },
  },
};

describe('dependencyClosure', () => {
  it('takes what is needed, nested copies and cycles included, and nothing else', () => {
    expect(dependencyClosure(lock, ['a']).map((item) => `${item.path}@${item.version}`)).toEqual([
      'node_modules/a@1.0.0',
      'node_modules/b@1.1.0',
      'node_modules/b/node_modules/c@1.0.0',
      'node_modules/c@2.0.0',
      'node_modules/d@3.0.0',
    ]);
  });

  it('marks as optional only what nothing requires', () => {
    expect(
      dependencyClosure(lock, ['a'])
        .filter((item) => item.optional)
        .map((item) => item.path),
    ).toEqual(['node_modules/d']);
    expect(dependencyClosure(lock, ['a', 'd']).some((item) => item.optional)).toBe(false);
  });

  it('refuses a root that the lock does not have', () => {
    expect(() => dependencyClosure(lock, ['nowhere'])).toThrow('has no package nowhere');
  });

  it('resolves through a scoped and nested path', () => {
    const nested: LockFile = { packages: { 'node_modules/@s/x/node_modules/y': {}, 'node_modules/z': {} } };
    expect(resolveInLock(nested, 'node_modules/@s/x/node_modules/y', 'z')).toBe('node_modules/z');
  });

  it("covers the server's packages in the real lock file", () => {
    const real = JSON.parse(readFileSync(join(import.meta.dirname, '..', 'package-lock.json'), 'utf8')) as LockFile;
    const paths = dependencyClosure(real, serverPackages).map((item) => item.path);
    for (const name of serverPackages) expect(paths).toContain(`node_modules/${name}`);
    expect(paths).not.toContain('node_modules/better-sqlite3');
    expect(paths).not.toContain('node_modules/testcontainers');
  });
});
