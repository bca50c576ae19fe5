/**
 * Owns the run's bridge network: a private /24 that nothing else on the host uses, so that nodes keep fixed addresses
 * and packet cuts on those addresses hold over every restart.
 */
import { readFileSync } from 'node:fs';
import { networkInterfaces } from 'node:os';
import type Docker from 'dockerode';
import { EnvironmentError, messageOf } from './errors.ts';

/** A network in place. Node `index` (from 0) lives at `address(index)`; `gateway` is the host as nodes see it. */
export interface RunNetwork {
  readonly id: string;
  readonly name: string;
  readonly subnet: string;
  readonly gateway: string;
}

const firstNodeHost = 11;
const maxTries = 24;

/** IPv4 text as an unsigned number; NaN when it is none. */
export function ipv4Number(text: string): number {
  const parts = text.split('.').map(Number);
  if (parts.length !== 4 || parts.some((part) => !Number.isInteger(part) || part < 0 || part > 255)) return Number.NaN;
  return parts.reduce((sum, part) => sum * 256 + part, 0);
}

/** Do two IPv4 ranges in CIDR notation share an address? */
export function rangesOverlap(left: string, right: string): boolean {
  const [a, b] = [left, right].map((cidr) => {
    const [address = '', bits = '32'] = cidr.split('/');
    const size = 2 ** (32 - Number(bits));
    const start = Math.floor(ipv4Number(address) / size) * size;
    return { start, end: start + size };
  }) as [{ start: number; end: number }, { start: number; end: number }];
  return a.start < b.end && b.start < a.end;
}

/** The /24 ranges to try, the ones that overlap `used` left out; `offset` spreads runs that start at once. */
export function subnetCandidates(used: readonly string[], offset: number): string[] {
  const all: string[] = [];
  for (let second = 28; second <= 31; second++) {
    for (let third = 0; third < 256; third++) all.push(`172.${second}.${third}.0/24`);
  }
  const turned = [...all.slice(offset % all.length), ...all.slice(0, offset % all.length)];
  return turned.filter((range) => !used.some((other) => rangesOverlap(range, other)));
}

/** The fixed address of node `index` in a /24. */
export function nodeAddress(subnet: string, index: number): string {
  return subnet.replace(/\d+\/24$/, String(firstNodeHost + index));
}

/** Ranges in the kernel's route table (the text of /proc/net/route), default route left out. */
export function routedRanges(routes: string): string[] {
  const ranges: string[] = [];
  for (const line of routes.split('\n').slice(1)) {
    const fields = line.split('\t');
    const [destination, mask] = [fields[1], fields[7]];
    if (destination === undefined || mask === undefined || destination === '00000000') continue;
    const address = (destination.match(/../g) ?? [])
      .reverse()
      .map((hex) => Number.parseInt(hex, 16))
      .join('.');
    const bits = Number.parseInt(mask, 16).toString(2).replaceAll('0', '').length;
    ranges.push(`${address}/${bits}`);
  }
  return ranges;
}

async function usedRanges(docker: Docker): Promise<string[]> {
  const used: string[] = [];
  for (const network of await docker.listNetworks()) {
    for (const range of network.IPAM?.Config ?? []) if (range.Subnet !== undefined) used.push(range.Subnet);
  }
  for (const addresses of Object.values(networkInterfaces())) {
    for (const item of addresses ?? []) if (item.family === 'IPv4' && item.cidr !== null) used.push(item.cidr);
  }
  try {
    used.push(...routedRanges(readFileSync('/proc/net/route', 'utf8')));
  } catch {
    // No Linux here: the engine's own overlap check decides.
  }
  return used.filter((range) => range.includes('.'));
}

/** Creates the network on a free range; tries the next range when another run takes one first. Throws EnvironmentError. */
export async function createNetwork(docker: Docker, name: string, labels: Record<string, string>): Promise<RunNetwork> {
  let why = 'every private range is in use';
  const candidates = subnetCandidates(await usedRanges(docker), process.pid * 7);
  for (const subnet of candidates.slice(0, maxTries)) {
    const gateway = subnet.replace(/0\/24$/, '1');
    try {
      const network = await docker.createNetwork({
        Name: name,
        Driver: 'bridge',
        IPAM: { Driver: 'default', Config: [{ Subnet: subnet, Gateway: gateway }] },
        Labels: labels,
      });
      return { id: network.id, name, subnet, gateway };
    } catch (error) {
      why = messageOf(error);
      if (!/overlap/i.test(why)) break;
    }
  }
  throw new EnvironmentError(`The engine gave no network (${why}): remove unused ones with \`docker network prune\`.`);
}
