/** Lines of a text with their numbers; blank ones are passed over, CRLF and a missing last newline are fine. */

/** Calls `visit` for every line that is not blank, without its line end; numbers count from 1. */
export function forEachLine(text: string, visit: (content: string, line: number) => void): void {
  let start = text.charCodeAt(0) === 0xfeff ? 1 : 0;
  for (let line = 1; start < text.length; line++) {
    let end = text.indexOf('\n', start);
    if (end < 0) end = text.length;
    const content = text.slice(start, text[end - 1] === '\r' ? Math.max(start, end - 1) : end);
    if (content.trim() !== '') visit(content, line);
    start = end + 1;
  }
}
