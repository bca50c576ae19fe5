import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { encodeFrame, FrameError, FrameReader } from './frame.ts';

const concat = (parts: readonly Uint8Array[]): Uint8Array => Uint8Array.from(parts.flatMap((part) => [...part]));

describe('FrameReader', () => {
  it('gives back the same payloads whatever the chunking', () => {
    fc.assert(
      fc.property(
        fc.array(fc.uint8Array({ maxLength: 300 }), { maxLength: 20 }),
        fc.array(fc.integer({ min: 1, max: 97 }), { minLength: 1, maxLength: 50 }),
        (payloads, cuts) => {
          const stream = concat(payloads.map((payload) => encodeFrame(payload)));
          const reader = new FrameReader();
          const got: Uint8Array[] = [];
          for (let offset = 0, turn = 0; offset < stream.byteLength; turn++) {
            const size = cuts[turn % cuts.length] as number;
            got.push(...reader.push(stream.slice(offset, offset + size)));
            offset += size;
          }
          expect(got.map((payload) => [...payload])).toEqual(payloads.map((payload) => [...payload]));
          expect(reader.pendingBytes).toBe(0);
        },
      ),
      { seed: 20_240_501 },
    );
  });

  it('keeps payloads valid when later chunks arrive', () => {
    const reader = new FrameReader();
    const first = encodeFrame(new Uint8Array([1, 2, 3]));
    reader.push(first.subarray(0, 5));
    const [payload] = reader.push(concat([first.subarray(5), encodeFrame(new Uint8Array([9, 9])).subarray(0, 5)]));
    reader.push(new Uint8Array([7]));
    expect([...(payload as Uint8Array)]).toEqual([1, 2, 3]);
  });

  it('refuses an oversized length, also when its header comes in pieces', () => {
    const header = new Uint8Array([0, 0, 1, 0]);
    expect(() => new FrameReader(255).push(header)).toThrow(FrameError);
    const reader = new FrameReader(255);
    reader.push(header.subarray(0, 3));
    expect(() => reader.push(header.subarray(3))).toThrow(FrameError);
    expect(new FrameReader(256).push(header)).toEqual([]);
  });

  it('does not allocate what a header merely claims', () => {
    const reader = new FrameReader(1 << 30);
    reader.push(new Uint8Array([0x20, 0, 0, 0, 1]));
    expect(reader.pendingBytes).toBe(5);
    expect((reader as unknown as { held: Uint8Array }).held.byteLength).toBeLessThan(64 * 1024);
  });

  it('copies a large frame in small chunks a bounded number of times', () => {
    const payload = new Uint8Array(8 * 1024 * 1024);
    const stream = encodeFrame(payload);
    const reader = new FrameReader();
    let copied = 0;
    // eslint-disable-next-line typescript/unbound-method -- called with its `this` below
    const set = Uint8Array.prototype.set;
    // eslint-disable-next-line no-extend-native -- counted for the length of this test
    Uint8Array.prototype.set = function (this: Uint8Array, source: ArrayLike<number>, offset?: number): void {
      copied += source.length;
      set.call(this, source, offset);
    };
    let got = 0;
    try {
      for (let offset = 0; offset < stream.byteLength; offset += 1000) {
        got += reader.push(stream.subarray(offset, offset + 1000)).length;
      }
    } finally {
      // eslint-disable-next-line no-extend-native -- as it was
      Uint8Array.prototype.set = set;
    }
    expect(got).toBe(1);
    expect(copied).toBeLessThan(4 * stream.byteLength);
  });
});
