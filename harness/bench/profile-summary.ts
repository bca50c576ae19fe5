/** Reads V8 CPU profiles and says where the time went, function by function. */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

interface ProfileNode {
  readonly id: number;
  readonly callFrame: { readonly functionName: string; readonly url: string; readonly lineNumber: number };
}

interface Profile {
  readonly nodes: readonly ProfileNode[];
  readonly samples: readonly number[];
  readonly timeDeltas: readonly number[];
}

/** One function's own time; `share` is of the busy time, so that waiting does not blur it. */
export interface ProfileLine {
  readonly where: string;
  readonly selfMs: number;
  readonly share: number;
}

const root = fileURLToPath(new URL('../../', import.meta.url));

function nameOf({ callFrame }: ProfileNode): string {
  const { functionName, url, lineNumber } = callFrame;
  const path = url.startsWith('file://') ? fileURLToPath(url).replace(root, '') : url;
  const short = path.replace(/^.*node_modules\//, '');
  return `${functionName === '' ? '(anonymous)' : functionName}${short === '' ? '' : ` ${short}:${lineNumber + 1}`}`;
}

/** Own times, largest first, and the busy share of the whole. */
export function summarize(profile: Profile): { readonly busyShare: number; readonly lines: ProfileLine[] } {
  const names = new Map(profile.nodes.map((node) => [node.id, nameOf(node)]));
  const selfUs = new Map<string, number>();
  let totalUs = 0;
  profile.samples.forEach((id, index) => {
    const deltaUs = profile.timeDeltas[index] ?? 0;
    const name = names.get(id) ?? '?';
    totalUs += deltaUs;
    selfUs.set(name, (selfUs.get(name) ?? 0) + deltaUs);
  });
  const idleUs = selfUs.get('(idle)') ?? 0;
  selfUs.delete('(idle)');
  const busyUs = Math.max(1, totalUs - idleUs);
  const lines = [...selfUs]
    .map(([where, us]) => ({ where, selfMs: us / 1000, share: us / busyUs }))
    .sort((a, b) => b.selfMs - a.selfMs);
  return { busyShare: totalUs === 0 ? 0 : busyUs / totalUs, lines };
}

/** {@link summarize} of a `.cpuprofile` file. */
export const summarizeFile = (path: string): ReturnType<typeof summarize> =>
  summarize(JSON.parse(readFileSync(path, 'utf8')) as Profile);
