/**
 * Process groups of a terminal's session. A process id may be given to another program once its owner has ended, so nothing
 * is signalled unless /proc says that the group still belongs to the session (systems without /proc: the leader's own only).
 */
import { readFileSync } from 'node:fs'

type ProcessState = { readonly group: number; readonly session: number; readonly foreground: number }

/** proc_pid_stat(5): after the command in parentheses come state, ppid, pgrp, session, tty_nr, tpgid. */
function processState(pid: number): ProcessState | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return { group: Number(fields[2]), session: Number(fields[3]), foreground: Number(fields[5]) }
  } catch {
    return undefined
  }
}

/** The foreground group of the session that `leader` leads, if it is another one than the leader's own. */
export function foregroundGroup(leader: number): number | undefined {
  const foreground = processState(leader)?.foreground
  return foreground !== undefined && foreground > 1 && foreground !== leader ? foreground : undefined
}

/** Signals a group of the session that `leader` leads; nothing when the group's leader is gone or is somebody else's. */
export function signalGroup(group: number, leader: number, signal: NodeJS.Signals): void {
  const state = processState(group)
  const isOurs = state ? state.session === leader && state.group === group : group === leader && !hasProc
  if (!isOurs || group <= 1) return
  try {
    process.kill(-group, signal)
  } catch {
    // Gone in the meantime.
  }
}

const hasProc = processState(process.pid) !== undefined
