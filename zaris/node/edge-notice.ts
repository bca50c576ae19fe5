/**
 * The notice of a committed edge. Every node tells every edge that it applies, a restarted one its whole past again, and hardly anybody
 * reads those; so its fields are written out when somebody looks. The edge holds a copy of the runtime: looked at late, it says the same.
 */
import type { Edge } from '../control/state.ts';
import { memberName } from '../model/ids.ts';
import type { Notice } from './contract.ts';

/** Not put together for each notice: a restarted node tells thousands at once. */
const names: Readonly<Record<Edge['name'], string>> = {
  promotion: 'edge-promotion',
  handoff: 'edge-handoff',
  unassigned: 'edge-unassigned',
  serving: 'edge-serving',
  'in-sync': 'edge-in-sync',
  withdrawn: 'edge-withdrawn',
  health: 'edge-health',
  lost: 'edge-lost',
  evicted: 'edge-evicted',
  map: 'edge-map',
};

export class EdgeNotice implements Notice {
  readonly name: string;
  readonly level: Notice['level'];
  readonly edge: Edge;
  private readonly revision: number;
  private written: Notice['fields'] | null = null;

  constructor(level: Notice['level'], edge: Edge, revision: number) {
    this.name = names[edge.name];
    this.level = level;
    this.edge = edge;
    this.revision = revision;
  }

  get fields(): Notice['fields'] {
    return (this.written ??= this.write());
  }

  private write(): Notice['fields'] {
    const { runtime, why } = this.edge;
    return {
      partition: runtime.partition,
      epoch: runtime.epoch,
      term: runtime.term,
      primary: runtime.primary === null ? null : memberName(runtime.primary),
      inSync: runtime.inSync.map(memberName).join(','),
      eligible: runtime.eligible.map(memberName).join(','),
      health: runtime.health,
      serving: runtime.serving,
      revision: this.revision,
      why,
    };
  }
}
