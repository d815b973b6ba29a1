/** Shared options from the environment, and `--quiet`. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { VARIABLES } from '../../../../src/cli/command-line/options.ts'
import type { CliContext, GlobalOptions, Verb, VerbTable } from '../../../../src/cli/command-line/verb.ts'
import { notice } from '../../../../src/cli/output/notices.ts'
import { output } from '../../../../src/cli/schemas/shape.ts'
import { runMuster } from '../../../support/run-muster.ts'

let directory: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'muster-environment-'))
})
afterEach(() => rmSync(directory, { recursive: true }))

const entry = (more: Partial<Verb> = {}): Verb => ({
  summary: 'print the options',
  effect: 'reads',
  takes: ['inventory', 'exclude', 'connection', 'color', 'confirmation'],
  load: async () => ({
    help: '',
    run: (options: GlobalOptions, context: CliContext) => {
      context.stdout.write(JSON.stringify(options))
      notice(context, 'about it\n')
      return 7
    },
  }),
  ...more,
})
const VERBS: VerbTable = {
  all: entry({ output: async () => output('all', 'a test') }),
  plain: entry({ takes: [] }),
  hidden: entry({ isHidden: true }),
  change: entry({ effect: 'changes' }),
}

const muster = (args: string, environment: Readonly<Record<string, string>>) =>
  runMuster(args.split(' '), { directory, verbs: VERBS, environment: { PATH: process.env.PATH, ...environment } })
const optionsOf = async (args: string, environment: Readonly<Record<string, string>>) =>
  JSON.parse((await muster(args, environment)).output) as GlobalOptions

const EVERY = {
  MUSTER_HOSTS: 'a.yaml',
  MUSTER_EXCLUDE: 'm1',
  MUSTER_JSON: '1',
  MUSTER_YES: 'true',
  MUSTER_DRY_RUN: 'no',
  MUSTER_FAN_OUT: '3',
  MUSTER_CONNECT_TIMEOUT: '4',
  MUSTER_PERSIST: '0',
  MUSTER_TIMEOUT: '60',
  MUSTER_COLOR: 'never',
  MUSTER_QUIET: 'ON',
  MUSTER_VERBOSE: 'yes',
}

describe('shared options in the environment', () => {
  it('sets every one that the verb takes', async () => {
    expect(Object.keys(EVERY)).toEqual(VARIABLES.map(([name]) => name))
    expect(await optionsOf('all', EVERY)).toMatchObject({
      hosts: 'a.yaml',
      exclude: 'm1',
      json: true,
      yes: true,
      dryRun: false,
      fanOut: 3,
      connectTimeout: 4,
      persist: 0,
      timeout: 60,
      color: 'never',
      quiet: true,
      verbose: true,
    })
  })

  it('leaves what the command line says, before or after the verb', async () => {
    expect(await optionsOf('--fan-out 9 all --hosts b.yaml', EVERY)).toMatchObject({ fanOut: 9, hosts: 'b.yaml' })
  })

  it('does not reach verbs that do not take the option, or that Muster starts itself', async () => {
    const { verbose, quiet, timeout, ...rest } = await optionsOf('plain', EVERY)
    expect({ verbose, quiet, timeout }).toEqual({ verbose: true, quiet: true, timeout: 60 })
    expect(rest).toEqual(await optionsOf('plain', { MUSTER_DRY_RUN: '0' }))
    expect(await optionsOf('hidden', { ...EVERY, MUSTER_DRY_RUN: '1' })).toEqual(await optionsOf('hidden', {}))
  })

  it('makes a verb refuse that has no --dry-run', async () => {
    expect(await muster('change', { MUSTER_DRY_RUN: '1' })).toMatchObject({
      exitCode: 2,
      output: '',
      messages: 'muster: `muster change` has no --dry-run: nothing was done\nThe environment sets MUSTER_DRY_RUN.\n',
    })
  })

  it.each([
    ['MUSTER_FAN_OUT', '0', 'It must be a whole number of 1 or more.'],
    ['MUSTER_COLOR', 'red', 'Allowed choices are auto, always, never.'],
    ['MUSTER_QUIET', 'please', 'It must be 1 or 0.'],
  ])('refuses a wrong value of %s, and names it', async (name, text, why) => {
    const { exitCode, output, messages } = await muster('all', { [name]: text })
    expect({ exitCode, output }).toEqual({ exitCode: 2, output: '' })
    expect(messages).toContain(`muster: the environment variable ${name} is ${text}. ${why}\n`)
  })

  it('takes an empty variable for an unset one', async () => {
    expect(await optionsOf('all', { MUSTER_FAN_OUT: '', MUSTER_JSON: '' })).toMatchObject({ fanOut: 64 })
  })

  it('does not take the hosts of a job for a file', async () => {
    expect((await optionsOf('all', { MUSTER_HOSTS: 'm1,m2', MUSTER_RANK: '0' })).hosts).toBeUndefined()
  })

  it('names the file for completion as well', async () => {
    writeFileSync(join(directory, 'other.yaml'), 'hosts: { faraway: {} }\n')
    const environment = { PATH: process.env.PATH, MUSTER_HOSTS: 'other.yaml' }
    const { output } = await runMuster(['--complete', 'zsh', 'run', 'far'], { directory, environment })
    expect(output).toContain('faraway\t')
  })
})

describe('--quiet', () => {
  it('leaves out notices, and neither results nor the exit code', async () => {
    expect((await muster('all', {})).messages).toBe('about it\n')
    expect(await muster('all --quiet', {})).toMatchObject({ exitCode: 7, messages: '' })
    expect((await muster('all --quiet', {})).output).toContain('"quiet":true')
  })

  it('leaves out the summary of a run, and not what failed', async () => {
    writeFileSync(join(directory, 'hosts.yaml'), 'hosts: { a: { transport: local }, b: { transport: local } }\n')
    const run = (...more: readonly string[]) =>
      runMuster(['run', 'all', '--no-fold', ...more, '--', 'echo hi; exit 3'], { directory })
    expect((await run()).messages).toContain('muster: 2 hosts: 2 failed\n')
    const { exitCode, output, messages } = await run('--quiet')
    expect({ exitCode, lines: output.split('\n').toSorted() }).toEqual({ exitCode: 1, lines: ['', 'a: hi', 'b: hi'] })
    expect(messages.split('\n').toSorted()).toEqual(['', 'muster: a: exit 3', 'muster: b: exit 3'])
  })
})
