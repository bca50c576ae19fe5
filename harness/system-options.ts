/**
 * What the chosen system means for the rest of the command line: its own defaults for nodes, copies, partitions and workload,
 * and a sentence where something was asked for that it cannot do.
 *
 * Invariant: nothing that the user wrote is changed, only what is missing is added; a wish that the system cannot fulfil is
 * refused, never dropped. Otherwise a certificate would claim what was not run.
 */
import type { WorkloadKind } from '../workloads/catalogue.ts';
import { workloadKinds } from '../workloads/catalogue.ts';
import { defaultMix, describeMix, parseMix } from '../workloads/mix.ts';
import { UsageError } from './errors.ts';
import { loadSystem } from './load-system.ts';
import { defaults } from './settings.ts';
import { variantsOf } from './systems/catalogue.ts';
import type { Capabilities, System } from './systems/system.ts';

/** What a need of a workload is called in an adapter's capabilities; null: every system can. */
const capabilityOf: Readonly<Record<WorkloadKind['needs'][number], keyof Capabilities | null>> = {
  read: null,
  write: null,
  delete: null,
  create: 'create',
  cas: 'compareAndSet',
  versions: 'versions',
  add: 'counters',
  ttl: 'ttl',
};

/** What the system lacks for a workload; empty when it can run. */
export function missingFor(kind: WorkloadKind, capabilities: Capabilities): readonly string[] {
  const missing = kind.needs.flatMap((need) => {
    const capability = capabilityOf[need];
    return capability === null || capabilities[capability] ? [] : [capability];
  });
  if (kind.casWhereVersions === true && capabilities.versions && !capabilities.compareAndSet)
    missing.push('compareAndSet');
  return [...new Set(missing)];
}

/** One sentence for each workload of the default mix that the system cannot run. */
export function leftOutWorkloads(capabilities: Capabilities, systemName: string): readonly string[] {
  return workloadKinds
    .filter((kind) => kind.defaultWeight > 0)
    .flatMap((kind) => {
      const missing = missingFor(kind, capabilities);
      return missing.length === 0
        ? []
        : [`The workload ${kind.name} was left out: ${systemName} does not offer ${missing.join(', ')}.`];
    });
}

/** The value of an option as typed; null when it is not there. */
function wordOf(argv: readonly string[], name: string): string | null {
  let found: string | null = null;
  for (const [index, word] of argv.entries()) {
    if (word === `--${name}`) found = argv[index + 1] ?? '';
    else if (word.startsWith(`--${name}=`)) found = word.slice(name.length + 3);
  }
  return found;
}

/** `--system redis --profile wait-1` is another way to write `--system redis:wait-1`. */
function joinVariant(argv: readonly string[]): readonly string[] {
  const name = wordOf(argv, 'system');
  const profile = wordOf(argv, 'profile');
  if (name === null || profile === null || !variantsOf(name).includes(profile)) return argv;
  const without = argv.filter(
    (word, index) => word !== '--profile' && argv[index - 1] !== '--profile' && word !== `--profile=${profile}`,
  );
  return without.map((word, index) =>
    word === `--system=${name}`
      ? `${word}:${profile}`
      : without[index - 1] === '--system'
        ? `${word}:${profile}`
        : word,
  );
}

/** The command line with the chosen system's defaults in place of what is missing. Throws UsageError. */
export async function withSystem(words: readonly string[]): Promise<readonly string[]> {
  const argv = joinVariant(words);
  const name = wordOf(argv, 'system');
  if (name === null || name === 'zaris' || name === '') return argv;
  const system = await loadSystem(name);
  return [...argv, ...shapeWords(argv, system), ...workloadWords(argv, system)];
}

function shapeWords(argv: readonly string[], { name, shape }: System): string[] {
  if (shape === undefined) return [];
  const added: string[] = [];
  const nodes = wordOf(argv, 'nodes') ?? String(shape.nodes);
  if (wordOf(argv, 'nodes') === null) added.push('--nodes', nodes);
  const copies = wordOf(argv, 'rf');
  if (shape.everyNodeHoldsAll) {
    if (copies === null) added.push('--rf', nodes);
    else if (copies !== nodes)
      throw new UsageError(
        `Every node of ${name} holds every key, so --rf is the number of nodes (${nodes}), not ${copies}.`,
      );
  } else if (copies === null && Number(nodes) < defaults.rf) added.push('--rf', nodes);
  const partitions = wordOf(argv, 'partitions');
  if (shape.partitions !== null) {
    if (partitions === null) added.push('--partitions', String(shape.partitions));
    else if (partitions !== String(shape.partitions))
      throw new UsageError(
        `${name} has ${shape.partitions} partition${shape.partitions === 1 ? '' : 's'}, so --partitions cannot be ${partitions}.`,
      );
  }
  return added;
}

function workloadWords(argv: readonly string[], system: System): string[] {
  const wish = wordOf(argv, 'workload');
  if (wish === null) {
    const able = defaultMix.filter(({ kind }) => missingFor(kind, system.capabilities).length === 0);
    return ['--workload', describeMix(able)];
  }
  const parsed = parseMix(wish);
  // What cannot be read is refused where options are resolved.
  if ('error' in parsed) return [];
  for (const { kind } of parsed.mix) {
    const missing = missingFor(kind, system.capabilities);
    if (missing.length > 0)
      throw new UsageError(
        `The workload "${kind.name}" needs ${missing.join(', ')}, which ${system.name} does not offer.`,
      );
  }
  return [];
}
