/**
 * A process that writes a ledger until it is killed, for the crash test: `node writing-child.ts PATH SESSIONS [resume]`.
 *
 * Says in `PATH.log`, before doing the next thing: `sent ID` once the intent is committed and the operation would leave,
 * `done ID SESSION` when its answer is known and handed to the ledger. Lines are written with a synchronous write, so what
 * the parent reads really happened before the kill. `start` begins each process.
 */
import { openSync, writeSync } from 'node:fs';
import { openLedger } from '../ledger.ts';
import { encodeValue } from '../values.ts';

const [path = '', sessions = '8', resume = ''] = process.argv.slice(2);
const ledger = await openLedger({ path, runTag: 'crash', minFreeBytes: 0, resume: resume === 'resume' });
const log = openSync(`${path}.log`, 'a');
writeSync(log, 'start\n');
let minor = ledger.resumed.nextOperationId;

async function session(number: number): Promise<never> {
  for (;;) {
    const operationId = ledger.nextOperationId();
    const key = `k${operationId % 500}`;
    await ledger.intent({
      operationId,
      session: number,
      operation: { f: 'write', key, value: encodeValue('crash', operationId, 60) },
      atNs: ledger.nowNs(),
    });
    writeSync(log, `sent ${operationId}\n`);
    const invokeNs = ledger.nowNs();
    if (operationId % 7 === 0) await new Promise((resolve) => setTimeout(resolve, 2));
    void ledger.outcome({
      session: number,
      completion: { kind: 'ok', version: [1, minor++], partition: 1, epoch: 2, node: 'n1', attempts: 1 },
      invokeNs,
      returnNs: ledger.nowNs(),
    });
    writeSync(log, `done ${operationId} ${number}\n`);
  }
}

await Promise.all(Array.from({ length: Number(sessions) }, (_, number) => session(number)));
