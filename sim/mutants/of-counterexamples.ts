/**
 * The bugs that the kept counterexamples were found by, to be put back: each counterexample must be red with its own. The store's
 * timing changes with every release, and a counterexample that no longer meets its moment guards nothing, however green.
 */
import type { Edit } from './mutant.ts';

export interface KeptBug {
  /** File in `regressions/`, without its ending. */
  readonly counterexample: string;
  readonly edits: readonly Edit[];
  /** Part of what its replay says. */
  readonly red: string;
}

const primary = 'zaris/partition/primary.ts';
const requestDesk = 'zaris/partition/request-desk.ts';

export const keptBugs: readonly KeptBug[] = [
  {
    counterexample: 'joiner-lacked-inherited-entries',
    edits: [
      {
        file: 'zaris/partition/in-sync.ts',
        find: 'const acknowledgedUpTo = this.inheritedUpTo > commitSeq ? this.inheritedUpTo : commitSeq;',
        replace: 'const acknowledgedUpTo = commitSeq;',
      },
    ],
    red: 'is not in its log',
  },
  {
    counterexample: 'primary-of-the-past-logged',
    edits: [
      { file: primary, find: 'this.isDeposed = !replica.adoptTerm(term);', replace: 'replica.adoptTerm(term);' },
      { file: primary, find: 'this.replicator === null && !this.isDeposed', replace: 'this.replicator === null' },
      {
        file: primary,
        find: '    if (this.isDeposed) return;\n    this.promotion.advance(nowMs);',
        replace: '    this.promotion.advance(nowMs);',
      },
    ],
    red: 'term goes back',
  },
  {
    counterexample: 'refusal-named-a-position-behind',
    edits: [
      {
        file: requestDesk,
        find: 'const inherited = namesValue ? overlay.inheritedSeq(request.key) : overlay.inheritedEnd;',
        replace:
          "const inherited = namesValue || request.op === 'get' ? overlay.inheritedSeq(request.key) : overlay.inheritedEnd;",
      },
      { file: requestDesk, find: 'if (plain && overlay.inheritedEnd <= replica.commitSeq) {', replace: 'if (plain) {' },
    ],
    red: 'not-linearizable',
  },
  {
    counterexample: 'unassigned-copy-was-counted',
    edits: [
      {
        file: 'zaris/node/data-plane.ts',
        find: '      this.replicas.get(partition)?.adoptTerm(runtime.term);\n',
        replace: '      this.replicas.delete(partition);\n',
      },
    ],
    red: 'above the commit index',
  },
  {
    counterexample: 'late-mismatch-stalled-a-follower',
    edits: [
      {
        file: 'zaris/partition/replicator.ts',
        find: 'const hint = asSeq(Math.max(message.seq, follower.matchSeq));',
        replace: 'if (message.seq < follower.matchSeq) return false;\n    const hint = message.seq;',
      },
    ],
    red: 'not-recovered',
  },
];
