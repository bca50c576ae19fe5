import { describe, expect, it } from 'vitest';
import { demultiplex, lastBytes, sinceOf } from './incarnation-logs.ts';

const frame = (text: string, stream = 1): Buffer => {
  const head = Buffer.alloc(8);
  head[0] = stream;
  head.writeUInt32BE(Buffer.byteLength(text), 4);
  return Buffer.concat([head, Buffer.from(text)]);
};

describe('incarnation logs', () => {
  it('takes both streams apart in order', () => {
    expect(demultiplex(Buffer.concat([frame('one\n'), frame('zwö\n', 2), frame('')]))).toBe('one\nzwö\n');
    expect(demultiplex(Buffer.alloc(0))).toBe('');
  });

  it('keeps the end within the bound, from a line start, and says what is missing', () => {
    const text = `${'x'.repeat(50)}\nsecond\nthird\n`;
    expect(lastBytes(text, 16)).toBe(`[the first ${text.length - 16} bytes are left out]\nsecond\nthird\n`);
    expect(lastBytes('short\n', 16)).toBe('short\n');
  });

  it('keeps all nine digits of a start time', () => {
    expect(sinceOf('1970-01-01T00:00:12.000000345Z')).toBe('12.000000345');
    expect(sinceOf('1970-01-01T00:00:12.5Z')).toBe('12.500000000');
    expect(sinceOf('1970-01-01T00:00:12Z')).toBe('12.000000000');
  });
});
