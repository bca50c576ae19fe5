/**
 * Keys whose store gives no versions go to the register search. This file only translates; a key with a time to live or a
 * counter is left to the other rules, since the register of the search knows neither.
 */
import type { KeyAnalysis } from './analysis.ts';
import { targetAbsent } from './analysis.ts';
import type { RowFinding } from './finding.ts';
import { kindCode, outcomeCode, sourceCode } from './history.ts';
import type { SearchBudget } from './search/budget.ts';
import { checkRegister, type RegisterOperation } from './search/check-register.ts';

export type SearchVerdict = 'valid' | 'invalid' | 'unknown' | 'not-applicable';

/** Decides the analysed key by search; a violation goes to `report`. */
export function searchKey(
  analysis: KeyAnalysis,
  budget: SearchBudget,
  report: (finding: RowFinding) => void,
): SearchVerdict {
  const { history } = analysis;
  const operations: RegisterOperation[] = [];
  const rows: number[] = [];
  if (analysis.isCounter) return 'not-applicable';
  for (let i = 0; i < history.size; i++) {
    const f = history.f[i];
    const outcome = history.outcome[i];
    if (
      history.source[i] === sourceCode.replica ||
      outcome === outcomeCode.fail ||
      (f === kindCode.read && outcome !== outcomeCode.ok)
    )
      continue;
    const expected = history.expectedMajor[i] as number;
    const ttl = f === kindCode.write && history.argument[i] === history.argument[i];
    if (ttl || f === kindCode.cas || expected === expected) return 'not-applicable';
    const times = { invokedAt: history.invokeNs[i] as number, completedAt: history.returnNs[i] as number };
    const base = { key: history.name, outcome: outcome === outcomeCode.ok ? 'ok' : 'info', ...times } as const;
    const own = String(history.operationId[i]);
    if (f === kindCode.read) {
      const target = analysis.target[i] as number;
      // What names no write of this key was reported already.
      if (target < targetAbsent) continue;
      operations.push({
        ...base,
        f: 'read',
        value: target === targetAbsent ? null : String(history.operationId[target]),
      });
    } else if (f === kindCode.delete) operations.push({ ...base, f: 'delete' });
    else if (f === kindCode.create) operations.push({ ...base, f: 'cas', value: own, expected: null });
    else operations.push({ ...base, f: 'write', value: own });
    rows.push(i);
  }
  const result = checkRegister(operations, budget);
  if (result.verdict !== 'invalid') return result.verdict;
  const { evidence } = result;
  const subject = evidence.operation === null ? -1 : (rows[evidence.operation] ?? -1);
  const witness = evidence.witnesses.length > 0 ? (rows[evidence.witnesses[0] as number] ?? -1) : -1;
  report({ kind: 'not-linearizable', rule: 'search', subject, witness, reason: evidence.reason });
  return 'invalid';
}
