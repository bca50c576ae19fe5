/** A fresh seed for a run that was given none; printed, so that the run can be played again. */
import { randomBytes } from 'node:crypto';

export const randomSeed = (): number => randomBytes(4).readUInt32BE();
