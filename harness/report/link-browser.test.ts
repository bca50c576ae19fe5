import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Script } from 'node:vm';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { linkBrowserScript } from './link-browser.ts';

describe('linkBrowserScript', () => {
  let folder = '';
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'link-'));
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));
  const write = (name: string, source: string): string => {
    writeFileSync(join(folder, name), source);
    return join(folder, name);
  };

  it('orders modules by their imports and strips types', () => {
    write('b.ts', "import type { X } from './types.ts';\nexport const twice = (n: number): number => n * 2;\n");
    write(
      'c.ts',
      "import { twice } from './b.ts';\nexport function four(n: number): number { return twice(twice(n)); }\n",
    );
    const entry = write(
      'a.ts',
      "import { twice } from './b.ts';\nimport {\n  four,\n} from './c.ts';\n(globalThis as { result?: number[] }).result = [twice(1), four(1)];\n",
    );
    const context = { result: [] as number[] };
    // oxlint-disable-next-line no-implied-eval
    new Function('context', linkBrowserScript(entry).replace('globalThis', 'context'))(context);
    expect(context.result).toEqual([2, 4]);
  });

  it('refuses two declarations of one name, and packages', () => {
    write('b.ts', 'export const same = 1;\n');
    expect(() =>
      linkBrowserScript(write('a.ts', "import { same as other } from './b.ts';\nconst same = 2;\n")),
    ).toThrow('same is declared in');
    expect(() => linkBrowserScript(write('p.ts', "import { z } from 'zod';\n"))).toThrow('only relative imports');
  });

  it('links the page itself into one valid script', () => {
    const source = linkBrowserScript(join(import.meta.dirname, 'browser', 'main.ts'));
    expect(() => new Script(source)).not.toThrow();
    expect(source).not.toMatch(/^(?:import|export)\s/m);
  });
});
