/** Histories of public checkers with known verdicts, from `../shared/cases`; skipped, counted and named where that is missing. */
import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { runCheck } from './check-command.ts';

interface Case {
  readonly file: string;
  readonly format: string;
  readonly model: string;
  readonly expected: string;
  readonly initial?: number | string | null;
}

const folder = fileURLToPath(new URL('../../../../shared/cases/', import.meta.url));
const index = `${folder}expected.json`;
const cases = existsSync(index) ? (JSON.parse(readFileSync(index, 'utf8')) as Case[]) : [];

describe.skipIf(cases.length === 0)('histories of public checkers (../shared/cases)', () => {
  it('are there', () => {
    expect(cases.length).toBeGreaterThan(0);
  });
  it.each(cases)('$file is $expected', async ({ file, format, model, expected, initial }) => {
    const { json } = await runCheck({
      file: `${folder}${file}`,
      format,
      model,
      ...(initial === undefined || initial === null ? {} : { initial }),
    });
    expect('verdict' in json ? json.verdict : json.error).toBe(expected);
    if ('verdict' in json && json.verdict === 'invalid') {
      expect(json.evidence!.operation!.line).toBeGreaterThan(0);
      expect(json.evidence!.isSmallest).toBe(true);
    }
  });
});
