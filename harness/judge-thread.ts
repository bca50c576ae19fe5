/** The thread that judges: so that signals, and the clean-up that they ask for, never wait for a verifier. */
import { parentPort, workerData } from 'node:worker_threads';
import { judgeFolder } from './judge-folder.ts';

const { folder, colour, write } = workerData as {
  readonly folder: string;
  readonly colour: boolean;
  readonly write: boolean;
};
parentPort?.postMessage(judgeFolder(folder, colour, write));
