import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { runMuster } from '../../support/run-muster.ts'

const CLUSTERS = 'web web1 web2\nbad a;b\n'
const YAML = '# Imported from clusterssh: review it before use.\nhosts:\n  "web[1-2]":\ngroups:\n  web: "web[1-2]"\n'

let directory = ''
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'muster-import-'))
  writeFileSync(join(directory, 'clusters'), CLUSTERS)
})
afterEach(() => rmSync(directory, { recursive: true }))

const run = (args: readonly string[], stdin = '') =>
  runMuster(['import', ...args], { directory, stdin: [stdin], environment: { HOME: directory } })

describe('muster import', () => {
  test('writes hosts.yaml to stdout, and skipped settings to stderr', async () => {
    const { output: stdout, messages: stderr, exitCode } = await run(['clusterssh', 'clusters'])
    expect(stdout).toBe(YAML)
    expect(stderr).toBe(`${join(directory, 'clusters')}:2: a;b is left out: it is not [user@]host[:port]\n`)
    expect(exitCode).toBe(0)
  })

  test('reads stdin for -', async () => {
    expect((await run(['clusterssh', '-'], CLUSTERS)).output).toBe(YAML)
  })

  test('writes a file with --output, and does not overwrite one without --yes', async () => {
    const path = join(directory, 'hosts.yaml')
    expect((await run(['clusterssh', 'clusters', '-o', 'hosts.yaml'])).output).toBe('')
    expect(readFileSync(path, 'utf8')).toBe(YAML)
    writeFileSync(path, 'precious')
    expect((await run(['clusterssh', 'clusters', '-o', 'hosts.yaml'])).exitCode).toBe(2)
    expect(readFileSync(path, 'utf8')).toBe('precious')
    await run(['clusterssh', 'clusters', '-o', 'hosts.yaml', '--yes'])
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
