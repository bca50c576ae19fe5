/**
 * Text for people: escaping and number formats. Pure and free of imports: the browser part uses it too.
 *
 * Invariant: text from outside (keys, values, log lines) never reaches a page, a terminal or a table as markup or as a
 * control sequence. If it did, a key could run a script in the report or repaint the terminal of a CI log.
 */

/** Everything that moves a cursor, reorders or hides text: C0, DEL, C1, bidi and zero-width characters, separators, lone surrogates. */
const invisible =
  // oxlint-disable-next-line no-control-regex
  /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\uffff]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;

/** Shows control and invisible characters as \u{1b} and the like; safe to print. */
export function visible(text: string): string {
  return text.replace(invisible, (character) => `\\u{${character.charCodeAt(0).toString(16)}}`);
}

/** `visible`, cut to `limit` characters with an ellipsis and the full length. */
export function shortened(text: string, limit: number): string {
  const shown = visible(text);
  return shown.length <= limit ? shown : `${shown.slice(0, limit)}… (${text.length} characters)`;
}

const markup: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

/** For HTML and XML, text and quoted attributes alike. */
export function escapeMarkup(text: string): string {
  return visible(text).replace(/[&<>"']/g, (character) => markup[character] ?? character);
}

/**
 * For a Markdown line or table cell: whatever could be markup becomes an entity, which CommonMark never reads as markup.
 * Round brackets stay: without square ones they make no link, and a raw report.md stays legible.
 */
export function escapeMarkdown(text: string): string {
  return visible(text)
    .replace(/[\\`*_{}[\]<>#|!~&@$]/g, (character) => `&#${character.charCodeAt(0)};`)
    .replace(/:\/\//g, '&#58;//')
    .replace(/www\./gi, (found) => `${found.slice(0, 3)}&#46;`);
}

/** JSON that may stand inside a script element: no `<`, and nothing invisible (separators, bidi) as itself. */
export function scriptSafeJson(value: unknown): string {
  const escaped = (character: string): string => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
  return JSON.stringify(value).replace(/</g, '\\u003c').replace(invisible, escaped);
}

/** 1204567 → "1,204,567". */
export function formatCount(value: number): string {
  return String(Math.round(value)).replace(/\B(?=(\d{3})+$)/g, ',');
}

const pad = (value: number, width = 2): string => String(value).padStart(width, '0');

/** Offset on the time axis: "+1:02:03" or, with `fraction`, "+1:02:03.120". */
export function formatOffset(atMs: number, fraction = false): string {
  const total = Math.max(0, fraction ? Math.round(atMs) : Math.floor(atMs / 1000) * 1000);
  const seconds = Math.floor(total / 1000);
  const clock = `${Math.floor(seconds / 3600)}:${pad(Math.floor(seconds / 60) % 60)}:${pad(seconds % 60)}`;
  return fraction ? `+${clock}.${pad(total % 1000, 3)}` : `+${clock}`;
}

/** "340 ms", "1.2 s", "45 s", "12 min 05 s", "4 h 00 min". */
export function formatDuration(durationMs: number): string {
  if (durationMs < 10) return `${Number(durationMs.toFixed(durationMs < 1 ? 2 : 1))} ms`;
  if (durationMs < 1000) return `${Math.round(durationMs)} ms`;
  if (durationMs < 9950) return `${Number((durationMs / 1000).toFixed(1))} s`;
  const seconds = Math.round(durationMs / 1000);
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) {
    return seconds % 60 === 0 ? `${seconds / 60} min` : `${Math.floor(seconds / 60)} min ${pad(seconds % 60)} s`;
  }
  const minutes = Math.round(seconds / 60);
  return `${Math.floor(minutes / 60)} h ${pad(minutes % 60)} min`;
}

/** "1.4 GB", decimal units. */
export function formatBytes(bytes: number): string {
  const units = ['B', 'kB', 'MB', 'GB', 'TB'];
  let value = bytes;
  let unit = 0;
  while (value >= 999.5 && unit < units.length - 1) {
    value /= 1000;
    unit++;
  }
  return `${unit === 0 || value >= 100 ? Math.round(value) : Number(value.toFixed(1))} ${units[unit]}`;
}

/** A share as "1.4 %"; small ones keep two digits. */
export function formatShare(share: number): string {
  const percent = share * 100;
  return `${Number(percent >= 10 ? percent.toFixed(0) : percent.toPrecision(2))} %`;
}

/** "1 write", "2 writes". */
export function plural(value: number, one: string, many = `${one}s`): string {
  return `${formatCount(value)} ${value === 1 ? one : many}`;
}

/** "a, b and c"; at most `limit` names, the rest as a number. */
export function listWords(words: readonly string[], limit = 4): string {
  const shown = words.slice(0, limit);
  if (words.length > limit) shown.push(`${words.length - limit} more`);
  if (shown.length <= 1) return shown[0] ?? '';
  return `${shown.slice(0, -1).join(', ')} and ${shown.at(-1)}`;
}

/** Wall clock of an offset, UTC: "2026-11-29 03:12:04". */
export function formatWall(startedAt: string, offsetMs: number): string {
  const start = Date.parse(startedAt);
  if (!Number.isFinite(start)) return '';
  return new Date(start + offsetMs).toISOString().slice(0, 19).replace('T', ' ');
}
