/** What is typed after `n` in the Jobs tab is submitted as by `muster job submit`, to the queue that the tab shows. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough, Readable } from 'node:stream'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { type ConsoleQueue, openConsoleQueue } from '../../../src/cli/job/console-queue.ts'

let directory: string
let queue: ConsoleQueue
let printed: PassThrough
beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), 'muster-typed-'))
  writeFileSync(
    join(directory, 'hosts.yaml'),
    'cluster: lab\nhosts: { here: { transport: local, resources: { cpu: 4, gpu: 2 } } }\n',
  )
  printed = new PassThrough()
  queue = await openConsoleQueue(
    {},
    {
      stdin: Readable.from([]),
      stdout: printed,
      stderr: printed,
      environment: { PATH: process.env.PATH ?? '', HOME: directory },
      workingDirectory: directory,
      signal: new AbortController().signal,
      now: Date.now,
    },
  )
})
afterEach(() => {
  queue[Symbol.dispose]()
  rmSync(directory, { recursive: true })
  // The screen is the console's.
  expect(printed.read()).toBeNull()
})

const specOf = (id: number) => queue.details(id)?.job.spec

it('submits a command as it is typed', async () => {
  expect(queue.read()?.groups).toEqual([])
  expect(await queue.submit(`echo "a  b" | tee 'log x' -- more`)).toEqual(['submitted job 1'])
  expect(specOf(1)?.command).toBe(`echo "a  b" | tee 'log x' -- more`)
  expect(queue.read()?.groups.map(({ first, count }) => [first, count])).toEqual([[1, 1]])
})

it.each([
  [`-- 'echo quoted; sleep 1'`, 'echo quoted; sleep 1'],
  [`"echo \\"a\\" $HOME"`, 'echo "a" $HOME'],
  [`'a' | tee 'b'`, `'a' | tee 'b'`],
  [`'a b' 'c'`, `'a b' 'c'`],
  [`muster job submit -- 'python eval.py $X'`, 'python eval.py $X'],
])('takes %s for the command that a shell would pass on', async (typed, command) => {
  expect(await queue.submit(typed)).toEqual(['submitted job 1'])
  expect(specOf(1)?.command).toBe(command)
})

it('runs no command of muster on a host that was meant for a shell, unless it stands after --', async () => {
  for (const typed of ['muster job cancel 3', ' muster launch mpi -- hostname'])
    await expect(queue.submit(typed)).rejects.toThrow('of the commands of muster, only job submit is read here')
  expect(await queue.submit('-- muster doctor')).toEqual(['submitted job 1'])
  expect(specOf(1)?.command).toBe('muster doctor')
})

it('refuses a directory that is not on this machine', async () => {
  await expect(queue.submit('--copy-dir no -- true')).rejects.toThrow(
    /^--copy-dir no: there is no such directory on this machine$/,
  )
  expect(queue.read()?.groups).toEqual([])
})

it('takes the options of muster job submit, with quotes', async () => {
  const typed = `--gpu 1 --name 'my fit' --retries 2 --array 0-3 -- python train.py > out`
  expect(await queue.submit(typed)).toEqual(['submitted jobs 1-4'])
  expect(specOf(4)).toMatchObject({
    name: 'my fit',
    command: 'python train.py > out',
    retries: 2,
    request: { gpuCount: 1 },
  })
})

it('tells what there is to know about it', async () => {
  const [, ...others] = await queue.submit('--gpu 8 -- true')
  expect(others.join(' ')).toMatch(/^warning: no host can ever hold this job\. /)
})

it('names its options for Tab', async () => {
  const { options, values } = await queue.submitWords()
  expect(options).toEqual(expect.arrayContaining(['--gpu', '--name', '--on', '--array']))
  for (const name of ['--from', '--dry-run', '--as']) expect(options).not.toContain(name)
  await queue.submit('true')
  const [job] = queue.read()?.groups ?? []
  expect((await queue.submitWords()).values['--after']).toEqual([String(job?.first)])
  expect(values).toMatchObject({ '--launch': expect.arrayContaining(['mpi']), '--strategy': expect.any(Array) })
})

it.each([
  ['--gpu 1', 'type the command after the options and --'],
  ['--gpu 1 -- ', 'the command is empty'],
  ['--from list', '--from is for a shell'],
  ['--frob 3 -- true', "unknown option '--frob' (Did you mean --from?)"],
  ['--gpu one -- true', /^option '--gpu <n>' argument 'one' is invalid/],
  ['--gpus 1 -- true', /^unknown option '--gpus'/],
  [`--name 'x -- true`, /is not closed/],
  ['--dry-run -- true', '--dry-run is for a shell'],
  ['--from list -- true', '--from is for a shell'],
  ['--engine slurm -- true', /hosts.yaml/],
  ['--engine slurm --strict -- true', '--strict with --engine is for a shell'],
  ['-- ', /command/],
])('refuses %j and submits nothing', async (typed, reason) => {
  await expect(queue.submit(typed)).rejects.toThrow(reason)
  expect(queue.read()?.groups).toEqual([])
})
