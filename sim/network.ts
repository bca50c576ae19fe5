/**
 * The links between nodes, and between clients and nodes: delays, loss, repeats, reordering, cuts, resets. All of it drawn from
 * one seeded stream. Where no reordering is drawn a link delivers in the order sent, as TCP does.
 *
 * If a rule leaked (a cut that lets something through, a heal that leaves something behind), faults would be milder or longer
 * than the journal says.
 */
import type { LinkRule } from '../chaos/ports.ts';
import type { Prng } from '../lib/prng.ts';

/** Distribution of the network; times in ms, chances in [0, 1]. */
export interface NetworkOptions {
  readonly minLatencyMs: number;
  /** Mean of what comes on top, exponential. */
  readonly meanExtraMs: number;
  readonly lossChance: number;
  readonly duplicateChance: number;
  /** Chance that a message overtakes others (else links deliver in order, as TCP does). */
  readonly reorderChance: number;
  /** How much later a client's requests arrive at most that outlive their connection, ms; 0: none does. */
  readonly lateRequestMs: number;
}

export const calmNetwork: NetworkOptions = {
  minLatencyMs: 0.2,
  meanExtraMs: 0.3,
  lossChance: 0,
  duplicateChance: 0,
  reorderChance: 0,
  lateRequestMs: 0,
};

/** Mean delay of a repeated message behind the first copy, ms. */
const repeatMeanMs = 20;
/** What one lost segment costs a TCP connection of a client, ms; doubles with each loss in a row. */
const retransmitMs = 200;
const maxRetransmits = 6;
/** Bytes that a message is taken for where a link is throttled. */
const messageBytes = 400;
/** Longest line of messages that a throttled link holds, ms of its rate. */
const throttleBacklogMs = 5_000;

/** Where requests may be late: the pause between two connections that hang, and how long each does, means in ms. */
const meanStallPauseMs = 1_000;
const meanStallMs = 300;

interface Weakness {
  lossPercent: number;
  delayMs: number;
  jitterMs: number;
  bytesPerSecond: number;
  /** A throttled link is busy until then. */
  busyUntilMs: number;
}

const linkName = (from: string, to: string): string => `${from}>${to}`;

export class Network {
  private options: NetworkOptions;
  private readonly random: Prng;
  private readonly late: Prng;
  private nextStallMs = 0;
  private readonly cuts = new Set<string>();
  /** Cuts that stand by rule, apart from those set one by one. */
  private ruleCuts = new Set<string>();
  private resets = new Set<string>();
  private weak = new Map<string, Weakness>();
  /** By sender and receiver, or connection. */
  private readonly lastDelivery = new Map<string, Map<string | number, { atMs: number }>>();

  constructor(options: NetworkOptions, random: Prng) {
    this.options = options;
    this.random = random;
    this.late = random.fork('late requests');
  }

  cut(from: string, to: string): void {
    this.cuts.add(linkName(from, to));
  }

  heal(from: string, to: string): void {
    this.cuts.delete(linkName(from, to));
  }

  healAll(): void {
    this.cuts.clear();
    this.ruleCuts.clear();
    this.resets.clear();
    this.weak.clear();
  }

  /** Packets from one end do not arrive at the other. */
  isCut(from: string, to: string): boolean {
    if (this.cuts.size === 0 && this.ruleCuts.size === 0) return false;
    const name = linkName(from, to);
    return this.cuts.has(name) || this.ruleCuts.has(name);
  }

  /** Connections between the two ends are refused and answered with a reset, whoever dials. */
  isReset(from: string, to: string): boolean {
    return this.resets.size > 0 && (this.resets.has(linkName(from, to)) || this.resets.has(linkName(to, from)));
  }

  /** From now on nothing is lost, repeated or overtaken by chance, and no connection hangs; delays stay as they are. */
  calm(): void {
    this.options = { ...this.options, lossChance: 0, duplicateChance: 0, reorderChance: 0 };
    this.nextStallMs = Infinity;
  }

  /** The effect of a standing loss, delay or rate rule. */
  weakness(from: string, to: string): Readonly<Weakness> | null {
    return this.weak.get(linkName(from, to)) ?? null;
  }

