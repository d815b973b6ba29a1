import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough, Readable } from 'node:stream'
import { Command } from 'commander'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { CliContext, Outcome } from '../../../src/cli/command-line/context.ts'
import { registerImport } from '../../../src/cli/import.ts'

const CLUSTERS = 'web web1 web2\nbad a;b\n'
const YAML =
  '# Imported from clusterssh: look through it before use.\nhosts:\n  "web[1-2]":\ngroups:\n  web: "web[1-2]"\n'

let directory = ''
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'muster-import-'))
  writeFileSync(join(directory, 'clusters'), CLUSTERS)
})
afterEach(() => rmSync(directory, { recursive: true }))

async function run(args: readonly string[], stdin = '') {
  const stdout = new PassThrough()
  const stderr = new PassThrough()
  const context: CliContext = {
    stdin: Readable.from([Buffer.from(stdin)]),
    stdout,
    stderr,
    environment: { HOME: directory },
    workingDirectory: directory,
    signal: new AbortController().signal,
    now: () => 0,
  }
  const outcome: Outcome = { exitCode: -1 }
  const program = new Command('muster')
    .exitOverride()
    .option('-y, --yes')
    .configureOutput({ writeErr: () => {} })
  registerImport(program, context, outcome)
  for (const command of program.commands) command.exitOverride().configureOutput({ writeErr: () => {} })
  await program.parseAsync(['import', ...args], { from: 'user' })
  return { stdout: String(stdout.read() ?? ''), stderr: String(stderr.read() ?? ''), exitCode: outcome.exitCode }
}

describe('muster import', () => {
  test('writes hosts.yaml to stdout and what is left behind to stderr', async () => {
    const { stdout, stderr, exitCode } = await run(['clusterssh', 'clusters'])
    expect(stdout).toBe(YAML)
    expect(stderr).toBe(`${join(directory, 'clusters')}:2: a;b is left out: it is not [user@]host[:port]\n`)
    expect(exitCode).toBe(0)
  })

  test('reads stdin for -', async () => {
    expect((await run(['clusterssh', '-'], CLUSTERS)).stdout).toBe(YAML)
  })

  test('--output writes a file, and does not overwrite one without --yes', async () => {
    const path = join(directory, 'hosts.yaml')
    expect((await run(['clusterssh', 'clusters', '-o', 'hosts.yaml'])).stdout).toBe('')
    expect(readFileSync(path, 'utf8')).toBe(YAML)
    writeFileSync(path, 'precious')
    await expect(run(['clusterssh', 'clusters', '-o', 'hosts.yaml'])).rejects.toMatchObject({ code: 'usage' })
    expect(readFileSync(path, 'utf8')).toBe('precious')
    await run(['clusterssh', 'clusters', '-o', 'hosts.yaml', '--yes'])
    expect(readFileSync(path, 'utf8')).toBe(YAML)
  })

  test('a file that is missing is told, and nothing is written', async () => {
    await expect(run(['clusterssh', 'nowhere', '-o', 'hosts.yaml'])).rejects.toMatchObject({ code: 'configuration' })
    expect(existsSync(join(directory, 'hosts.yaml'))).toBe(false)
  })

  test('an unknown kind is a mistake of the command line', async () => {
    await expect(run(['chef'])).rejects.toMatchObject({ code: 'commander.invalidArgument' })
  })
})
