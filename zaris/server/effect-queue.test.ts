import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Effect } from '../node/contract.ts';
import { nodeId } from '../model/ids.ts';
import { EffectQueue } from './effect-queue.ts';

/** Vouches for the disk: must wait. */
const vouch = (id: number): Effect => ({
  kind: 'send',
  to: nodeId('n2'),
  message: { kind: 'raft', message: { id } as never },
});
/** Data: passes. */
const reply = (id: number): Effect => ({ kind: 'reply', connection: 1, answer: { id, status: 'Ok' } });
const persist = (ticket: number): Effect => ({
  kind: 'persist',
  ticket,
  writes: [{ kind: 'vote', raftTerm: ticket, votedFor: null }],
});

function nameOf(effect: Effect): string {
  if (effect.kind === 'reply') return `reply ${effect.answer.id}`;
  if (effect.kind !== 'send' || effect.message.kind !== 'raft') return effect.kind;
  return `vouch ${(effect.message.message as unknown as { id: number }).id}`;
}

/** A world whose fsyncs end when the test says so; its trace is what really happened, in order. */
function world(followUps: (ticket: number) => readonly Effect[] = () => []) {
  const trace: string[] = [];
  const syncs: { writes: number; done: () => void; fail: (error: Error) => void }[] = [];
  const queue = new EffectQueue({
    persist: (writes) =>
      new Promise((resolve, reject) => {
        trace.push(`sync ${writes.map((write) => (write.kind === 'vote' ? write.raftTerm : '?')).join('+')}`);
        syncs.push({ writes: writes.length, done: resolve, fail: reject });
      }),
    failed: (error) => trace.push(`failed ${(error as Error).message}`),
    persisted(ticket) {
      trace.push(`persisted ${ticket}`);
      return followUps(ticket);
    },
    execute: (effect) => trace.push(nameOf(effect)),
    released: () => undefined,
  });
  const finish = async (): Promise<void> => {
    syncs.shift()?.done();
    await Promise.resolve();
    await Promise.resolve();
  };
  return { queue, trace, syncs, finish };
}

describe('EffectQueue', () => {
  it('data passes a persist; what vouches for the disk, and the end, wait', async () => {
    const { queue, trace, finish } = world(() => [reply(9)]);
    queue.push([persist(1), reply(1), vouch(1), { kind: 'exit', code: 0 }, reply(2)]);
    expect(trace).toEqual(['reply 1', 'reply 2', 'sync 1']);
    await finish();
    expect(trace.slice(3)).toEqual(['persisted 1', 'reply 9', 'vouch 1', 'exit']);
  });

  it('releases at once what stands before a persist, and nothing behind it', async () => {
    const { queue, trace, finish } = world();
    queue.push([vouch(1), persist(1), vouch(2)]);
    queue.push([vouch(3)]);
    expect(trace).toEqual(['vouch 1', 'sync 1']);
    await finish();
    expect(trace).toEqual(['vouch 1', 'sync 1', 'persisted 1', 'vouch 2', 'vouch 3']);
    expect(queue.length).toBe(0);
  });

  it('one fsync for all persists that wait, each fed back in its place', async () => {
    const { queue, trace, syncs, finish } = world((ticket) => [vouch(100 + ticket)]);
    queue.push([persist(1), persist(2), vouch(1), persist(3), vouch(2)]);
    queue.push([persist(4)]);
    expect(trace).toEqual(['sync 1+2+3']);
    await finish();
    expect(trace.slice(1)).toEqual(['persisted 1', 'persisted 2', 'vouch 1', 'persisted 3', 'vouch 2', 'sync 4']);
    expect(syncs).toHaveLength(1);
    await finish();
    expect(trace.slice(7)).toEqual(['persisted 4', 'vouch 101', 'vouch 102', 'vouch 103', 'vouch 104']);
  });

  it('a failed fsync releases nothing more, ever', async () => {
    const { queue, trace, syncs } = world();
    queue.push([persist(1), vouch(1)]);
    syncs[0]?.fail(new Error('EIO'));
    await new Promise((resolve) => setImmediate(resolve));
    queue.push([vouch(2)]);
    expect(trace).toEqual(['sync 1', 'failed EIO']);
  });

  it('keeps the order of everything, whatever the pattern of pushes and fsyncs', async () => {
    const step = fc.oneof(fc.constant('persist'), fc.constant('vouch'), fc.constant('push'), fc.constant('finish'));
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
        const { queue, trace, finish, syncs } = world();
        const given: string[] = [];
        let batch: Effect[] = [];
        let number = 0;
        for (const what of [...steps, 'push'] as const) {
          if (what === 'finish') await finish();
          else if (what === 'push') queue.push(batch.splice(0));
          else {
            number++;
            batch.push(what === 'persist' ? persist(number) : vouch(number));
            given.push(what === 'persist' ? `persisted ${number}` : `vouch ${number}`);
          }
        }
        const durable = new Set<string>();
        while (syncs.length > 0) await finish();
        batch = [];
        for (const line of trace) {
          if (line.startsWith('sync'))
            for (const ticket of line.slice(5).split('+')) durable.add(`persisted ${ticket}`);
          if (line.startsWith('persisted')) expect(durable.has(line)).toBe(true);
        }
        expect(trace.filter((line) => !line.startsWith('sync'))).toEqual(given);
      }),
      { seed: 3, numRuns: 300 },
    );
  });
});
