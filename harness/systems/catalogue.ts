/** The systems that come with the harness, by the names that `--system` takes; loaded when they are asked for. */
import type { System } from './system.ts';

/** Variants stand behind a colon; the first one is meant when none is given. */
const variants: Readonly<Record<string, readonly string[]>> = {
  zaris: [],
  redis: ['async', 'wait-1', 'min-replicas'],
  etcd: [],
};

/** "zaris, redis (or redis:async, …), etcd". */
export const describeSystems = (): string =>
  Object.entries(variants)
    .map(([name, own]) =>
      own.length === 0 ? name : `${name} (${own.map((variant) => `${name}:${variant}`).join(', ')})`,
    )
    .join(', ');

/** The variants of a system; none where the name is unknown. */
export const variantsOf = (name: string): readonly string[] =>
  Object.hasOwn(variants, name) ? (variants[name] ?? []) : [];

/** The system of this name; null when there is none. Its client library is loaded only now. */
export async function systemNamed(name: string): Promise<System | null> {
  const [base = '', variant, ...rest] = name.split(':');
  if (!Object.hasOwn(variants, base) || rest.length > 0) return null;
  const own = variantsOf(base);
  if (variant !== undefined && !own.includes(variant)) return null;
  switch (base) {
    case 'zaris':
      return (await import('./zaris.ts')).zaris;
    case 'etcd':
      return (await import('./etcd/etcd.ts')).etcd;
    case 'redis':
      return (await import('./redis/redis.ts')).redis(variant ?? own[0] ?? '') ?? null;
    default:
      return null;
  }
}
