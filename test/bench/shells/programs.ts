/** The two programs that are compared, each in a terminal of its own with a shell on every host, all of them receiving. */
import { spawnSync } from 'node:child_process'
import { copyFileSync, existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { findProgram } from '../../support/requirements.ts'
import { endProcesses, isAlive, withDescendants } from '../support/processes.ts'
import { COLUMNS, type Command, OuterTerminal, ROWS } from './outer-terminal.ts'
import { PROMPT, type Servers } from './servers.ts'

/** Lines of history a pane. */
export const HISTORY = 1000

export interface Program extends AsyncDisposable {
  readonly name: 'Muster' | 'tmux'
  readonly terminal: OuterTerminal
  /** From the start of the program until anything, and until every prompt was painted. */
  readonly start: StartTimes
  /** The terminals of the shells, the first (focused) host first. */
  readonly shells: readonly string[]
  /** Everything that runs on the user's machine: client and console; of tmux, client, server and every ssh. */
  pids(): readonly number[]
  /** Keys go to all hosts, or to the first one only. */
  receive(whom: 'all' | 'first'): Promise<void>
  /** The command that brings it back after its process in the terminal was killed. */
  readonly attach: Command
}

export type StartTimes = { readonly firstMs: number; readonly readyMs: number }

export type ProgramOptions = {
  readonly directory: string
  readonly servers: Servers
  readonly hosts: number
  /** Where the compiled console stands. */
  readonly build: string
  readonly nodeArguments?: readonly string[]
}

const LEADER = '\x1d'

function environmentOf(extra: Record<string, string> = {}): Record<string, string> {
  return { PATH: process.env.PATH ?? '', HOME: '/nonexistent', LANG: 'C.UTF-8', TERM: 'xterm-256color', ...extra }
}

export async function startMuster(options: ProgramOptions): Promise<Program> {
  const { directory, servers, hosts, build } = options
  const config = join(directory, 'config')
  mkdirSync(join(config, 'muster'), { recursive: true })
  // All panes on one page, as tmux has them.
  const preferences = `theme: dark\nhistory: ${HISTORY}\npane: { columns: 20, rows: 6 }\n`
  writeFileSync(join(config, 'muster', 'preferences.yaml'), preferences)
  const bin = join(directory, 'bin')
  mkdirSync(bin, { recursive: true })
  writeFileSync(join(bin, 'ssh'), `#!/bin/sh\nexec ${findProgram('ssh')} -F ${servers.sshConfig} "$@"\n`, {
    mode: 0o755,
  })
  const runtime = join(directory, 'run')
  mkdirSync(runtime)
  // Later starts use the compiled code that the first one keeps there.
  const home = join(build, 'home')
  mkdirSync(home, { recursive: true, mode: 0o700 })
  // A copy of Node, so that no other program on the machine shares its pages.
  const node = join(build, 'node')
  if (!existsSync(node)) copyFileSync(process.execPath, node)
  const command = (...args: readonly string[]): Command => ({
    file: node,
    args: [...(options.nodeArguments ?? []), join(build, 'bin', 'muster.js'), ...args],
    environment: environmentOf({
      PATH: `${bin}:${process.env.PATH}`,
      HOME: home,
      XDG_CONFIG_HOME: config,
      XDG_STATE_HOME: config,
      MUSTER_RUNTIME_DIR: runtime,
    }),
  })
  const terminal = new OuterTerminal(command('--keep', '--hosts', servers.hostsYaml(hosts)))
  const start = await timeStart(terminal, hosts)
  let isAlone = false
  return {
    name: 'Muster',
    terminal,
    start,
    shells: terminalsOf(servers, hosts),
    pids: () => withDescendants(terminal.pid),
    async receive(whom) {
      if ((whom === 'first') === isAlone) return
      isAlone = whom === 'first'
      terminal.type(`${LEADER}s`)
      await terminal.quiet(300)
    },
    attach: command('attach'),
    async [Symbol.asyncDispose]() {
      const { file, args, environment } = command('sessions', '--end', 'all')
      spawnSync(file, args, { env: environment, stdio: 'ignore' })
      await terminal[Symbol.asyncDispose]()
    },
  }
}

export async function startTmux({ directory, servers, hosts }: ProgramOptions): Promise<Program> {
  const socket = join(directory, 'tmux')
  const shell = (host: string) => `exec ${findProgram('ssh')} -F ${servers.sshConfig} -tt ${host}`
  const names = servers.names.slice(0, hosts)
  const settings = join(directory, 'tmux.conf')
  writeFileSync(
    settings,
    `set -g default-shell /bin/sh
set -g history-limit ${HISTORY}
set -g default-terminal tmux-256color
set -s escape-time 0
`,
  )
  const panes = join(directory, 'tmux-panes')
  const splits = names.slice(1).map((name) => `split-window -d '${shell(name)}'\nselect-layout tiled\n`)
  writeFileSync(panes, `${splits.join('')}setw synchronize-panes on\n`)
  const base = ['-S', socket, '-f', settings]
  const run = (...args: string[]) =>
    spawnSync('tmux', [...base, ...args], { encoding: 'utf8', env: environmentOf() }).stdout.trim()
  const terminal = new OuterTerminal({
    file: findProgram('tmux') ?? 'tmux',
    args: [
      ...base,
      'new-session',
      '-x',
      String(COLUMNS),
      '-y',
      String(ROWS),
      shell(names[0] ?? ''),
      ';',
      'source-file',
      panes,
    ],
    environment: environmentOf(),
  })
  const start = await timeStart(terminal, hosts)
  const server = Number(run('display-message', '-p', '#{pid}'))
  return {
    name: 'tmux',
    terminal,
    start,
    shells: terminalsOf(servers, hosts),
    pids: () => [terminal.pid, ...withDescendants(server)],
    async receive(whom) {
      run('set-option', '-w', 'synchronize-panes', whom === 'all' ? 'on' : 'off')
      await terminal.quiet(300)
    },
    attach: { file: findProgram('tmux') ?? 'tmux', args: [...base, 'attach'], environment: environmentOf() },
    async [Symbol.asyncDispose]() {
      const pids = withDescendants(server)
      run('kill-server')
      await terminal[Symbol.asyncDispose]()
      await endProcesses(pids.filter(isAlive))
    },
  }
}

async function timeStart(terminal: OuterTerminal, hosts: number): Promise<StartTimes> {
  const since = () => performance.now() - terminal.startedMs
  await terminal.until(() => terminal.text() !== '', 'the first frame')
  const firstMs = since()
  await terminal.until(() => terminal.count(PROMPT) >= hosts, `${hosts} prompts`)
  const readyMs = since()
  await terminal.quiet(500)
  return { firstMs, readyMs }
}

function terminalsOf(servers: Servers, hosts: number): string[] {
  const terminals = servers.takeTerminals(servers.names.slice(0, hosts))
  return servers.names.slice(0, hosts).map((name) => {
    const path = terminals[name]
    if (path === undefined) throw new Error(`the shell of ${name} did not say on which terminal it runs`)
    return path
  })
}
