import { afterEach, describe, expect, it, vi } from 'vitest';
import { connectEngine, engineAddress, ensureEngine, isDaemonProcess } from './engine.ts';
import { EnvironmentError } from './errors.ts';

describe('an engine that is not there', () => {
  afterEach(() => vi.unstubAllEnvs());
  const silent = () => {};

  it.each(['unix:///nonexistent/docker.sock', 'tcp://127.0.0.1:9', 'tcp://192.0.2.1:2375'])(
    'ends soon in one sentence that names the other ways: %s',
    async (address) => {
      vi.stubEnv('DOCKER_HOST', address);
      const said: string[] = [];
      const beganMs = performance.now();
      const error: unknown = await ensureEngine({ say: (line) => said.push(line) }).catch((reason: unknown) => reason);
      expect(error).toBeInstanceOf(EnvironmentError);
      const { message, exitCode } = error as EnvironmentError;
      expect(exitCode).toBe(4);
      expect(message).toContain(address);
      expect(message).toContain('--cluster process');
      expect(message).toContain('certify sim');
      expect(message.trimEnd()).not.toContain('\n');
      expect(said).toEqual([]);
      // The kernel would wait for two minutes.
      expect(performance.now() - beganMs).toBeLessThan(30_000);
    },
  );

  it('refuses an address that is none', async () => {
    vi.stubEnv('DOCKER_HOST', 'nonsense://');
    await expect(ensureEngine({ say: silent })).rejects.toThrow(EnvironmentError);
  });

  it('gives up on an engine that does not answer in time', async () => {
    vi.stubEnv('DOCKER_HOST', 'tcp://192.0.2.1:2375');
    await expect(connectEngine(100)).rejects.toThrow();
  });

  it('takes the default socket when nothing is set', () => {
    expect([
      engineAddress({}),
      engineAddress({ DOCKER_HOST: '' }),
      engineAddress({ DOCKER_HOST: 'tcp://h:1' }),
    ]).toEqual(['unix:///var/run/docker.sock', 'unix:///var/run/docker.sock', 'tcp://h:1']);
  });

  it('does not take another process for a daemon', () => {
    expect([isDaemonProcess(process.pid), isDaemonProcess(2 ** 22 + 1)]).toEqual([false, false]);
  });
});
