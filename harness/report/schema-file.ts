/**
 * The published JSON Schema of report.json (`report.schema.json`), made from the same shapes that parse it.
 * Run this file to write it again: `node harness/report/schema-file.ts`.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { reportFormatVersion, runReportShape } from './model.ts';

/** Where the published schema lies. */
export const schemaPath = join(import.meta.dirname, 'report.schema.json');

/** The schema's text, ending in a newline. */
export function schemaText(): string {
  const schema = z.toJSONSchema(runReportShape, { target: 'draft-2020-12' });
  return `${JSON.stringify({ $comment: `Format ${reportFormatVersion}; written by schema-file.ts`, ...schema }, null, 2)}\n`;
}

if (import.meta.main) writeFileSync(schemaPath, schemaText());
