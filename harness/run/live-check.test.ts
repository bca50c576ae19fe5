import { describe, expect, it } from 'vitest';
import { LiveCheck, type LiveLoss } from './live-check.ts';

const ok = (value?: string | null) => ({ kind: 'ok', ...(value === undefined ? {} : { value }) }) as const;

describe('the live check', () => {
  it('still misses a canary after more keys than it remembers', () => {
    const losses: LiveLoss[] = [];
    const check = new LiveCheck((loss) => losses.push(loss));
    check.saw({ f: 'write', key: 'c0', value: 'planted' }, ok(), true);
    for (let index = 0; index < 150_000; index++) check.saw({ f: 'write', key: `s${index}`, value: 'v' }, ok());
    check.saw({ f: 'read', key: 'c0' }, ok(null), true);
    check.saw({ f: 'read', key: 's149999' }, ok('v'));
    check.saw({ f: 'read', key: 's149998' }, ok(null));
    expect(losses.map(({ key, canary }) => [key, canary])).toEqual([
      ['c0', true],
      ['s149998', false],
    ]);
  });

  it('says nothing of a key that was deleted on purpose', () => {
    const losses: LiveLoss[] = [];
    const check = new LiveCheck((loss) => losses.push(loss));
    check.saw({ f: 'write', key: 's1', value: 'v' }, ok());
    check.forget('s1');
    check.saw({ f: 'read', key: 's1' }, ok(null));
    expect(losses).toEqual([]);
  });
});
