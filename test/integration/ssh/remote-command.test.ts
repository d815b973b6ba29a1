import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, existsSync, globSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { signalGroup } from '../../../src/base/processes.ts'
import { buildRemoteCommand, END, GO } from '../../../src/ssh/exec/remote-command.ts'
import { anyCharacter } from '../../support/any-character.ts'
import { writeProgram } from '../../support/program.ts'
import { findProgram } from '../../support/requirements.ts'
import { waitUntil } from '../../support/wait-until.ts'

const plain = { command: 'true', environment: {}, ready: 'ready1', beatLimitS: 45 }
const WORD = 'word1'
const SHELLS = ['sh', 'dash', 'bash', 'zsh', 'fish', 'csh', 'tcsh'].filter((name) => findProgram(name) !== undefined)

/** As sshd does it: a session of its own, one line for the login shell, stdin open until the command has ended. */
async function login(shell: string, line: string, environment: Readonly<Record<string, string>> = {}) {
  const child = spawn(shell, ['-c', line], {
    env: { PATH: process.env.PATH, SHELL: '/bin/sh', ...environment },
    detached: true,
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const output: Buffer[] = []
  child.stdout.on('data', (bytes: Buffer) => output.push(bytes))
  child.stdin.write(`${WORD}\n`)
  await once(child, 'close')
  child.stdin.destroy()
  const [ready, begin, ...rest] = Buffer.concat(output).toString().split('\n')
  return { ready, begin, output: rest.join('\n') }
}

/** A command that is held, as sshd starts it, and what it has printed when it has ended. */
async function held(command: string, words: (begun: () => Promise<unknown>) => AsyncIterable<string>) {
  const child = spawn('/bin/sh', ['-c', buildRemoteCommand({ ...plain, command, isHeld: true })], {
    env: { PATH: process.env.PATH, SHELL: '/bin/sh' },
    detached: true,
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const closed = once(child, 'close')
  let printed = ''
  child.stdout.on('data', (bytes: Buffer) => {
    printed += bytes.toString()
  })
  const begun = async () => {
    while (!printed.includes('loaded\n')) await once(child.stdout, 'data')
  }
  child.stdin.write(`${WORD}\n`)
  for await (const word of words(begun)) child.stdin.write(word)
  child.stdin.end()
  await closed
  return printed
}

const anyText = fc
  .string({ unit: anyCharacter, maxLength: 60 })
  .filter((text) => !text.includes('\0') && text.isWellFormed())

describe('the remote command line', () => {
  it('contains nothing in quotation marks that a login shell interprets differently', () => {
    fc.assert(
      fc.property(anyText, anyText, (command, value) => {
        const line = buildRemoteCommand({ ...plain, command, environment: { V: value } })
        expect(line).toMatch(/^[ -~]*$/)
        expect(line).not.toMatch(/!/)
        const inside = line.split("'").filter((_, index) => index % 2 === 1)
        for (const text of inside) expect(text.replaceAll(/\\0[0-7]{3}/g, '')).not.toContain('\\')
      }),
    )
  })

  it.each(SHELLS)('passes any words unchanged through %s', async (shell) => {
    await fc.assert(
      fc.asyncProperty(anyText, anyText, async (word, value) => {
        const command = `printf '%s\\n%s' '${word.replaceAll("'", "'\\''")}' "$V"`
        const { ready, begin, output } = await login(
          shell,
          buildRemoteCommand({ ...plain, command, environment: { V: value } }),
        )
        expect([ready, begin]).toEqual(['ready1', `begin${WORD}`])
        expect(output).toBe(`${word}\n${value}`)
      }),
      { numRuns: 6 },
    )
  })

  it('lets a held command continue on request, also between heartbeats', async () => {
    const printed = await held('echo loaded; read -r go && echo "went on [$go]"; cat', async function* (begun) {
      yield 'b\n'
      await begun()
      yield 'b\n'
      yield GO
      yield 'b\n'
    })
    expect(printed).toBe(`ready1\nbegin${WORD}\nloaded\nwent on []\n`)
  })

  it.each([
    ['told to end', END],
    ['left', ''],
  ])('ends a held command that is %s, before it continued', async (_, word) => {
    const printed = await held('echo loaded; read -r go && echo "went on"; exec sleep 1000', async function* (begun) {
      await begun()
      yield word
    })
    expect(printed).toBe(`ready1\nbegin${WORD}\nloaded\n`)
  })

  it.each([
    'SIGTERM',
    'SIGHUP',
  ] as const)('removes its own directory alone at %s, whatever TMPDIR is', async (signal) => {
    const base = mkdtempSync(join(tmpdir(), 'muster-wrapper-'))
    onTestFinished(() => rmSync(base, { recursive: true }))
    const [beside, temporary] = [join(base, 'x'), join(base, 'x y * $HOME "`')]
    for (const each of [beside, temporary]) mkdirSync(each)
    const line = buildRemoteCommand({ ...plain, command: 'cat', stdin: { sizeBytes: 100 } })
    const child = spawn('/bin/sh', ['-c', line], {
      env: { PATH: process.env.PATH, SHELL: '/bin/sh', TMPDIR: temporary, HOME: beside },
      detached: true,
      stdio: ['pipe', 'ignore', 'inherit'],
    })
    const ended = once(child, 'exit')
    child.stdin.write(`${WORD}\nhalf of it`)
    await waitUntil(() => globSync('muster.*/all', { cwd: temporary }).length > 0, 'its directory')
    // A shell that is just about to become another program may lose it.
    await waitUntil(() => {
      signalGroup(child.pid, signal)
      return child.exitCode !== null || child.signalCode !== null
    }, 'it to end')
    await ended
    child.stdin.destroy()
    expect([existsSync(beside), readdirSync(temporary)]).toEqual([true, []])
  })

  describe('on a host whose TMPDIR has no use', () => {
    const script = { sizeBytes: 5, interpreter: [], args: [] }
    let base: string
    beforeEach(() => {
      base = mkdtempSync(join(tmpdir(), 'muster-wrapper-'))
    })
    afterEach(() => rmSync(base, { recursive: true }))

    const run = (temporary: string, spec: Partial<Parameters<typeof buildRemoteCommand>[0]>) => {
      const { stdout, stderr, status } = spawnSync('/bin/sh', ['-c', buildRemoteCommand({ ...plain, ...spec })], {
        env: { PATH: `${join(base, 'programs')}:${process.env.PATH}`, SHELL: '/bin/sh', TMPDIR: temporary },
        input: `${WORD}\ntrue\n`,
        encoding: 'utf8',
      })
      return { stdout, said: stderr.trimEnd().split('\n'), status }
    }

    it.each([
      ['a script', { script }],
      ['a stdin', { stdin: { sizeBytes: 5 } }],
      ['a held command', { isHeld: true }],
    ])('says in short lines that there is no place for %s', (_, spec) => {
      const { stdout, said, status } = run(join(base, 'none'), spec)
      expect([stdout, status]).toEqual(['ready1\n', 1])
      expect(said).toHaveLength(2)
      expect(said[0]).toMatch(/^.{0,40}cd: .{0,100}$/)
      expect(said[1]).toContain('muster: cannot make a temporary directory in ')
    })

    it('says in short lines that a file cannot be made there', () => {
      writeProgram(join(base, 'programs', 'mktemp'), `echo ${join(base, 'none')}`)
      const { stdout, said, status } = run(base, { script })
      expect([stdout, status]).toEqual(['ready1\n', 1])
      expect(said).toHaveLength(2)
      expect(said[0]).toMatch(/^sh: .{0,120}$/)
      expect(said[1]).toBe(`muster: the file did not arrive whole in ${join(base, 'none')}`)
    })

    it.each([
      ['a script', { script }, 'script'],
      ['a stdin', { stdin: { sizeBytes: 5 } }, 'in'],
    ])('runs nothing where the disk is full before %s has its own file', (_, spec, name) => {
      const made = join(base, 'made')
      mkdirSync(made)
      symlinkSync('/dev/full', join(made, name))
      writeProgram(join(base, 'programs', 'mktemp'), `echo ${made}`)
      const { stdout, said, status } = run(base, { ...spec, command: 'echo it runs' })
      expect([stdout, status]).toEqual(['ready1\n', 1])
      expect(said.at(-1)).toBe(`muster: the file did not arrive whole in ${made}`)
      expect(existsSync(made)).toBe(false)
    })

    it.each([
      ['script', { script }],
      ['held command', { isHeld: true }],
    ])('runs no %s where another account can replace its files', (_, spec) => {
      chmodSync(base, 0o777)
      const { stdout, said, status } = run(base, spec)
      expect([stdout, status]).toEqual(['ready1\n', 1])
      expect(said).toEqual([expect.stringMatching(/^muster: other accounts can replace files in .*chmod \+t/)])
    })
  })

  it('contains neither a password nor a placeholder for one', () => {
    const line = buildRemoteCommand({ ...plain, isSudo: true })
    expect(line).toMatch(/^exec \/bin\/sh -c '[^']*exec sudo -S -p "sudo\$b" -- \/bin\/sh -c "\$w" sh /)
  })

  it("keeps the secret word out of the command's environment, whatever the login exports", async () => {
    const command = 'env; tr "\\0" "\\n" </proc/$$/cmdline'
    const { output } = await login('bash', buildRemoteCommand({ ...plain, command }), { b: 'b', k: 'k', w: 'w' })
    expect(output).not.toContain(WORD)
  })
})
