/** All faults of the run, with stages, roles and evidence; the first rows at once, the rest on demand. */
import type { Fault } from '../model-timeline.ts';
import type { RunReport } from '../model.ts';
import { formatCount, formatDuration, formatOffset, formatShare } from '../text.ts';
import { button, element, tableOf } from './element.ts';

const faultsShown = 12;

/** "injected +0:01:02.120, confirmed after 120 ms, open 9 s, heal verified after 300 ms". */
export function faultTimes(fault: Fault): string {
  const { plannedMs, injectedMs, confirmedMs, healedMs, healVerifiedMs } = fault.stages;
  if (injectedMs === null)
    return `planned ${formatOffset(plannedMs)}, ${fault.outcome}: ${fault.reason ?? 'no reason given'}`;
  const parts = [`injected ${formatOffset(injectedMs, true)}`];
  parts.push(
    confirmedMs === null
      ? `not confirmed: ${fault.reason ?? 'no reason given'}`
      : `confirmed after ${formatDuration(confirmedMs - injectedMs)}`,
  );
  parts.push(healedMs === null ? 'never healed' : `open ${formatDuration(healedMs - injectedMs)}`);
  if (healedMs !== null)
    parts.push(
      healVerifiedMs === null
        ? 'heal not verified'
        : `heal verified after ${formatDuration(healVerifiedMs - healedMs)}`,
    );
  return parts.join(', ');
}

function evidence(fault: Fault): HTMLElement | string {
  if (fault.evidence.length === 0) return fault.reason ?? '–';
  const details = element('details', {}, element('summary', {}, `${fault.evidence.length} probes`));
  for (const { stage, text } of fault.evidence)
    details.append(element('p', {}, `${stage}: `, element('code', {}, text)));
  return details;
}

function flags(fault: Fault): string {
  const words = [
    fault.overlapsOther ? 'overlaps' : '',
    fault.hitUnhealthy ? 'hit unhealthy' : '',
    fault.overshoot ? 'OVER BUDGET' : '',
  ];
  return words.filter((word) => word !== '').join(', ') || '–';
}

const signs: Readonly<Record<Fault['outcome'], string>> = {
  confirmed: '✓',
  unconfirmed: '?',
  skipped: '–',
  failed: '✕',
};

/** Fills the faults section; `zoom` shows a moment on the time line. */
export function showFaults(report: RunReport, section: HTMLElement, zoom: (atMs: number) => void): void {
  const by = (outcome: Fault['outcome']): number => report.faults.filter((fault) => fault.outcome === outcome).length;
  section.append(
    element(
      'p',
      {},
      `${formatCount(by('confirmed'))} confirmed, ${by('unconfirmed')} unconfirmed, ${by('skipped')} skipped, ${by('failed')} failed. ${formatShare(report.overlapShare)} of the confirmed overlapped another or hit a partition not yet Healthy.`,
    ),
  );
  const body = element('div');
  const row = (fault: Fault): (Node | string)[] => [
    button(fault.id, `Show ${fault.id} on the time line`, () =>
      zoom(fault.stages.injectedMs ?? fault.stages.plannedMs),
    ),
    fault.kind,
    fault.targets.join(', ') || '–',
    fault.roles.join(', ') || '–',
    `${signs[fault.outcome]} ${fault.outcome}`,
    faultTimes(fault),
    flags(fault),
    fault.trigger,
    evidence(fault),
  ];
  const fill = (count: number): void => {
    body.replaceChildren(
      tableOf(
        ['', 'kind', 'targets', 'roles', 'outcome', 'stages', 'flags', 'trigger', 'evidence'],
        report.faults.slice(0, count).map(row),
      ),
    );
    if (count < report.faults.length)
      body.append(
        button(`show all ${formatCount(report.faults.length)}`, 'Show all faults', () => fill(report.faults.length)),
      );
  };
  if (report.faults.length > 0) fill(faultsShown);
  section.append(body);
}
