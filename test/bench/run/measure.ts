/** One round of one contender: wall time, CPU and memory of all that it starts, and whether it did its work. */
import { spawn } from 'node:child_process'
import { closeSync, openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Contender, Task } from './contenders.ts'
import { ControlGroup } from './control-group.ts'

export type Round = { readonly seconds: number; readonly cpuSeconds: number; readonly peakMib: number }

const ROUND_LIMIT_MS = 300_000
const SAMPLE_MS = 10
const PAGE_BYTES = 4096

export class Track implements AsyncDisposable {
  readonly contender: Contender
  readonly rounds: Round[] = []
  /** Rounds in which hosts were missing: they count for nothing else. */
  incomplete = 0
  readonly #group: ControlGroup
  readonly #directory: string
  readonly #log: (line: string) => void

  constructor(contender: Contender, directory: string, log: (line: string) => void) {
    this.contender = contender
    this.#directory = directory
    this.#log = log
    this.#group = new ControlGroup(`muster-bench-${process.pid}-${contender.name.replace(/\W+/g, '-')}`)
  }

  async warmUp(task: Task): Promise<void> {
    const words = this.contender.warmUp?.(task)
    if (words !== undefined) await this.#run(words, false)
    await this.round(task)
    this.rounds.length = 0
    this.incomplete = 0
  }

  /** `samplesMemory`: looking costs time of its own, so that the other figures are left out then. */
  async round(task: Task, samplesMemory = false): Promise<void> {
    this.contender.forget?.()
    const before = this.#group.cpuSeconds()
    const { seconds, peakMib, output } = await this.#run(this.contender.words(task), samplesMemory)
    const cpuSeconds = this.#group.cpuSeconds() - before
    if (this.contender.keepsProcesses !== true) await this.#group.end()
    const found = countIn(readFileSync(output), Buffer.from(task.mark))
    const expected = this.contender.isFolded ? 1 : task.hosts.length
    if (found !== expected) {
      const what = `${this.contender.name} printed ${task.mark} ${found} times, not ${expected}`
      if (this.contender.isOurs) throw new Error(`${what} (${output})`)
      this.#log(what)
      this.incomplete += 1
      return
    }
    const round = samplesMemory
      ? { seconds: Number.NaN, cpuSeconds: Number.NaN, peakMib }
      : { seconds, cpuSeconds, peakMib }
    this.#log(JSON.stringify({ name: this.contender.name, ...round }))
    this.rounds.push(round)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#group[Symbol.asyncDispose]()
  }

  async #run(words: readonly string[], samplesMemory: boolean) {
    const output = join(this.#directory, 'output')
    const descriptor = openSync(output, 'w')
    const errors = openSync(join(this.#directory, 'errors'), 'w')
    const [file = '', ...args] = [...this.#group.prefix(), ...words]
    const start = performance.now()
    const child = spawn(file, args, {
      cwd: join(this.#directory, 'work'),
      stdio: ['ignore', descriptor, errors],
      env: { PATH: process.env.PATH ?? '', HOME: this.#directory, LANG: 'C.UTF-8', ...this.contender.environment },
    })
    closeSync(descriptor)
    closeSync(errors)
    let peakMib = Number.NaN
    const sample = () => {
      peakMib = Math.max(Number.isNaN(peakMib) ? 0 : peakMib, memoryOf(this.#group.pids()))
    }
    const timer = samplesMemory ? setInterval(sample, SAMPLE_MS) : undefined
    try {
      await new Promise<void>((resolve, reject) => {
        const limit = setTimeout(() => reject(new Error(`${this.contender.name} does not end`)), ROUND_LIMIT_MS)
        child.once('error', reject)
        child.once('exit', () => {
          clearTimeout(limit)
          resolve()
        })
      })
    } finally {
      clearInterval(timer)
    }
    return { seconds: (performance.now() - start) / 1000, peakMib, output }
  }
}

/** RSS of all processes, MiB; proc_pid_statm(5) is read faster than the sums of smaps. */
function memoryOf(pids: readonly number[]): number {
  let pages = 0
  for (const pid of pids) {
    try {
      pages += Number(readFileSync(`/proc/${pid}/statm`, 'latin1').split(' ')[1])
    } catch {
      // It has ended meanwhile.
    }
  }
  return (pages * PAGE_BYTES) / 2 ** 20
}

function countIn(output: Buffer, text: Buffer): number {
  let count = 0
  for (let at = output.indexOf(text); at >= 0; at = output.indexOf(text, at + text.length)) count += 1
  return count
}
