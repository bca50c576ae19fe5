/** A small strict check that a text is well-formed XML: tags nest, attributes are quoted, no stray `<` or `&`, legal characters. */
import { assert } from '../../../lib/assert.ts';

const token = /<\?xml [^?]*\?>|<\/([\w.-]+)>|<([\w.-]+)((?:\s+[\w.-]+="[^"<]*")*)\s*(\/?)>|[^<]+/gy;
// oxlint-disable-next-line no-control-regex
const illegal = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/;

/** Throws an AssertionError that says where the first fault is. */
export function assertWellFormed(xml: string): void {
  assert(!illegal.test(xml), 'a character that XML forbids');
  assert(!/&(?!(?:amp|lt|gt|quot|apos|#\d+|#x[0-9a-f]+);)/i.test(xml), 'a bare &');
  assert(!xml.includes(']]>'), 'a bare ]]>');
  const open: string[] = [];
  let end = 0;
  let roots = 0;
  for (const found of xml.matchAll(token)) {
    assert(found.index === end, `no token at ${end}: ${xml.slice(end, end + 40)}`);
    end += found[0].length;
    const [, closed, opened, , empty] = found;
    if (closed !== undefined) assert(open.pop() === closed, `</${closed}> closes nothing`);
    if (opened === undefined) continue;
    if (open.length === 0) roots++;
    if (empty === '') open.push(opened);
  }
  assert(end === xml.length, `no token at ${end}: ${xml.slice(end, end + 40)}`);
  assert(open.length === 0 && roots === 1, 'not one closed root element');
}
