/**
 * A control group for each program that is measured: counts the CPU of everything that it starts, however it detaches
 * itself, and takes it out of the scheduler's automatic groups, which favour programs that call setsid for each `ssh`.
 */
import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { endProcesses } from '../support/processes.ts'

const ROOT = '/sys/fs/cgroup'

/** Above the 1024 of everybody else, so that what else the machine does weighs little. */
const CPU_SHARES = 16 * 1024
const CPU_WEIGHT = 1600

export class ControlGroup implements AsyncDisposable {
  readonly #directories: readonly string[]

  constructor(name: string) {
    // Version 1 has a hierarchy for each controller, version 2 one for all.
    const parents = existsSync(`${ROOT}/cgroup.controllers`) ? [ROOT] : [`${ROOT}/cpu`, `${ROOT}/cpuacct`]
    this.#directories = parents.map((parent) => join(parent, name))
    for (const directory of this.#directories) mkdirSync(directory, { recursive: true })
    this.#writeIfThere('cpu.shares', CPU_SHARES)
    this.#writeIfThere('cpu.weight', CPU_WEIGHT)
  }

  /** Words that start a program in this group. */
  prefix(): readonly string[] {
    const enter = this.#directories.map((directory) => `echo $$ >${directory}/cgroup.procs`)
    return ['/bin/sh', '-c', `${enter.join(' && ')} && ulimit -S -n 1024 && exec "$@"`, 'sh']
  }

  pids(): number[] {
    return (this.#read('cgroup.procs') ?? '').split('\n').filter(Boolean).map(Number)
  }

  /** Of all that ever ran in it, user and system. */
  cpuSeconds(): number {
    const nanoseconds = this.#read('cpuacct.usage')
    if (nanoseconds !== undefined) return Number(nanoseconds) / 1e9
    return Number(/^usage_usec (\d+)/m.exec(this.#read('cpu.stat') ?? '')?.[1] ?? Number.NaN) / 1e6
  }

  async end(): Promise<void> {
    for (let pids = this.pids(); pids.length > 0; pids = this.pids()) await endProcesses(pids)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.end()
    for (const directory of this.#directories) rmdirSync(directory)
  }

  #read(name: string): string | undefined {
    const path = this.#directories.map((directory) => join(directory, name)).find((each) => existsSync(each))
    return path === undefined ? undefined : readFileSync(path, 'utf8')
  }

  #writeIfThere(name: string, value: number): void {
    for (const directory of this.#directories) {
      if (existsSync(join(directory, name))) writeFileSync(join(directory, name), String(value))
    }
  }
}
