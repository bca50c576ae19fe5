import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { describe, expect, it } from 'vitest';
import { hasListener, judgeConnect, probeConnect, probeHealth, readNoPorts } from './probes.ts';

const ended = (exitCode: number, stderr = '') => ({ exitCode, stdout: '', stderr, timedOut: false });

describe('judgeConnect', () => {
  it.each([
    ['reachable', ended(0)],
    ['reachable', ended(1, 'bash: connect: Connection refused\nbash: /dev/tcp/1.2.3.4/9: Connection refused\n')],
    ['unreachable', ended(124)],
    ['unreachable', ended(1, 'bash: /dev/tcp/1.2.3.4/9: No route to host')],
    ['unknown', ended(127, 'bash: command not found')],
    ['unknown', ended(-1, 'seat abc is gone')],
  ])('%s', (outcome, result) => {
    expect(judgeConnect(result, 'a to b').outcome).toBe(outcome);
  });
});

describe('a refusal', () => {
  it('is an answer where nobody listens, and a rule at work where somebody does', () => {
    const refused = ended(1, 'bash: connect: Connection refused');
    expect([judgeConnect(refused, 'x', false).outcome, judgeConnect(refused, 'x', true).outcome]).toEqual([
      'reachable',
      'unreachable',
    ]);
  });

  it('finds listeners, not mere connections, in the kernel tables', () => {
    const table =
      '  sl  local_address rem_address   st\n   0: 00000000:1E7A 00000000:0000 0A 0\n   1: 0B07A8C0:1EB5 0C07A8C0:9999 01 0\n';
    expect([hasListener(table, 7802), hasListener(table, 7861), hasListener(table, 0x7a)]).toEqual([
      true,
      false,
      false,
    ]);
  });
});

describe('probes from this process', () => {
  const clock = { nowMs: () => 5, wallMs: () => 0 };

  it('takes a refusal for an answer', async () => {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    // A busy machine may let a look run out of time: then it is looked again.
    const looked = async (): Promise<string> =>
      (await probeConnect({ address: '127.0.0.1', port, listens: false }, 'x')).evidence;
    await expect.poll(looked).toBe('x: connected');
    await new Promise((resolve) => server.close(resolve));
    await expect.poll(looked).toBe('x: refused, so answered');
    expect((await probeHealth(clock, port, '/health', 'n1')).outcome).toBe('unreachable');
  });

  it('does not take an accepted connection for health', async () => {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    const seen = await probeHealth(clock, port, '/health', 'n1');
    server.close();
    expect(seen).toEqual({ outcome: 'unreachable', atMs: 5, evidence: 'n1 /health: no answer in 1000 ms' });
  });

  it('reads the count of datagrams without listener by its name', () => {
    expect(
      readNoPorts('Ip: A B\nIp: 1 2\nUdp: InDatagrams NoPorts InErrors\nUdp: 7 42 0\nUdpLite: NoPorts\nUdpLite: 0\n'),
    ).toBe(42);
    expect(readNoPorts('Ip: A\nIp: 1\n')).toBeNaN();
  });
});
