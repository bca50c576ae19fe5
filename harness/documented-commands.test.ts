/** Every command that the documents show is one that the command line understands. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parseCommandLine } from './cli.ts';
import { examples } from './help.ts';
import { parseSelfTest } from './selftest/options.ts';

const root = join(import.meta.dirname, '..');
const documents = ['README.md', ...readdirSync(join(root, 'docs')).map((name) => join('docs', name))].filter((name) =>
  /\.(md|yml|sh)$/.test(name),
);

/** Words as a shell would split them, quotes taken away; comments and redirections end the line. */
function words(line: string): string[] {
  const bare = line.replace(/\s(#|>|\||`|&&).*$/, '');
  return [...bare.matchAll(/"([^"]*)"|'([^']*)'|(\S+)/g)].map((match) => match[1] ?? match[2] ?? match[3] ?? '');
}

const shown = documents.flatMap((name) =>
  readFileSync(join(root, name), 'utf8')
    .split('\n')
    .filter((line) => /npm run (--silent )?certify -- /.test(line) && !/\$/.test(line.replace(/.*certify -- /, '')))
    .map((line) => line.replace(/.*certify -- /, '').replace(/`.*$/, ''))
    .map((line) => [name, line] as const),
);

/** Files that a document names and that are there only after a run (the sample report names its own), or are the reader's own. */
const absent = /…|results\/\d{8}-|results\/latest\/schedule\.json|my-system\.ts|\.\/|adapter\.ts|FILE/;

describe('commands in the documents', () => {
  it('are found', () => expect(shown.length).toBeGreaterThan(10));

  it.each(shown.filter(([, line]) => !absent.test(line)))('%s: %s', async (_, line) => {
    const command = await parseCommandLine(words(line), '0');
    expect(command).toHaveProperty('kind');
    // The self-test has a command line of its own.
    if (command.kind === 'selftest') await expect(parseSelfTest(command.argv)).resolves.toHaveProperty('stores');
  });

  it.each(examples.filter(([line]) => !absent.test(line)))('help: %s', async (line) => {
    await expect(parseCommandLine(words(line.replace('$0 ', '')), '0')).resolves.toHaveProperty('kind');
  });
});
