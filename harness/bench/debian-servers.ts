/**
 * The servers that Zaris is compared with, from Debian's packages, installed when missing. Installing them must start nothing: a service
 * that came up beside ours would take part in the measurement.
 */
import { existsSync, rmSync, writeFileSync } from 'node:fs';
import { runCommand } from '../../docker/command.ts';
import { installDebianPackages } from '../../docker/engine.ts';
import { EnvironmentError } from '../../docker/errors.ts';

/** Asked by Debian's packages before they start a service; exit 101 forbids it. */
const policyFile = '/usr/sbin/policy-rc.d';
const packages = { 'redis-server': ['redis-server'], etcd: ['etcd-server', 'etcd-client'] } as const;

/** A program that can be compared with. */
export type ServerProgram = keyof typeof packages;

async function find(program: ServerProgram): Promise<string | null> {
  const found = await runCommand('sh', ['-c', `command -v ${program}`]);
  return found.exitCode === 0 ? found.stdout.trim() : null;
}

async function withoutStarts(work: () => Promise<void>): Promise<void> {
  const isOurs = !existsSync(policyFile);
  if (isOurs) writeFileSync(policyFile, '#!/bin/sh\nexit 101\n', { mode: 0o755, flag: 'wx' });
  try {
    await work();
  } finally {
    if (isOurs) rmSync(policyFile, { force: true });
  }
}

/** Where the program is, installing it first where it is missing. Throws EnvironmentError. */
export async function findServer(program: ServerProgram, say: (line: string) => void): Promise<string> {
  const present = await find(program);
  if (present !== null) return present;
  if (process.getuid?.() !== 0 || !existsSync('/usr/bin/apt-get'))
    throw new EnvironmentError(`${program} is not installed, and only root on Debian can have it installed here`);
  await withoutStarts(() => installDebianPackages(packages[program], say));
  const installed = await find(program);
  if (installed === null) throw new EnvironmentError(`${program} is still missing after its package was installed`);
  return installed;
}
