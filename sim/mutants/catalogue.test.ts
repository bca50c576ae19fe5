/** The catalogue of mutants is whole and fits the present sources; that each one is caught is for `run.ts` to show. */
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { listCounterexamples, readCounterexample } from '../counterexample.ts';
import { mutants } from './catalogue.ts';
import { keptBugs } from './of-counterexamples.ts';
import { applyEdit, assertsOff } from './mutant.ts';

const root = join(import.meta.dirname, '..', '..');
const hazardCount = 24;
const tests = readdirSync(join(root, 'sim', 'hazards'))
  .map((name) => readFileSync(join(root, 'sim', 'hazards', name), 'utf8'))
  .join('\n');

/** The sources with the edits applied one after the other, as the runner does it. */
function apply(edits: readonly { file: string; find: string; replace: string }[]): void {
  const texts = new Map<string, string>();
  for (const edit of edits) {
    const text = texts.get(edit.file) ?? readFileSync(join(root, edit.file), 'utf8');
    texts.set(edit.file, applyEdit(text, edit));
  }
}

describe('mutants', () => {
  it.each(Array.from({ length: hazardCount }, (_, index) => index + 1))('hazard %i has one', (hazard) => {
    expect(mutants.some((mutant) => mutant.hazard === hazard)).toBe(true);
  });

  it('have names of their own', () => {
    expect(new Set(mutants.map(({ name }) => name)).size).toBe(mutants.length);
  });

  it.each(mutants)('$hazard, $name: its texts occur once in the present sources, its test exists', (mutant) => {
    expect(() => apply([...assertsOff, ...mutant.edits])).not.toThrow();
    for (const { find, replace } of mutant.edits) expect(replace).not.toBe(find);
    expect(tests).toContain(`'${mutant.hazard}. ${mutant.test}`);
  });

  it.each(keptBugs)('$counterexample: the texts of its bug occur once in the present sources', ({ edits }) => {
    expect(() => apply(edits)).not.toThrow();
  });

  it('every kept counterexample of the shipped store has its bug', () => {
    const names = listCounterexamples()
      .map(readCounterexample)
      .flatMap(({ name, store }) => (store === null ? [name] : []));
    expect(keptBugs.map(({ counterexample }) => counterexample).toSorted()).toEqual(names.toSorted());
  });

  it('a text that is missing, or there twice, fails loudly', () => {
    expect(() => applyEdit('one two', { file: 'f', find: 'three', replace: '' })).toThrow(/0 times/);
    expect(() => applyEdit('one one', { file: 'f', find: 'one', replace: '' })).toThrow(/2 times/);
    expect(applyEdit('one two', { file: 'f', find: 'two', replace: '$& three' })).toBe('one $& three');
  });
});
