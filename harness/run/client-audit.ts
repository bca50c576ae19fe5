/**
 * Holds clients to their word: `fail` is taken only where the error is known to be definite; anything else becomes `info`, and the
 * run says that its client cannot be trusted. A timeout that passed for a failure would turn a kept write into a phantom, or hide
 * a lost one.
 */
import type { Completion } from '../../workloads/port.ts';

/** Errors after which nobody knows what happened, in the words of most clients. */
const indefinite =
  /time[ds]?[ -]?out|deadline|lost|reset|hang ?up|closed|aborted|cancel|unknown|in doubt|disconnect|ECONN|EPIPE|ENOTCONN|socket/i;

/** Is a refusal with this error known to have had no effect? `known`: the first words of the system's own definite refusals, where it names them. */
export function isDefinite(error: string, known: readonly string[] | null): boolean {
  return known === null ? !indefinite.test(error) : known.some((word) => error.startsWith(word));
}

export class ClientAudit {
  /** Completions that were called failed without ground, by their error. */
  readonly doubtful = new Map<string, number>();
  private readonly known: readonly string[] | null;

  constructor(known: readonly string[] | null) {
    this.known = known;
  }

  /** The completion as it may be taken. */
  taken(completion: Completion): Completion {
    // That a condition did not hold is an answer of the store; only a refusal can be a guess.
    if (completion.kind !== 'fail' || completion.why === 'condition' || isDefinite(completion.error, this.known))
      return completion;
    const word = completion.error.slice(0, 60);
    this.doubtful.set(word, (this.doubtful.get(word) ?? 0) + 1);
    const { why: _, version: __, ...rest } = completion;
    return { ...rest, kind: 'info', error: `called failed, taken as unknown: ${completion.error}` };
  }

  /** One sentence, or null when every failure was known to be one. */
  complaint(): string | null {
    if (this.doubtful.size === 0) return null;
    const total = [...this.doubtful.values()].reduce((sum, count) => sum + count, 0);
    const words = [...this.doubtful.keys()].slice(0, 3).join(', ');
    return `The client called ${total} operations failed although their outcome was unknown (${words}); they count as unknown, and the client is not to be trusted.`;
  }
}
