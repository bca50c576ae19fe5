/** host:port as text, apart and together. */

/** Null when the text is no host:port. Brackets of IPv6 are removed. */
export function splitHostPort(text: string): { readonly host: string; readonly port: number } | null {
  const match = /^(\[[0-9a-fA-F:.]+\]|[\w.-]+):(\d{1,5})$/.exec(text);
  const port = Number(match?.[2] ?? 0);
  if (match === null || port < 1 || port > 65_535) return null;
  return { host: (match[1] as string).replace(/^\[|\]$/g, ''), port };
}
