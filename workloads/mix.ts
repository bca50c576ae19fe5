/**
 * A mix of workloads with weights, written "registers:4,set:4". Each session draws a workload per operation.
 */
import { assert } from '../lib/assert.ts';
import type { Prng } from '../lib/prng.ts';
import { workloadKinds, type WorkloadKind } from './catalogue.ts';
import { SessionStreams, type WorkloadContext } from './context.ts';
import type { Completion, Operation, Workload } from './port.ts';

/** Workloads drawn before a session is told that there is nothing to do now. */
const maxDraws = 4;

export interface WeightedWorkload {
  readonly kind: WorkloadKind;
  readonly weight: number;
}

/** What runs when nothing is asked for. */
export const defaultMix: readonly WeightedWorkload[] = workloadKinds
  .filter((kind) => kind.defaultWeight > 0)
  .map((kind) => ({ kind, weight: kind.defaultWeight }));

/** "set:5,registers:4". */
export const describeMix = (mix: readonly WeightedWorkload[]): string =>
  mix.map(({ kind, weight }) => `${kind.name}:${weight}`).join(',');

/** Reads "registers:4,set" (weight 1 where none is given), or says in one sentence what is wrong. */
export function parseMix(text: string): { readonly mix: readonly WeightedWorkload[] } | { readonly error: string } {
  const mix: WeightedWorkload[] = [];
  for (const part of text.split(',')) {
    const [name = '', weightText = '1', ...rest] = part.trim().split(':');
    const kind = workloadKinds.find((candidate) => candidate.name === name);
    if (kind === undefined) {
      return {
        error: `There is no workload "${name}"; the workloads are ${workloadKinds.map((each) => each.name).join(', ')}.`,
      };
    }
    const weight = Number(weightText);
    if (rest.length > 0 || weightText.trim() === '' || !Number.isFinite(weight) || weight <= 0) {
      return { error: `The weight of workload "${name}" must be a positive number, as in "${name}:4".` };
    }
    if (mix.some((each) => each.kind === kind)) return { error: `The workload "${name}" stands twice in the mix.` };
    mix.push({ kind, weight });
  }
  return { mix };
}

/** Combines workloads; which one a session runs next is drawn by weight from the session's own stream. */
export class Mix implements Workload {
  readonly name: string;
  private readonly members: readonly { readonly workload: Workload; readonly weight: number }[];
  private readonly total: number;
  private readonly streams: SessionStreams;
  private readonly current: (Workload | undefined)[] = [];

  constructor(mix: readonly WeightedWorkload[], context: WorkloadContext) {
    assert(mix.length > 0, 'a mix needs at least one workload');
    this.name = describeMix(mix);
    this.members = mix.map(({ kind, weight }) => ({
      weight,
      workload: kind.make({ ...context, prng: context.prng.fork(`workload-${kind.name}`) }),
    }));
    this.total = mix.reduce((sum, { weight }) => sum + weight, 0);
    this.streams = new SessionStreams(context.prng.fork('mix'));
  }

  next(session: number, operationId: number): Operation | null {
    assert(this.current[session] === undefined, `session ${session} has an operation open`);
    const prng = this.streams.of(session);
    for (let attempt = 0; attempt < maxDraws; attempt++) {
      const workload = this.draw(prng);
      const operation = workload.next(session, operationId);
      if (operation === null) continue;
      this.current[session] = workload;
      return operation;
    }
    return null;
  }

  completed(session: number, operationId: number, operation: Operation, completion: Completion): void {
    const workload = this.current[session];
    assert(workload !== undefined, `session ${session} has no operation open`);
    this.current[session] = undefined;
    workload.completed(session, operationId, operation, completion);
  }

  private draw(prng: Prng): Workload {
    let left = prng.float() * this.total;
    for (const { workload, weight } of this.members) {
      left -= weight;
      if (left < 0) return workload;
    }
    return (this.members.at(-1) as { workload: Workload }).workload;
  }
}
