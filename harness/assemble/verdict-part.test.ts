/** Which findings a contract excuses: only those it names, only when asked for by name, and never quietly. */
import { describe, expect, it } from 'vitest';
import type { FindingKind } from '../../ledger/verify/finding.ts';
import type { Judgement } from '../../ledger/verify/judge.ts';
import { emptyReport } from '../report/empty-report.ts';
import { firstScreen } from '../report/first-screen.ts';
import type { RunReport } from '../report/model.ts';
import type { VerdictReason } from '../verdict.ts';
import { verdictPart } from './verdict-part.ts';

interface Case {
  readonly asked: 'durable' | 'declared';
  readonly durable: boolean;
  readonly permits?: readonly string[];
  readonly totals: readonly (readonly [FindingKind, number])[];
  readonly reasons?: readonly VerdictReason[];
}

function verdictOf({ asked, durable, permits, totals, reasons = [] }: Case): RunReport {
  const judgement = {
    totals: new Map(totals),
    notRecovered: [],
    missingEvidence: [],
    counts: { reportedLosses: new Map() },
  } as unknown as Judgement;
  const contract = {
    acknowledgement: 'x',
    durable,
    permittedLoss: durable ? null : 'any failover',
    ...(permits === undefined ? {} : { permits }),
  };
  const meta = (key: string): unknown =>
    key === 'settings' ? { contract: asked } : key === 'facts' ? { contract } : undefined;
  const report: RunReport = { ...emptyReport(), canary: { outcome: 'caught', checks: [] } };
  const verdict = verdictPart(report, { judgement, reasons, interruptedBy: null, meta, isIncomplete: false });
  return { ...report, preliminary: false, verdict };
}

const totals = [
  ['lost', 3],
  ['stale', 2],
  ['unknown', 1],
] as const;
const asyncStore = { durable: false, permits: ['stale'] } as const;

describe('an invariant that broke', () => {
  const reason = 'Invariant broken on n2 at 8993 ms: partition 4: the acknowledged entry (1, 32) is not in its log';
  const broken = (found: readonly (readonly [FindingKind, number])[]): RunReport =>
    verdictOf({ asked: 'durable', durable: true, totals: found, reasons: [{ verdict: 'violated', reason }] });

  it('is the headline where the history shows nothing wrong', () => {
    const { kind, headline } = broken([]).verdict;
    expect(kind).toBe('violated');
    expect(headline).toBe(reason);
  });

  it('stands first below the findings where it shows something', () => {
    expect(broken([['stale', 2]]).verdict.missing).toEqual([reason]);
  });
});

describe('what a declared contract excuses', () => {
  it('lets the losses and findings that it names pass, and says so first', () => {
    const report = verdictOf({ asked: 'declared', ...asyncStore, totals });
    expect(report.verdict).toMatchObject({ kind: 'certified', exitCode: 0, permittedLosses: 3, permittedAnomalies: 2 });
    expect(firstScreen(report).word).toBe(
      '3 writes lost, permitted by contract declared, and 2 findings that follow from it',
    );
    expect(firstScreen(report).tone).toBe('unsure');
  });

  it.each<readonly [string, Case]>([
    ['nobody asked for it', { asked: 'durable', ...asyncStore, totals }],
    ['the store claims to lose nothing', { asked: 'declared', durable: true, totals }],
    ['a finding is not among those it names', { asked: 'declared', durable: false, permits: [], totals }],
    [
      'a finding can never be excused',
      {
        asked: 'declared',
        ...asyncStore,
        totals: [
          ['lost', 1],
          ['phantom', 1],
        ],
      },
    ],
  ])('excuses nothing when %s', (_why, given) => {
    expect(verdictOf(given).verdict).toMatchObject({ kind: 'violated', exitCode: 1 });
  });
});
