/**
 * What leaves a node is true when it leaves: no Ok of a mutation above the commit index, and no read that began after a newer
 * primary had committed is answered by an older one (that would be a read outside lease and confirmation).
 */
import type { Answer } from '../../zaris/model/client-wire.ts';
import type { Checker, CheckerContext, Stepped } from './context.ts';
import type { CommittedChecker } from './committed.ts';
import { OpenTable } from '../open-table.ts';

interface OpenRequest {
  readonly isRead: boolean;
  /** Highest term that had committed when the request arrived. */
  readonly termAtArrival: number;
}

/** Requests remembered that were not answered soon; parked ones are few. */
const rememberedRequests = 10_000;
/** More than there are requests on one connection. */
const requestsPerConnection = 2 ** 32;
/** Connections are numbered across all processes, so the pair names a request of the whole run. */
const nameOf = (connection: number, requestId: number): number => connection * requestsPerConnection + requestId;

export class AnswerChecker implements Checker {
  private readonly context: CheckerContext;
  private readonly committed: CommittedChecker;
  private readonly open = new OpenTable<OpenRequest>();

  constructor(context: CheckerContext, committed: CommittedChecker) {
    this.context = context;
    this.committed = committed;
  }

  stepped(step: Stepped): void {
    const { event, effects } = step;
    if (event.kind === 'request' && (event.request.op === 'get' || event.request.op === 'mutate')) {
      const { request } = event;
      this.open.put(nameOf(event.connection, request.id), {
        isRead: request.op === 'get',
        termAtArrival: this.committed.log(request.partition).lastTerm,
      });
      this.open.trimTo(rememberedRequests);
    }
    for (const effect of effects) {
      if (effect.kind !== 'reply') continue;
      const request = this.open.take(nameOf(effect.connection, effect.answer.id));
      if (request !== undefined) this.look(step, request, effect.answer);
    }
  }

  private look(step: Stepped, request: OpenRequest, answer: Answer): void {
    const { partition, version, epoch = 0, status } = answer;
    if (partition === undefined || version === undefined) return;
    if (request.isRead) {
      if (epoch < request.termAtArrival) {
        this.context.breach(
          step.processName,
          `partition ${partition}: a read was answered under epoch ${epoch} although term ${request.termAtArrival} had committed before it came`,
        );
      }
      return;
    }
    const commitSeq = step.node.running?.node.planes.data.replica(partition)?.commitSeq ?? 0;
    if (status === 'Ok' && version.seq > commitSeq) {
      this.context.breach(
        step.processName,
        `partition ${partition}: Ok for (${version.term}, ${version.seq}) above the commit index ${commitSeq}`,
      );
    }
  }
}
