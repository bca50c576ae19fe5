import { describe, expect, it } from 'vitest';
import {
  escapeMarkdown,
  escapeMarkup,
  formatCount,
  formatDuration,
  formatOffset,
  formatShare,
  listWords,
  scriptSafeJson,
  visible,
} from './text.ts';

describe('text from outside', () => {
  it('shows control, bidi and lone surrogate characters instead of obeying them', () => {
    expect(visible('a\u001b[2J\u0007\u0000b\u202ec\ud800d\u2028e')).toBe(
      'a\\u{1b}[2J\\u{7}\\u{0}b\\u{202e}c\\u{d800}d\\u{2028}e',
    );
    expect(visible('plain ä 漢 😀')).toBe('plain ä 漢 😀');
  });

  it('cannot open an element or leave an attribute', () => {
    expect(escapeMarkup(`<script>alert(1)</script>"'&`)).toBe('&lt;script&gt;alert(1)&lt;/script&gt;&quot;&#39;&amp;');
  });

  it('cannot end the script element that it is embedded in, and comes back unchanged', () => {
    const hostile = { key: '</script><!--<script>\u2028\u2029' };
    const text = scriptSafeJson(hostile);
    expect(text).not.toMatch(/[<\u2028\u2029]/);
    expect(JSON.parse(text)).toEqual(hostile);
  });

  it('has no Markdown or HTML meaning', () => {
    const escaped = escapeMarkdown('| [x](http://e.org) <b> `c` **d** @team\nnew ~~s~~ www.e.org');
    expect(escaped).not.toMatch(/[|[\]<>`*@\n~]|:\/\/|www\./);
  });
});

describe('numbers for people', () => {
  it.each([
    [0, '0 ms'],
    [0.254, '0.25 ms'],
    [9.96, '10 ms'],
    [340, '340 ms'],
    [1_240, '1.2 s'],
    [45_300, '45 s'],
    [725_000, '12 min 05 s'],
    [14_400_000, '4 h 00 min'],
    [3_599_600, '1 h 00 min'],
  ])('%d ms reads %s', (value, text) => expect(formatDuration(value)).toBe(text));
  it('groups digits, counts offsets, lists words', () => {
    expect(formatCount(1_204_567)).toBe('1,204,567');
    expect(formatOffset(3_723_120, true)).toBe('+1:02:03.120');
    expect(formatOffset(3_723_920)).toBe('+1:02:03');
    expect(formatShare(0.00728)).toBe('0.73 %');
    expect(listWords(['a', 'b', 'c'])).toBe('a, b and c');
    expect(listWords(['a', 'b', 'c', 'd', 'e', 'f'], 2)).toBe('a, b and 4 more');
  });
});
