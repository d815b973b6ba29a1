import { about, count, is, line, output, text, time } from './shape.ts'

const code = { type: 'integer', minimum: 0, maximum: 255 }
const signal = { type: 'string', pattern: '^SIG' }
const base64 = { type: 'string', contentEncoding: 'base64' }
const reason = about('One printable line.', text)
const outputs = {
  'stdout?': about('The whole stdout if it is UTF-8; otherwise stdoutBase64 replaces it.', text),
  'stdoutBase64?': base64,
  'stderr?': about('The whole stderr if it is UTF-8; otherwise stderrBase64 replaces it.', text),
  'stderrBase64?': base64,
  durationMs: about('Of the command, or of the attempt if the command never started.', count),
}

export const run = output(
  'run',
  '`muster run --json`',
  line('result', 'The command ended by itself.', { host: text, outcome: is('exit'), code, ...outputs }),
  line('result', 'A signal ended the command.', { host: text, outcome: is('signal'), signal, ...outputs }),
  line('result', 'The command exceeded --timeout, or the user stopped it.', {
    host: text,
    outcome: is('timeout', 'cancelled'),
    ...outputs,
  }),
  line('result', 'The host was unreachable, or refused the connection.', {
    host: text,
    outcome: is('unreachable', 'refused'),
    reason,
    ...outputs,
  }),
  line('retry', 'With --until-ok: an attempt failed, and another one follows.', {
    host: text,
    outcome: is('exit', 'signal', 'unreachable'),
    'code?': code,
    'signal?': signal,
    'reason?': reason,
    failures: about('On this host in a row.', { type: 'integer', minimum: 1 }),
    delayMs: about('Until the next attempt.', count),
  }),
  line('summary', 'The last line: the number of hosts with each result.', {
    hosts: count,
    exit0: count,
    failed: about('An exit code other than 0, or a signal.', count),
    timeout: count,
    cancelled: count,
    unreachable: count,
    refused: about('By the host, or because of its host key.', count),
  }),
  line('would-run', 'With --dry-run, in place of all other lines: what would run on the host.', {
    host: text,
    command: text,
    time,
  }),
)
