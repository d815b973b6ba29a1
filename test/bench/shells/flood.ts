/** The benchmark's end of the process that floods terminals. */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { FloodOrder, FloodReport } from './flood-program.ts'

export class Flood implements AsyncDisposable {
  readonly #child: ChildProcess

  constructor() {
    this.#child = fork(fileURLToPath(new URL('./flood-program.ts', import.meta.url)), [], {
      execArgv: [],
      // A blocked write takes a thread each.
      env: { ...process.env, UV_THREADPOOL_SIZE: '300' },
    })
  }

  async #ask(order: FloodOrder): Promise<FloodReport> {
    const answer = once(this.#child, 'message')
    this.#child.send(order)
    const [report] = (await answer) as [FloodReport]
    return report
  }

  start(terminals: readonly string[], bytesPerSecond: number | 'most'): Promise<FloodReport> {
    return this.#ask({ type: 'start', terminals, bytesPerSecond })
  }

  count(): Promise<FloodReport> {
    return this.#ask({ type: 'count' })
  }

  /** After the last write was taken. */
  stop(): Promise<FloodReport> {
    return this.#ask({ type: 'stop' })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const { exitCode, signalCode } = this.#child
    if (exitCode !== null || signalCode !== null) return
    const exit = once(this.#child, 'exit')
    this.#child.kill('SIGKILL')
    await exit
  }
}
