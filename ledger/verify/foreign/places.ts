/** How operations of a text file are shown in evidence. */

import type { OperationPlace } from './evidence.ts';
import type { ForeignOperation } from './history.ts';
import { valueText } from './value.ts';

/** The operation with its lines and what is known of its outcome. */
export function placeOf(operation: ForeignOperation): OperationPlace {
  const { f, key, input, output, outcome, process, invokeLine, completeLine } = operation;
  const target = key === null ? '' : ` ${JSON.stringify(key)}`;
  const given = f === 'read' || f === 'get' ? '' : ` ${shorten(valueText(input))}`;
  const isSeen = (f === 'read' || f === 'get') && outcome === 'ok' && output !== undefined;
  const result =
    outcome === 'info'
      ? ' → unknown'
      : outcome === 'fail'
        ? ' → failed'
        : isSeen
          ? ` → ${shorten(valueText(output))}`
          : ' → ok';
  return { line: invokeLine, completeLine, process, text: `${f}${target}${given}${result}` };
}

/** Longest text of a value in evidence. */
const maxTextLength = 200;

/** Cuts long values in the middle. */
export function shorten(text: string): string {
  if (text.length <= maxTextLength) return text;
  return `${text.slice(0, maxTextLength / 2)}…(${text.length} characters)…${text.slice(-maxTextLength / 2)}`;
}
