/** Copies text, also from a file opened without a server, and says so. */
import { element } from './element.ts';

const noticeMs = 1_500;

function announce(text: string): void {
  const notice = element('div', { class: 'notice', role: 'status' }, text);
  document.body.append(notice);
  setTimeout(() => notice.remove(), noticeMs);
}

function copyBySelection(text: string): boolean {
  const area = element('textarea', { class: 'offscreen' });
  area.value = text;
  document.body.append(area);
  area.select();
  const done = document.execCommand('copy');
  area.remove();
  return done;
}

/** Clipboard API first, selection where it is refused. */
export function copyText(text: string): void {
  const fallback = (): void => announce(copyBySelection(text) ? 'Copied' : 'Could not copy: select the text instead');
  if (!navigator.clipboard) {
    fallback();
    return;
  }
  navigator.clipboard.writeText(text).then(() => announce('Copied'), fallback);
}