  /** The complete set of rules; what stood before goes. Returns the links that are reset from now on and were not before. */
  setRules(rules: readonly LinkRule[]): { readonly from: string; readonly to: string }[] {
    const before = this.resets;
    const started: { from: string; to: string }[] = [];
    this.ruleCuts = new Set();
    this.resets = new Set();
    const weak = new Map<string, Weakness>();
    for (const rule of rules) {
      const name = linkName(rule.from, rule.to);
      if (rule.kind === 'drop') this.ruleCuts.add(name);
      else if (rule.kind === 'reset') {
        this.resets.add(name);
        if (!before.has(name)) started.push({ from: rule.from, to: rule.to });
      } else {
        const now = weak.get(name) ?? {
          lossPercent: 0,
          delayMs: 0,
          jitterMs: 0,
          bytesPerSecond: 0,
          busyUntilMs: this.weak.get(name)?.busyUntilMs ?? 0,
        };
        if (rule.kind === 'loss') now.lossPercent = rule.percent;
        else if (rule.kind === 'delay') [now.delayMs, now.jitterMs] = [rule.delayMs, rule.jitterMs];
        else now.bytesPerSecond = rule.bytesPerSecond;
        weak.set(name, now);
      }
    }
    this.weak = weak;
    return started;
  }

  /** One draw of a one-way delay of an undisturbed link, ms. */
  latency(): number {
    return this.options.minLatencyMs + this.random.exponential(this.options.meanExtraMs);
  }

  /** When a peer message sent now arrives; null when it is lost. A cut is looked at again on arrival. */
  arrivalMs(from: string, to: string, nowMs: number): number | null {
    const { lossChance, reorderChance } = this.options;
    if (lossChance > 0 && this.random.chance(lossChance)) return null;
    let atMs = nowMs + this.latency();
    const weakness = this.weak.size === 0 ? undefined : this.weak.get(linkName(from, to));
    if (weakness !== undefined) {
      if (weakness.lossPercent > 0 && this.random.chance(weakness.lossPercent / 100)) return null;
      const throttled = this.throttled(weakness, nowMs);
      if (throttled === null) return null;
      atMs += throttled + weakness.delayMs + this.random.float() * weakness.jitterMs;
    }
    if (reorderChance > 0 && this.random.chance(reorderChance)) return atMs;
    return this.inOrder(from, to, atMs);
  }

  /** A repeat of a message that arrives at `atMs`; null when there is none. */
  repeatMs(atMs: number): number | null {
    const { duplicateChance } = this.options;
    return duplicateChance > 0 && this.random.chance(duplicateChance)
      ? atMs + this.random.exponential(repeatMeanMs)
      : null;
  }

  /** When bytes of a client's connection sent now arrive: TCP, so loss is delay and order stays. Throttling queues without bound. */
  streamArrivalMs(from: string, to: string, connection: number, nowMs: number): number {
    let atMs = nowMs + this.latency();
    const weakness = this.weak.size === 0 ? undefined : this.weak.get(linkName(from, to));
    if (weakness !== undefined) {
      atMs +=
        weakness.delayMs +
        this.random.float() * weakness.jitterMs +
        (this.throttled(weakness, nowMs) ?? throttleBacklogMs);
      for (let lost = 0; lost < maxRetransmits && this.random.chance(weakness.lossPercent / 100); lost++)
        atMs += retransmitMs * 2 ** lost;
    }
    return this.inOrder(from, connection, atMs);
  }

  /** One draw of how much later the rest of a closed connection arrives, ms. */
  lateMs(): number {
    return this.late.float() * this.options.lateRequestMs;
  }

  /** How long the client's connection that sends now hangs before it breaks, ms; null: it does not. */
  stallMs(nowMs: number): number | null {
    if (nowMs < this.nextStallMs) return null;
    this.nextStallMs = nowMs + this.late.exponential(meanStallPauseMs);
    return this.late.exponential(meanStallMs);
  }

  /** Forgets a connection that will never be used again. */
  forgetStream(from: string, connection: number): void {
    this.lastDelivery.get(from)?.delete(connection);
  }

  private throttled(weakness: Weakness, nowMs: number): number | null {
    if (weakness.bytesPerSecond <= 0) return 0;
    const startMs = Math.max(nowMs, weakness.busyUntilMs);
    if (startMs - nowMs > throttleBacklogMs) return null;
    weakness.busyUntilMs = startMs + (messageBytes / weakness.bytesPerSecond) * 1_000;
    return weakness.busyUntilMs - nowMs;
  }

  private inOrder(from: string, to: string | number, atMs: number): number {
    let mine = this.lastDelivery.get(from);
    if (mine === undefined) {
      mine = new Map();
      this.lastDelivery.set(from, mine);
    }
    const last = mine.get(to);
    if (last === undefined) {
      mine.set(to, { atMs });
      return atMs;
    }
    if (atMs > last.atMs) last.atMs = atMs;
    return last.atMs;
  }
}
