/** Verbs that print until something ends, when what reads them ends first, as `head -1` and `grep -m1` do. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { JobStore } from '../../src/scheduler/jobs/store.ts'
import { PROGRAM } from '../support/console-options.ts'
import { waitUntil } from '../support/wait-until.ts'

const PATIENCE_MS = 60_000

let directory: string
let environment: NodeJS.ProcessEnv
const children: ChildProcess[] = []
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'muster-reader-'))
  environment = { PATH: process.env.PATH, HOME: directory }
  const resources = 'resources: { cpu: 8, gpu: 0, memory: 1GiB }'
  writeFileSync(join(directory, 'hosts.yaml'), `cluster: lab\nhosts: { here: { transport: local, ${resources} } }\n`)
  start(['job', 'work'])
})
afterAll(async () => {
  using store = new JobStore(join(directory, '.local', 'state', 'muster', 'jobs', 'lab.db'))
  try {
    if (store.studies.list(1).length > 0) muster('study', 'stop', 'lr', '--now')
    if (store.active().length > 0) muster('job', 'cancel', '1')
    await waitUntil(() => store.active().length === 0, 'every job to end', PATIENCE_MS)
  } finally {
    for (const child of children.filter(({ exitCode }) => exitCode === null)) {
      const ended = once(child, 'close')
      child.stdout?.destroy()
      child.kill()
      await ended
    }
    rmSync(directory, { recursive: true })
  }
})

const muster = (...words: readonly string[]): string => {
  const [file = '', ...args] = [...PROGRAM, ...words]
  return execFileSync(file, args, {
    cwd: directory,
    env: environment,
    encoding: 'utf8',
    // What it says is part of the error.
    stdio: ['ignore', 'pipe', 'pipe'],
  })
}

/** Words for the program, behind what a shell does with its output. */
function start(words: readonly string[], into = ''): ChildProcess {
  const line = `exec "$@" ${into}`
  const child = spawn('sh', ['-c', line, 'sh', ...PROGRAM, ...words], {
    cwd: directory,
    env: environment,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  children.push(child)
  return child
}

/** Closes the pipe after the first output; what the program says and how it ends afterwards. */
async function readOnce(words: readonly string[], into = '') {
  const program = start(words, into)
  let messages = ''
  program.stderr?.setEncoding('utf8').on('data', (text: string) => {
    messages += text
  })
  const closed = once(program, 'close')
  const first = await Promise.race([once(program.stdout ?? program, 'data'), closed.then(() => ['nothing'])])
  program.stdout?.destroy()
  const [code, signal] = await closed
  return { first: String(first[0]), code, signal, messages }
}

it('end, without a word and with 0', { timeout: 4 * PATIENCE_MS }, async () => {
  // Its home goes with the test.
  const told = 'while [ -d "$HOME" ] && sleep 0.1; do echo told; echo failed >&2; done'
  expect(muster('job', 'submit', '--', told)).toBe('1\n')
  muster(...['study', 'create', 'lr', '--param', 'x=int:1:1000', '--metric', 'y', '--', 'echo y=$x'])
  const wanted = { code: 0, signal: null }
  expect(await readOnce(['job', 'logs', '1', '-f'])).toMatchObject({ ...wanted, first: expect.stringMatching(/^told/) })
  // Where stderr is what is read.
  const onlyErrors = await readOnce(['job', 'logs', '1', '-f'], '2>&1 >/dev/null')
  expect(onlyErrors).toMatchObject({ ...wanted, first: expect.stringMatching(/^failed/), messages: '' })
  for (const words of [
    ['net', 'watch', 'here', '--json'],
    ['study', 'show', 'lr', '--follow'],
  ])
    expect(await readOnce(words)).toMatchObject({
      ...wanted,
      first: expect.not.stringMatching(/^nothing/),
      messages: '',
    })
})
