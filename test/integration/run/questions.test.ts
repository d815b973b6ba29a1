/** Questions that servers ask at a login, on a terminal and without one. */
import { spawn } from 'node:child_process'
import { appendFileSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import type { AuthContext } from 'ssh2'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { EmbeddedHosts } from '../../../src/ssh/embedded/start-embedded-hosts.ts'
import { PROGRAM } from '../../support/console-options.ts'
import { writeEmbeddedInventory } from '../../support/embedded-inventory.ts'
import { requirement } from '../../support/requirements.ts'
import { startInProcessServer } from '../../support/ssh2-server.ts'
import { startOnTerminal } from '../../support/terminal-program.ts'

/** Two hosts that ask something different each, and what was answered. */
async function askingHosts(promptOf = (name: string) => `Code of ${name}: `) {
  const answers: string[] = []
  const asking = (prompt: string) => (attempt: AuthContext) => {
    if (attempt.method !== 'keyboard-interactive') return attempt.reject(['keyboard-interactive'])
    attempt.prompt([{ prompt, echo: false }], (given) => {
      answers.push(...given)
      attempt.reject(['keyboard-interactive'])
    })
  }
  const hosts = await Promise.all(
    ['m1', 'm2'].map(async (name) => {
      const server = await startInProcessServer(asking(promptOf(name)))
      return { name, ...server.endpoint() }
    }),
  )
  const given = { hosts, user: 'root', identityFile: '/dev/null', knownHostsFile: '/dev/null' }
  const inventory = writeEmbeddedInventory(given as unknown as EmbeddedHosts, [])
  onTestFinished(() => inventory[Symbol.dispose]())
  appendFileSync(join(inventory.environment.HOME ?? '', 'ssh_config'), 'StrictHostKeyChecking no\n')
  return { answers, environment: inventory.environment, words: ['--hosts', inventory.file] }
}

describe.skipIf(!requirement('ssh'))('a question of a server', () => {
  it.each([
    'run all -- true',
    'copy all /etc/hostname /tmp/',
    'hosts all --check',
  ])('is the last one after Ctrl-C, which ends the verb: muster %s', async (verb) => {
    const { answers, environment, words } = await askingHosts()
    const program = startOnTerminal([...PROGRAM, ...words, ...verb.split(' ')], environment)
    onTestFinished(() => void program.close())
    await program.shows(/The server asks: Code of m\d: /)
    program.type('\u0003')
    program.type('cat /etc/motd\r')
    await program.ended()
    expect(program.code()).toBe(130)
    expect(program.text().match(/The server asks/g)).toHaveLength(1)
    expect(answers).toEqual([])
  })

  it('has its further rows indented, wherever the terminal would break it', async () => {
    const fill = 'x'.repeat(95)
    const { environment, words } = await askingHosts(() => `${fill} Password of root on m9: `)
    const program = startOnTerminal([...PROGRAM, ...words, 'run', 'm1', '--', 'true'], environment)
    onTestFinished(() => void program.close())
    await program.shows(/The server asks: x/)
    const rows = program.text().split(/\r?\n/)
    const first = rows.findIndex((row) => row.startsWith('The server asks: '))
    const further = rows.slice(first + 1)
    expect(further.length).toBeGreaterThan(0)
    for (const row of further) expect(row).toMatch(/^ {2}/)
    for (const row of rows) expect(row.length).toBeLessThanOrEqual(120)
  })

  it('is nobody’s where there is no terminal, and is not said to be dismissed', async () => {
    const { answers, environment, words } = await askingHosts()
    const [file = '', ...args] = [...PROGRAM, ...words, 'run', 'm1', '--', 'true']
    const program = spawn(file, args, { env: environment, detached: true, stdio: ['ignore', 'ignore', 'pipe'] })
    const said = await text(program.stderr)
    expect(said).toContain('it asks for a password, and there is no terminal to ask on')
    expect(said).toContain('ssh-copy-id')
    expect(said).not.toContain('dismissed')
    expect(answers).toEqual([])
  })
})
