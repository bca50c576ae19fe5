/**
 * What a mutant is: the store with one rule taken away by a literal change of its text, and the hazard test that must then fail.
 * A hazard test that stays green without the rule it is about proves nothing; this is how that is found out.
 */
export interface Edit {
  /** From the root of the project. */
  readonly file: string;
  /** Occurs exactly once in the file; anything else fails loudly. */
  readonly find: string;
  readonly replace: string;
}

export interface Mutant {
  readonly hazard: number;
  /** Unique, a few words: what the mutant does. */
  readonly name: string;
  /** The rule that it breaks, in DESIGN §4's words. */
  readonly rule: string;
  readonly edits: readonly Edit[];
  /** Part of the name of the test that must fail. */
  readonly test: string;
  /** Part of the message of the assertion that must fail, with the store's own asserts off. */
  readonly red: string;
  /** Where one of the store's own asserts notices too: part of its message. Checked in a second run with the asserts on. */
  readonly asserted?: string;
}

/** Turns the store's own asserts off: what fails then is what a test sees from outside. */
export const assertsOff: readonly Edit[] = [
  { file: 'zaris/node/options.ts', find: 'assert(false, why);', replace: 'void why;' },
  { file: 'lib/assert.ts', find: 'if (!condition) throw new AssertionError(why);', replace: 'if (!condition) return;' },
];

/** The text with the edit applied; throws where the text to be found does not occur exactly once. */
export function applyEdit(text: string, { file, find, replace }: Edit): string {
  const count = text.split(find).length - 1;
  if (count !== 1) throw new Error(`${file}: found ${count} times instead of once: ${find}`);
  return text.replace(find, () => replace);
}
