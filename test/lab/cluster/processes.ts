/** Processes of one PID namespace, found in the machine's /proc, so that signals go to exact ids and to nothing else. */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'

export type LabProcess = {
  /** The machine's id. */
  readonly pid: number
  /** The id inside the host. */
  readonly innerPid: number
  /** The parent as the machine sees it. */
  readonly parent: number
  /** `R`, `S`, `T` (stopped), `Z` (zombie), … */
  readonly state: string
  readonly name: string
  readonly command: string
}

/** The namespace of a process, as a comparable word; undefined when it is gone. */
export function pidNamespaceOf(pid: number): string | undefined {
  try {
    return readlinkSync(`/proc/${pid}/ns/pid`)
  } catch {
    return undefined
  }
}

export function processesIn(namespace: string): LabProcess[] {
  return pids()
    .filter((pid) => pidNamespaceOf(pid) === namespace)
    .flatMap((pid) => readProcess(pid) ?? [])
    .sort((left, right) => left.innerPid - right.innerPid)
}

/** In all namespaces: a container has one of its own. */
export function processesOf(command: string): LabProcess[] {
  return pids().flatMap((pid) => {
    const found = readProcess(pid)
    return found?.command === command ? [found] : []
  })
}

function pids(): number[] {
  return readdirSync('/proc')
    .filter((entry) => /^\d+$/.test(entry))
    .map(Number)
}

/** The session (setsid(2)) that a process belongs to; undefined when it is gone. */
export function sessionOf(pid: number): string | undefined {
  return statFields(pid)?.[3]
}

/** Clock ticks since the machine's start: with the id it names one process for ever (proc(5), stat, field 22). */
export function startTimeOf(pid: number): string | undefined {
  const fields = statFields(pid)
  return fields?.[0] === 'Z' ? undefined : fields?.[19]
}

/** From the third on, which is the state. */
function statFields(pid: number): string[] | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  } catch {
    return undefined
  }
}

/** False when the process was gone already. */
export function signalProcess(pid: number, signal: NodeJS.Signals): boolean {
  try {
    return process.kill(pid, signal)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ESRCH') return false
    throw error
  }
}

function readProcess(pid: number): LabProcess | undefined {
  try {
    const status = readFileSync(`/proc/${pid}/status`, 'utf8')
    const field = (name: string): string => new RegExp(`^${name}:\\s*(.*)$`, 'm').exec(status)?.[1] ?? ''
    const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').join(' ').trim()
    const name = field('Name')
    return {
      pid,
      innerPid: Number(field('NSpid').split('\t').at(-1)),
      parent: Number(field('PPid')),
      state: field('State').charAt(0),
      name,
      command: command === '' ? name : command,
    }
  } catch {
    return undefined
  }
}
