/** What a value that was read becomes in a row: the operation it names, a number, or a text that nobody wrote. */
import type { Completion } from '../workloads/port.ts';
import { type DecodedValue, decodeValue } from './values.ts';

/** Stored length of a value that is not ours. */
const maxOddChars = 1_000;

/** Columns `observed` and `number` (NaN: NULL), and the text of a value that is not ours. */
export interface Seen {
  readonly observed: number;
  readonly number: number;
  readonly text: string | null;
}

const nothingSeen: Seen = { observed: NaN, number: NaN, text: null };

/** What a completion shows; of an addition only its sum. */
export function seenIn(runTag: string, completion: Completion, isRead: boolean): Seen {
  if (completion.kind !== 'ok') return nothingSeen;
  const { value } = completion;
  if (isRead) return seenValue(runTag, value ?? null);
  return value === undefined || value === null ? nothingSeen : { ...seenValue(runTag, value), observed: NaN };
}

export function seenValue(runTag: string, value: string | null): Seen {
  if (value === null) return nothingSeen;
  const decoded = decodeValue(runTag, value);
  switch (decoded.kind) {
    case 'operation':
      return { observed: decoded.operationId, number: digestOf(decoded), text: null };
    case 'number':
      return { observed: NaN, number: decoded.number, text: null };
    case 'foreign':
      return { observed: -1, number: NaN, text: decoded.text.slice(0, maxOddChars) };
    case 'corrupt':
      return { observed: -2, number: NaN, text: decoded.text.slice(0, maxOddChars) };
  }
}

/** Lists are told apart by what they hold; a plain value's checksum already covers it. */
export const digestOf = (value: DecodedValue): number =>
  value.kind === 'operation' && value.items > 1 ? value.digest : NaN;
