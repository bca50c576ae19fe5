/** The promises that a run puts to the test, each with what became of it. */
import type { FindingKind } from '../../ledger/verify/finding.ts';
import type { Judgement } from '../../ledger/verify/judge.ts';
import { countFindings } from '../report/finding-words.ts';
import type { RunPromise } from '../report/model.ts';
import { listWords } from '../report/text.ts';
import { type Meta, settingsOf, textOf } from './head-part.ts';

interface Promised {
  readonly id: string;
  readonly title: string;
  /** Findings that break it. */
  readonly kinds: readonly FindingKind[];
  /** What it was tested by, or why it was not. */
  readonly tested: (judgement: Judgement, workload: string) => string | null;
  /** Why it was not, where it is not the workload's doing. */
  readonly untested?: string;
}

const count = (value: number, noun: string): string =>
  `${value.toLocaleString('en-US')} ${noun}${value === 1 ? '' : 's'}`;
const has = (workload: string, ...names: string[]): boolean => names.some((name) => workload.includes(name));

const promised: readonly Promised[] = [
  {
    id: 'durability',
    title: 'No acknowledged write is lost',
    kinds: ['lost', 'resurrected'],
    tested: ({ strength }) =>
      strength.judged > 0
        ? `${count(strength.judged, 'write')} judged, ${strength.exposed.toLocaleString('en-US')} of them exposed to a failover`
        : null,
  },
  {
    id: 'reads',
    title: 'Reads are never stale, never go back, never show what nobody wrote',
    kinds: ['stale', 'phantom', 'corrupt', 'non-monotone'],
    tested: ({ counts }) =>
      (counts.operations[0]?.[0] ?? 0) > 0 ? count(counts.operations[0]?.[0] ?? 0, 'read') : null,
  },
  {
    id: 'linearizability',
    title: 'Each key is linearizable',
    kinds: ['not-linearizable'],
    tested: ({ counts }) =>
      `${count(counts.keys - counts.unwitnessedKeys, 'key')} ordered by their versions, ${counts.searchedKeys} searched`,
  },
  {
    id: 'exactly-once',
    title: 'Every operation takes effect at most once',
    kinds: ['duplicated'],
    tested: (_, workload) =>
      has(workload, 'counters', 'create', 'lists', 'cas', 'registers') ? `by ${workload}` : null,
  },
  {
    id: 'convergence',
    title: 'All copies are equal in the end',
    kinds: ['diverged'],
    tested: ({ counts }) =>
      counts.replicasAsked > 0 ? `${counts.replicasAnswered} of ${counts.replicasAsked} answers of replicas` : null,
    untested: 'no replica was asked for its copy',
  },
  {
    id: 'fencing',
    title: 'One primary per term, epochs never go back',
    kinds: ['fencing'],
    tested: ({ strength }) => `${count(strength.allFailovers, 'failover')}, ${count(strength.handoffs, 'handoff')}`,
  },
  {
    id: 'ttl',
    title: 'Values expire when they should',
    kinds: ['ttl'],
    tested: (_, workload) => (has(workload, 'ttl') ? 'by ttl' : null),
  },
  {
    id: 'client',
    title: 'The client keeps to its attempts and deadline',
    kinds: ['client-promise'],
    tested: () => 'every operation',
  },
];

/** One entry per promise. A finding of kind `unknown` leaves linearizability unknown. */
export function promisesOf(judgement: Judgement, meta: Meta): RunPromise[] {
  const workload = textOf(settingsOf(meta)['workload']);
  return promised.map(({ id, title, kinds, tested, untested }) => {
    const found = kinds.map((kind): [FindingKind, number] => [kind, judgement.totals.get(kind) ?? 0]);
    const broken = found.filter(([, total]) => total > 0);
    const detail = tested(judgement, workload);
    if (broken.length > 0)
      return {
        id,
        title,
        outcome: 'broken',
        detail: listWords(broken.map(([kind, total]) => countFindings(kind, total))),
      };
    if (detail === null)
      return { id, title, outcome: 'not-tested', detail: untested ?? 'the workload had nothing that could show it' };
    if (id === 'linearizability' && judgement.counts.undecidedCount > 0)
      return { id, title, outcome: 'unknown', detail: `${count(judgement.counts.undecidedCount, 'key')} not decided` };
    return { id, title, outcome: 'held', detail };
  });
}
