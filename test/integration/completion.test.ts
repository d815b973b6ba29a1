/** Tab in a real bash, zsh and fish, installed as `muster completion --help` says. */
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { afterEach, beforeEach, describe, it } from 'vitest'
import { shellQuote } from '../../src/base/shell-quote.ts'
import { ownCommand } from '../../src/cli/command-line/own-command.ts'
import { SHELLS } from '../../src/cli/completion/shells.ts'
import { writeProgram } from '../support/program.ts'
import { requirement } from '../support/requirements.ts'
import { startOnTerminal } from '../support/terminal-program.ts'

let directory: string
let closing: (() => unknown)[]
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'muster-completion-'))
  closing = []
  // ownCommand() names vitest's loader here; a script hides that from the shell.
  const program = join(directory, 'bin/muster')
  mkdirSync(join(directory, 'bin'))
  writeProgram(program, `exec ${ownCommand().map(shellQuote).join(' ')} "$@"`)
  writeFileSync(join(directory, 'hosts.yaml'), 'hosts: { m8: {}, m9: {} }\ngroups: { workers: [m8, m9] }\n')
  writeFileSync(join(directory, 'notes of mine.txt'), '')
})
afterEach(() => {
  for (const close of closing) close()
  // The shell may still write its history while it ends.
  rmSync(directory, { recursive: true, maxRetries: 50, retryDelay: 100 })
})

const STARTS: Readonly<Record<string, readonly string[]>> = {
  bash: ['bash', '-i'],
  zsh: ['zsh', '-i'],
  fish: ['fish', '--private'],
}

/** An interactive shell after the commands that `muster completion --help` gives to install its script. */
function startShell(shell: string) {
  for (const file of ['.bashrc', '.zshrc']) writeFileSync(join(directory, file), "PS1='> '\n")
  mkdirSync(join(directory, '.config/fish'), { recursive: true })
  writeFileSync(
    join(directory, '.config/fish/config.fish'),
    "set -g fish_greeting; function fish_prompt; echo '> '; end\n",
  )
  const environment = {
    HOME: directory,
    PATH: [join(directory, 'bin'), process.env.PATH].join(delimiter),
    TERM: 'xterm-256color',
    LANG: 'C.UTF-8',
  }
  execFileSync(shell, ['-c', SHELLS[shell]?.install ?? ''], { env: environment })
  const started = startOnTerminal(
    ['/bin/sh', '-c', `cd ${shellQuote(directory)} && exec "$@"`, 'sh', ...(STARTS[shell] ?? [])],
    environment,
  )
  closing.push(started.close)
  return { type: started.type, shows: started.draws }
}

describe.each(Object.keys(SHELLS))('%s', (shell) => {
  const hasShell = requirement(shell)

  it.skipIf(!hasShell)('completes verbs, groups and options, and the completed line runs', async () => {
    const terminal = startShell(shell)
    await terminal.shows(/^> ?$/m)
    terminal.type('muster hos\t')
    await terminal.shows(/> muster hosts/)
    terminal.type('@wo\t')
    await terminal.shows(/> muster hosts @workers/)
    terminal.type(' --js\t')
    await terminal.shows(/> muster hosts @workers +--json/)
    terminal.type('\r')
    await terminal.shows(/"host":"m9"/)
    terminal.type('~/bin/muster fet\t')
    await terminal.shows(/> ~\/bin\/muster fetch/)
  })

  it.skipIf(!hasShell)('lists hosts in the order of their names', async () => {
    const terminal = startShell(shell)
    await terminal.shows(/^> ?$/m)
    terminal.type('muster run m\t\t')
    await terminal.shows(/m8\b.*\bm9/)
  })

  it.skipIf(!hasShell)('completes file names where a verb takes a file', async () => {
    const terminal = startShell(shell)
    await terminal.shows(/^> ?$/m)
    terminal.type('muster --hosts ./hos\t')
    await terminal.shows(/\.\/hosts\.yaml/)
    terminal.type('run m8 -- cat not\t')
    await terminal.shows(/notes\\ of\\ mine\.txt/)
  })
})
