/** The calls of a client that are not settled, in no order; each knows its place, so that leaving costs nothing. */
import type { Call } from './call.ts';

export class CallList {
  private readonly calls: Call[] = [];

  get size(): number {
    return this.calls.length;
  }

  /** A copy: what is done to one call may settle others. */
  all(): Call[] {
    return [...this.calls];
  }

  find(callId: number): Call | undefined {
    return this.calls.find((call) => call.callId === callId);
  }

  add(call: Call): void {
    call.listIndex = this.calls.length;
    this.calls.push(call);
  }

  remove(call: Call): void {
    const last = this.calls.pop() as Call;
    if (last === call) return;
    this.calls[call.listIndex] = last;
    last.listIndex = call.listIndex;
  }
}
