/** The Wilson score interval of a share: honest where there were few tries, and where none or all succeeded. */

/** Standard normal quantile of a two-sided 95 % interval. */
const quantile95 = 1.959964;

/** Lower and upper bound of the share at 95 % confidence. Source: Wilson, 1927. */
export function wilsonInterval(successes: number, tries: number): readonly [low: number, high: number] {
  if (tries === 0) return [0, 1];
  const square = quantile95 ** 2;
  const share = successes / tries;
  const centre = (share + square / (2 * tries)) / (1 + square / tries);
  const half =
    (quantile95 / (1 + square / tries)) * Math.sqrt((share * (1 - share)) / tries + square / (4 * tries ** 2));
  // At the ends rounding must not take away what was seen.
  return [successes === 0 ? 0 : Math.max(0, centre - half), successes === tries ? 1 : Math.min(1, centre + half)];
}
