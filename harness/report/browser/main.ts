/** Starts the page: reads the embedded report, draws the sections, follows the address (`#/finding/ID`, `#section`). */
import type { RunReport } from '../model.ts';
import { copyText } from './copy.ts';
import { byId } from './element.ts';
import { showFaults } from './faults-table.ts';
import { showFindingPage } from './finding-page.ts';
import { showFindings } from './findings-table.ts';
import { attachTheme } from './theme.ts';
import { Timeline } from './timeline.ts';

/** Half the width of the window that a click on a moment opens. */
const aroundMs = 8_000;

function start(report: RunReport): void {
  const overview = byId('overview');
  const detail = byId('detail');
  const timeline = new Timeline(report, byId('timeline'));
  const zoom = (atMs: number): void => timeline.focus(atMs, aroundMs);
  showFindings(report, byId('findings'), zoom);
  showFaults(report, byId('faults'), zoom);
  attachTheme(byId('theme'), () => timeline.restyle());
  for (const made of document.querySelectorAll<HTMLElement>('[data-copy]')) {
    made.addEventListener('click', () => copyText(byId(made.dataset['copy'] ?? '').textContent ?? ''));
  }

  let overviewScroll = 0;
  /** What had the focus when a finding was opened: most often its link. */
  let opener: HTMLElement | null = null;
  const title = document.title;
  const follow = (): void => {
    const [, id] = /^#\/finding\/(.+)$/.exec(location.hash) ?? [];
    if (id !== undefined) {
      if (!overview.hidden) {
        overviewScroll = scrollY;
        const focused = document.activeElement;
        opener = focused instanceof HTMLElement && overview.contains(focused) ? focused : null;
      }
      overview.hidden = true;
      detail.hidden = false;
      showFindingPage(report, decodeURIComponent(id), detail, {
        showOnTimeline: (atMs) => {
          location.hash = '#timeline';
          follow();
          zoom(atMs);
        },
      });
      document.title = `${decodeURIComponent(id)} · ${title}`;
      scrollTo(0, 0);
      return;
    }
    if (overview.hidden) {
      overview.hidden = false;
      detail.hidden = true;
      detail.replaceChildren();
      document.title = title;
      const anchor = location.hash.length > 1 ? document.getElementById(location.hash.slice(1)) : null;
      // Back among the findings to where one was; everywhere else to what was asked for.
      const isReturn = anchor === null || (anchor.id === 'findings' && overviewScroll > anchor.offsetTop);
      if (isReturn) scrollTo(0, overviewScroll);
      else anchor.scrollIntoView();
      // Keyboards go on where they were, if that is on the screen now; else from what was asked for.
      if (opener !== null && (isReturn || anchor.contains(opener))) opener.focus({ preventScroll: true });
      else if (anchor !== null) {
        if (anchor.tabIndex < 0) anchor.tabIndex = -1;
        anchor.focus({ preventScroll: true });
      }
    }
  };
  addEventListener('hashchange', follow);
  follow();
  document.documentElement.dataset['ready'] = String(Math.round(performance.now()));
}

start(JSON.parse(byId('report-data').textContent ?? '') as RunReport);
