/**
 * Puts a report on disk: report.json first, then what is rendered from it, each file whole or not at all.
 * If a crash could leave half a report.json, a launcher would read a verdict that nobody gave.
 */
import {
  closeSync,
  fsyncSync,
  lstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, basename, join } from 'node:path';
import { parseReport, type RunReport } from './model.ts';
import { renderHtml } from './render-html.ts';
import { renderJunit } from './render-junit.ts';
import { renderMarkdown } from './render-markdown.ts';

/** Written beside the target, synced, then renamed over it. */
function writeWhole(path: string, text: string): void {
  const temporary = join(dirname(path), `.${basename(path)}.${process.pid}.tmp`);
  const file = openSync(temporary, 'w');
  try {
    writeFileSync(file, text);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
  renameSync(temporary, path);
}

/** Only report.json: fast enough for the seconds after a signal. */
export function writeReportJson(folder: string, report: RunReport): void {
  mkdirSync(folder, { recursive: true });
  writeWhole(join(folder, 'report.json'), `${JSON.stringify(parseReport(report))}\n`);
}

/** report.json, report.md, junit.xml and report.html. */
export function writeReportFiles(folder: string, report: RunReport): void {
  writeReportJson(folder, report);
  writeWhole(join(folder, 'report.md'), renderMarkdown(report));
  writeWhole(join(folder, 'junit.xml'), renderJunit(report));
  writeWhole(join(folder, 'report.html'), renderHtml(report));
}

/** Reads the report.json of a run's folder. Throws an Error of one sentence when there is none or it is malformed. */
export function readReport(folder: string): RunReport {
  const path = join(folder, 'report.json');
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch {
    throw new Error(`no report.json in ${folder}`);
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new Error(`${path} is not JSON`);
  }
  return parseReport(value);
}

/** Renders a saved run again from its report.json. */
export function renderAgain(folder: string): RunReport {
  const report = readReport(folder);
  writeReportFiles(folder, report);
  return report;
}

/** Points `results/latest` at a run. Throws an Error when something that is no link stands there. */
export function linkLatest(resultsFolder: string, runId: string): void {
  const link = join(resultsFolder, 'latest');
  const standing = lstatSync(link, { throwIfNoEntry: false });
  if (standing !== undefined && !standing.isSymbolicLink()) throw new Error(`${link} is no link; move it away`);
  const temporary = `${link}.${process.pid}.tmp`;
  rmSync(temporary, { force: true });
  symlinkSync(runId, temporary);
  renameSync(temporary, link);
}
