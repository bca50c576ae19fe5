/** All mutants, by the files of the hazard tests. */
import type { Mutant } from './mutant.ts';
import { controlMutants } from './of-control.ts';
import { fencingMutants } from './of-fencing.ts';
import { moveMutants } from './of-moves.ts';
import { promotionMutants } from './of-promotion.ts';
import { restartMutants } from './of-restarts.ts';

export const mutants: readonly Mutant[] = [
  ...restartMutants,
  ...promotionMutants,
  ...fencingMutants,
  ...moveMutants,
  ...controlMutants,
].sort((a, b) => a.hazard - b.hazard);
