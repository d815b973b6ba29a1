/**
 * What SQLite takes for an empty database, or notices only after it has written, and so is checked before it opens the file of a
 * queue. Formats: sqlite.org/fileformat2.html. Writes nothing, and reads the log (`-wal`) only if the database seems too short.
 */
import { closeSync, openSync, readSync, realpathSync, type Stats, statSync } from 'node:fs'
import { basename } from 'node:path'
import { getOrMake } from '../../base/collections.ts'
import { formatBytes } from '../../base/format-bytes.ts'

/** `no-database`: the log has what the database should begin with. */
export type FileDamage = { readonly kind: 'no-database' | 'cut'; readonly reason: string }

/** Undefined: there is no queue yet, or as far as can be seen cheaply it is whole. */
export function fileDamage(path: string): FileDamage | undefined {
  // The log first: a database that another program makes meanwhile is written before it has a log.
  const log = logOf(path)
  const logBytes = factsOf(log)?.size ?? 0
  const facts = factsOf(path)
  if (facts === undefined || facts.size === 0) {
    if (logBytes === 0) return undefined
    const what = facts === undefined ? 'it is missing' : 'it is empty'
    const reason = `${what}, but its log ${basename(log)} (${formatBytes(logBytes)}) is there and may have all jobs`
    return { kind: 'no-database', reason }
  }
  if (openedHere.has(keyOf(facts))) return undefined
  const header = Buffer.alloc(HEADER_BYTES)
  if (!readInto(path, (read) => read(header, 0))) return undefined
  const reason = headerDamage(path, facts.size, header)
  return reason === undefined ? undefined : { kind: 'cut', reason }
}

/** Of a link, SQLite keeps it beside the file that the link leads to. */
export function logOf(path: string): string {
  const facts = factsOf(path)
  return `${facts === undefined ? path : realpathSync(path)}-wal`
}

/**
 * How often this process has each database open. A process that closes a file loses all its locks on it, those of SQLite included:
 * another program would then delete a log that is in use. So such a file is not read here.
 */
const openedHere = new Map<string, { count: number }>()

/** Which file is at this path; undefined: none. */
export function placeOf(path: string): string | undefined {
  const facts = factsOf(path)
  return facts && keyOf(facts)
}

export const keyOf = ({ dev, ino }: Stats): string => `${dev} ${ino}`

/** Call it when SQLite has opened the file, and dispose of it when SQLite has closed it. */
export function noteOpened(path: string): Disposable {
  const facts = factsOf(path)
  if (facts === undefined) return { [Symbol.dispose]() {} }
  const key = keyOf(facts)
  const opened = getOrMake(openedHere, key, () => ({ count: 0 }))
  opened.count += 1
  return {
    [Symbol.dispose]() {
      opened.count -= 1
      if (opened.count === 0) openedHere.delete(key)
    },
  }
}

const HEADER_BYTES = 100
const MAGIC = 'SQLite format 3\0'

function headerDamage(path: string, bytes: number, header: Buffer): string | undefined {
  if (bytes < HEADER_BYTES) return `only ${bytes} bytes of it are left`
  if (header.toString('latin1', 0, MAGIC.length) !== MAGIC) return 'file is not a database'
  const pageBytes = header.readUInt16BE(16) === 1 ? 65_536 : header.readUInt16BE(16)
  if (pageBytes < 512 || (pageBytes & (pageBytes - 1)) !== 0) return 'its header is damaged'
  // An old SQLite wrote last, and did not count pages.
  if (header.readUInt32BE(24) !== header.readUInt32BE(92)) return undefined
  const pages = header.readUInt32BE(28)
  const held = Math.floor(bytes / pageBytes)
  if (held >= pages) return undefined
  // A program that was killed while it copied the log into the database leaves a short one, and the rest in the log.
  const logged = pagesInLog(logOf(path), pageBytes)
  for (let page = held + 1; page <= pages; page += 1) {
    if (logged.has(page)) continue
    // Another program may have finished the copy meanwhile, and begun the log again.
    const now = factsOf(path)?.size ?? 0
    return now >= pages * pageBytes ? undefined : `it was cut off: ${now} of ${pages * pageBytes} bytes are left`
  }
  return undefined
}

const LOG_HEADER_BYTES = 32
const FRAME_HEADER_BYTES = 24

/** Pages of transactions that are complete there. */
function pagesInLog(path: string, pageBytes: number): ReadonlySet<number> {
  const pages = new Set<number>()
  readInto(path, (read) => {
    const log = Buffer.alloc(LOG_HEADER_BYTES)
    const frame = Buffer.alloc(FRAME_HEADER_BYTES)
    if (!read(log, 0)) return
    // What an earlier round of the log left behind has other salts.
    const salts = log.subarray(16, 24)
    const last = Buffer.alloc(1)
    const step = FRAME_HEADER_BYTES + pageBytes
    let open: number[] = []
    for (let at = LOG_HEADER_BYTES; read(frame, at) && read(last, at + step - 1); at += step) {
      if (!frame.subarray(8, 16).equals(salts)) return
      open.push(frame.readUInt32BE(0))
      if (frame.readUInt32BE(4) === 0) continue
      for (const page of open) pages.add(page)
      open = []
    }
  })
  return pages
}

/** Of a plain file; undefined: there is none. */
function factsOf(path: string): Stats | undefined {
  const facts = statSync(path, { throwIfNoEntry: false })
  return facts?.isFile() ? facts : undefined
}

/** `read` fills its whole buffer from a position on, or returns false. Returns false if the file cannot be read: SQLite says why. */
function readInto(path: string, work: (read: (into: Buffer, at: number) => boolean) => unknown): boolean {
  let file: number
  try {
    file = openSync(path, 'r')
  } catch {
    return false
  }
  try {
    work((into, at) => readSync(file, into, 0, into.length, at) === into.length)
    return true
  } catch {
    return false
  } finally {
    closeSync(file)
  }
}
