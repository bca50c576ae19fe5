/**
 * Readers of `jepsen-edn` and `jepsen-json`. Own Jepsen's meaning of a completion: `:ok` took effect and its value is the
 * result, `:fail` did not happen (no observation), `:info` or none is unknown and open to the end. What did not happen is
 * left out here, once for all models.
 */

import { EdnReader } from './edn.ts';
import type { ForeignHistory, ForeignOperation } from './history.ts';
import { EventPairing } from './history.ts';
import { readJsonElements } from './json.ts';
import { UserError } from './user-error.ts';
import type { Value } from './value.ts';
import { nameOf, Tagged, ValueMap } from './value.ts';

/** Operation maps in one vector or list, or one after another (also several vectors). */
export function readJepsenEdn(text: string): ForeignHistory {
  const pairing = new EventPairing();
  const reader = new EdnReader(text);
  // `[]`, or nothing but nemesis, is a history without operations; nothing at all is more likely a mishap.
  if (reader.isAtEnd()) throw new UserError('the file is empty');
  while (!reader.isAtEnd()) {
    const isSequence = reader.enterSequence();
    for (;;) {
      const form = reader.next();
      if (form === undefined) break;
      addEvent(pairing, form.value, form.line);
      if (!isSequence) break;
    }
  }
  return happened(pairing);
}

/** One array of objects. */
export function readJepsenJson(text: string): ForeignHistory {
  const pairing = new EventPairing();
  if (text.trim() === '') throw new UserError('the file is empty');
  for (const { value, line } of readJsonElements(text)) addEvent(pairing, value, line);
  return happened(pairing);
}

function happened(pairing: EventPairing): ForeignHistory {
  return pairing.without(({ outcome }) => outcome === 'fail');
}

function addEvent(pairing: EventPairing, form: Value, line: number): void {
  // #jepsen.history.Op{…} and the like are maps under a tag.
  const map = form instanceof Tagged ? form.value : form;
  if (!(map instanceof ValueMap)) throw new UserError('not a map of an operation', line);
  const process = map.get('process');
  if (typeof process !== 'bigint' && !(typeof process === 'number' && Number.isInteger(process))) {
    if (nameOf(process) === 'nemesis') return;
    const found = process === undefined ? 'is missing' : 'is neither an integer nor :nemesis';
    throw new UserError(`:process ${found}`, line);
  }
  const type = nameOf(map.get('type'));
  if (type !== 'invoke' && type !== 'ok' && type !== 'fail' && type !== 'info') {
    throw new UserError(':type is none of :invoke :ok :fail :info', line);
  }
  const f = nameOf(map.get('f'));
  if (f === undefined) throw new UserError(':f is missing or not a name', line);
  pairing.add({ process: String(process), type, f, key: null, value: map.get('value'), line });
}

/** The value with which an operation took effect: the completion's where it has one, else the invocation's. */
export function effectiveValue(operation: ForeignOperation): Value {
  const { outcome, output, input } = operation;
  return outcome === 'ok' && output !== undefined && output !== null ? output : input;
}
