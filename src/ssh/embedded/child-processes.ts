/** The programs that run on an embedded host, by their process groups, so that all of them end with it. */

import { isRunning, signalGroup } from '../../base/processes.ts'

const POLL_MS = 20

export class ChildProcesses {
  /** Leaders of process groups that have not ended. */
  readonly #pids = new Set<number>()
  #onGone: (() => void) | undefined

  /** To be called when the program is started, with a process id that is also its group's. */
  add(pid: number): void {
    this.#pids.add(pid)
  }

  /** To be called when the program has ended: its number may soon be another's. */
  remove(pid: number): void {
    this.#pids.delete(pid)
    if (this.#pids.size === 0) this.#onGone?.()
  }

  /** For a program that was told to end and whose end is not reported: polls until it is gone. */
  awaitEnd(pid: number): void {
    if (!this.#pids.has(pid)) return
    if (isRunning(pid)) setTimeout(() => this.awaitEnd(pid), POLL_MS).unref()
    else this.remove(pid)
  }

  signal(pid: number, signal: NodeJS.Signals): void {
    if (this.#pids.has(pid)) signalGroup(pid, signal)
  }

  signalAll(signal: NodeJS.Signals): void {
    for (const pid of this.#pids) this.signal(pid, signal)
  }

  /** Hangs up on all, kills what is left after `graceMs`, and waits no longer than as much again. */
  async end(graceMs: number): Promise<void> {
    if (this.#pids.size === 0) return
    const gone = new Promise<void>((resolve) => {
      this.#onGone = resolve
    })
    this.signalAll('SIGHUP')
    // A stopped program gets the hang-up only when it continues.
    this.signalAll('SIGCONT')
    const kill = setTimeout(() => this.signalAll('SIGKILL'), graceMs)
    const giveUp = setTimeout(() => this.#onGone?.(), 2 * graceMs)
    await gone
    clearTimeout(kill)
    clearTimeout(giveUp)
  }
}
