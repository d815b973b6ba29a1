/** What `muster job` says about the files of jobs that ended, on hosts that are this machine and share its home. */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readdirSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { runMuster } from '../../support/run-muster.ts'

let directory: string
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'muster-job-files-'))
  const hosts = 'hosts: { here: { transport: local }, there: { transport: local } }\n'
  writeFileSync(join(directory, 'hosts.yaml'), `defaults: { resources: { cpu: 8 } }\n${hosts}`)
})
afterAll(() => rmSync(directory, { recursive: true }))

const job = async (...words: readonly string[]) => await runMuster(['job', ...words], { directory })
const files = () => join(directory, '.local', 'state', 'muster', 'jobs')
/** The queue is beside them. */
const directories = () => readdirSync(files()).filter((name) => name.includes('-'))
const where = async (id: string, rank = 0) =>
  (JSON.parse((await job('show', id, '--json')).output) as { places: { host: string }[] }).places[rank]?.host ?? ''
const bundles = (id: string) => directories().filter((name) => name.split('-')[1] === id)

it('tells deleted output from none', async () => {
  const spread = ['--bundles', '2', '--strategy', 'STRICT_SPREAD', '--']
  const submitted = [
    await job('submit', '--', 'echo well'),
    await job('submit', '--', 'true'),
    // None fails before both have begun.
    await job(
      'submit',
      ...spread,
      'echo rank $RANK; : >began.$RANK; until [ -e began.0 ] && [ -e began.1 ]; do sleep 0.02; done; exit 3',
    ),
  ]
  const [one = '', silent = '', gang = ''] = submitted.map(({ output }) => output.trim())
  await job('work', '--until-empty')
  expect(await job('logs', one)).toMatchObject({ exitCode: 0, output: 'well\n' })
  expect(await job('logs', silent)).toEqual({ exitCode: 0, output: '', messages: '' })
  expect(await job('logs', silent, '--all')).toEqual({ exitCode: 0, output: '', messages: '' })
  const remove = (name: string | undefined) => rmSync(join(files(), name ?? ''), { recursive: true })
  for (const id of [one, silent]) bundles(id).forEach(remove)
  const [, second] = bundles(gang).sort()
  remove(second)
  const deleted = (id: string, on: string, hint = true) => {
    const why = `muster: no output of job ${id} on ${on}: its files were deleted\n`
    return hint ? `${why}muster job clean, and muster job work --keep, delete the files of jobs that ended.\n` : why
  }
  for (const id of [one, silent])
    for (const words of [[], ['--follow'], ['--all']])
      expect(await job('logs', id, ...words)).toEqual({
        exitCode: 2,
        output: '',
        messages: deleted(id, await where(id)),
      })
  const lost = deleted(gang, await where(gang, 1), false)
  expect((await job('logs', gang)).output).toBe('rank 0\n')
  expect((await job('logs', gang, '--rank', '1')).messages).toContain(lost)
  for (const words of ['--all', '--failed']) {
    const { exitCode, output, messages } = await job('logs', gang, words)
    expect([exitCode, messages]).toEqual([0, lost])
    expect(output).toContain('rank 0\n')
    expect(output).not.toContain('rank 1')
  }
  bundles(gang).forEach(remove)
  for (const words of ['--all', '--failed'])
    expect(await job('logs', gang, words)).toEqual({ exitCode: 2, output: '', messages: deleted(gang, 'here,there') })
})

it('reads nothing in place of output but plain files, and says so', async () => {
  const { output } = await job('submit', '--', 'echo out; echo err >&2; exit 3')
  const id = output.trim()
  await job('work', '--until-empty')
  const [name = ''] = bundles(id)
  const replace = (file: string, how: 'link' | 'fifo') => {
    const path = join(files(), name, file)
    rmSync(path)
    if (how === 'link') symlinkSync('/dev/zero', path)
    else execFileSync('mkfifo', [path])
  }
  const why = (what: string) =>
    expect.stringContaining(`no output of job ${id} from ${what}: it is no longer a plain file\n`)
  replace('out', 'link')
  expect(await job('logs', id)).toMatchObject({ exitCode: 2, output: '', messages: why(`out on ${await where(id)}`) })
  expect((await job('logs', id)).messages).toContain('err\n')
  expect(await job('logs', id, '--all')).toMatchObject({ exitCode: 0, output: '  0  err\n', messages: why('rank 0') })
  replace('err', 'fifo')
  expect(await job('logs', id)).toMatchObject({ exitCode: 2, output: '', messages: why(`out on ${await where(id)}`) })
  expect(await job('logs', id, '--all')).toMatchObject({ exitCode: 2, output: '', messages: why('rank 0') })
  expect((await job('logs', id, '--failed')).messages).toContain('it is no longer a plain file')
  rmSync(join(files(), name), { recursive: true })
})

it('counts the files of hosts that share a directory once', async () => {
  await job('submit', '--array', '1-5', '--', 'true')
  await job('work', '--until-empty')
  expect(directories()).toHaveLength(5)
  for (const name of directories()) utimesSync(join(files(), name), 0, 0)
  const both = (word: string, count: number) =>
    `here,there: ${count} directories ${word} (in one directory that they share)\n`
  expect(await job('clean', '--dry-run')).toEqual({ exitCode: 0, output: both('would be deleted', 5), messages: '' })
  const { output } = await job('clean', '--dry-run', '--json')
  expect(
    output
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line)),
  ).toMatchObject([{ type: 'cleaned', host: 'here', sharedWith: ['there'], directories: 5 }])
  expect(await job('clean')).toEqual({ exitCode: 0, output: both('deleted', 5), messages: '' })
  expect(directories()).toEqual([])
})
