/** Processes of this machine, by their IDs. */

/** Whether it runs, as this user or another. */
export function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

/** Does nothing if the group has ended or the system has no such signal. `pid`: of the leader; undefined: it never started. */
export function signalGroup(pid: number | undefined, signal: NodeJS.Signals): void {
  if (pid === undefined) return
  try {
    process.kill(-pid, signal)
  } catch {
    // Nothing to signal.
  }
}
