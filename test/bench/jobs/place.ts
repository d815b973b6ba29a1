/** Where the benchmark's queues are worked: hosts behind real OpenSSH in namespaces, and the program as it is installed. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { JobStore } from '../../../src/scheduler/jobs/store.ts'
import type { Lab } from '../../lab/cluster/lab.ts'

export type Resources = { readonly cpu: number; readonly gpu: number }

/** A queue of its own on the lab's hosts, or on this machine alone without SSH (`isLocal`). */
export class Place {
  readonly #lab: Lab
  readonly #main: string
  readonly #name: string
  readonly #file: string
  readonly #isLocal: boolean

  constructor(lab: Lab, main: string, name: string, { cpu, gpu }: Resources, isLocal = false) {
    this.#lab = lab
    this.#main = main
    this.#name = name
    this.#isLocal = isLocal
    this.#file = join(lab.directory, `${name}.yaml`)
    const hosts = isLocal
      ? ['  here: { transport: local }\n']
      : lab.hosts.map(({ name: host, address }) => `  ${host}: { address: ${address} }\n`)
    const defaults = `defaults: { user: root, resources: { cpu: ${cpu}, gpu: ${gpu}, memory: 1GiB } }\n`
    writeFileSync(this.#file, `cluster: ${name}\n${defaults}hosts:\n${hosts.join('')}`)
  }

  /** The home directories of the hosts, seen from here. */
  get homes(): readonly string[] {
    if (this.#isLocal) return [this.#home]
    return this.#lab.names.map((name) => join(this.#lab.directory, 'hosts', name, 'home'))
  }

  get #home(): string {
    return this.#lab.environment.HOME ?? this.#lab.directory
  }

  openStore(): JobStore {
    const directory = join(this.#home, '.local', 'state', 'muster', 'jobs')
    mkdirSync(directory, { recursive: true, mode: 0o700 })
    return new JobStore(join(directory, `${this.#name}.db`))
  }

  /** `muster job …` on it. */
  spawn(...args: readonly string[]) {
    const words = [process.execPath, this.#main, '--hosts', this.#file, 'job', ...args]
    const [file = '', ...rest] = this.#lab.command(words)
    const child = spawn(file, rest, { env: this.#lab.environment, stdio: ['pipe', 'pipe', 'inherit'] })
    return { child, ended: once(child, 'close') as Promise<[number | null, NodeJS.Signals | null]> }
  }

  /** What it printed. */
  async run(...args: readonly string[]): Promise<string> {
    const { child, ended } = this.spawn(...args)
    let output = ''
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      output += text
    })
    child.stdin.end()
    const [code] = await ended
    if (code !== 0) throw new Error(`muster job ${args.join(' ')}: exit ${code}`)
    return output
  }
}
