/** Ctrl-C while a verb reads stdin: it reads nothing more, so that what is typed next is the shell's. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { expect, it, onTestFinished } from 'vitest'
import { stdinOf } from '../../../src/cli/command-line/stdin.ts'
import { JobStore } from '../../../src/scheduler/jobs/store.ts'
import { PROGRAM } from '../../support/console-options.ts'
import { startOnTerminal } from '../../support/terminal-program.ts'

it('submit --from -: keeps what was submitted, and ends with 130', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'muster-stopped-stdin-'))
  onTestFinished(() => rmSync(directory, { recursive: true }))
  const file = join(directory, 'hosts.yaml')
  writeFileSync(file, 'cluster: lab\nhosts: { here: { transport: local } }\n')
  const { PATH } = process.env
  const words = [...PROGRAM, '--hosts', file, 'job', 'submit', '--from', '-']
  const script = '"$@"; echo "ended: $?"; read -r line; echo "the shell got $line"'
  const started = startOnTerminal(['sh', '-c', `trap : INT; ${script}`, 'sh', ...words], { PATH, HOME: directory })
  onTestFinished(() => void started.close())
  started.type('echo one\r')
  await started.shows(/^1\r$/m)
  started.type('echo half')
  started.type('\u0003')
  await started.shows(/muster: stopped/)
  await started.shows(/ended: 130/)
  started.type('echo next\r')
  await started.shows(/the shell got echo next/)
  using store = new JobStore(join(directory, '.local', 'state', 'muster', 'jobs', 'lab.db'))
  expect([1, 2].map((id) => store.get(id)?.spec.command)).toEqual(['echo one', undefined])
})

it('is over for whoever waits for its end', async () => {
  const stop = new AbortController()
  const stdin = new PassThrough()
  stdin.write('m1')
  const read = async () => {
    for await (const piece of stdinOf({ stdin, signal: stop.signal })) expect(String(piece)).toBe('m1')
  }
  const ended = expect(read()).rejects.toThrow(/abort/)
  stop.abort()
  await ended
  await expect(read()).rejects.toThrow(/abort/)
})
