/** Whether this program may read its terminal: a program in the background that tries is stopped (SIGTTIN). */
import { readFileSync } from 'node:fs'

export function isInForeground(): boolean {
  try {
    const stat = readFileSync('/proc/self/stat', 'latin1')
    // proc_pid_stat(5): after the name come state, ppid, pgrp, session, tty_nr, tpgid.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return fields[2] === fields[5]
  } catch {
    return false
  }
}
