/** Escaping by construction: a template tag whose every interpolation is text unless it is markup made by the same tag. */
import { escapeMarkup } from './text.ts';

/** Markup that may stand in a page as it is; made only by {@link html} and {@link trusted}. */
export class Markup {
  readonly source: string;
  constructor(source: string) {
    this.source = source;
  }
}

type Part = string | number | Markup | null | readonly (string | number | Markup)[];

function render(part: Part): string {
  if (part === null) return '';
  if (part instanceof Markup) return part.source;
  if (Array.isArray(part)) return part.map(render).join('');
  return escapeMarkup(String(part));
}

/** html`<td>${text}</td>`: strings and numbers are escaped, null is nothing, lists are joined. */
export function html(strings: TemplateStringsArray, ...parts: readonly Part[]): Markup {
  return new Markup(strings.map((literal, index) => literal + render(parts[index] ?? null)).join(''));
}

/** Source of this project (scripts, styles), never text from outside. */
export const trusted = (source: string): Markup => new Markup(source);
