/**
 * Where labs keep their files: one private directory a user, one directory a lab in it. A lab names its owner and its first
 * process there, so that the next start can tell a lab in use from one that was left behind, and removes only the latter.
 */
import {
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { signalProcess, startTimeOf } from './processes.ts'

const OWNERS = 'owners'
/** A directory without an owner belongs to a lab that is just starting, unless it is older than this. */
const NAMELESS_MS = 60_000

/** `/tmp/muster-labs-UID`, private; an error if another user created it. */
export function labsDirectory(): string {
  const uid = process.getuid?.() ?? 0
  const directory = join(tmpdir(), `muster-labs-${uid}`)
  mkdirSync(directory, { recursive: true, mode: 0o700 })
  const { uid: owner, mode } = lstatSync(directory)
  if (owner !== uid || (mode & 0o077) !== 0) throw new Error(`${directory} is not private to this user: remove it`)
  return directory
}

export function createLabDirectory(): string {
  return mkdtempSync(join(labsDirectory(), 'lab-'))
}

/** The processes (the machine's ids) whose life keeps the lab; all of them dead means that it was left behind. */
export function writeOwners(directory: string, pids: readonly number[]): void {
  const lines = pids.map((pid) => `${pid} ${startTimeOf(pid) ?? 'gone'}`)
  const path = join(directory, OWNERS)
  writeFileSync(`${path}.new`, `${lines.join('\n')}\n`)
  renameSync(`${path}.new`, path)
}

/** Ids of the owners that still live. */
export function livingOwners(directory: string): number[] {
  return readOwners(directory)
    .filter(({ pid, startTime }) => startTimeOf(pid) === startTime)
    .map(({ pid }) => pid)
}

/** Removes what killed owners left; labs in use are not touched. */
export function sweepLabs(): string[] {
  const root = labsDirectory()
  const abandoned = readdirSync(root)
    .filter((name) => name.startsWith('lab-'))
    .map((name) => join(root, name))
    .filter(isAbandoned)
  for (const directory of abandoned) rmSync(directory, { recursive: true, force: true })
  return abandoned
}

/** Ends a lab by the id of its first process, as long as that id still means that process. */
export function killOwners(directory: string): void {
  for (const pid of livingOwners(directory)) signalProcess(pid, 'SIGKILL')
}

function isAbandoned(directory: string): boolean {
  try {
    const owners = readOwners(directory)
    if (owners.length === 0) return Date.now() - lstatSync(directory).mtimeMs > NAMELESS_MS
    return livingOwners(directory).length === 0
  } catch {
    return false
  }
}

function readOwners(directory: string): { pid: number; startTime: string }[] {
  try {
    const lines = readFileSync(join(directory, OWNERS), 'utf8').trim().split('\n')
    return lines.map((line) => ({ pid: Number(line.split(' ')[0]), startTime: line.split(' ')[1] ?? '' }))
  } catch {
    return []
  }
}
