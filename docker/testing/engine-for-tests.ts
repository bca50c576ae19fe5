/**
 * What the container tests need: the engine that answers, and an image of the tiny server. Without an engine the tests
 * are skipped with the reason in their name.
 */
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ProbeResult } from '../../chaos/ports.ts';
import type { Clock } from '../../lib/clock.ts';
import { DockerCluster } from '../cluster.ts';
import type { DockerClusterOptions } from '../cluster-options.ts';
import { connectEngine } from '../engine.ts';
import type { Engine } from '../engine.ts';
import { messageOf } from '../errors.ts';
import { ensureNodeImage } from '../image.ts';
import type { NodeImage } from '../image.ts';

/** The project's folder. */
export const projectDir = join(import.meta.dirname, '..', '..');

/** A clock for tests that run in real time. */
export const testClock: Clock = { nowMs: () => performance.now(), wallMs: () => Date.now() };

export type EngineForTests =
  | { readonly kind: 'engine'; readonly engine: Engine }
  | { readonly kind: 'none'; readonly why: string };

/** The engine that answers now; nothing is installed. */
export async function engineForTests(): Promise<EngineForTests> {
  try {
    return { kind: 'engine', engine: await connectEngine() };
  } catch (error) {
    return { kind: 'none', why: messageOf(error) };
  }
}

/** The image of the tiny server. */
export async function tinyImage(engine: Engine): Promise<NodeImage> {
  return await ensureNodeImage({
    docker: engine.docker,
    projectDir,
    say: (line) => process.stderr.write(`${line}\n`),
    entry: 'docker/testing/tiny-server.ts',
    extraFolders: ['docker/testing'],
  });
}

/** Looks before silence counts: one look that ran out of time on a busy machine says nothing of an open link. */
const silentLooks = 3;

/** What a probe sees; `unreachable` only when it says so every time. */
export async function lookedAt(probe: () => Promise<ProbeResult>): Promise<ProbeResult['outcome']> {
  let outcome: ProbeResult['outcome'] = 'unreachable';
  for (let look = 0; look < silentLooks && outcome === 'unreachable'; look++) outcome = (await probe()).outcome;
  return outcome;
}

let clusters = 0;

/** Starts a small cluster of tiny servers. */
export async function tinyCluster(
  engine: Engine,
  image: NodeImage,
  more: Partial<DockerClusterOptions> = {},
): Promise<DockerCluster> {
  clusters += 1;
  return await DockerCluster.start({
    engine,
    clock: testClock,
    runId: `test-${process.pid}-${clusters}`,
    image: image.name,
    base: image.base,
    nodeCount: 3,
    environment: (nodeId) => ({ ZARIS_NODE_ID: nodeId }),
    logsDir: mkdtempSync(join(tmpdir(), 'zaris-test-logs-')),
    ...more,
  });
}
