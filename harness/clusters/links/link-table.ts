/**
 * What shall hold on every directed link between local processes, and who must be told when it changes.
 *
 * Invariant: a link without a rule is plain: nothing held, lost, delayed or throttled. A rule that outlived its heal here
 * would be blamed on the store.
 */
import { unreachable } from '../../../lib/assert.ts';
import type { Endpoint, LinkRule } from '../../../chaos/ports.ts';

/** Rules of one direction, merged. */
export interface LinkSettings {
  /** Bytes are held back, and no connection that needs this direction can be made. */
  readonly isHeld: boolean;
  readonly isReset: boolean;
  readonly lossPercent: number;
  readonly delayMs: number;
  readonly jitterMs: number;
  /** Infinity: not throttled. */
  readonly bytesPerSecond: number;
}

const plain: LinkSettings = {
  isHeld: false,
  isReset: false,
  lossPercent: 0,
  delayMs: 0,
  jitterMs: 0,
  bytesPerSecond: Infinity,
};

/** One direction between two ends, shared by all connections that use it. */
export class DirectedLink {
  readonly from: Endpoint;
  readonly to: Endpoint;
  settings: LinkSettings = plain;
  /** When the throttle lets the next byte pass, monotonic ms. */
  freeAtMs = 0;
  private readonly watchers = new Set<() => void>();

  constructor(from: Endpoint, to: Endpoint) {
    this.from = from;
    this.to = to;
  }

  /** True when bytes pass at once and untouched. */
  get isPlain(): boolean {
    return this.settings === plain;
  }

  /** Calls back after every change, until the returned function is called. */
  watch(changed: () => void): () => void {
    this.watchers.add(changed);
    return () => this.watchers.delete(changed);
  }

  set(settings: LinkSettings): void {
    this.settings = settings;
    this.freeAtMs = 0;
    for (const changed of this.watchers) changed();
  }
}

/** All directed links that were ever looked at. */
export class LinkTable {
  private readonly links = new Map<string, DirectedLink>();

  link(from: Endpoint, to: Endpoint): DirectedLink {
    const name = `${from}→${to}`;
    let link = this.links.get(name);
    if (link === undefined) this.links.set(name, (link = new DirectedLink(from, to)));
    return link;
  }

  /** The complete set of rules that shall hold; everything else becomes plain. */
  setRules(rules: readonly LinkRule[]): void {
    const wanted = new Map<DirectedLink, LinkSettings>();
    for (const rule of rules) {
      const link = this.link(rule.from, rule.to);
      wanted.set(link, merged(wanted.get(link) ?? plain, rule));
    }
    for (const link of this.links.values()) {
      const settings = wanted.get(link) ?? plain;
      if (!isSame(link.settings, settings)) link.set(settings);
    }
  }
}

function merged(settings: LinkSettings, rule: LinkRule): LinkSettings {
  switch (rule.kind) {
    case 'drop':
      return { ...settings, isHeld: true };
    case 'reset':
      return { ...settings, isReset: true };
    case 'loss':
      return { ...settings, lossPercent: Math.max(settings.lossPercent, rule.percent) };
    case 'delay':
      return { ...settings, delayMs: rule.delayMs, jitterMs: rule.jitterMs };
    case 'rate':
      return { ...settings, bytesPerSecond: Math.min(settings.bytesPerSecond, rule.bytesPerSecond) };
    default:
      return unreachable(rule, 'link rule');
  }
}

const isSame = (a: LinkSettings, b: LinkSettings): boolean =>
  a === b || (Object.keys(a) as (keyof LinkSettings)[]).every((name) => a[name] === b[name]);
