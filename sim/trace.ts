/**
 * What happened in a run, for people: who sent what to whom, epochs and terms, faults, the operations of one key. Keeps one
 * partition and one stretch of time; regular traffic that says nothing new (beats, heartbeats) is left out.
 */
import type { NodeId } from '../zaris/model/ids.ts';
import type { PeerMessage } from '../zaris/model/peer-wire.ts';
import type { NodeEvent } from '../zaris/node/contract.ts';
import type { SimResult } from './job.ts';
import type { World } from './world.ts';
import type { SimNode } from './world-node.ts';

export interface TraceMessage {
  readonly from: string;
  readonly to: string;
  readonly text: string;
  readonly sentAtMs: number;
  /** Null: it never arrived. */
  arrivedAtMs: number | null;
}

export interface TraceMark {
  readonly atMs: number;
  /** A lane: a node, or `chaos`. */
  readonly lane: string;
  readonly text: string;
  readonly kind: 'notice' | 'fault' | 'operation' | 'finding';
  /** Operations last. */
  readonly untilMs?: number;
}

export interface Trace {
  readonly fromMs: number;
  readonly toMs: number;
  readonly lanes: readonly string[];
  readonly messages: readonly TraceMessage[];
  readonly marks: readonly TraceMark[];
}

export interface TraceWindow {
  readonly fromMs: number;
  readonly toMs: number;
  /** Null: all partitions. */
  readonly partition: number | null;
}

/** Messages kept; a longer stretch is cut off at its end. */
const maxMessages = 4_000;
const clientLane = 'clients';

/** Records a stretch of a world's run. Attach before it starts. */
export class TraceRecorder {
  private readonly world: World;
  private readonly window: TraceWindow;
  private readonly messages: TraceMessage[] = [];
  /** One message may go to several nodes. */
  private readonly onWay = new Map<object, TraceMessage[]>();
  private readonly marks: TraceMark[] = [];

  constructor(world: World, window: TraceWindow) {
    this.world = world;
    this.window = window;
    const { onSend, onStep, onNotice } = world;
    world.onSend = (from, to, message) => {
      this.sent(from, to, message);
      return onSend(from, to, message);
    };
    world.onStep = (node, event, effects) => {
      this.stepped(node, event);
      onStep?.(node, event, effects);
    };
    world.onNotice = (from, notice) => {
      onNotice(from, notice);
      const { partition } = notice.fields;
      const isOurs = typeof partition !== 'number' || window.partition === null || partition === window.partition;
      if (this.isInside && isOurs && notice.level !== 'debug')
        this.marks.push({
          atMs: world.nowMs,
          lane: from,
          kind: 'notice',
          text: noticeText(notice.name, notice.fields),
        });
    };
  }

  private get isInside(): boolean {
    return this.world.nowMs >= this.window.fromMs && this.world.nowMs <= this.window.toMs;
  }

  private sent(from: NodeId, to: NodeId, message: PeerMessage): void {
    if (!this.isInside || this.messages.length >= maxMessages) return;
    const text = messageText(message, this.window.partition);
    if (text === null) return;
    const entry: TraceMessage = { from, to, text, sentAtMs: this.world.nowMs, arrivedAtMs: null };
    this.messages.push(entry);
    const others = this.onWay.get(message);
    if (others === undefined) this.onWay.set(message, [entry]);
    else others.push(entry);
  }

  private stepped(node: SimNode, event: NodeEvent): void {
    if (event.kind !== 'message') return;
    const entry = this.onWay
      .get(event.message)
      ?.find(({ to, arrivedAtMs }) => to === node.nodeId && arrivedAtMs === null);
    if (entry !== undefined) entry.arrivedAtMs = this.world.nowMs;
  }

