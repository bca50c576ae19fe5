/** One thread of a judgement: judges its part and sends the result. Errors reach the parent as the thread's error. */
import { parentPort, workerData } from 'node:worker_threads';
import { present } from '../lib/assert.ts';
import { judgeLedgerPart, type JudgeTask } from './judge-ledger.ts';

present(parentPort, 'parent port of a judging thread').postMessage(judgeLedgerPart(workerData as JudgeTask));
