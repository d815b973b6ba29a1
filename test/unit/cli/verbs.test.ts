/** The table of verbs: what derives from an entry, and that a new verb needs nothing but its file and its entry. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { pathToFileURL } from 'node:url'
import type { Command } from 'commander'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { pathOf, VerbTree } from '../../../src/cli/command-line/tree.ts'
import type { Verb, VerbTable } from '../../../src/cli/command-line/verb.ts'
import { CONSOLE } from '../../../src/cli/console/entry.ts'
import { line, output, text } from '../../../src/cli/schemas/shape.ts'
import { VERBS } from '../../../src/cli/verbs.ts'
import { runMuster } from '../../support/run-muster.ts'

const HELLO = `export const verb = {
  define: (command) => command.argument('[name]', 'whom to greet').option('--loud', 'shout').option('--no-wave', 'keep still'),
  help: '\\nExamples:\\n  muster hello world\\n',
  run(name = 'you', { loud, json, wave }, { stdout }) {
    if (!wave) return 8
    stdout.write(json ? JSON.stringify({ name }) + '\\n' : 'hello ' + (loud ? name.toUpperCase() : name) + '\\n')
    return 7
  },
}
`

/** Words that are upper case by themselves may begin it. */
const STYLE = /^(?:[^A-Z]|CPUs|GPUs|JSON)(?:.*[^.])?$/s

let directory: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'muster-verbs-'))
  writeFileSync(join(directory, 'hosts.yaml'), 'hosts: { here: { transport: local } }\n')
})
afterEach(() => rmSync(directory, { recursive: true }))

const planted = (entry: Partial<Verb> = {}): VerbTable => {
  const file = join(directory, 'hello.mjs')
  writeFileSync(file, HELLO)
  return {
    ...VERBS,
    hello: {
      summary: 'say hello',
      effect: 'reads',
      takes: [],
      output: async () => output('hello', 'a test', line('hello', 'A name.', { name: text })),
      load: () => import(pathToFileURL(file).href) as ReturnType<Verb['load']>,
      ...entry,
    },
  }
}
const muster = (args: string, verbs = planted()) => runMuster(args.split(' '), { directory, verbs })

/** A verb that prints until it is stopped, into a pipe that nobody reads; resolves once it knows that. */
const UNREAD = `export const verb = {
  define: (command) => command.option('--follow', 'go on').option('--record <file>', 'write'),
  help: '\\nExamples:\\n  muster tail\\n',
  async run(_, { stdout, signal }) {
    stdout.emit('error', Object.assign(new Error('broken pipe'), { code: 'EPIPE' }))
    signal.throwIfAborted()
    return 3
  },
}
`

describe('a verb whose reader has gone', () => {
  const tail = async (words: string, entry: Partial<Verb>) => {
    const file = join(directory, 'tail.mjs')
    writeFileSync(file, UNREAD)
    const load = () => import(pathToFileURL(file).href) as ReturnType<Verb['load']>
    const verb: Verb = { summary: 'print lines', effect: 'reads', takes: [], load, ...entry }
    return await muster(words, { ...VERBS, tail: verb })
  }
  const ended = { exitCode: 0, output: '', messages: '' }
  const goesOn = { exitCode: 3, output: '', messages: '' }

  it('ends at once with 0 where it only prints what goes on', async () => {
    expect(await tail('tail', { streams: true })).toEqual(ended)
    expect(await tail('tail --follow', { streams: ['follow'] })).toEqual(ended)
  })

  it('goes on where it has something to finish', async () => {
    expect(await tail('tail', { streams: ['follow'] })).toEqual(goesOn)
    expect(await tail('tail', { effect: 'changes', streams: true })).toEqual(goesOn)
    expect(await tail('tail', { streams: true, outlivesReader: true })).toEqual(goesOn)
    expect(await tail('tail --record file', { streams: true, changesWith: ['record'] })).toEqual(goesOn)
  })
})

