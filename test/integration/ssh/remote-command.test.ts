import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, globSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, it, onTestFinished } from 'vitest'
import { buildRemoteCommand, END, GO } from '../../../src/ssh/exec/remote-command.ts'
import { anyCharacter } from '../../support/any-character.ts'
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
    process.kill(-(child.pid ?? Number.NaN), signal)
    await ended
    child.stdin.destroy()
    expect([existsSync(beside), readdirSync(temporary)]).toEqual([true, []])
  })

  it('contains neither a password nor a placeholder for one', () => {
    const line = buildRemoteCommand({ ...plain, isSudo: true })
    expect(line).toMatch(/^exec \/bin\/sh -c '[^']*exec sudo -S -p "sudo\$b" -- \/bin\/sh -c /)
  })

  it("keeps the secret word out of the command's environment, whatever the login exports", async () => {
    const command = 'env; tr "\\0" "\\n" </proc/$$/cmdline'
    const { output } = await login('bash', buildRemoteCommand({ ...plain, command }), { b: 'b', k: 'k', w: 'w' })
    expect(output).not.toContain(WORD)
  })
})
