/** Hazards 8, 10, 16, 17 and 23: who may answer what, and when: leases, watermarks, sessions, inherited entries. */
import { describe, expect, it, vi } from 'vitest';
import { defaultClientOptions } from '../../zaris/client/contract.ts';
import type { ClientRequest } from '../../zaris/model/client-wire.ts';
import type { NodeId } from '../../zaris/model/ids.ts';
import type { NodeParts } from '../../zaris/node/options.ts';
import { Script } from '../testing/script.ts';
import { add, apart, broken, carriesEntries, put, quickSuspicion, rawGet, rawPut } from './support.ts';

describe('hazards', () => {
  const isolatedPrimary = (controlAt: string, parts?: NodeParts): { stale: string | null; acked: boolean } => {
    const script = new Script({
      ...apart,
      controlAt,
      world: { ...quickSuspicion, ...(parts === undefined ? {} : { parts }) },
    });
    script.put('a', 'old');
    const primary = script.primary();
    const inside = script.newClient('inside', {
      seeds: [`${primary}:7861`],
      requestTimeoutMs: 20_000,
      retry: { ...defaultClientOptions.retry, maxAttempts: 1 },
    });
    expect(script.get('a', inside)).toBe('old');
    script.isolate(primary);
    const inDoubt = script.call(put('b', 'x'), inside, 20_000);
    script.untilAnotherLeads(primary);
    expect(script.put('a', 'new').status).toBe('Ok');
    // The client inside still believes in the old primary: ask that very node.
    const asked = script.ask(primary, rawGet(script, 'a'));
    script.run(8_000);
    const stale = asked.answer?.status === 'Ok' ? (asked.answer.value ?? '') : null;
    return { stale, acked: inDoubt.result?.status === 'Ok' };
  };

  it.each(['n1', 'n5'])(
    '8. an isolated primary with a client on its side neither acknowledges nor answers stale; %s led the control plane',
    (controlAt) => {
      const { stale, acked } = isolatedPrimary(controlAt);
      expect(stale, 'a stale answer').toBeNull();
      expect(acked, 'an acknowledgement').toBe(false);
    },
  );

  it('8 (twin): without the lease the old value is read', () => {
    expect(isolatedPrimary('n5', broken({ leaseHeld: () => true })).stale).toBe('old');
  });

  it('8. a successor assigned faster than the lease of the isolated primary runs out waits for its end', () => {
    const script = new Script(apart);
    script.put('a', 'old');
    const primary = script.primary();
    script.isolate(primary);
    // The control leader sees its connection break: the successor is assigned within 200 ms, the lease is good for 320.
    script.world.link(script.view().controlLeader as NodeId, primary, false);
    const assigned = (): boolean => {
      const { primary: next } = script.partition();
      return next !== null && next.nodeId !== primary;
    };
    script.until('the successor is assigned', assigned);
    script.run(10);
    const leased = script.ask(primary, rawGet(script, 'a'));
    const written = script.ask(script.primary(), rawPut(script, 'a', 'new'));
    script.run(5);
    expect(leased.answer?.status, 'a read under the old lease, after the successor is assigned').toBe('Ok');
    script.until('the write is acknowledged', () => written.answer !== null);
    expect(written.answer?.status).toBe('Ok');
    const late = script.ask(primary, rawGet(script, 'a'));
    script.run(8_000);
    expect(late.answer?.value ?? null, 'a stale answer').toBeNull();
  });

  it('8. a replaced primary that nobody told, in touch with every replica: none of them answers its term', () => {
    const script = new Script({ ...apart, world: quickSuspicion });
    script.put('a', 'old');
    const primary = script.primary();
    const { term } = script.partition();
    for (const id of script.world.nodes.keys()) {
      if (script.partition().replicas.includes(id)) continue;
      script.world.cut(primary, id);
      script.world.cut(id, primary);
    }
    // What later primaries say to it, and what is committed, is late; what replicas answer it is not.
    const late = script.hold((_from, to, message) => {
      if (to !== primary) return false;
      return message.kind === 'raft' || ('term' in message && message.term > term && message.kind !== 'append-ack');
    });
    const beats = script.drop((from, to, message) => message.kind === 'beat' && to === primary && from !== primary);
    script.untilAnotherLeads(primary);
    const asked = [script.ask(primary, rawPut(script, 'b', 'x')), script.ask(primary, rawGet(script, 'a'))];
    script.run(400);
    expect(script.copy(primary)?.role, 'it takes itself for the primary').toBe('primary');
    const stranger = script.newClient('stranger', { seeds: [`${script.primary()}:7861`] });
    expect(script.put('a', 'new', stranger).status).toBe('Ok');
    asked.push(script.ask(primary, rawGet(script, 'a')));
    script.run(2_000);
    const answered = asked.filter(({ answer }) => answer?.status === 'Ok');
    expect(answered, 'answers of the replaced primary').toEqual([]);
    late.stop();
    late.deliver();
    beats();
    script.world.healAll();
    script.waitHealthy();
    expect(script.get('a')).toBe('new');
    expect(script.get('b'), 'a write that was never acknowledged').toBeNull();
    expect(script.digestsAgree(), 'copies agree').toBe(true);
  });

  it('10. a request that was parked in a paused node runs late: refused by the watermark', () => {
    const script = new Script({ ...apart, world: quickSuspicion });
    const parked: ClientRequest[] = [];
    const request = script.world.request.bind(script.world);
    script.world.request = (to, connection, message, instance) => {
      if (message.op === 'mutate' && message.attempt === 1) parked.push(message);
      request(to, connection, message, instance);
    };
    const old = script.primary();
    script.world.pause(old);
    expect(script.put('a', 'first').status).toBe('Ok');
    // Before its successor settles it, a late first attempt is only a repeat: it gets the stored result.
    const repeat = script.ask(script.primary(), parked[0] as ClientRequest);
    script.run(200);
    expect(repeat.answer?.status).toBe('Ok');
    expect(script.put('a', 'second').status).toBe('Ok');
    const late = script.ask(script.primary(), parked[0] as ClientRequest);
    script.run(200);
    expect(late.answer?.status, 'the answer to the late request').toBe('InvalidInput');
    expect(script.get('a'), 'the newer value').toBe('second');
    script.world.resume(old);
    script.waitHealthy();
    expect(script.get('a'), 'the newer value, after the paused node ran its socket empty').toBe('second');
  });

  it('16. the wall clock jumps an hour both ways: the same trace to the last message', () => {
    const trace = (jumpMs: number): string => {
      vi.setSystemTime(1_700_000_000_000);
      const script = new Script({ nodeCount: 5, partitionCount: 4 });
      script.put('a', '1');
      vi.setSystemTime(Date.now() + jumpMs);
      // Beats, beacons and leases under the new time, before it matters who holds them.
      script.run(500);
      script.put('a', '1.5');
      script.restart(script.primary());
      script.run(3_000);
      vi.setSystemTime(Date.now() - 2 * jumpMs);
      script.call(put('a', '2'));
      script.run(10_000);
      return script.world.traceHash;
    };
    vi.useFakeTimers();
    try {
      const plain = trace(0);
      expect(trace(0), 'the trace without jumps, again').toBe(plain);
      expect(trace(3_600_000), 'the trace with jumps forward and back').toBe(plain);
      expect(trace(-3_600_000), 'the trace with jumps back and forward').toBe(plain);
    } finally {
      vi.useRealTimers();
    }
  });

  it.each(['n1', 'n5'])(
    '17. the sole in-sync owner, cut off from control, stops by its session; %s led the control plane',
    (controlAt) => {
      const control = { controlSessionMs: 3_000, suspectEscalationMs: 60_000 };
      const script = new Script({ ...apart, controlAt, rf: 2, world: { node: { control } } });
      const primary = script.primary();
      for (const replica of script.replicas()) {
        script.isolate(replica);
        script.until('alone', () => script.replicas().length === 0);
      }
      expect(script.put('a', '1').status).toBe('Ok');
      const { term } = script.partition();
      script.isolate(primary);
      expect(script.put('b', '1').status, 'within its session').toBe('Ok');
      // Were it the control leader too, it would answer its own beacons until it misses its quorum.
      script.run(7_000);
      const late = script.call(put('c', '1'), script.newClient('late', { seeds: [`${primary}:7861`] }), 6_000);
      script.until('settled', () => late.result !== null);
      expect(late.result?.status, 'a write after its session').not.toBe('Ok');
      script.world.healAll();
      script.waitServing();
      script.until('serves again', () => script.put('d', '1').status === 'Ok');
      if (controlAt === 'n5') expect(script.partition().term, 'contact returned: the same term goes on').toBe(term);
      expect(script.get('b')).toBe('1');
    },
  );

  /**
   * One replica took entries that were never committed; it leads next, and nothing commits until `goOn`. The primary never answered
   * for these entries, but as far as the replica knows it may have.
   */
  const inheriting = (first: (script: Script) => void) => {
    const script = new Script(apart);
    script.put('other', 'x');
    const primary = script.primary();
    const [holder, other] = script.replicas() as [NodeId, NodeId];
    const stopOther = script.drop((_from, to, message) => to === other && carriesEntries(message));
    const before = script.copy(holder)?.lastSeq ?? 0;
    first(script);
    script.until('one holds it', () => (script.copy(holder)?.lastSeq ?? 0) > before);
    script.run(150);
    const goOn = script.drop((_from, _to, message) => carriesEntries(message));
    stopOther();
    script.world.kill(primary);
    script.untilAnotherLeads(primary);
    return { script, goOn };
  };

  it('23. reads and conditions on keys with inherited uncommitted entries wait for them, other keys do not', () => {
    let written: ReturnType<Script['call']> = { result: null };
    const { script, goOn } = inheriting((script) => {
      written = script.call(put('a', '1'), script.newClient('writer'), 30_000);
    });
    const readInherited = script.call({ kind: 'get', key: 'a' });
    const create = script.call({ kind: 'mutate', mutation: { kind: 'put', key: 'a', value: '2', ifAbsent: true } });
    const remove = script.call({ kind: 'mutate', mutation: { kind: 'delete', key: 'never' } });
    const readOther = script.call({ kind: 'get', key: 'other' });
    script.run(700);
    expect(readOther.result?.status, 'a read of another key').toBe('Ok');
    expect(readInherited.result, 'a read before the inherited entry is committed').toBeNull();
    expect(create.result, 'a condition before the inherited entry is committed').toBeNull();
    goOn();
    script.until('settled', () => [readInherited, create, remove, written].every(({ result }) => result !== null));
    expect(create.result?.status, 'the condition').toBe('Conflict');
    expect(readInherited.result?.answer?.value, 'the inherited value').toBe('1');
    expect(remove.result?.status).toBe('NotFound');
    expect(written.result?.status).toBe('Ok');
  });

  it('23. repeats of inherited uncommitted sequences wait for them and get their result', () => {
    let counted: ReturnType<Script['call']> = { result: null };
    const { script, goOn } = inheriting((script) => {
      counted = script.call(add('n'), script.newClient('counter'), 30_000);
    });
    const scan = script.call({ kind: 'scan', partition: script.partitionOf('n'), prefix: '', limit: 10 });
    script.run(1_500);
    expect(counted.result, 'a repeat before the inherited entry is committed').toBeNull();
    expect(scan.result, 'a scan before the inherited entry is committed').toBeNull();
    goOn();
    script.until('settled', () => counted.result !== null && scan.result !== null);
    expect(counted.result?.answer?.value, 'the sum that the repeat was given').toBe('1');
    script.waitServing();
    expect(script.get('n'), 'the counter').toBe('1');
  });
});
