/**
 * Owns the links between the nodes' seats and with this host: the rules that stand on them, and the looks at them.
 *
 * Invariant: `setRules` reconciles every seat to the complete wanted set, whatever state the nodes are in; a failed
 * seat fails the call, and the next call sets all of it again.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { present } from '../lib/assert.ts';
import type { Clock } from '../lib/clock.ts';
import type { Endpoint, EffectProbe, LinkRule, ProbeResult } from '../chaos/ports.ts';
import { ClientEnd } from './client-end.ts';
import { lastLine, runBash } from './command.ts';
import type { CommandResult } from './command.ts';
import type { Engine } from './engine.ts';
import { clientEnd, installChainsScript, linkRules } from './link-rules.ts';
import { chooseNetnsMethod, runInNetns } from './netns.ts';
import type { NetnsMethod, Seat } from './netns.ts';
import {
  connectScript,
  datagramsWithoutListener,
  hasListener,
  judgeConnect,
  probeConnect,
  probePort,
} from './probes.ts';
import type { ProbeTarget } from './probes.ts';
import { floodScript, judgeRule, planProbe } from './rule-probes.ts';
import type { ProbeCount, ProbePlan } from './rule-probes.ts';

/** A node's place in the network. */
export interface LinkedSeat {
  readonly seat: Seat;
  readonly ip: string;
}

export interface LinksOptions {
  readonly engine: Engine;
  readonly clock: Clock;
  /** The seats that exist now, by node. */
  readonly seats: () => ReadonlyMap<string, LinkedSeat>;
  /** This host's address in the network. */
  readonly gateway: string;
  /** A port on which a running node listens. */
  readonly listenPort: number;
  readonly onSet: (nodeId: string, via: NetnsMethod) => void;
}

const packetPlan: ProbePlan = { count: 3, payloadBytes: 8 };
const settleMs = 20;
const floodTimeoutMs = 15_000;
const tcpTables = 'cat /proc/net/tcp /proc/net/tcp6 2>/dev/null';

/** The links of one cluster. */
export class Links {
  private readonly options: LinksOptions;
  readonly method: NetnsMethod;
  private readonly client: ClientEnd | null;
  private wanted: readonly LinkRule[] = [];
  private queue: Promise<unknown> = Promise.resolve();

  /** The last flood into each receiver. */
  private readonly floods = new Map<Endpoint, Promise<void>>();

  private constructor(options: LinksOptions, method: NetnsMethod, client: ClientEnd | null) {
    this.options = options;
    this.method = method;
    this.client = client;
  }

  /** Finds the way into the seats, by trying it on the first of them. */
  static async open(options: LinksOptions): Promise<Links> {
    const [first] = options.seats().values();
    const method = await chooseNetnsMethod(options.engine, present(first, 'first seat').seat);
    return new Links(options, method, options.engine.local ? await ClientEnd.open(options.gateway) : null);
  }

  close(): void {
    this.client?.close();
  }

  /** Makes exactly these rules stand. Rejects when a seat did not take them, or an end does not exist. */
  setRules(rules: readonly LinkRule[]): Promise<void> {
    for (const end of rules.flatMap((rule) => [rule.from, rule.to])) this.ipOf(end);
    this.wanted = [...rules];
    return this.reconcile();
  }

  /** Sets the wanted rules again, for seats that are new; those of a node that is gone fall away. */
  reconcile(): Promise<void> {
    const next = this.queue.then(() => this.apply());
    this.queue = next.catch(() => {});
    return next;
  }

  private async apply(): Promise<void> {
    const seats = this.options.seats();
    const exists = (end: Endpoint): boolean => end === clientEnd || seats.has(end);
    const rules = this.wanted.filter((rule) => exists(rule.from) && exists(rule.to));
    const addresses = new Map([...seats].map(([nodeId, place]) => [nodeId, place.ip]));
    addresses.set(clientEnd, this.options.gateway);
    const results = await Promise.allSettled(
      [...seats].map(async ([nodeId, { seat }]) => {
        const text = linkRules(nodeId, rules, addresses);
        const script = `${installChainsScript}\niptables-restore -w 5 --noflush <<'END'\n${text}END\n`;
        const result = await this.inside(seat, script);
        if (result.exitCode !== 0)
          throw new Error(`The packet rules of ${nodeId} could not be set: ${lastLine(result)}.`);
        this.options.onSet(nodeId, this.method);
      }),
    );
    for (const result of results) if (result.status === 'rejected') throw result.reason;
  }

