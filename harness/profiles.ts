/** `--profile`: good sets of options under one name; whatever stands beside it on the command line wins. */
import { UsageError } from './errors.ts';

export const profileNames = ['smoke', 'nightly', 'release'] as const;
export type ProfileName = (typeof profileNames)[number];

/** Options by name, as they would be typed. */
export type ProfileOptions = Readonly<Record<string, string>>;

interface Profile {
  readonly doc: string;
  readonly options: ProfileOptions;
}

const profiles: Readonly<Record<ProfileName, Profile>> = {
  smoke: {
    doc: 'two minutes, for every change',
    options: { duration: '2m', 'min-failovers': '3' },
  },
  nightly: {
    doc: 'four hours, at least 100 failovers',
    options: { duration: '4h', 'min-failovers': '100' },
  },
  release: {
    doc: 'twelve hours at a rate that keeps the ledger small, at least 300 failovers, a ledger that survives a power loss',
    options: { duration: '12h', rate: '1500', 'min-failovers': '300', 'ledger-sync': 'full' },
  },
};

/** "smoke (two minutes, …), nightly (…)". */
export const describeProfiles = (): string => profileNames.map((name) => `${name} (${profiles[name].doc})`).join(', ');

/** The profile that these words name; null when they name none. Throws UsageError for an unknown one. */
export function profileOf(argv: readonly string[]): ProfileName | null {
  let found: string | null = null;
  for (const [index, word] of argv.entries()) {
    if (word === '--profile') found = argv[index + 1] ?? '';
    else if (word.startsWith('--profile=')) found = word.slice('--profile='.length);
  }
  if (found === null) return null;
  const name = profileNames.find((each) => each === found);
  if (name === undefined) throw new UsageError(`--profile must be one of ${profileNames.join(', ')}, not "${found}".`);
  return name;
}

export const optionsOf = (name: ProfileName | null): ProfileOptions => (name === null ? {} : profiles[name].options);
