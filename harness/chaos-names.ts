/** What `--chaos` and `--faults` may say. */
import { type FaultName, faultNamesOfWord, faultWords } from '../chaos/faults.ts';
import { type ChaosLevel, chaosLevels } from '../chaos/schedule.ts';
import { UsageError } from './errors.ts';

/** `none` runs the load without faults; it can certify nothing about them. */
export type ChaosChoice = 'none' | ChaosLevel;

/** Chaos levels, mildest first. */
export const chaosChoices: readonly ChaosChoice[] = ['none', ...chaosLevels];

/** Resolves the words of `--faults`. Throws UsageError for a word that names no fault. */
export function checkFaultKinds(words: readonly string[]): readonly FaultName[] {
  const names = new Set<FaultName>();
  for (const word of words) {
    const known = faultNamesOfWord(word);
    if (known === null) throw new UsageError(`There is no fault "${word}"; the faults are ${faultWords.join(', ')}.`);
    for (const name of known) names.add(name);
  }
  return [...names];
}