  private inside(seat: Seat, script: string, timeoutMs?: number): Promise<CommandResult> {
    return runInNetns(this.options.engine, this.method, seat, script, timeoutMs);
  }

  private ipOf(end: Endpoint): string {
    if (end === clientEnd) return this.options.gateway;
    const place = this.options.seats().get(end);
    if (place === undefined) throw new Error(`There is no node ${end} in this cluster.`);
    return place.ip;
  }

  private seatOf(nodeId: Endpoint): Seat {
    return present(this.options.seats().get(nodeId), `seat of ${nodeId}`).seat;
  }

  /** Where a connection to this end is tried; null when nothing there could answer. */
  private async targetOf(end: Endpoint): Promise<ProbeTarget | null> {
    const address = this.ipOf(end);
    if (end === clientEnd) return this.client === null ? null : { address, port: this.client.port, listens: true };
    const tables = await this.inside(this.seatOf(end), tcpTables);
    const listens = hasListener(tables.stdout, this.options.listenPort);
    return { address, port: listens ? this.options.listenPort : probePort, listens };
  }

  /** Does a new TCP connection get through? From `client` it is tried from this process, without the published port. */
  async probeLink(from: Endpoint, to: Endpoint): Promise<ProbeResult> {
    const link = `${from} to ${to}`;
    const target = await this.targetOf(to);
    if (target === null) return this.probed('unknown', `${link}: this host is not in the cluster's network`);
    if (from === clientEnd) return { ...(await probeConnect(target, link)), atMs: this.options.clock.nowMs() };
    const result = await this.inside(this.seatOf(from), connectScript(target));
    return { ...judgeConnect(result, link, target.listens), atMs: this.options.clock.nowMs() };
  }

  /** Do packets get through one way, whatever happens to answers? The receiver's kernel counts them. */
  async probePacket(from: Endpoint, to: Endpoint): Promise<ProbeResult> {
    const link = `packets ${from} to ${to}`;
    const count = await this.countDatagrams(from, to, packetPlan);
    if (typeof count === 'string') return this.probed('unknown', `${link}: ${count}`);
    return this.probed(
      count.arrived > 0 ? 'reachable' : 'unreachable',
      `${link}: ${count.arrived} of ${count.sent} arrived`,
    );
  }

  /** Does a rule that weakens a link take effect? */
  async probeRule(rule: LinkRule): Promise<EffectProbe> {
    const plan = planProbe(rule);
    const count =
      plan === null ? 'no probe of this host can show it' : await this.countDatagrams(rule.from, rule.to, plan);
    const atMs = this.options.clock.nowMs();
    if (typeof count === 'string') return { effect: 'unknown', atMs, evidence: count };
    const evidence = `${count.arrived} of ${count.sent} datagrams arrived in ${Math.round(count.elapsedMs)} ms`;
    return { effect: judgeRule(rule, count), atMs, evidence };
  }

  /** Sends datagrams and counts the arrivals; a text says why that is not possible. */
  private countDatagrams(from: Endpoint, to: Endpoint, plan: ProbePlan): Promise<ProbeCount | string> {
    if (this.method !== 'nsenter') return Promise.resolve('the receiver cannot be seen from here');
    // One flood at a time into a receiver: its kernel counts arrivals of all senders together, and two at once would each count for the other.
    const before = this.floods.get(to) ?? Promise.resolve();
    const mine = before.then(() => this.flood(from, to, plan));
    this.floods.set(
      to,
      mine.then(
        () => undefined,
        () => undefined,
      ),
    );
    return mine;
  }

  private async flood(from: Endpoint, to: Endpoint, plan: ProbePlan): Promise<ProbeCount | string> {
    const receiver = to === clientEnd ? 'self' : this.seatOf(to).pid;
    const script = floodScript(this.ipOf(to), probePort, plan);
    const before = datagramsWithoutListener(receiver);
    const startMs = this.options.clock.nowMs();
    const sent =
      from === clientEnd
        ? await runBash(script, floodTimeoutMs)
        : await this.inside(this.seatOf(from), script, floodTimeoutMs);
    if (sent.exitCode !== 0) return lastLine(sent);
    const elapsedMs = this.options.clock.nowMs() - startMs;
    await sleep(settleMs);
    const arrived = datagramsWithoutListener(receiver) - before;
    if (Number.isNaN(arrived)) return 'the kernel does not count';
    return { sent: plan.count, arrived: Math.min(arrived, plan.count), elapsedMs };
  }

  private probed(outcome: ProbeResult['outcome'], evidence: string): ProbeResult {
    return { outcome, evidence, atMs: this.options.clock.nowMs() };
  }
}
