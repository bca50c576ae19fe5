/** Hazard 11: only answers are lost. Counters, creations and compare-and-set chains end exact. */
import { describe, expect, it } from 'vitest';
import type { CallResult } from '../../zaris/client/contract.ts';
import type { Mutation } from '../../zaris/model/client-wire.ts';
import type { NodeParts } from '../../zaris/node/options.ts';
import type { SimClient } from '../client-host.ts';
import { Script } from '../testing/script.ts';
import { broken } from './support.ts';

interface Tally {
  acked: number;
  doubt: number;
}

interface Outcome {
  readonly sum: number;
  readonly adds: Tally;
  /** Length of the chain in which every link names the version of the one before. */
  readonly links: number;
  readonly chain: Tally;
  readonly winners: number;
  readonly created: string | null;
  readonly lost: number;
}

const rounds = 40;

function droppedAnswers(parts?: NodeParts): Outcome {
  const script = new Script({ nodeCount: 3, world: parts === undefined ? {} : { parts } });
  const chance = script.world.random.fork('answers');
  // Once an answer of a connection is lost, so are all later ones: the client sees a dead peer and tries again on a new one.
  const deaf = new Set<number>();
  let lost = 0;
  script.host.dropAnswer = (answer, connection) => {
    if (answer.partition !== undefined && chance.chance(0.1)) deaf.add(connection);
    if (deaf.has(connection) && answer.partition !== undefined) lost += 1;
    return deaf.has(connection);
  };
  const clients = [0, 1, 2].map((index) => script.newClient(`c${index}`, { deadPeerMs: 300, keepAliveMs: 100 }));
  const each = (mutation: (client: SimClient, index: number) => Mutation): CallResult[] => {
    const boxes = clients.map((client, index) =>
      script.call({ kind: 'mutate', mutation: mutation(client, index) }, client),
    );
    script.until('the round', () => boxes.every((box) => box.result !== null));
    return boxes.flatMap(({ result }) => (result === null ? [] : [result]));
  };
  const count = (tally: Tally, results: readonly CallResult[]): void => {
    for (const result of results) {
      if (result.status === 'Ok') tally.acked += 1;
      else if (result.inDoubt) tally.doubt += 1;
    }
  };
  const adds: Tally = { acked: 0, doubt: 0 };
  const chain: Tally = { acked: 0, doubt: 0 };
  script.put('chain', '0');
  for (let round = 0; round < rounds; round++) {
    count(
      adds,
      each(() => ({ kind: 'add', key: 'n', delta: 1 })),
    );
    const { answer } = script.do({ kind: 'get', key: 'chain' });
    const next = String(Number(answer?.value) + 1);
    const link = answer?.version === undefined ? {} : { ifVersion: answer.version };
    count(
      chain,
      each(() => ({ kind: 'put', key: 'chain', value: next, ...link })),
    );
  }
  const creates = each((_client, index) => ({ kind: 'put', key: 'once', value: String(index), ifAbsent: true }));
  script.host.dropAnswer = () => false;
  return {
    sum: Number(script.get('n')),
    adds,
    links: Number(script.get('chain')),
    chain,
    winners: creates.filter((result) => result.status === 'Ok').length,
    created: script.get('once'),
    lost,
  };
}

describe('hazards', () => {
  it('11. only answers are dropped: counters, create-once and compare-and-set chains end exact', () => {
    const { sum, adds, links, chain, winners, created, lost } = droppedAnswers();
    expect(lost, 'answers that were lost').toBeGreaterThan(20);
    expect(adds.doubt + chain.doubt, 'the client tries again until it knows').toBe(0);
    expect(sum, 'the counter').toBe(adds.acked);
    expect(sum).toBe(3 * rounds);
    expect(links, 'the chain').toBe(chain.acked);
    expect(links).toBe(rounds);
    expect(winners, 'creators of one key').toBe(1);
    expect(created).not.toBeNull();
  });

  it('11 (twin): without the exactly-once record the counter runs away', () => {
    const { sum, adds } = droppedAnswers(broken({ remembered: () => ({ kind: 'unknown' }) }));
    expect(sum).toBeGreaterThan(adds.acked + adds.doubt);
  });
});
