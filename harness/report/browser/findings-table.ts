/** Findings by cause: one block per group, its rows beneath, each a link to its own page. */
import { countFindings, findingNoun, isUnplaced, whereNow } from '../finding-words.ts';
import type { CauseGroup, Finding } from '../model-finding.ts';
import type { RunReport } from '../model.ts';
import { formatCount, formatOffset, plural, shortened, visible } from '../text.ts';
import { button, element, tableOf } from './element.ts';

/** Rows shown per group before "show all". */
const rowsShown = 8;
/** Groups that are open at first; a filter opens all that match. */
const groupsOpen = 3;

export const findingHref = (id: string): string => `#/finding/${encodeURIComponent(id)}`;

function row(finding: Finding): (Node | string | null)[] {
  const { operation } = finding;
  const link = element('a', { href: findingHref(finding.id) }, finding.id);
  return [
    link,
    element('code', {}, shortened(finding.key, 48)),
    isUnplaced(finding) ? '–' : formatOffset(operation.acknowledgedAtMs ?? operation.invokedAtMs, true),
    finding.node ?? '–',
    finding.epoch === null ? '–' : String(finding.epoch),
    finding.partition === null ? '–' : String(finding.partition),
    String(operation.attempts),
    finding.lastSeen === null ? 'never' : formatOffset(finding.lastSeen.atMs, true),
    finding.firstMissed === null ? '–' : formatOffset(finding.firstMissed.atMs, true),
    whereNow(finding.replicas),
  ];
}

const heads = ['', 'key', 'acknowledged', 'by', 'epoch', 'partition', 'attempts', 'last seen', 'first missed', 'now'];

function groupBlock(
  group: CauseGroup,
  items: readonly Finding[],
  isOpen: boolean,
  zoom: (atMs: number) => void,
): HTMLElement {
  const block = element(
    'details',
    { class: 'group', id: `group-${group.id}`, ...(isOpen ? { open: '' } : {}) },
    element('summary', {}, element('h3', {}, group.sentence)),
  );
  const facts = [
    group.whereNow === '' ? '' : `now: ${group.whereNow}`,
    items.length < group.count
      ? `${formatCount(items.length)} of ${formatCount(group.count)} listed`
      : `${formatCount(group.count)} listed`,
  ].filter((text) => text !== '');
  const line = element('p', { class: 'quiet' }, facts.join(' · '));
  const at = group.firstAtMs;
  if (at !== null)
    line.append(
      ' ',
      button('show on the time line', 'Show this group on the time line', () => zoom(at)),
    );
  const body = element('div');
  const fill = (count: number): void => {
    body.replaceChildren(tableOf(heads, items.slice(0, count).map(row)));
    if (count < items.length)
      body.append(
        button(`show all ${items.length}`, `Show all ${items.length} of this group`, () => fill(items.length)),
      );
  };
  fill(rowsShown);
  block.append(line, body);
  return block;
}

/** Fills the findings section; `zoom` shows a moment on the time line. */
export function showFindings(report: RunReport, section: HTMLElement, zoom: (atMs: number) => void): void {
  const { findings } = report;
  if (findings.total === 0) {
    section.append(
      element('p', { class: 'quiet' }, 'None. The checkers found nothing; the canary shows whether they would have.'),
    );
    return;
  }
  const totals = findings.totals.map(({ kind, count }) => countFindings(kind, count)).join(', ');
  const capped =
    findings.items.length < findings.total
      ? ` ${formatCount(findings.items.length)} of ${formatCount(findings.total)} are listed; each group keeps some.`
      : '';
  const search = element('input', {
    type: 'search',
    placeholder: 'key, id, node or epoch',
    'aria-label': 'Filter findings',
    id: 'filter',
  });
  const list = element('div');
  const fill = (): void => {
    const words = search.value.trim().toLowerCase();
    const matches = (finding: Finding): boolean =>
      words === '' ||
      [
        finding.id,
        visible(finding.key),
        finding.node ?? '',
        `epoch ${finding.epoch}`,
        findingNoun(finding.kind, 1),
      ].some((text) => text.toLowerCase().includes(words));
    const byGroup = Map.groupBy(findings.items.filter(matches), (finding) => finding.group);
    const shown = findings.groups.filter((group) => byGroup.has(group.id));
    const blocks = shown.map((group, index) =>
      groupBlock(group, byGroup.get(group.id) ?? [], index < groupsOpen || words !== '', zoom),
    );
    list.replaceChildren(
      ...(blocks.length > 0 ? blocks : [element('p', { class: 'quiet' }, 'No listed finding matches.')]),
    );
  };
  search.addEventListener('input', fill);
  section.append(
    element('p', {}, `${totals}, in ${plural(findings.groups.length, 'group')} by cause.${capped}`),
    element('p', {}, search),
    list,
  );
  fill();
}