describe('a planted verb', () => {
  it('runs with its arguments, its options and the shared ones', async () => {
    expect(await muster('hello world --loud')).toEqual({ exitCode: 7, output: 'hello WORLD\n', messages: '' })
    expect((await muster('--json hello')).output).toBe('{"name":"you"}\n')
  })

  it('gets true for an option that can only be switched off', async () => {
    expect((await muster('hello')).exitCode).toBe(7)
    expect((await muster('hello --no-wave')).exitCode).toBe(8)
  })

  it('is in the help of muster, and has its own help', async () => {
    expect((await muster('--help')).output).toMatch(/^ {2}hello +say hello$/m)
    const { output } = await muster('hello --help')
    for (const text of ['say hello', '--loud', '--json', '--timeout', 'muster hello world'])
      expect(output).toContain(text)
    for (const text of ['--fan-out', '--hosts', '--dry-run', '--yes']) expect(output).not.toContain(text)
    for (const args of ['help hello', 'hello help --help']) expect((await muster(args)).output).toBe(output)
  })

  it('does not list options that the console refuses under those of the console', async () => {
    const { output } = await muster('--help')
    const [, own = '', ofCommands = ''] =
      /\nOptions:\n([\s\S]*?)\n\nOptions of commands.*:\n([\s\S]*?)\n\n/.exec(output) ?? []
    for (const long of ['--json', '--dry-run', '--timeout', '--yes', '--no-pager']) {
      expect(ofCommands).toContain(`${long} `)
      expect(own).not.toContain(`${long} `)
    }
    for (const long of ['--hosts', '--keep', '--user', '--help']) expect(own).toContain(`${long} `)
  })

  it('is suggested for a misspelt word, and refuses options that it does not declare', async () => {
    expect((await muster('helo')).messages).toContain('unknown command: helo; did you mean muster hello?')
    expect(await muster('hello --spam')).toMatchObject({
      exitCode: 2,
      messages: "muster: unknown option '--spam'\nRun: muster hello --help\n",
    })
  })

  it('accepts --dry-run if it reads, and refuses it if it changes something', async () => {
    expect((await muster('hello --dry-run')).exitCode).toBe(7)
    const refused = 'muster: `muster hello` has no --dry-run: nothing was done\n'
    for (const entry of [{ effect: 'changes' }, { effect: 'console' }, { changesWith: ['loud'] }] as const)
      expect(await muster('hello --loud --dry-run', planted(entry))).toEqual({
        exitCode: 2,
        output: '',
        messages: refused,
      })
    const verbs = planted({ effect: 'plans' })
    expect((await muster('hello --dry-run', verbs)).exitCode).toBe(7)
    expect((await muster('hello --help', verbs)).output).toContain('show the plan, without applying it')
  })

  it('is stopped by --timeout with the exit code of its effect, and refuses it as a console', async () => {
    const verb = (effect: Verb['effect']) =>
      planted({
        effect,
        load: async () => ({
          help: '',
          run: (_: object, { signal }: { signal: AbortSignal }) =>
            new Promise<number>((resolve) => signal.addEventListener('abort', () => resolve(130))),
        }),
      })
    for (const [effect, exitCode] of [
      ['reads', 1],
      ['changes', 1],
      ['plans', 5],
    ] as const)
      expect(await muster('hello --timeout 0.01', verb(effect))).toEqual({
        exitCode,
        output: '',
        messages: 'muster: stopped after 0.01 s (--timeout)\n',
      })
    expect(await muster('hello --timeout 1', verb('console'))).toMatchObject({
      exitCode: 2,
      messages: 'muster: `muster hello` has no --timeout\n',
    })
  })
})

describe('the table of verbs', () => {
  it('loads the code of a verb only when it is called', async () => {
    let loads = 0
    const load = async () => {
      loads += 1
      return { help: '', run: () => 0 }
    }
    const verbs = planted({ load })
    for (const args of ['--version', 'hosts', 'simulate --help', '--help']) await muster(args, verbs)
    expect(loads).toBe(0)
    await muster('hello', verbs)
    expect(loads).toBe(1)
  })

  it('lists no connection options for verbs that connect to no host', async () => {
    for (const args of ['simulate --help', 'simulate fleet --help', 'import --help', 'job list --help'])
      expect((await muster(args)).output).not.toMatch(/--fan-out|--connect-timeout|--persist/)
  })

  it('shows the help of a sub-verb with help before or after it', async () => {
    const { output } = await muster('job submit --help')
    expect(output).toContain('Usage: muster job submit')
    for (const args of ['help job submit', 'job help submit']) expect((await muster(args)).output).toBe(output)
  })

  it('refuses help for a verb that does not exist, and suggests one', async () => {
    for (const [args, word, hint] of [
      ['help simulat', 'simulat', 'Did you mean muster simulate?'],
      ['help job submt', 'submt', 'Did you mean muster job submit?'],
      ['job help submt', 'submt', 'Did you mean muster job submit?'],
      ['help xyzzy', 'xyzzy', 'Run: muster --help'],
    ] as const)
      expect(await muster(args)).toEqual({
        exitCode: 2,
        output: '',
        messages: `muster: unknown command: ${word}\n${hint}\n`,
      })
  })

  it('has summaries and descriptions in one style: verb or noun, lower case, no full stop', async () => {
    const streams = { stdout: new PassThrough(), stderr: new PassThrough() }
    const tree = new VerbTree(CONSOLE, VERBS, streams, async () => {})
    const below = (command: Command): readonly Command[] => [command, ...command.commands.flatMap(below)]
    const commands = below(tree.program)
    for (const command of commands) {
      await tree.load(command)
      const { options, registeredArguments } = command
      const texts = [command, ...options, ...registeredArguments].flatMap(({ description }) =>
        typeof description === 'function' ? command.description() : (description ?? []),
      )
      for (const text of texts) expect([pathOf(command), text]).toEqual([pathOf(command), expect.stringMatching(STYLE)])
    }
    expect(commands.length).toBeGreaterThan(50)
  })
})
