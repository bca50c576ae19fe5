/** Judges the ledger in a run's folder and writes its reports; everything synchronous, so it runs in a thread of its own. */
import { join } from 'node:path';
import { openLedgerReader } from '../ledger/reader.ts';
import { defaultJudgeOptions, judgeRun, type JudgeOptions } from '../ledger/verify/judge.ts';
import { defaultMemoBytes } from '../ledger/verify/search/budget.ts';
import { assembleReport } from './assemble/report.ts';
import { certificateOf, writeCertificate } from './certificate.ts';
import { foundOf } from './found.ts';
import { appendJobSummary, githubAnnotations } from './report/annotations.ts';
import { renderMarkdown } from './report/render-markdown.ts';
import { renderLastLines } from './report/render-lines.ts';
import { writeReportFiles } from './report/write-report.ts';
import type { Judged } from './run/world.ts';

/** Acknowledged writes that must overlap a confirmed fault before a run may claim to have survived faults: per second of the run, at most so many. */
const ackedInFaultWindowsPerSecond = 20;
const maxAckedInFaultWindows = 1_000;
/** Search time for one key whose versions do not tell its order, ms. */
const searchMs = 5_000;

/**
 * Judges, writes report.json, .md, .html, junit.xml and certificate.json, and returns the verdict; without `write` it leaves every
 * file alone. Throws where the ledger cannot be read.
 */
export function judgeFolder(folder: string, colour: boolean, write = true): Judged {
  const reader = openLedgerReader(folder);
  try {
    const facts = reader.meta('facts') as
      | {
          replicationFactor?: number;
          promises?: { maxAttempts: number | null; deadlineMs: number | null };
          peek?: boolean;
          contract?: { lossNeeds?: string };
        }
      | undefined;
    const durationMs = (reader.meta('settings') as { durationMs?: number } | undefined)?.durationMs ?? 0;
    const settings = reader.meta('settings') as
      | { beyondBudget?: boolean; contract?: string; evidence?: { minAckedPerFault?: number | null } }
      | undefined;
    const deadlineMs = facts?.promises?.deadlineMs ?? null;
    const options: JudgeOptions = {
      ...defaultJudgeOptions,
      // Whoever says what one kind of fault needs has said it for all together.
      minAckedInFaultWindows:
        settings?.evidence?.minAckedPerFault ??
        Math.min(maxAckedInFaultWindows, Math.round((durationMs / 1_000) * ackedInFaultWindowsPerSecond)),
      mayExceedBudget: settings?.beyondBudget === true,
      mayLosePartitions: settings?.contract === 'declared' && facts?.contract?.lossNeeds === 'reported-lost',
      replicasPerKey: facts?.peek === true ? (facts.replicationFactor ?? null) : null,
      promises: {
        maxAttempts: facts?.promises?.maxAttempts ?? null,
        deadlineNs: deadlineMs === null ? null : deadlineMs * 1e6,
        latenessNs: ((reader.meta('end') as { latenessMs?: number } | undefined)?.latenessMs ?? 0) * 1e6,
      },
      searchBudget: () => ({
        nowMs: () => performance.now(),
        deadlineMs: performance.now() + searchMs,
        memoBytes: defaultMemoBytes,
      }),
    };
    const judgement = judgeRun(reader, options);
    const report = assembleReport(reader, judgement);
    const certificate = certificateOf(folder, report, judgement, reader);
    if (write) {
      writeReportFiles(folder, report);
      writeCertificate(folder, certificate);
      appendJobSummary(renderMarkdown(report), process.env);
    }
    const { kind, exitCode, headline } = report.verdict;
    return {
      verdict: kind,
      exitCode,
      headline,
      certificate,
      found: foundOf(judgement.findings),
      lines: [
        ...renderLastLines(report, { colour, reportPath: join(folder, 'report.html') }),
        ...githubAnnotations(report, process.env),
      ],
    };
  } finally {
    reader.close();
  }
}
