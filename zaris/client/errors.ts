/**
 * What the client throws. A status of an answer is a result, never an exception; thrown is only what has no answer to give: wrong
 * input, no cluster, a refused client, a call that its caller ended.
 */

/** Base of all errors of this client; `cause` holds what lay underneath. */
export class ZarisError extends Error {
  override readonly name: string = 'ZarisError';
}

/** The caller's mistake: an argument, an option, an environment variable. Nothing was sent. */
export class ZarisInputError extends ZarisError {
  override readonly name = 'ZarisInputError';
}

/** No node gave a usable map in time. */
export class ZarisConnectError extends ZarisError {
  override readonly name = 'ZarisConnectError';
}

/** The cluster refused who we are (token or certificate). Never retried. */
export class ZarisUnauthorizedError extends ZarisError {
  override readonly name = 'ZarisUnauthorizedError';
}

/** The caller ended the call (signal), or closed the client under it. `inDoubt`: a mutation may still have run. */
export class ZarisAbortedError extends ZarisError {
  override readonly name = 'ZarisAbortedError';
  readonly inDoubt: boolean;

  constructor(message: string, inDoubt: boolean, cause: unknown) {
    super(message, { cause });
    this.inDoubt = inDoubt;
  }
}
