import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { SCHEMA_LINE } from '../../../src/inventory/new-hosts-yaml.ts'
import { requirement } from '../../support/requirements.ts'
import { runMuster } from '../../support/run-muster.ts'

const CLUSTERS = 'web web1 web2\nbad a;b\n'
const YAML =
  SCHEMA_LINE +
  '\n# Imported from clusterssh: review it before use.\nhosts:\n  "web[1-2]":\ngroups:\n  web: "web[1-2]"\n'

let directory = ''
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'muster-import-'))
  writeFileSync(join(directory, 'clusters'), CLUSTERS)
})
afterEach(() => rmSync(directory, { recursive: true }))

const run = (args: readonly string[], stdin = '') =>
  runMuster(['import', ...args], { directory, stdin: [stdin], environment: { HOME: directory } })

describe('muster import', () => {
  test('names all formats where it recognises none', async () => {
    writeFileSync(join(directory, 'job.yaml'), 'kind: DIJob\n')
    for (const [word, why] of [
      ['dijobb', 'dijobb is no format and no file; did you mean dijob?'],
      ['job.yaml', 'cannot import job.yaml: no format is recognised in it'],
    ] as const) {
      const { output, messages, exitCode } = await run([word])
      expect([output, messages.split('\n')[0]]).toEqual(['', `muster: ${why}`])
      expect(messages).toMatch(/^Name the format: muster import FORMAT FILE, where FORMAT is .*, [a-z]+ or dijob$/m)
      expect(exitCode).toBeGreaterThan(0)
    }
  })

  test('writes hosts.yaml to stdout, and skipped settings to stderr', async () => {
    const { output: stdout, messages: stderr, exitCode } = await run(['clusterssh', 'clusters'])
    expect(stdout).toBe(YAML)
    expect(stderr).toBe(`${join(directory, 'clusters')}:2: a;b is left out: it is not [user@]host[:port]\n`)
    expect(exitCode).toBe(0)
  })

  test.skipIf(!requirement('mkfifo'))('reads a pipe, which can be read only once', async () => {
    execFileSync('mkfifo', [join(directory, 'pipe')])
    const written = writeFile(join(directory, 'pipe'), 'm[8-10]\n')
    const { output, messages } = await run(['pipe'])
    await written
    expect(output).toContain('  "m[8-10]":\n')
    expect(messages).toBe('pipe: read as list\n')
  })

  test('reads stdin for -', async () => {
    expect((await run(['clusterssh', '-'], CLUSTERS)).output).toBe(YAML)
  })

  test('writes to stdout with --output -, and makes no file of that name', async () => {
    expect((await run(['clusterssh', 'clusters', '-o', '-'])).output).toBe(YAML)
    expect(existsSync(join(directory, '-'))).toBe(false)
  })

  test('writes a file with --output, and does not overwrite one without --yes', async () => {
    const path = join(directory, 'hosts.yaml')
    expect((await run(['clusterssh', 'clusters', '-o', 'hosts.yaml'])).output).toBe('')
    expect(readFileSync(path, 'utf8')).toBe(YAML)
    writeFileSync(path, 'precious')
    expect((await run(['clusterssh', 'clusters', '-o', 'hosts.yaml'])).exitCode).toBe(2)
    expect(readFileSync(path, 'utf8')).toBe('precious')
    await run(['clusterssh', 'clusters', '-o', 'hosts.yaml', '--yes'])
    expect((await run(['list', '-', '-o', 'one.yaml'], 'm1\n')).messages).toBe('one.yaml: 1 host\n')
    expect(readFileSync(path, 'utf8')).toBe(YAML)
  })

  test('reports a missing file, and writes nothing', async () => {
    expect((await run(['clusterssh', 'nowhere', '-o', 'hosts.yaml'])).exitCode).toBe(3)
    expect(existsSync(join(directory, 'hosts.yaml'))).toBe(false)
  })

  test('treats an unknown kind as wrong usage', async () => {
    expect((await run(['chef'])).exitCode).toBe(2)
  })
})

describe('auto_close of clusterssh', () => {
  const preferences = () => join(directory, '.config/muster/preferences.yaml')
  const config = () => join(directory, '.clusterssh/config')
  const importAll = () => run(['clusterssh', 'clusters', '-o', 'hosts.yaml', '--yes'])
  beforeEach(() => {
    mkdirSync(join(directory, '.clusterssh'))
    writeFileSync(config(), 'ssh=/usr/bin/ssh\nauto_close = 7\n')
  })

  test('is saved in preferences.yaml, once, and leaves everything else there as it is', async () => {
    expect((await importAll()).messages).toContain(`${config()}:2: saved as auto_close: 7 in ${preferences()};`)
    expect(readFileSync(preferences(), 'utf8')).toBe('auto_close: 7\n')
    expect((await importAll()).messages).not.toContain('auto_close')
    writeFileSync(preferences(), '# mine\nleader: Ctrl-a')
    await importAll()
    expect(readFileSync(preferences(), 'utf8')).toBe('# mine\nleader: Ctrl-a\nauto_close: 7\n')
    writeFileSync(preferences(), 'auto_close: 3\n')
    expect((await importAll()).messages).toContain('keeps its own auto_close')
    expect(readFileSync(preferences(), 'utf8')).toBe('auto_close: 3\n')
  })

  test('is saved for a user without clusters, too', async () => {
    const { messages } = await run(['clusterssh', '-o', 'hosts.yaml'])
    expect(messages).toContain('no host was found in')
    expect(readFileSync(preferences(), 'utf8')).toBe('auto_close: 7\n')
  })

  test.each([
    '{ leader: Ctrl-a }',
    '- a list',
    'leader: [',
    '---\na: 1\n---\nb: 2\n',
  ])('changes nothing in %j, and says what to add', async (text) => {
    mkdirSync(join(directory, '.config/muster'), { recursive: true })
    writeFileSync(preferences(), text)
    expect((await importAll()).messages).toContain(`add auto_close: 7 to ${preferences()}`)
    expect(readFileSync(preferences(), 'utf8')).toBe(text)
  })

  test('says what to add without --output, and what is no number of seconds', async () => {
    expect((await run(['clusterssh', 'clusters'])).messages).toContain('add auto_close: 7 to')
    expect(existsSync(preferences())).toBe(false)
    writeFileSync(config(), 'auto_close = soon\n')
    expect((await importAll()).messages).toContain('auto_close is left out')
  })
})
