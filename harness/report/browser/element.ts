/** DOM building where data can only ever be text: children are nodes or text nodes, never markup. */
import { visible } from '../text.ts';

type Child = Node | string | number | null;
type Attributes = Readonly<Record<string, string | number | boolean>>;

/** An element; `true` sets an empty attribute, `false` none. Strings among the children become text. */
export function element<K extends keyof HTMLElementTagNameMap>(
  name: K,
  attributes: Attributes = {},
  ...children: readonly Child[]
): HTMLElementTagNameMap[K] {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value !== false) made.setAttribute(key, value === true ? '' : String(value));
  }
  for (const child of children) {
    if (child !== null) made.append(typeof child === 'object' ? child : visible(String(child)));
  }
  return made;
}

/** The element with this id; throws when the page lacks it. */
export function byId(id: string): HTMLElement {
  const found = document.getElementById(id);
  if (found === null) throw new Error(`page lacks #${id}`);
  return found;
}

export function button(label: string, title: string, onClick: () => void): HTMLButtonElement {
  const made = element('button', { type: 'button', title, 'aria-label': title }, label);
  made.addEventListener('click', onClick);
  return made;
}

/** A table in a box that scrolls sideways on narrow windows. */
export function tableOf(heads: readonly string[], rows: readonly (readonly Child[])[]): HTMLElement {
  const body = element('tbody');
  for (const cells of rows) {
    body.append(
      element(
        'tr',
        {},
        ...cells.map((cell, index) => (index === 0 ? element('th', { scope: 'row' }, cell) : element('td', {}, cell))),
      ),
    );
  }
  const head = element('thead', {}, element('tr', {}, ...heads.map((text) => element('th', { scope: 'col' }, text))));
  return element('div', { class: 'scroll' }, element('table', {}, head, body));
}
