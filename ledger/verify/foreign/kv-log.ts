/**
 * Reader of `kv-log` (Porcupine's key-value histories): one map a line. Owns the format's rules: a get's value stands in
 * its `:ok`; put and append repeat theirs.
 */

import { EdnReader } from './edn.ts';
import type { ForeignHistory, ForeignOperation } from './history.ts';
import { EventPairing } from './history.ts';
import { forEachLine } from './lines.ts';
import { UserError } from './user-error.ts';
import { nameOf, ValueMap } from './value.ts';

/** Reads the operations: `get`, `put`, `append`, each with a key. */
export function readKvLog(text: string): ForeignHistory {
  const pairing = new EventPairing();
  forEachLine(text, (content, line) => {
    const reader = new EdnReader(content, line);
    const form = reader.next();
    if (form === undefined) return;
    if (!(form.value instanceof ValueMap) || !reader.isAtEnd()) throw new UserError('not one map', line);
    addEvent(pairing, form.value, line);
  });
  if (pairing.operations.length === 0) throw new UserError('the file holds no event of this format');
  for (const operation of pairing.operations) checkAgreement(operation);
  return pairing.without(({ outcome }) => outcome === 'fail');
}

function addEvent(pairing: EventPairing, map: ValueMap, line: number): void {
  const process = map.get('process');
  if (typeof process !== 'number' && typeof process !== 'bigint') {
    if (nameOf(process) === 'nemesis') return;
    throw new UserError(':process is missing or not a number', line);
  }
  const type = nameOf(map.get('type'));
  if (type !== 'invoke' && type !== 'ok' && type !== 'fail' && type !== 'info') {
    throw new UserError(':type is none of :invoke :ok :fail :info', line);
  }
  const f = nameOf(map.get('f'));
  if (f !== 'get' && f !== 'put' && f !== 'append') throw new UserError(':f is none of :get :put :append', line);
  const key = map.get('key');
  if (typeof key !== 'string') throw new UserError(':key is missing or not a string', line);
  const value = map.get('value');
  const needsText = f === 'get' ? type === 'ok' : type === 'invoke';
  if (needsText && typeof value !== 'string') throw new UserError(`:${type} :${f} needs a string as :value`, line);
  pairing.add({ process: String(process), type, f, key, value, line });
}

/** A completed put or append repeats its invocation's value, where it has one. */
function checkAgreement({ f, input, output, invokeLine, completeLine }: ForeignOperation): void {
  if (f === 'get' || output === undefined || output === null || output === input) return;
  throw new UserError(`the value differs from the invocation's, of line ${invokeLine}`, completeLine);
}
