/**
 * The harness broken on purpose, each time from outside: a sound store under a harness that lies must end without a certificate,
 * and without an accusation of the store. The table of what became of each is printed at the end.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Cluster } from '../chaos/ports.ts';
import { openLedger } from '../ledger/ledger.ts';
import type { Completion, StoreClient } from '../workloads/port.ts';
import { plainTable } from './report/list-runs.ts';
import { playChaos } from './run/chaos-control.ts';
import type { RunLedger } from './run/ports.ts';
import { certify } from './run/run.ts';
import { runTagOf } from './run/run-state.ts';
import type { World } from './run/world.ts';
import { type RunRig, runRig, shortSettings } from './testing/run-rig.ts';
import type { Verdict } from './verdict.ts';

let folder = '';
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'certify-broken-'));
});
const table: string[][] = [];
afterAll(() => {
  rmSync(folder, { recursive: true, force: true });
  process.stdout.write(`${plainTable(['broken harness', 'verdict', 'because'], table)}\n`);
});

/** `target` with some of its methods replaced. */
function replaced<T extends object>(target: T, methods: Partial<T>): T {
  return new Proxy(target, {
    get(object, name) {
      const own = Reflect.get(methods, name) as unknown;
      const value = own ?? (Reflect.get(object, name) as unknown);
      return typeof value === 'function' ? value.bind(object) : value;
    },
  });
}

const clusterWith =
  (methods: (cluster: Cluster) => Partial<Cluster>) =>
  ({ cluster }: RunRig): Partial<World> => ({
    openCluster: async () => ({ ...cluster.asRunCluster(), cluster: replaced<Cluster>(cluster, methods(cluster)) }),
  });

const ledgerWith = (methods: (ledger: RunLedger) => Partial<RunLedger>) => (): Partial<World> => ({
  openLedger: async (run) => {
    const ledger = await openLedger({ path: run.ledger, runTag: runTagOf(run.runId) });
    return replaced<RunLedger>(ledger, methods(ledger));
  },
});

const clientWith =
  (execute: (client: StoreClient) => StoreClient['execute']) =>
  ({ world }: RunRig): Partial<World> => ({
    system: {
      ...world.system,
      connect: (options) => {
        const running = world.system.connect(options);
        const client = (session: number): StoreClient => {
          const own = running.client(session);
          return { ...own, execute: execute(own), close: () => own.close() };
        };
        return replaced(running, { client });
      },
    },
  });

const nothing = async (): Promise<void> => undefined;
let counter = 0;
const everyNth = (n: number): boolean => ++counter % n === 0;

/** The batch that a ledger's own writer would have lost: the row is taken, answered, and never written. */
function dropping(ledger: RunLedger): Partial<RunLedger> {
  const lose = (row: { readonly session: number }): boolean => row.session < 8 && everyNth(50);
  return {
    // The operation is finished under another name, so that the ledger's own duty is kept.
    outcome: (row) => (lose(row) ? forget(ledger, row.session) : ledger.outcome(row)),
  };
}

function forget(ledger: RunLedger, session: number): Promise<void> {
  (ledger as unknown as { open: Map<number, unknown> }).open.delete(session);
  return Promise.resolve();
}

interface Broken {
  readonly name: string;
  readonly overrides: (rig: RunRig) => Partial<World>;
  readonly arrange?: (rig: RunRig) => void;
  readonly allowed: readonly Verdict[];
  readonly because: RegExp;
}

