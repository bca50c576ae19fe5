import { describe, expect, it } from 'vitest';
import { Prng } from '../lib/prng.ts';
import { decodeValue, encodeValue } from './values.ts';

describe('values', () => {
  it('name their operation and have the size asked for', () => {
    for (const size of [0, 40, 100, 1_000, 65_536]) {
      const text = encodeValue('run-7', 123_456_789, size);
      expect(text.length).toBe(Math.max(size, encodeValue('run-7', 123_456_789, 0).length));
      expect(decodeValue('run-7', text)).toMatchObject({ kind: 'operation', operationId: 123_456_789, items: 1 });
    }
  });

  it('are foreign under another tag, numbers where they are numbers', () => {
    expect(decodeValue('other', encodeValue('run', 5, 50)).kind).toBe('foreign');
    expect(decodeValue('run', '-42')).toEqual({ kind: 'number', number: -42 });
    for (const text of ['', 'z1', 'z1..', 'z1.run.5.', 'nonsense', '1e5'])
      expect(decodeValue('run', text).kind).toBe('corrupt');
  });

  it('say the same however often and in whatever turn they are read', () => {
    const [own, other] = [encodeValue('run', 5, 50), encodeValue('run', 6, 50)];
    const first = decodeValue('run', own);
    expect(decodeValue('run', own)).toEqual(first);
    expect(decodeValue('other', own).kind).toBe('foreign');
    expect(decodeValue('run', other)).toMatchObject({ operationId: 6 });
    expect(decodeValue('run', own)).toEqual(first);
    // What is read may be shared: nobody can change it for the next reader.
    expect(Object.isFrozen(first)).toBe(true);
  });

  it('are corrupt after any change of one character', () => {
    const prng = new Prng(3);
    const text = encodeValue('run', 99, 80);
    for (let at = 0; at < text.length; at++) {
      const other = String.fromCharCode(97 + prng.below(26));
      if (other === text[at]) continue;
      const changed = text.slice(0, at) + other + text.slice(at + 1);
      expect(decodeValue('run', changed).kind).not.toBe('operation');
    }
  });

  it('make lists that name their last element and differ by content', () => {
    const [a, b, c] = [1, 2, 3].map((id) => encodeValue('run', id, 40));
    const list = decodeValue('run', `${a} ${b}`);
    expect(list).toMatchObject({ kind: 'operation', operationId: 2, items: 2 });
    expect(decodeValue('run', `${c} ${b}`)).not.toEqual(list);
    expect(decodeValue('run', `${a} damaged`).kind).toBe('corrupt');
  });
});
