import { PassThrough } from 'node:stream';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { LinkRule } from '../../../chaos/ports.ts';
import { Prng } from '../../../lib/prng.ts';
import { LinkPipe, maxHeldBytes } from './link-pipe.ts';
import { LinkTable } from './link-table.ts';

const prng = new Prng(1);
const world = { nowMs: () => performance.now(), random: () => prng.float() };
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
const patienceMs = 30_000;
async function until(holds: () => boolean): Promise<void> {
  for (const endMs = performance.now() + patienceMs; !holds() && performance.now() < endMs;) await pause(1);
}

const ends = { from: 'a', to: 'b' };
const ruleOf = fc.oneof(
  fc.constant<LinkRule>({ kind: 'drop', ...ends }),
  fc.integer({ min: 1, max: 20 }).map((delayMs): LinkRule => ({ kind: 'delay', ...ends, delayMs, jitterMs: delayMs })),
  fc.integer({ min: 1, max: 60 }).map((percent): LinkRule => ({ kind: 'loss', ...ends, percent })),
  fc.integer({ min: 200, max: 100_000 }).map((bytesPerSecond): LinkRule => ({ kind: 'rate', ...ends, bytesPerSecond })),
);

function opened(links = new LinkTable()) {
  const source = new PassThrough();
  const sink = new PassThrough();
  const events: string[] = [];
  let text = '';
  const pipe = new LinkPipe(
    source,
    links.link('a', 'b'),
    world,
    () => events.push('reset'),
    () => events.push('refused'),
  );
  sink.on('data', (bytes: Buffer) => (text += bytes.toString('latin1')));
  sink.on('end', () => events.push('end'));
  return { links, source, sink, pipe, events, text: () => text };
}

describe('one direction of a connection', () => {
  it('delivers every byte once and in order, whatever rules come and go, and the end last', async () => {
    const step = fc.oneof(
      fc.string({ minLength: 1, maxLength: 300, unit: 'binary-ascii' }),
      fc.array(ruleOf, { maxLength: 3 }),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 20 }), async (steps) => {
        const { links, source, sink, pipe, events, text } = opened();
        pipe.connect(sink);
        let sent = '';
        for (const each of steps) {
          if (typeof each === 'string') source.write(Buffer.from(each, 'latin1'));
          else links.setRules(each);
          if (typeof each === 'string') sent += each;
          await pause(1);
          expect(sent.startsWith(text())).toBe(true);
        }
        source.end();
        await pause(1);
        links.setRules([]);
        await until(() => events.length > 0);
        expect(text()).toBe(sent);
        expect(events).toEqual(['end']);
      }),
      { numRuns: 60 },
    );
  });

  it('holds while it is cut, but no more than its bound: then the source is not read', async () => {
    const { links, source, sink, pipe, text } = opened();
    pipe.connect(sink);
    links.setRules([{ kind: 'drop', ...ends }]);
    const piece = Buffer.alloc(64 * 1024, 'a');
    let taken = 0;
    for (let count = 0; count < 200; count++) if (source.write(piece)) taken++;
    await until(() => source.isPaused());
    expect(text()).toBe('');
    expect(source.isPaused()).toBe(true);
    expect(source.readableLength + source.writableLength).toBeGreaterThan(
      200 * piece.length - maxHeldBytes - 2 * piece.length,
    );
    links.setRules([]);
    await until(() => text().length >= 200 * piece.length);
    expect(text()).toHaveLength(200 * piece.length);
    expect(taken).toBeLessThan(200);
  });

  it('says an end and a reset only when the link lets them pass', async () => {
    for (const kind of ['end', 'reset'] as const) {
      const { links, source, sink, pipe, events } = opened();
      pipe.connect(sink);
      links.setRules([{ kind: 'drop', ...ends }]);
      if (kind === 'end') source.end();
      else source.destroy();
      await pause(10);
      expect(events).toEqual([]);
      links.setRules([]);
      await until(() => events.length > 0);
      expect(events).toEqual([kind]);
    }
  });

  it('a reset rule refuses the next byte, not the standing silence', async () => {
    const { links, source, sink, pipe, events, text } = opened();
    pipe.connect(sink);
    links.setRules([{ kind: 'reset', ...ends }]);
    await pause(5);
    expect(events).toEqual([]);
    source.write('x');
    await until(() => events.length > 0);
    expect(events).toEqual(['refused']);
    expect(text()).toBe('');
  });

  it('rules of other directions, and rules that were replaced, do not count', async () => {
    const { links, source, sink, pipe, text } = opened();
    pipe.connect(sink);
    links.setRules([{ kind: 'drop', from: 'b', to: 'a' }]);
    source.write('1');
    await until(() => text() !== '');
    expect(text()).toBe('1');
    links.setRules([{ kind: 'drop', ...ends }]);
    links.setRules([{ kind: 'drop', from: 'c', to: 'b' }]);
    source.write('2');
    await until(() => text() !== '1');
    expect(text()).toBe('12');
  });
});
