/**
 * Links the page's TypeScript modules into one classic script, at render time: types stripped, imports resolved by order,
 * everything in one function scope. No build step, no bundler.
 *
 * Invariant: module-level names are unique over all linked files (checked here), since they share one scope. If two
 * collided, the page would silently call the wrong function.
 */
import { readFileSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import { dirname, join } from 'node:path';
import { assert } from '../../lib/assert.ts';

const importStatement = /^import\s+(?:[^;]*?\sfrom\s+)?'([^']+)';/gm;
const declaration = /^(?:export\s+)?(?:async\s+)?(?:function\*?|const|let|class)\s+(\w+)/gm;

/** `stripTypeScriptTypes` without its notice on standard error: the project runs on type stripping anyway. */
function stripTypes(source: string): string {
  const emit = process.emitWarning;
  process.emitWarning = () => {};
  try {
    return stripTypeScriptTypes(source);
  } finally {
    process.emitWarning = emit;
  }
}

function visit(path: string, seen: Set<string>, ordered: { path: string; code: string }[]): void {
  if (seen.has(path)) return;
  seen.add(path);
  const stripped = stripTypes(readFileSync(path, 'utf8'));
  for (const [, target] of stripped.matchAll(importStatement)) {
    assert(
      target !== undefined && target.startsWith('.'),
      `${path} imports ${target}: only relative imports can be linked`,
    );
    visit(join(dirname(path), target), seen, ordered);
  }
  ordered.push({ path, code: stripped });
}

/** One self-contained script of everything that `entryPath` reaches. */
export function linkBrowserScript(entryPath: string): string {
  const ordered: { path: string; code: string }[] = [];
  visit(entryPath, new Set(), ordered);
  const owners = new Map<string, string>();
  for (const { path, code } of ordered) {
    for (const [, name] of code.matchAll(declaration)) {
      if (name === undefined) continue;
      assert(!owners.has(name), `${name} is declared in ${owners.get(name)} and in ${path}`);
      owners.set(name, path);
    }
  }
  const parts = ordered.map(({ code }) => tidy(code.replace(importStatement, '').replace(/^export\s+(?=\w)/gm, '')));
  return `(() => {\n'use strict';\n${parts.join('\n')}\n})();`;
}

/** Drops the holes that stripping leaves, and comment lines; string literals over several lines are not used in the page. */
const tidy = (code: string): string =>
  code
    .replace(/^\/\*\*[\s\S]*?\*\/$/gm, '')
    .replace(/[ \t]+$/gm, '')
    .replace(/\n{2,}/g, '\n');
