import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { afterEach, beforeEach, expect, it } from 'vitest'
import type { CliContext } from '../../../../src/cli/command-line/verb.ts'
import { createConsoleJobs, declaredQueue } from '../../../../src/cli/console/run-console.ts'

let directory: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'console-jobs-'))
  writeFileSync(join(directory, 'hosts.yaml'), 'cluster: lab\nhosts: { m8: { transport: local } }\n')
})
afterEach(() => rmSync(directory, { recursive: true }))

const contextIn = (workingDirectory: string): CliContext => ({
  stdin: new PassThrough(),
  stdout: new PassThrough(),
  stderr: new PassThrough(),
  environment: { HOME: workingDirectory },
  workingDirectory,
  signal: new AbortController().signal,
  now: () => 1000,
})

const NO_HOSTS = { exec: () => expect.unreachable() }

it("shows the queue of hosts.yaml's hosts", async () => {
  using jobs = createConsoleJobs(declaredQueue({}, contextIn(directory), true), NO_HOSTS)
  expect((await jobs.read())?.hosts.map(({ name }) => name)).toEqual(['m8'])
})

it('has no queue for the hosts of a target, even beside a hosts.yaml', async () => {
  using jobs = createConsoleJobs(declaredQueue({}, contextIn(directory), false), NO_HOSTS)
  await expect(jobs.read()).rejects.toThrow(
    'no job queue: a queue belongs to one hosts.yaml, and this console has none, or several',
  )
  await expect(jobs.change('cancel', [1])).rejects.toThrow(
    'no job queue: a queue belongs to one hosts.yaml, and this console has none, or several',
  )
})
