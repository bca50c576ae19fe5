/**
 * Whether something is an adapter at all: looked at, not started. Each thing that is wrong is one sentence for its author.
 *
 * An adapter is plain JavaScript to us, whatever its types said when it was written: a missing method found out in the middle of a
 * run would be called a fault of the harness.
 */
import { z } from 'zod';
import { permittedAnomalies } from '../systems/system.ts';

const method = z.custom((value) => typeof value === 'function', { error: 'must be a function' });
const text = z.string({ error: 'must be text' }).min(1, { error: 'must not be empty' });
const flag = z.boolean({ error: 'must be true or false' });
const port = z.number({ error: 'must be a port number' }).int().min(1).max(65_535);

const contractShape = z.object({
  acknowledgement: text,
  durable: flag,
  permittedLoss: z.nullable(text),
  permits: z.optional(z.array(z.enum(permittedAnomalies, { error: `may hold ${permittedAnomalies.join(', ')}` }))),
});

const sourceShape = z.discriminatedUnion(
  'kind',
  [
    z.object({ kind: z.literal('packages'), packages: z.array(text), publicImage: z.nullable(text), program: text }),
    z.object({ kind: z.literal('image'), image: text }),
    z.object({ kind: z.literal('folder'), path: text }),
  ],
  { error: 'must be { kind: "packages" | "image" | "folder", … }' },
);

const readinessShape = z.discriminatedUnion(
  'kind',
  [
    z.object({ kind: z.literal('http'), path: z.string().startsWith('/', { error: 'must start with /' }) }),
    z.object({ kind: z.literal('exchange'), send: text, expect: text }),
  ],
  { error: 'must be { kind: "http", path } or { kind: "exchange", send, expect }' },
);

const systemShape = z.object(
  {
    name: z.string({ error: 'must be text' }).regex(/^[a-z0-9][a-z0-9 ._-]{0,39}$/i, {
      error: 'must be a short name of letters, digits, spaces, dots and hyphens',
    }),
    contract: method,
    capabilities: z.object(
      { versions: flag, compareAndSet: flag, create: flag, counters: flag, ttl: flag, peek: flag },
      { error: 'must say true or false to versions, compareAndSet, create, counters, ttl and peek' },
    ),
    clientPromises: z.object(
      {
        maxAttempts: z.nullable(z.number({ error: 'must be a number, or null' })),
        deadlineMs: z.nullable(z.number({ error: 'must be a number, or null' })),
      },
      { error: 'must be { maxAttempts, deadlineMs }, each a number or null' },
    ),
    program: z.optional(
      z.object({
        source: sourceShape,
        ports: z.object({ client: port, cluster: port, http: port }, { error: 'must be { client, cluster, http }' }),
        readiness: readinessShape,
        command: method,
      }),
    ),
    shape: z.optional(
      z.object({
        nodes: z.number({ error: 'must be a number' }).int().min(1),
        partitions: z.nullable(z.number({ error: 'must be a number, or null' }).int().min(1)),
        everyNodeHoldsAll: flag,
      }),
    ),
    definiteRefusals: z.optional(z.array(text, { error: 'must be a list of texts' })),
    unsupportedFaults: z.optional(z.instanceof(Map, { error: 'must be a Map of fault names to reasons' })),
    defaultMinInSync: method,
    nodeEnvironment: method,
    connect: method,
  },
  { error: 'must be an object' },
);

/** A plan of the ordinary kind, to ask the adapter about. */
const examplePlan = { clusterId: 'example', nodeCount: 3, replicationFactor: 3, minInSync: 2, partitionCount: 1 };

/** What keeps `candidate` from being a system; empty when nothing does. */
export function shapeProblems(candidate: unknown): readonly string[] {
  const parsed = systemShape.safeParse(candidate);
  if (!parsed.success) return parsed.error.issues.map((issue) => sentence(['system', ...issue.path], issue.message));
  const system = candidate as {
    contract(plan: unknown): unknown;
    capabilities: { versions: boolean; compareAndSet: boolean };
    program?: unknown;
  };
  const problems: string[] = [];
  if (system.program === undefined) problems.push('system.program must say what runs on a node.');
  if (system.capabilities.compareAndSet && !system.capabilities.versions)
    problems.push(
      'system.capabilities.compareAndSet needs versions: a compare-and-set names the version that it expects.',
    );
  try {
    const contract = contractShape.safeParse(system.contract(examplePlan));
    if (!contract.success)
      problems.push(
        ...contract.error.issues.map((issue) => sentence(['system.contract()', ...issue.path], issue.message)),
      );
    else if (contract.data.durable !== (contract.data.permittedLoss === null))
      problems.push('system.contract() must name a permittedLoss exactly where it is not durable.');
  } catch (error) {
    problems.push(`system.contract() throws: ${error instanceof Error ? error.message : String(error)}.`);
  }
  return problems;
}

const sentence = (path: readonly PropertyKey[], message: string): string =>
  `${path.map(String).join('.')} ${message.replace(/^Invalid input: expected (.*), received undefined$/, 'is missing (expected $1)')}.`;
