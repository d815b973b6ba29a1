/** Processes of this machine, by their IDs. */
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'

/** IDs. `foreground`: the group that may read its terminal; -1 or 0: it has no terminal. */
export type ProcessGroups = { readonly group: number; readonly session: number; readonly foreground: number }

/** Undefined: no such process, or a system without /proc. `directory`: of /proc. */
export function processGroups(pid: number | 'self', directory = '/proc'): ProcessGroups | undefined {
  try {
    const stat = readFileSync(`${directory}/${pid}/stat`, 'latin1')
    // proc_pid_stat(5): after the command in parentheses come state, ppid, pgrp, session, tty_nr, tpgid.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return { group: Number(fields[2]), session: Number(fields[3]), foreground: Number(fields[5]) }
  } catch {
    return undefined
  }
}

/**
 * Whether this process may read its terminal: one in the background that does is stopped (SIGTTIN). Without /proc, as on macOS, it
 * asks ps, and is in the background if that says nothing.
 */
export function isInForeground(directory = '/proc'): boolean {
  const groups = processGroups('self', directory) ?? groupsFromPs()
  return groups !== undefined && groups.group === groups.foreground
}

function groupsFromPs(): Pick<ProcessGroups, 'group' | 'foreground'> | undefined {
  const args = ['-o', 'pgid=', '-o', 'tpgid=', '-p', String(process.pid)]
  try {
    const said = execFileSync('ps', args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'], timeout: 2000 })
    const [group = 0, foreground = -1] = said.trim().split(/\s+/).map(Number)
    return { group, foreground }
  } catch {
    return undefined
  }
}

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
