/**
 * The workloads by name, what each is for, and which letter its keys start with, so that a key tells its model without a
 * look at the run's settings.
 */
import { CasChains } from './cas-chains.ts';
import { Churn } from './churn.ts';
import type { WorkloadContext } from './context.ts';
import { Counters } from './counters.ts';
import { CreateOnce } from './create-once.ts';
import { Lists } from './lists.ts';
import type { OperationKind, Workload } from './port.ts';
import { Recreate } from './recreate.ts';
import { Registers } from './registers.ts';
import { Renewals } from './renewals.ts';
import { TimeToLive } from './time-to-live.ts';
import { UniqueSet } from './unique-set.ts';

export interface WorkloadKind {
  readonly name: string;
  /** First letter of its keys. */
  readonly prefix: string;
  readonly doc: string;
  /** Operations that the store must offer. */
  readonly needs: readonly (OperationKind | 'ttl' | 'versions')[];
  /** It compares and sets where the store has versions, and overwrites where it has none. */
  readonly casWhereVersions?: true;
  /** Share in the default mix; 0 leaves it out. */
  readonly defaultWeight: number;
  readonly make: (context: WorkloadContext) => Workload;
}

/** Every workload, in the order in which help lists them. */
export const workloadKinds: readonly WorkloadKind[] = [
  {
    name: 'set',
    prefix: 's',
    doc: 'unique keys, each written once; every write is judged',
    needs: ['write', 'read'],
    defaultWeight: 5,
    make: (context) => new UniqueSet(context),
  },
  {
    name: 'registers',
    prefix: 'r',
    doc: 'overwritten keys: writes, compare-and-set, reads, deletes',
    needs: ['write', 'read', 'delete'],
    casWhereVersions: true,
    defaultWeight: 4,
    make: (context) => new Registers(context),
  },
  {
    name: 'cas',
    prefix: 'x',
    doc: 'chains of compare-and-set, each step names its predecessor',
    needs: ['create', 'cas', 'read', 'versions'],
    defaultWeight: 1,
    make: (context) => new CasChains(context),
  },
  {
    name: 'counters',
    prefix: 'n',
    doc: 'additions and reads; the sum must fit',
    needs: ['add', 'read'],
    defaultWeight: 1,
    make: (context) => new Counters(context),
  },
  {
    name: 'lists',
    prefix: 'l',
    doc: 'appends to a list by compare-and-set',
    needs: ['create', 'cas', 'read', 'versions'],
    defaultWeight: 1,
    make: (context) => new Lists(context),
  },
  {
    name: 'create',
    prefix: 'o',
    doc: 'races to create a key once',
    needs: ['create', 'read'],
    defaultWeight: 1,
    make: (context) => new CreateOnce(context),
  },
  {
    name: 'churn',
    prefix: 'd',
    doc: 'put and delete; nothing deleted may come back',
    needs: ['write', 'read', 'delete'],
    defaultWeight: 1,
    make: (context) => new Churn(context),
  },
  {
    name: 'ttl',
    prefix: 't',
    doc: 'values that expire: not early, not much too late',
    needs: ['write', 'read', 'ttl'],
    defaultWeight: 1,
    make: (context) => new TimeToLive(context),
  },
  {
    name: 'renewals',
    prefix: 'e',
    doc: 'values that expire, overwritten around their expiry',
    needs: ['write', 'read', 'ttl'],
    defaultWeight: 1,
    make: (context) => new Renewals(context),
  },
  {
    name: 'recreate',
    prefix: 'k',
    doc: 'races to create and delete the same few keys',
    needs: ['create', 'read', 'delete'],
    defaultWeight: 1,
    make: (context) => new Recreate(context),
  },
];

/** The workload that a key belongs to by its first letter, or undefined for a key of nobody. */
export function workloadOfKey(key: string): WorkloadKind | undefined {
  return workloadKinds.find((kind) => key.startsWith(kind.prefix));
}
