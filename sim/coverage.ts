/**
 * What a run or a sweep has reached: kinds of edges, health changes, promotion paths, catch-up, handoff steps, statuses. What
 * was never reached was never tested, however green the sweep.
 */
import type { Completion, Operation } from '../workloads/port.ts';
import type { Effect, Notice } from '../zaris/node/contract.ts';

/** Everything that a long sweep is expected to reach. */
export const expectedCoverage: readonly string[] = [
  'edge promotion',
  'edge handoff',
  'edge unassigned',
  'edge serving',
  'edge in-sync',
  'edge withdrawn',
  'edge health',
  'edge map',
  'health Healthy',
  'health Degraded',
  'health Recovering',
  'health Unavailable',
  'promotion possessed',
  'promotion synchronised',
  'promotion alone in the set',
  'eligible set filled',
  'joined the in-sync set',
  'catch-up by snapshot',
  'snapshot installed',
  'handoff started',
  'handoff aborted',
  'handoff to preferred primary',
  'handoff by drain',
  'surplus copy dropped',
  'control snapshot written',
  'control snapshot sent',
  'answer Ok',
  'answer NotFound',
  'answer Conflict',
  'answer Moved',
  'answer OwnershipChanging',
  'answer ReplicaWriteRejected',
  'answer Unavailable',
  'outcome ok',
  'outcome condition',
  'outcome refused',
  'outcome in doubt',
];

/** Names of what was reached, made once for each of the few words that they are made of. */
const namesWith = (prefix: string): ((word: string) => string) => {
  const names = new Map<string, string>();
  return (word) => {
    let name = names.get(word);
    if (name === undefined) names.set(word, (name = `${prefix} ${word}`));
    return name;
  };
};
const answerName = namesWith('answer');
const outcomeName = namesWith('outcome');

export class Coverage {
  readonly counts = new Map<string, number>();

  hit(name: string, count = 1): void {
    this.counts.set(name, (this.counts.get(name) ?? 0) + count);
  }

  /** Answers that leave a node, and snapshots of the control log that it writes or sends. */
  stepped(effects: readonly Effect[]): void {
    for (const effect of effects) {
      if (effect.kind === 'reply') this.hit(answerName(effect.answer.status));
      else if (effect.kind === 'send') {
        const { message } = effect;
        if (message.kind === 'raft' && message.message.kind === 'install') this.hit('control snapshot sent');
      } else if (effect.kind === 'persist' && effect.writes.some(({ kind }) => kind === 'snapshot')) {
        this.hit('control snapshot written');
      }
    }
  }

  completed(_operation: Operation, completion: Completion): void {
    this.hit(
      completion.kind === 'ok'
        ? 'outcome ok'
        : completion.kind === 'info'
          ? 'outcome in doubt'
          : outcomeName(completion.why),
    );
  }

  notice({ name, fields }: Notice): void {
    if (name.startsWith('edge-')) {
      this.hit(`edge ${name.slice('edge-'.length)}`);
      this.hit(`health ${String(fields['health'])}`);
      const primary = String(fields['primary']);
      if (name === 'edge-in-sync' && String(fields['why']).endsWith(' joined')) this.hit('joined the in-sync set');
      // An eligible member's promotion leaves it alone in the set.
      if (name === 'edge-promotion' && fields['inSync'] === primary) this.hit('promotion alone in the set');
      if (name === 'edge-in-sync' && fields['eligible'] !== '') this.hit('eligible set filled');
      return;
    }
    switch (name) {
      case 'possession-proved':
        return this.hit('promotion possessed');
      case 'synchronising':
        return this.hit('promotion synchronised');
      case 'snapshot-started':
        return this.hit('catch-up by snapshot');
      case 'snapshot-installed':
        return this.hit('snapshot installed');
      case 'handoff-started':
        this.hit('handoff started');
        return this.hit(fields['why'] === 'drain' ? 'handoff by drain' : 'handoff to preferred primary');
      case 'handoff-aborted':
        return this.hit('handoff aborted');
      case 'surplus':
        return this.hit('surplus copy dropped');
      default:
        this.hit(`notice ${name}`);
    }
  }

  add(other: Iterable<readonly [string, number]>): void {
    for (const [name, count] of other) this.hit(name, count);
  }

  /** What was expected and never reached. */
  missing(): string[] {
    return expectedCoverage.filter((name) => !this.counts.has(name));
  }
}
