/** A lab whose hosts.yaml declares a mesh of all hosts, `muster` on it, and programs of a host that can be held in the middle. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { PROGRAM } from '../../support/console-options.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { type Lab, type LabOptions, startLab } from '../cluster/lab.ts'
import type { RunResult } from '../cluster/run.ts'

const TIMEOUT_MS = 200_000
const PATIENCE_MS = 60_000

export async function startMesh(options: LabOptions): Promise<Mesh> {
  const lab = await startLab(options)
  writeFileSync(lab.hostsFile, `${readFileSync(lab.hostsFile, 'utf8')}trust: { mesh: "@all" }\n`)
  return new Mesh(lab)
}

export class Mesh {
  readonly lab: Lab

  constructor(lab: Lab) {
    this.lab = lab
  }

  muster(...args: readonly string[]): Promise<RunResult> {
    return this.lab.run([...PROGRAM, '--hosts', this.lab.hostsFile, ...args], { timeoutMs: TIMEOUT_MS })
  }

  /** The program itself, to be killed by its id. */
  start(...args: readonly string[]): ChildProcess {
    const [file = '', ...argv] = this.lab.command([...PROGRAM, '--hosts', this.lab.hostsFile, ...args])
    return spawn(file, argv, { env: this.lab.environment, stdio: 'ignore' })
  }

  /** What the shell command prints on a host; an error when it fails. */
  async exec(name: string, command: string): Promise<string> {
    const { code, stdout, stderr } = await this.lab.host(name).exec(command)
    if (code !== 0) throw new Error(`${name}: ${command}: exit ${code}\n${stdout}${stderr}`)
    return stdout
  }

  /** Every file below the home directory: its mode, its size and a checksum. */
  async filesOf(name: string): Promise<string> {
    const list =
      'find . \\( -type d -o -type f \\) -printf "%p %m\\n" | sort; find . -type f | sort | xargs -d "\\n" cksum'
    return await this.exec(name, list)
  }

  /**
   * Puts a stand-in before a program of the host, which waits in the middle of its work while it is held, when its arguments
   * match the pattern of the shell. `begin`: what it does before it waits.
   */
  async replace(name: string, program: string, pattern: string, begin = ':'): Promise<Held> {
    const host = this.lab.host(name)
    const [hold, held] = [`/run/hold-${program}`, `/run/held-${program}`]
    const standIn = `#!/bin/sh
case "$*" in ${pattern})
  if [ -e ${hold} ]; then
    ${begin}
    touch ${held}
    while [ -e ${hold} ]; do sleep 0.1; done
  fi;;
esac
exec /run/real-${program} "$@"
`
    await this.exec(
      name,
      `path=$(readlink -f "$(command -v ${program})"); cp "$path" /run/real-${program}
printf %s '${standIn.replaceAll("'", "'\\''")}' > /run/stand-in-${program}; chmod 755 /run/stand-in-${program}
mount --bind /run/stand-in-${program} "$path"`,
    )
    const isHeld = async () => (await host.exec(`test -e ${held}`)).code === 0
    return {
      hold: async () => void (await this.exec(name, `rm -f ${held}; touch ${hold}`)),
      reached: async () => await waitUntil(isHeld, `${program} on ${name} to be in the middle`, PATIENCE_MS),
      gone: async () =>
        await waitUntil(
          () => !host.processes().some(({ command }) => command.includes(`/${program} `)),
          `the end of ${program} on ${name}`,
          PATIENCE_MS,
        ),
      release: async () => void (await this.exec(name, `rm -f ${hold} ${held}`)),
    }
  }
}

export type Held = {
  hold(): Promise<void>
  /** It is in the middle of its work. */
  reached(): Promise<void>
  /** No such program runs on the host any more. */
  gone(): Promise<void>
  release(): Promise<void>
}

export async function kill(child: ChildProcess): Promise<void> {
  const ended = once(child, 'exit')
  child.kill('SIGKILL')
  await ended
}
