/**
 * Reader of `etcd-log` (logs of jepsen.etcd as Porcupine keeps them). One register. Owns this format's meaning of `:fail`: a
 * failed compare-and-set is an observation (the value was not the expected one), a failed read says nothing.
 */

import type { ForeignHistory, ForeignOperation, Outcome } from './history.ts';
import { EventPairing } from './history.ts';
import { forEachLine } from './lines.ts';
import { UserError } from './user-error.ts';
import type { Value } from './value.ts';

const eventLine = /^\s*INFO\s+jepsen\.util\s+-\s+(\S+)\s+:(\S+)\s+:(\S+)(?:\s+(.*?))?\s*$/;
/** Lines of other loggers in the same log. */
const otherLogger = /^\s*(?:TRACE|DEBUG|INFO|WARN|ERROR|FATAL)\s+(?!jepsen\.util\s)\S+\s+-(?:\s|$)/;
const number = /^-?\d+$/;
const pair = /^\[\s*(-?\d+|nil)[\s,]+(-?\d+|nil)\s*\]$/;

/** Reads the operations. A `fail` outcome in the result is always a compare-and-set that observed another value. */
export function readEtcdLog(text: string): ForeignHistory {
  const pairing = new EventPairing();
  let events = 0;
  forEachLine(text, (content, line) => {
    const match = eventLine.exec(content);
    if (match === null) {
      if (otherLogger.test(content)) return;
      throw new UserError('not an event "INFO  jepsen.util - PROCESS TYPE F VALUE"', line);
    }
    events++;
    const [, process, type, f, value = ''] = match;
    if (process === ':nemesis' || process === 'nemesis') return;
    if (!number.test(process!)) throw new UserError(`process ${process} is not a number`, line);
    if (type !== 'invoke' && type !== 'ok' && type !== 'fail' && type !== 'info') {
      throw new UserError(`type :${type} is none of :invoke :ok :fail :info`, line);
    }
    pairing.add({ process: process!, type, f: f!, key: null, value: parseValue(type, f!, value, line), line });
  });
  if (events === 0) throw new UserError('the file holds no event of this format');
  for (const operation of pairing.operations) checkAgreement(operation);
  // A timed-out read returned nothing.
  return pairing.without(({ f, outcome }) => f === 'read' && outcome === 'fail');
}

/** The value of an event, as the format allows it there; undefined for `:timed-out`. */
function parseValue(type: 'invoke' | Outcome, f: string, text: string, line: number): Value | undefined {
  const refuse = (): never => {
    throw new UserError(
      `:${type} :${f} ${text === '' ? 'without a value' : `with value ${text}`} is not in this format`,
      line,
    );
  };
  const isReason = text.startsWith(':') && !text.includes(' ');
  switch (f) {
    case 'read':
      if (type === 'invoke') return text === 'nil' || text === '' ? null : refuse();
      if (type === 'ok') return text === 'nil' ? null : number.test(text) ? toInteger(text) : refuse();
      return isReason ? undefined : refuse();
    case 'write':
      if (type === 'fail') return refuse();
      if (type === 'info' && isReason) return undefined;
      return number.test(text) ? toInteger(text) : refuse();
    case 'cas': {
      if (type === 'info' && isReason) return undefined;
      const match = pair.exec(text);
      if (match === null) return refuse();
      return [match[1]!, match[2]!].map((part) => (part === 'nil' ? null : toInteger(part)));
    }
    default:
      throw new UserError(`:${f} is none of :read :write :cas`, line);
  }
}

function toInteger(text: string): number | bigint {
  const value = Number(text);
  return Number.isSafeInteger(value) ? value + 0 : BigInt(text);
}

/** An ok write or any completed compare-and-set repeats its invocation's value. */
function checkAgreement(operation: ForeignOperation): void {
  if (operation.f === 'read' || operation.output === undefined) return;
  const isSame =
    operation.f === 'write'
      ? operation.input === operation.output
      : String(operation.input) === String(operation.output);
  if (!isSame) {
    throw new UserError(
      `the value differs from the invocation's, of line ${operation.invokeLine}`,
      operation.completeLine,
    );
  }
}
