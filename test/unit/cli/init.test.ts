import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough, Readable } from 'node:stream'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { runProgram } from '../../../src/cli/program.ts'
import { SCHEMA_LINE } from '../../../src/inventory/new-hosts-yaml.ts'
import { ROOT } from '../../support/console-options.ts'
import { readInventory } from '../../support/hosts-yaml.ts'
import { runMuster } from '../../support/run-muster.ts'

let directory = ''
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'muster-init-'))
})
afterEach(() => rmSync(directory, { recursive: true }))

const run = (...args: readonly string[]) =>
  runMuster(['init', ...args], { directory, stdin: [''], environment: { HOME: directory } })
const namesIn = (text: string) => readInventory(text).hosts.map(({ name }) => name)
const keepConfig = (text: string) => {
  mkdirSync(join(directory, '.ssh'))
  writeFileSync(join(directory, '.ssh/config'), text)
}

describe('muster init', () => {
  test('writes a file whose first line names its schema, and says what comes next', async () => {
    const { exitCode, messages, output } = await run('m[1-2]', 'root@10.0.0.5:2222')
    expect([exitCode, output]).toEqual([0, ''])
    expect(messages).toBe('hosts.yaml: 3 hosts, 10.0.0.5,m[1-2]. Next: muster hosts --check\n')
    const text = readFileSync(join(directory, 'hosts.yaml'), 'utf8')
    expect(text.split('\n')[0]).toBe(SCHEMA_LINE)
    expect(readInventory(text).hosts.map(({ name, user, port }) => ({ name, user, port }))).toEqual([
      { name: 'm1', user: undefined, port: undefined },
      { name: 'm2', user: undefined, port: undefined },
      { name: '10.0.0.5', user: 'root', port: 2222 },
    ])
  })

  test('replaces the example of a checkout, but no file that was changed', async () => {
    const file = join(directory, 'hosts.yaml')
    copyFileSync(join(ROOT, 'hosts.yaml'), file)
    expect((await run('m1')).messages).toContain('hosts.yaml: 1 host, m1')
    expect((await run('m2')).messages).toContain('hosts.yaml already exists')
    expect(namesIn(readFileSync(file, 'utf8'))).toEqual(['m1'])
  })

  test('writes nothing with --dry-run, which --output - replaces', async () => {
    expect((await run('m1', '--dry-run')).exitCode).toBe(2)
    expect(existsSync(join(directory, 'hosts.yaml'))).toBe(false)
  })

  test('ends with 130 when the terminal gives no answer but its end (Ctrl-D)', async () => {
    const terminal = <T extends object>(stream: T) => Object.assign(stream, { isTTY: true })
    const stderr = terminal(new PassThrough())
    const exitCode = await runProgram(['init'], {
      stdin: terminal(Readable.from([])),
      stdout: new PassThrough(),
      stderr,
      environment: { HOME: directory },
      workingDirectory: directory,
      signal: new AbortController().signal,
      now: Date.now,
    })
    expect(exitCode).toBe(130)
    expect(String(stderr.read())).toMatch(/^Hosts \(.*\): \n$/m)
    expect(existsSync(join(directory, 'hosts.yaml'))).toBe(false)
  })

  test('replaces no file without --yes', async () => {
    writeFileSync(join(directory, 'hosts.yaml'), 'precious')
    const { exitCode, messages } = await run('m1')
    expect(exitCode).toBe(2)
    expect(messages).toContain('hosts.yaml already exists')
    expect(readFileSync(join(directory, 'hosts.yaml'), 'utf8')).toBe('precious')
    expect((await run('m1', '--yes')).exitCode).toBe(0)
    expect(namesIn(readFileSync(join(directory, 'hosts.yaml'), 'utf8'))).toEqual(['m1'])
  })

  test('explains keys by examples that are valid where they are commented out', async () => {
    const { output } = await run('m1', '-o', '-')
    const keys = [...output.matchAll(/^ {2}# {3}(\w+: (?:\{.*?\}|\S+))/gm)].map(([, entry = '']) => entry)
    expect(keys).toHaveLength(6)
    const top = [...output.matchAll(/^# ((?:cluster|defaults|groups): .*)$/gm)].map(([, entry = '']) => entry)
    expect(top).toHaveLength(3)
    const entry = keys.join(', ').replace('m10', 'root@gate')
    const { hosts } = readInventory(`${top.join('\n')}\nhosts:\n  m1: { ${entry} }\n`)
    expect(hosts).toMatchObject([{ name: 'm1', address: '10.0.0.1', port: 1822 }])
  })

  test('takes the names of ssh_config, but no Git service, and globs of them', async () => {
    keepConfig('Host m8 m9\n  User ann\nHost gpu1\n  HostName 10.0.0.4\nHost github.com\n  User git\nHost *\n')
    expect(namesIn((await run('-o', '-')).output)).toEqual(['gpu1', 'm8', 'm9'])
    expect(namesIn((await run('gpu*', '-o', '-')).output)).toEqual(['gpu1'])
    expect((await run('zz*')).messages).toBe('muster: no name in ~/.ssh/config matches zz*\n')
  })

  test.each([
    [[], /^muster: no targets given, and ~\/\.ssh\/config names no host\nName the hosts: /],
    [['a;b'], /^muster: a;b: it is not a host name\n$/],
    [['m[1-'], /^muster: host set m\[1-: at character 2: /],
    [['a\u001b[31m'], /^muster: (?!.*\u001b)/],
  ])('refuses %j and writes nothing', async (args, message) => {
    const { exitCode, messages } = await run(...args)
    expect(exitCode).toBe(2)
    expect(messages).toMatch(message)
    expect(() => readFileSync(join(directory, 'hosts.yaml'))).toThrow('ENOENT')
  })
})
