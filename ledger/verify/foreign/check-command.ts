/** The command `check`, without its command line: arguments in, exit code and JSON out. Nothing here ends the process. */

import type { CheckFileResult, ForeignFormat, ForeignModel } from './check-file.ts';
import { checkFile, foreignFormats, foreignModels } from './check-file.ts';
import { UserError } from './user-error.ts';

/** Arguments as a command line gives them. */
export interface CheckArguments {
  readonly file: string;
  readonly format: string;
  readonly model: string;
  /** As on the command line, where a number may come as one. */
  readonly initial?: string | number;
  readonly budgetMs?: number;
  readonly memoryMiB?: number;
}

/** 0 valid, 1 invalid, 3 unknown, 64 the file or an option cannot be used. */
export type CheckExitCode = 0 | 1 | 3 | 64;

/** `json` is what to print: the result, or `{error, line}`. */
export interface CheckOutput {
  readonly exitCode: CheckExitCode;
  readonly json: CheckFileResult | { readonly error: string; readonly line: number | null };
}

const exitCodes = { valid: 0, invalid: 1, unknown: 3 } as const;

/** Runs the check. Rejects only for a fault of ours, never for one of the file. */
export async function runCheck(args: CheckArguments): Promise<CheckOutput> {
  try {
    const format = oneOf<ForeignFormat>('--format', args.format, foreignFormats);
    const model = oneOf<ForeignModel>('--model', args.model, foreignModels);
    const result = await checkFile({
      path: args.file,
      format,
      model,
      ...(args.initial === undefined ? {} : { initial: String(args.initial) }),
      ...(args.budgetMs === undefined ? {} : { budgetMs: positive('--budget-ms', args.budgetMs) }),
      ...(args.memoryMiB === undefined ? {} : { memoryMiB: positive('--memory-mib', args.memoryMiB) }),
    });
    return { exitCode: exitCodes[result.verdict], json: result };
  } catch (error) {
    if (!(error instanceof UserError)) throw error;
    const where = error.message.startsWith(args.file) ? '' : `${args.file}: `;
    return { exitCode: error.exitCode, json: { error: `${where}${error.message}`, line: error.line } };
  }
}

function oneOf<T extends string>(option: string, given: string, allowed: readonly T[]): T {
  const found = allowed.find((name) => name === given);
  if (found === undefined) throw new UserError(`${option} ${given} is none of ${allowed.join(', ')}`);
  return found;
}

function positive(option: string, given: number): number {
  if (!(given > 0)) throw new UserError(`${option} must be above 0`);
  return given;
}
