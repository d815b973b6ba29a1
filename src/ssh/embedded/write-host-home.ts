/** The home directory of an embedded host: its name in the prompt, `hostname` and `uname -n`, and a few files of its own. */
import { chmod, mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { shellQuote } from '../../base/shell-quote.ts'

/** A program for sh that hosts have besides, and how it is used. */
export type HostCommand = {
  readonly name: string
  readonly script: string
  readonly example: string
  readonly about: string
}

export type HostHome = {
  readonly directory: string
  readonly binDirectory: string
  readonly shellFile: string
  readonly shellArguments: readonly string[]
  readonly logFile: string
  /** The public key of its server. */
  readonly hostKeyFile: string
}

export type HostHomeOptions = {
  /** An existing directory in which the host gets one of its own. */
  readonly parent: string
  readonly name: string
  readonly number: number
  readonly port: number
  readonly publicKeyLine: string
  readonly user: string
  /** A bash, or any POSIX shell. */
  readonly shellFile: string
  readonly path: string
  readonly commands: readonly HostCommand[]
}

export async function writeHostHome(options: HostHomeOptions): Promise<HostHome> {
  const { parent, name, shellFile } = options
  const directory = join(parent, name)
  const binDirectory = join(parent, 'bin', name)
  const isBash = shellFile.endsWith('/bash')
  const hostKeyFile = join(parent, 'keys', `${name}.pub`)
  const logFile = join(directory, 'logs', 'sshd.log')
  await Promise.all([
    mkdir(join(directory, 'logs'), { recursive: true }),
    mkdir(join(directory, 'data'), { recursive: true }),
    mkdir(binDirectory, { recursive: true }),
    mkdir(join(parent, 'keys'), { recursive: true }),
  ])
  const files: Record<string, string> = {
    README: readme(options),
    release: `app 1.4.${options.number === 3 ? 1 : 2}\n`,
    'logs/train.log': trainingLog(options),
    'data/measurements.csv': measurements(options),
    '.bashrc': bashrc(options, binDirectory),
    '.shrc': shrc(options, binDirectory),
  }
  const commands: Record<string, string> = {
    hostname: hostnameCommand(options),
    uname: unameCommand(options),
    ...Object.fromEntries(options.commands.map(({ name, script }) => [name, script])),
  }
  await Promise.all([
    ...Object.entries(files).map(([file, content]) => writeFile(join(directory, file), content)),
    writeFile(logFile, ''),
    writeFile(hostKeyFile, `${options.publicKeyLine}\n`),
    ...Object.entries(commands).map(async ([file, content]) => {
      await writeFile(join(binDirectory, file), content)
      await chmod(join(binDirectory, file), 0o755)
    }),
  ])
  return {
    directory,
    binDirectory,
    shellFile,
    shellArguments: isBash ? ['--noprofile', '--rcfile', join(directory, '.bashrc'), '-i'] : ['-i'],
    logFile,
    hostKeyFile,
  }
}

function readme({ name, port, commands }: HostHomeOptions): string {
  return [
    `${name} is a demo host of Muster: a real SSH server on 127.0.0.1:${port} with a`,
    'real shell of yours, all on this machine. Only its name and this home directory',
    'are its own, and the directory is deleted when the demo ends.',
    '',
    'Things to try on all hosts at once:',
    '  hostname                   every host answers with its own name',
    '  cat release                one host runs another version: which?',
    '  tail -f logs/sshd.log      what this SSH server sees of you',
    '  wc -l data/*.csv           invented numbers, of different lengths',
    '  vim, less, top             whole-screen programs work too',
    ...commands.map(({ example, about }) => `  ${example.padEnd(26)} ${about}`),
    '',
  ].join('\n')
}

function bashrc(options: HostHomeOptions, binDirectory: string): string {
  const { user, name } = options
  return [
    pathLine(options, binDirectory),
    `PS1='\\[\\e[1;32m\\]${user}@${name}\\[\\e[0m\\]:\\[\\e[1;34m\\]\\w\\[\\e[0m\\]\\$ '`,
    'unset HISTFILE',
    'shopt -s checkwinsize',
    'ls --color=auto / >/dev/null 2>&1 && alias ls="ls --color=auto"',
    "alias grep='grep --color=auto' ll='ls -l'",
    'cd "$HOME"',
    '',
  ].join('\n')
}

function shrc(options: HostHomeOptions, binDirectory: string): string {
  return [pathLine(options, binDirectory), `PS1='${options.user}@${options.name}$ '`, 'cd "$HOME"', ''].join('\n')
}

function pathLine({ path }: HostHomeOptions, binDirectory: string): string {
  return `PATH=${shellQuote(`${binDirectory}:${path}`)}`
}

function hostnameCommand({ name, path }: HostHomeOptions): string {
  return `#!/bin/sh
# Shows the demo host's name. Addresses are the machine's; nothing is ever set.
case "\${1-}" in
  '' | -s | -f | --short | --fqdn | --long) echo ${shellQuote(name)} ;;
  -i | -I | --ip-address | --all-ip-addresses) PATH=${shellQuote(path)} exec hostname "$1" ;;
  *) echo "hostname: a demo host only shows its name and addresses" >&2; exit 1 ;;
esac
`
}

function unameCommand({ name, path }: HostHomeOptions): string {
  return `#!/bin/sh
# The machine's uname, with the demo host's name as the node name.
PATH=${shellQuote(path)}
if [ "$*" = -n ] || [ "$*" = --nodename ]; then echo ${shellQuote(name)}; exit; fi
uname "$@" | sed "s/ $(uname -n) / ${name} /"
`
}

function trainingLog({ name, number }: HostHomeOptions): string {
  const steps = 40 + number * 5
  const lines = Array.from({ length: steps }, (_, step) => {
    const loss = 0.4 + 2.2 * Math.exp(-step / (12 + number)) + wobble(number, step) / 20
    return `step ${String(step * 10).padStart(5)}  loss ${loss.toFixed(4)}`
  })
  return [`# ${name}: an invented training log`, ...lines, ''].join('\n')
}

function measurements({ name, number }: HostHomeOptions): string {
  const rows = Array.from(
    { length: 20 + number * 3 },
    (_, row) => `${row},${(40 + 20 * wobble(number, row)).toFixed(2)}`,
  )
  return [`# ${name}: invented numbers`, 'minute,temperature', ...rows, ''].join('\n')
}

/** In [0, 1), the same every time for a host and a place. */
function wobble(number: number, place: number): number {
  const value = Math.sin(number * 12.9898 + place * 78.233) * 43758.5453
  return value - Math.floor(value)
}
