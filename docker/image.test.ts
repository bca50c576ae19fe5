import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { nodeBinary } from './base-image.ts';
import { EnvironmentError } from './errors.ts';
import { contentHash, sourceFiles } from './image.ts';
import { projectDir } from './testing/engine-for-tests.ts';

describe('what names a node image', () => {
  let root: string;
  beforeEach(() => {
    root = mkdtempSync(join(tmpdir(), 'zaris-image-'));
    mkdirSync(join(root, 'lib', 'deep'), { recursive: true });
    writeFileSync(join(root, 'lib', 'a.ts'), 'a');
    writeFileSync(join(root, 'lib', 'a.test.ts'), 'test');
    writeFileSync(join(root, 'lib', 'deep', 'b.ts'), 'b');
  });
  afterEach(() => rmSync(root, { recursive: true }));

  const packages = [{ path: 'node_modules/p', version: '1.0.0', optional: false }];
  const hash = (more = packages, rest = ['base']) => contentHash(root, sourceFiles(root, ['lib']), more, rest);

  it('is every source file, without tests, each once', () => {
    expect(sourceFiles(root, ['lib', 'lib/deep'])).toEqual(['lib/a.ts', 'lib/deep/b.ts']);
  });

  it('changes with any content, name, package version and base, and with nothing else', () => {
    const before = hash();
    writeFileSync(join(root, 'lib', 'a.test.ts'), 'another test');
    expect(hash()).toBe(before);
    const others = [
      hash([{ path: 'node_modules/p', version: '1.0.1', optional: false }]),
      hash(packages, ['other base']),
    ];
    writeFileSync(join(root, 'lib', 'a.ts'), 'A');
    others.push(hash());
    writeFileSync(join(root, 'lib', 'c.ts'), '');
    others.push(hash());
    expect(new Set([before, ...others]).size).toBe(5);
  });

  it('does not confuse where one file ends and the next begins', () => {
    writeFileSync(join(root, 'lib', 'a.ts'), 'a\x00lib/deep/b.ts\x001\x00b');
    const one = contentHash(root, ['lib/a.ts'], [], []);
    writeFileSync(join(root, 'lib', 'a.ts'), 'a');
    expect(contentHash(root, ['lib/a.ts', 'lib/deep/b.ts'], [], [])).not.toBe(one);
  });
});

describe('nodeBinary', () => {
  it('finds the program that the package brought', () => {
    expect(nodeBinary(projectDir).version).toMatch(/^24\./);
  });

  it('says what to do when it is not there', () => {
    expect(() => nodeBinary(join(tmpdir(), 'nowhere'))).toThrow(EnvironmentError);
    expect(() => nodeBinary(join(tmpdir(), 'nowhere'))).toThrow('run `npm ci` first');
  });
});
