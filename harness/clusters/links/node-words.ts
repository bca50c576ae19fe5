/** What the process cluster and the preload in its nodes agree on. */

/** Source address of a node's outgoing connections. */
export const sourceVariable = 'CERTIFY_SOURCE_ADDRESS';
/** Said on a node's standard input: it stays when the harness ends. */
export const keepWord = 'keep';
