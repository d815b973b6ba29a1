/** Muster and its peers: how each runs one command on many hosts. */
import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { findProgram } from '../../support/requirements.ts'

export type Task = {
  readonly hosts: readonly string[]
  readonly command: string
  readonly fanOut: number
  /** What the output of each host has once. */
  readonly mark: string
}

export type Contender = {
  readonly name: string
  readonly environment?: Readonly<Record<string, string>>
  words(task: Task): readonly string[]
  /** Before each cold round: what an earlier one kept is gone. */
  forget?(): void
  /** Words of a program that makes connections for later rounds and stays in its group; run before the first round. */
  warmUp?(task: Task): readonly string[]
  /** Undefined: all processes of the group end after each round. */
  readonly keepsProcesses?: boolean
  /** Prints equal output once. */
  readonly isFolded?: boolean
  /** A round without all hosts is an error of the benchmark, and not the program's own. */
  readonly isOurs?: boolean
}

const setOf = (hosts: readonly string[]) =>
  `${hosts[0]?.replace(/\d+$/, '')}[${hosts[0]?.replace(/\D+/, '')}-${hosts.at(-1)?.replace(/\D+/, '')}]`

export function createContenders(directory: string, build: string, nodeArguments: readonly string[]) {
  const file = (name: string) => join(directory, name)
  for (const name of ['runtime', 'state', 'work', 'masters', 'ansible', 'ansible-cold', 'ansible-warm']) {
    mkdirSync(file(name), { mode: 0o700 })
  }
  const namesFile = ({ hosts }: Task) => {
    const path = file(`names-${hosts.length}`)
    writeFileSync(path, `${hosts.join('\n')}\n`)
    return path
  }
  const muster = (...options: string[]): Contender => ({
    name: `muster${options.map((option) => ` ${option}`).join('')}`,
    environment: { MUSTER_RUNTIME_DIR: file('runtime'), XDG_STATE_HOME: file('state'), XDG_CONFIG_HOME: file('state') },
    words: ({ hosts, command, fanOut }) => [
      process.execPath,
      ...nodeArguments,
      join(build, 'bin', 'muster.js'),
      ...['run', setOf(hosts), '--fan-out', String(fanOut), ...options, '--', command],
    ],
    keepsProcesses: options.includes('--persist'),
    isFolded: options.includes('--fold'),
    isOurs: true,
  })
  const pdsh = (name: string, more: Partial<Contender> = {}, ssh = ''): Contender => ({
    name,
    environment: { PDSH_RCMD_TYPE: 'ssh', PDSH_SSH_ARGS_APPEND: ssh },
    words: ({ hosts, command, fanOut }) => ['pdsh', '-f', String(fanOut), '-w', setOf(hosts), command],
    ...more,
  })
  const ansible = (state: 'cold' | 'warm'): Contender => ({
    name: `ansible raw, ${state}`,
    environment: {
      ANSIBLE_HOME: file('ansible'),
      ANSIBLE_LOCAL_TEMP: file('ansible'),
      ANSIBLE_SSH_CONTROL_PATH_DIR: file(`ansible-${state}`),
      ANSIBLE_PYTHON_INTERPRETER: '/usr/bin/python3',
      ANSIBLE_NOCOLOR: '1',
    },
    words: (task) => {
      const common = ['-i', namesFile(task), '-f', String(task.fanOut), '-m', 'raw', '-a', task.command]
      return ['ansible', 'all', ...common, '--ssh-common-args=-o ControlPersist=600']
    },
    ...(state === 'warm' ? { keepsProcesses: true } : { forget: () => clear(file('ansible-cold')) }),
  })
  const masters = file('masters')
  return {
    muster,
    pdsh: () => pdsh('pdsh'),
    pdshFolded: () =>
      pdsh('pdsh \\| dshbak -c', {
        isFolded: true,
        words: ({ hosts, command, fanOut }) => [
          ...['/bin/sh', '-c', 'pdsh -f "$0" -w "$1" "$2" | dshbak -c'],
          ...[String(fanOut), setOf(hosts), command],
        ],
      }),
    pdshOverMasters: () =>
      pdsh(
        'pdsh over ControlMasters',
        {
          keepsProcesses: true,
          warmUp: (task) => [
            ...['xargs', '-a', namesFile(task), '-P', '8', '-I{}'],
            ...['ssh', '-M', '-N', '-f', '-o', `ControlPath=${masters}/{}`, '{}'],
          ],
        },
        // Here %h is pdsh's.
        `-o ControlPath=${masters}/%h`,
      ),
    clush: (...options: string[]): Contender => ({
      name: ['clush', ...options].join(' '),
      isFolded: options.includes('-b'),
      words: ({ hosts, command, fanOut }) => ['clush', '-f', String(fanOut), ...options, '-w', setOf(hosts), command],
    }),
    pssh: (): Contender => ({
      name: 'pssh -i',
      words: (task) => {
        const pssh = findProgram('parallel-ssh') ?? 'pssh'
        return [pssh, '-p', String(task.fanOut), '-t', '0', '-i', '-h', namesFile(task), task.command]
      },
    }),
    xargs: (): Contender => ({
      name: 'xargs ssh',
      words: (task) => ['xargs', '-a', namesFile(task), '-P', String(task.fanOut), '-I{}', 'ssh', '{}', task.command],
    }),
    ansible,
  }
}

function clear(directory: string): void {
  for (const name of readdirSync(directory)) rmSync(join(directory, name), { recursive: true, force: true })
}
