/** Legends of the lanes, drawn with the same patterns by the style sheet. */
import { element } from './element.ts';

const nodeLegend: readonly (readonly [string, string])[] = [
  ['up', 'faint'],
  ['killed', 'solid'],
  ['stopped', 'soft'],
  ['paused', 'stripes'],
  ['cut off', 'hatch'],
  ['catching up', 'dots'],
];

const partitionLegend: readonly (readonly [string, string])[] = [
  ['colour of the owner: Healthy', 'owner'],
  ['Degraded', 'under'],
  ['Recovering', 'hatch'],
  ['Unavailable', 'cross'],
  ['Lost', 'solid'],
  ['failover', 'tick'],
];

export function laneLegend(which: 'nodes' | 'partitions'): HTMLElement[] {
  const entries = which === 'nodes' ? nodeLegend : partitionLegend;
  return entries.map(([label, fill]) =>
    element('span', {}, element('i', { class: `fill fill-${fill}`, 'aria-hidden': 'true' }), label),
  );
}
