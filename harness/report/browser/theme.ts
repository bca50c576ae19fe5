/** Light or dark: the system's choice until the reader chooses; the choice is kept where storage is allowed. */

const key = 'report-theme';

function stored(): string | null {
  try {
    return localStorage.getItem(key);
  } catch {
    return null;
  }
}

function keep(theme: string): void {
  try {
    localStorage.setItem(key, theme);
  } catch {
    // A page opened from a file may have no storage; the choice then lasts as long as the page.
  }
}

export function attachTheme(toggle: HTMLElement, onChange: () => void): void {
  const system = matchMedia('(prefers-color-scheme: dark)');
  const apply = (theme: string | null): void => {
    if (theme === null) delete document.documentElement.dataset['theme'];
    else document.documentElement.dataset['theme'] = theme;
    onChange();
  };
  const current = (): string => document.documentElement.dataset['theme'] ?? (system.matches ? 'dark' : 'light');
  const saved = stored();
  if (saved === 'dark' || saved === 'light') apply(saved);
  toggle.addEventListener('click', () => {
    const next = current() === 'dark' ? 'light' : 'dark';
    keep(next);
    apply(next);
  });
  system.addEventListener('change', onChange);
  // Canvases keep the colours they were drawn with, so paper needs them drawn again, in light.
  let beforePrint: string | null | undefined;
  const print = (): void => {
    if (beforePrint !== undefined) return;
    beforePrint = document.documentElement.dataset['theme'] ?? null;
    apply('light');
  };
  const printed = (): void => {
    if (beforePrint === undefined) return;
    apply(beforePrint);
    beforePrint = undefined;
  };
  addEventListener('beforeprint', print);
  addEventListener('afterprint', printed);
  matchMedia('print').addEventListener('change', (event) => (event.matches ? print() : printed()));
}
