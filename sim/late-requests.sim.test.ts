/** Requests that outlive their connection: in their order, the close behind them, at the same process, and answered to nobody. */
import { describe, expect, it } from 'vitest';
import type { NodeId } from '../zaris/model/ids.ts';
import { calmNetwork } from './network.ts';
import { Script } from './testing/script.ts';

/** What a node heard of its clients' connections, and what it answered. */
interface Heard {
  readonly nodeId: NodeId;
  readonly connection: number;
  /** `get k`, `add k`, `closed`, `answered`. */
  readonly what: string;
  readonly attempt: number;
}

class Watched {
  readonly script = new Script({ world: { network: { ...calmNetwork, lateRequestMs: 2_000 } } });
  readonly heard: Heard[] = [];

  constructor() {
    this.script.world.onStep = ({ nodeId }, event, effects) => {
      const hear = (connection: number, what: string, attempt = 0): void =>
        void this.heard.push({ nodeId, connection, what, attempt });
      if (event.kind === 'connectionClosed') hear(event.connection, 'closed');
      if (event.kind === 'request' && event.request.op === 'get') hear(event.connection, `get ${event.request.key}`);
      if (event.kind === 'request' && event.request.op === 'mutate')
        hear(event.connection, `${event.request.mutation.kind} ${event.request.mutation.key}`, event.request.attempt);
      for (const effect of effects) if (effect.kind === 'reply') hear(effect.connection, 'answered');
    };
  }

  attempts(what: string): Heard[] {
    return this.heard.filter((one) => one.what === what);
  }

  /** What was heard on the connection that `what` came on with its first attempt. */
  onFirst(what: string): string[] {
    const first = this.attempts(what).find(({ attempt }) => attempt <= 1);
    return this.heard.filter(({ connection }) => connection === first?.connection).map((one) => one.what);
  }
}

describe('requests that are on their way when their connection breaks', () => {
  it('arrive after the retry was answered, the close behind them, and count for nothing', () => {
    const watched = new Watched();
    const { script, heard } = watched;
    // The first mutation of all hangs.
    expect(script.add('k')).toMatchObject({ status: 'Ok', answer: { value: '1' } });
    expect(watched.attempts('add k').map(({ attempt }) => attempt)).toEqual([2]);
    script.run(3_000);
    const [retry, late] = watched.attempts('add k');
    expect([retry?.attempt, late?.attempt]).toEqual([2, 1]);
    expect(late?.nodeId).toBe(retry?.nodeId);
    expect(heard.findIndex(({ what }) => what === 'answered')).toBeLessThan(heard.indexOf(late as Heard));
    expect(watched.onFirst('add k').slice(-3)).toEqual(['add k', 'answered', 'closed']);
    expect(script.host.get(late?.connection ?? 0)).toBeUndefined();
    expect(script.get('k')).toBe('1');
  });

  it('keep their order', () => {
    const watched = new Watched();
    const { script } = watched;
    const keys = ['a', 'b', 'c', 'd'];
    const boxes = keys.map((key) => script.call({ kind: 'mutate', mutation: { kind: 'add', key, delta: 1 } }));
    script.until('all settled', () => boxes.every(({ result }) => result !== null));
    script.run(3_000);
    const came = watched.onFirst('add a').filter((what) => what !== 'answered');
    expect(came.slice(-5)).toEqual([...keys.map((key) => `add ${key}`), 'closed']);
    for (const key of keys) expect(script.get(key)).toBe('1');
  });

  it('die with the process that accepted the connection', () => {
    const watched = new Watched();
    const { script } = watched;
    expect(script.add('k').status).toBe('Ok');
    const primary = script.primary();
    script.restart(primary);
    script.run(10_000);
    expect(watched.attempts('add k').map(({ attempt }) => attempt)).toEqual([2]);
  });

  it('lie unread in the socket of a paused node until it goes on, and longer', () => {
    const watched = new Watched();
    const { script } = watched;
    script.put('k', 'v');
    script.run(5_000);
    const primary = script.primary();
    script.world.pause(primary);
    const box = script.call({ kind: 'get', key: 'k' });
    script.until('another node answers', () => box.result !== null);
    expect(box.result).toMatchObject({ status: 'Ok', answer: { value: 'v' } });
    expect(watched.attempts('get k').every(({ nodeId }) => nodeId !== primary)).toBe(true);
    script.world.resume(primary);
    script.run(3_000);
    const late = watched.attempts('get k').at(-1);
    expect(late?.nodeId).toBe(primary);
    expect(watched.heard.filter(({ connection }) => connection === late?.connection).at(-1)?.what).toBe('closed');
  });
});
