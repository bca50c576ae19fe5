/** Prometheus metrics of a node: whatever numbers the node and its shell count, as gauges, plus those of the process. */
import { collectDefaultMetrics, Gauge, Registry } from 'prom-client';

/** What `/metrics` serves. */
export interface Metrics {
  readonly contentType: string;
  readonly text: () => Promise<string>;
}

/** Metrics that read `numbers` at every scrape; names get the prefix `zaris_`. */
export function createMetrics(nodeId: string, numbers: () => Readonly<Record<string, number>>): Metrics {
  const registry = new Registry();
  registry.setDefaultLabels({ node: nodeId });
  collectDefaultMetrics({ register: registry });
  const gauges = new Map<string, Gauge>();
  const gaugeOf = (name: string): Gauge => {
    let gauge = gauges.get(name);
    if (gauge === undefined) {
      gauge = new Gauge({ name: `zaris_${name}`, help: name.replaceAll('_', ' '), registers: [registry] });
      gauges.set(name, gauge);
    }
    return gauge;
  };
  return {
    contentType: registry.contentType,
    text() {
      for (const [name, value] of Object.entries(numbers())) gaugeOf(name).set(value);
      return registry.metrics();
    },
  };
}
