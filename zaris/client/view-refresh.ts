/**
 * The one shared subscription to map changes: while anybody needs a newer map, long polls at up to two nodes, spaced out. It asks on
 * behalf of everybody, so a caller that gives up cancels nothing; and nobody waits for it but those that need it. If it asked per call,
 * a dead node would bring a refresh storm down on the living ones.
 */
import type { Prng } from '../../lib/prng.ts';
import type { Answer } from '../model/client-wire.ts';
import type { ClientEffect, ClientOptions, ClientStatistics } from './contract.ts';
import type { Link, LinkTable } from './link.ts';
import type { Timed, Timers } from './timers.ts';
import type { ViewCache } from './view-cache.ts';

const maxPolls = 2;
/** A subscription that brought news is renewed without the full debounce, this many times in a row. */
const burstPolls = 4;
/** Least time between news and the renewal, ms: changes come in groups. */
const renewalMs = 20;
/** A poll is given up this long after the node should have answered, ms. */
const pollGraceMs = 1_500;

export interface ViewRefreshParts {
  readonly options: ClientOptions;
  readonly statistics: ClientStatistics;
  readonly cache: ViewCache;
  readonly links: LinkTable;
  readonly timers: Timers<Timed>;
  readonly random: Prng;
  readonly emit: (effect: ClientEffect) => void;
  /** Whether anybody needs a newer map now. */
  readonly isWanted: (nowMs: number) => boolean;
}

/** Decides when and whom to ask for a newer view. */
export class ViewRefresh implements Timed {
  readonly kind = 'refresh';
  timerAtMs = Infinity;
  heapIndex = -1;
  private readonly parts: ViewRefreshParts;
  /** Who is being asked, and until when. */
  private readonly polls = new Map<Link, number>();
  private lastStartMs = -Infinity;
  /** When the allowance for polls is full again; each start uses one debounce interval of it. */
  private fullAtMs = -Infinity;
  private renewAtMs = Infinity;
  private isProvenOlder = false;

  constructor(parts: ViewRefreshParts) {
    this.parts = parts;
  }

  /** A refusal names an epoch beyond the map: do not wait out the debounce. */
  provenOlder(): void {
    this.isProvenOlder = true;
  }

  /** Starts what is due; safe to call at any time. */
  pump(nowMs: number): void {
    const { parts } = this;
    for (const [link, expiresAtMs] of this.polls) if (nowMs >= expiresAtMs) this.forget(link);
    if (!parts.isWanted(nowMs)) return parts.timers.arm(this, this.nextExpiryMs());
    this.dialSome(nowMs);
    if (this.polls.size >= maxPolls) return parts.timers.arm(this, this.nextExpiryMs());
    const startAtMs = this.nextStartMs(nowMs);
    if (nowMs < startAtMs) return parts.timers.arm(this, Math.min(startAtMs, this.nextExpiryMs()));
    const link = this.pick();
    if (link !== null) this.start(link, nowMs);
    parts.timers.arm(this, Math.min(nowMs + parts.options.refreshDebounceMs, this.nextExpiryMs()));
  }

  /** The answer's poll is over. Returns it for the cache. */
  answered(link: Link, answer: Answer, isNews: boolean, nowMs: number): void {
    if (!this.polls.delete(link)) return;
    if (answer.view !== undefined && isNews) this.renewAtMs = nowMs + renewalMs;
    this.pump(nowMs);
  }

  linkLost(link: Link): void {
    this.polls.delete(link);
  }

  private forget(link: Link): void {
    this.polls.delete(link);
    link.pollId = 0;
  }

  private nextExpiryMs(): number {
    let next = Infinity;
    for (const expiresAtMs of this.polls.values()) next = Math.min(next, expiresAtMs);
    return next;
  }

  private nextStartMs(nowMs: number): number {
    const { refreshDebounceMs } = this.parts.options;
    if (this.isProvenOlder && this.polls.size === 0) return nowMs;
    const allowedMs = this.fullAtMs - (burstPolls - 1) * refreshDebounceMs;
    const debouncedMs = this.lastStartMs + refreshDebounceMs;
    return Math.max(allowedMs, Math.min(debouncedMs, this.renewAtMs));
  }

  private start(link: Link, nowMs: number): void {
    const { options, statistics, cache, emit } = this.parts;
    const id = link.inFlight.reserve();
    this.lastStartMs = nowMs;
    this.fullAtMs = Math.max(this.fullAtMs, nowMs) + options.refreshDebounceMs;
    this.renewAtMs = Infinity;
    this.isProvenOlder = false;
    statistics.refreshes++;
    link.pollId = id;
    this.polls.set(link, nowMs + options.viewWaitMs + pollGraceMs);
    const known = cache.revision >= 0 ? { newerThan: cache.revision, waitMs: options.viewWaitMs } : {};
    emit({ kind: 'send', connection: link.connection, request: { op: 'view', id, ...known } });
  }

  /** A connected node that is not being asked: the control leader first, else any. */
  private pick(): Link | null {
    const free = [...this.parts.links.all].filter((link) => link.state === 'ready' && !this.polls.has(link));
    const leader = this.parts.cache.controlLeader;
    const preferred = free.find((link) => link.nodeId !== null && link.nodeId === leader);
    if (preferred !== undefined) return preferred;
    return free.length === 0 ? null : this.parts.random.pick(free);
  }

  /** Sees to it that there are two nodes to ask: those of the map, else the configured addresses. */
  private dialSome(nowMs: number): void {
    const { links, cache, options, random } = this.parts;
    let usable = 0;
    for (const link of links.all) if (link.state !== 'idle' && link.state !== 'backoff') usable++;
    if (usable >= maxPolls) return;
    const nodes = [...cache.nodeViews].filter((node) => node.alive).map((node) => ({ nodeId: node.nodeId }));
    const seeds = options.seeds.map((address) => ({ address }));
    const candidates = usable === 0 ? [...random.shuffle(nodes), ...random.shuffle(seeds)] : random.shuffle(nodes);
    for (const target of candidates.length === 0 ? random.shuffle(seeds) : candidates) {
      const link = links.to(target);
      if (link === null || link.state !== 'idle') continue;
      links.ensure(link, nowMs);
      if (++usable >= maxPolls) return;
    }
  }
}
