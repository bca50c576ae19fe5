/** Sessions of a simulated run beside those of the load; numbered from the first free one. */
export const extraSession = { canary: 0, retirer: 1, probe: 2 } as const;
