import { describe, expect, it } from 'vitest';
import { completionOfError, NotSentError } from './redis-answers.ts';
import { infoFields, majorityWord } from './redis-status.ts';

const reply = (message: string): Error => Object.assign(new Error(message), { name: 'ReplyError' });

describe('what Redis errors mean', () => {
  it.each([
    'READONLY You can’t write',
    'NOREPLICAS Not enough good replicas to write.',
    'LOADING Redis is loading',
    'OOM command not allowed',
  ])('a refusal by the server failed: %s', (message) =>
    expect(completionOfError(reply(message))).toMatchObject({ kind: 'fail', why: 'refused' }),
  );

  it('a command that never left failed', () => {
    expect(completionOfError(new NotSentError('no connection'))).toMatchObject({ kind: 'fail', why: 'refused' });
  });

  it.each([
    new Error('Connection is closed.'),
    new Error('READONLY said by nobody'),
    reply('UNBLOCKED force unblock'),
    reply('ERR what'),
    'text',
  ])('everything else is unknown: %s', (error) => expect(completionOfError(error).kind).toBe('info'));
});

describe('the word of the Sentinels', () => {
  const word = (address: string, configEpoch: number) => ({ address, configEpoch, otherSentinels: 2, replicas: 2 });

  it('needs the same primary and epoch from a majority', () => {
    expect(majorityWord([word('a:1', 3), word('a:1', 3), null], 3)).toMatchObject({ address: 'a:1' });
    expect(majorityWord([word('a:1', 3), word('b:1', 4), null], 3)).toBeNull();
    expect(majorityWord([word('a:1', 3), word('a:1', 4), word('b:1', 5)], 3)).toBeNull();
    expect(majorityWord([word('a:1', 3), null, null], 3)).toBeNull();
  });

  it('reads INFO', () => {
    expect(infoFields('# Server\r\nredis_version:7.0.15\r\nmaster_host:10.0.0.1\r\n').get('master_host')).toBe(
      '10.0.0.1',
    );
  });
});