  /** The trace, with the faults and, where one is named, the operations of a key and the finding about it. */
  finish(result: SimResult, key: string | null): Trace {
    const { fromMs, toMs } = this.window;
    const inside = (atMs: number): boolean => atMs >= fromMs && atMs <= toMs;
    const marks = [...this.marks];
    for (const row of result.history.faultRows) {
      const atMs = row.atNs / 1e6;
      if (!inside(atMs) || !['injected', 'healed'].includes(row.stage)) continue;
      for (const target of row.targets.length === 0 ? [clientLane] : row.targets)
        marks.push({ atMs, lane: target, kind: 'fault', text: `${row.faultId} ${row.kind} ${row.stage}` });
    }
    for (const { operationId, session, operation, invokeNs, returnNs, completion } of key === null
      ? []
      : result.history.operationsOf(key)) {
      const atMs = invokeNs / 1e6;
      if (!inside(atMs)) continue;
      const outcome = completion === null ? 'open' : completion.kind;
      const version =
        completion !== null && completion.kind !== 'info' && completion.version
          ? ` (${completion.version.join(', ')})`
          : '';
      const value =
        completion?.kind === 'ok' && operation.f === 'read'
          ? ` = ${completion.value ?? 'nothing'}`
          : 'value' in operation
            ? ` ${operation.value}`
            : '';
      const served = completion?.node === undefined ? '' : ` by ${completion.node}`;
      marks.push({
        atMs,
        lane: clientLane,
        kind: 'operation',
        untilMs: (returnNs ?? toMs * 1e6) / 1e6,
        text: `#${operationId} s${session} ${operation.f} ${operation.key}${value} → ${outcome}${version}${served}`,
      });
    }
    for (const finding of result.judgement.findings.slice(0, 3)) {
      const atNs = finding.witness?.atNs ?? finding.operation?.invokeNs;
      if (atNs !== undefined)
        marks.push({
          atMs: Math.min(atNs / 1e6, toMs),
          lane: clientLane,
          kind: 'finding',
          text: `${finding.kind} ${finding.key ?? ''}: ${finding.reason}`,
        });
    }
    for (const { atMs, where, why } of result.breaches) {
      const lane = where.split(/[-#]/)[0] as string;
      if (inside(atMs)) marks.push({ atMs, lane, kind: 'finding', text: `INVARIANT ${where}: ${why}` });
    }
    marks.sort((a, b) => a.atMs - b.atMs);
    return { fromMs, toMs, lanes: [clientLane, ...[...this.world.nodes.keys()]], messages: this.messages, marks };
  }
}

const noticeText = (name: string, fields: Readonly<Record<string, unknown>>): string => {
  const shown = [
    'partition',
    'epoch',
    'term',
    'primary',
    'inSync',
    'eligible',
    'health',
    'member',
    'to',
    'source',
    'seq',
    'why',
  ];
  return `${name} ${shown.flatMap((field) => (fields[field] === undefined || fields[field] === '' ? [] : [`${field} ${String(fields[field])}`])).join(', ')}`;
};

/** One message in words; null for what the trace leaves out. */
export function messageText(message: PeerMessage, partition: number | null): string | null {
  if ('partition' in message && partition !== null && message.partition !== partition) return null;
  switch (message.kind) {
    case 'append': {
      if (message.entries.length === 0)
        return `append t${message.term} after ${message.previousSeq} empty, commit ${message.commitSeq}`;
      const effects = message.entries.map(
        ({ seq, term, effect }) => `${seq}:t${term} ${effect.kind}${'key' in effect ? ` ${effect.key}` : ''}`,
      );
      return `append t${message.term} after ${message.previousSeq} [${effects.slice(0, 4).join('; ')}${effects.length > 4 ? '; …' : ''}], commit ${message.commitSeq}`;
    }
    case 'append-ack':
      return `append-ack t${message.term} ${message.matched ? 'matched' : 'no match'} ${message.seq}`;
    case 'possession-answer':
      return `possession-answer t${message.term} last (${message.lastTerm}, ${message.lastSeq}), ${message.keyCount} keys`;
    case 'snapshot-chunk':
      return `snapshot t${message.term} (${message.seqTerm}, ${message.seq}) chunk ${message.index}${message.last ? ', the last' : ''}`;
    case 'possession-query':
    case 'tail-query':
    case 'tail-answer':
    case 'snapshot-ack':
      return `${message.kind} t${message.term}`;
    case 'propose':
      return `propose ${(message.commands as readonly { readonly kind: string }[]).map(({ kind }) => kind).join(', ')}`;
    case 'register':
    case 'look':
    case 'terms-query':
    case 'terms-answer':
      return message.kind;
    case 'raft':
    case 'beacon':
    case 'beacon-ack':
    case 'beat':
    case 'beat-ack':
    case 'look-ack':
      return null;
    default:
      return null;
  }
}

/** The trace as lines, in the order of time. */
export function traceLines(trace: Trace): string[] {
  const time = (atMs: number): string => `${atMs.toFixed(2).padStart(12)} ms`;
  const lines: { atMs: number; text: string }[] = [];
  for (const { atMs, lane, kind, text, untilMs } of trace.marks) {
    const until = untilMs === undefined ? '' : ` (until ${untilMs.toFixed(2)})`;
    lines.push({
      atMs,
      text: `${time(atMs)}  ${lane.padEnd(8)} ${kind === 'notice' ? '' : `${kind.toUpperCase()} `}${text}${until}`,
    });
  }
  for (const { from, to, text, sentAtMs, arrivedAtMs } of trace.messages) {
    lines.push({
      atMs: sentAtMs,
      text: `${time(sentAtMs)}  ${from.padEnd(8)} → ${to}: ${text}${arrivedAtMs === null ? '  (never arrived)' : `  (at ${arrivedAtMs.toFixed(2)})`}`,
    });
  }
  return lines.sort((a, b) => a.atMs - b.atMs).map(({ text }) => text);
}