const broken: readonly Broken[] = [
  {
    name: 'faults that are announced and not injected',
    overrides: clusterWith(() => ({ kill: nothing, pause: nothing })),
    allowed: ['inconclusive'],
    because: /never confirmed by a probe/,
  },
  {
    name: 'a fault driver that does nothing at all',
    overrides: () => ({
      startChaos: async (options) => {
        const control = await playChaos({
          ...options,
          schedule: {
            ...JSON.parse(
              '{"version":1,"name":null,"seed":5,"level":null,"durationMs":5000,"healFromMs":4000,"expect":null,"workload":{},"cluster":{}}',
            ),
            events: [],
          },
          onSchedule: () => undefined,
        });
        options.onSchedule(
          {
            version: 1,
            name: null,
            seed: 5,
            level: null,
            durationMs: 5_000,
            healFromMs: 4_000,
            expect: null,
            workload: {},
            cluster: {},
            events: [
              {
                id: 'F1',
                moment: { kind: 'at', atMs: 300 },
                fault: { kind: 'kill' },
                target: { kind: 'random', count: 1 },
                durationMs: 700,
              },
            ],
          },
          new Map(),
        );
        return control;
      },
    }),
    allowed: ['inconclusive'],
    because: /planned faults are not in the journal/,
  },
  {
    name: 'a probe that sees every fault, though none bites',
    overrides: clusterWith((cluster) => {
      const down = new Set<string>();
      const say = async (nodeId: string): Promise<void> => void down.add(nodeId);
      return {
        kill: say,
        pause: say,
        resume: async (nodeId) => void down.delete(nodeId),
        startNode: async (nodeId) => void down.delete(nodeId),
        state: async (nodeId) =>
          down.has(nodeId)
            ? { kind: 'exited', instance: 'i0', exitCode: 137, oomKilled: false }
            : cluster.state(nodeId),
        probeNode: async (nodeId) =>
          down.has(nodeId)
            ? { outcome: 'unreachable', atMs: performance.now(), evidence: 'made up' }
            : cluster.probeNode(nodeId),
      };
    }),
    allowed: ['inconclusive'],
    because: /went through 0 failovers/,
  },
  {
    name: 'a client that reports fail for timeouts',
    overrides: clientWith((client) => async (operation): Promise<Completion> => {
      const completion = await client.execute(operation);
      return completion.kind === 'info' ? { kind: 'fail', why: 'refused', error: 'timeout' } : completion;
    }),
    arrange: ({ cluster }) => {
      cluster.lostAnswers = 0.02;
    },
    allowed: ['inconclusive'],
    because: /called \d+ operations failed although their outcome was unknown/,
  },
  {
    name: 'a ledger that drops rows',
    overrides: ledgerWith(dropping),
    allowed: ['harness-fault', 'inconclusive'],
    because: /ledger has lost rows/,
  },
  {
    name: 'a ledger that drops read-backs',
    overrides: ledgerWith((ledger) => ({
      finalRead: (row) => (everyNth(20) ? Promise.resolve() : ledger.finalRead(row)),
    })),
    allowed: ['harness-fault', 'inconclusive'],
    because: /ledger has lost rows|not read back/,
  },
  {
    name: 'a ledger that forgets a fault',
    overrides: ledgerWith((ledger) => ({
      fault: (row) => (row.faultId === 'F2' ? Promise.resolve() : ledger.fault(row)),
    })),
    allowed: ['harness-fault', 'inconclusive'],
    because: /not in the journal|lost rows/,
  },
  {
    name: 'a verifier that crashes',
    overrides: () => ({ judge: () => Promise.reject(new RangeError('Invalid typed array length')) }),
    allowed: ['inconclusive'],
    because: /the verifier failed/,
  },
  {
    name: 'a read-back that skips keys',
    overrides: (rig) => ({
      ...clientWith(
        (client) =>
          async (operation): Promise<Completion> =>
            operation.f === 'read' && operation.key.endsWith('3')
              ? { kind: 'info', error: 'not asked' }
              : client.execute(operation),
      )(rig),
    }),
    allowed: ['inconclusive'],
    because: /keys were not read back/,
  },
  {
    name: 'an autopsy that asks one replica only',
    overrides: ({ world }) => ({
      system: {
        ...world.system,
        connect: (options) => {
          const running = world.system.connect(options);
          return replaced(running, {
            peek: async (nodeId, partition, keys) => (nodeId === 'n1' ? running.peek(nodeId, partition, keys) : null),
          });
        },
      },
    }),
    allowed: ['inconclusive'],
    because: /replica/,
  },
  {
    name: 'a heal that does not heal (killed nodes stay down)',
    overrides: clusterWith(() => ({ startNode: nothing })),
    allowed: ['environment', 'inconclusive'],
    because: /did not start|still/,
  },
  {
    name: 'a heal that does not heal (frozen nodes stay frozen)',
    overrides: clusterWith(() => ({ resume: nothing })),
    allowed: ['environment', 'inconclusive'],
    because: /still paused/,
  },
  {
    name: 'a canary that nobody plants',
    overrides: clientWith(
      (client) =>
        async (operation): Promise<Completion> =>
          operation.key.startsWith('c') && operation.f === 'delete'
            ? { kind: 'fail', why: 'refused', error: 'not done' }
            : client.execute(operation),
    ),
    allowed: ['inconclusive'],
    because: /[Cc]anary/,
  },
];

describe('a broken harness certifies nothing and accuses nobody', { timeout: 200_000 }, () => {
  it.concurrent.each(broken.map((each) => [each.name, each] as const))('%s', async (name, each) => {
    const rig = runRig(each.overrides);
    each.arrange?.(rig);
    const { judged } = await certify(await shortSettings(join(folder, name.replaceAll(/\W+/g, '-'))), rig.world);
    const said = [judged.headline, ...judged.lines].join('\n');
    const because = said.split('\n').find((line) => each.because.test(line)) ?? '';
    table.push([
      name,
      `${judged.verdict} (exit ${judged.exitCode})`,
      because.trim().replace(/^!\s*/, '').slice(0, 140),
    ]);
    expect(said).toMatch(each.because);
    expect(each.allowed).toContain(judged.verdict);
  });

  it('and the same harness unbroken certifies', async () => {
    const { judged } = await certify(await shortSettings(join(folder, 'sound')), runRig().world);
    table.push(['none: the harness as shipped', `${judged.verdict} (exit ${judged.exitCode})`, judged.headline]);
    expect(judged.lines.join('\n')).toContain('CERTIFIED');
    expect(judged.exitCode).toBe(0);
  });
});
