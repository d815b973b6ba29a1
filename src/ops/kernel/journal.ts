/**
 * The record of changes: one JSON line for the start and the end of each step, in
 * `$XDG_STATE_HOME/muster/journal/YYYY-MM.jsonl` (mode 0600), without scripts, output and secrets.
 */
import { appendFileSync } from 'node:fs'
import { open, readdir } from 'node:fs/promises'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { accountName } from '../../base/account.ts'
import { fileReason, MusterError } from '../../base/errors.ts'
import { foreignDirectory, makeOwnDirectories } from '../../base/foreign-place.ts'
import { printable } from '../../base/printable.ts'
import { stateDirectory } from '../../base/user-directories.ts'
import type { ApplyEvent } from './apply.ts'

export interface Journal {
  write(event: ApplyEvent): void
}

export type JournalOptions = {
  readonly environment: Readonly<Record<string, string | undefined>>
  now(): number
}

/** Both throw MusterError `configuration` if nothing can be written; each line has been passed to the system when `write` returns. */
export function openJournal({ environment, now }: JournalOptions): Journal & { readonly directory: string } {
  const directory = join(stateDirectory(environment), 'journal')
  const append = (time: string, text: string) =>
    orExplain(directory, () => appendFileSync(join(directory, `${time.slice(0, 7)}.jsonl`), text, { mode: 0o600 }))
  orExplain(directory, () => makeOwnDirectories(directory))
  // Checked now, not between two steps.
  append(new Date(now()).toISOString(), '')
  const who = `${accountName()}@${hostname()}`
  return {
    directory,
    write(event) {
      if (event.type === 'output') return
      const time = new Date(now()).toISOString()
      const { operation, step } = event
      const line = {
        time,
        who,
        pid: process.pid,
        event: event.type,
        host: operation.host,
        step: step.id,
        title: step.title,
        ...(event.type === 'begin' ? {} : resultOf(event)),
      }
      append(time, `${JSON.stringify(line)}\n`)
    },
  }
}

/** A finished step in the journal. */
export type JournalLine = {
  /** ISO 8601. */
  readonly time: string
  readonly who: string
  readonly title: string
  readonly result: string
  readonly reason?: string
}

/** How much is read from the end of the newest file. */
const READ_BYTES = 256 * 1024

/** The last finished steps of an area on a host, the newest first; texts are not printable yet. None without a journal. */
export async function readJournal(
  environment: JournalOptions['environment'],
  { area, host }: { readonly area: string; readonly host: string },
  limit: number,
): Promise<readonly JournalLine[]> {
  const directory = join(stateDirectory(environment), 'journal')
  const names = await readdir(directory).catch(() => [])
  if (names.length > 0 && foreignDirectory(directory) !== undefined) return []
  const newest = names
    .filter((name) => /^\d{4}-\d{2}\.jsonl$/.test(name))
    .sort()
    .at(-1)
  if (newest === undefined) return []
  const text = await readEnd(join(directory, newest))
  const lines = text.split('\n').flatMap((line) => parseLine(line, area, host) ?? [])
  return lines.slice(-limit).reverse()
}

async function readEnd(path: string): Promise<string> {
  const file = await open(path)
  try {
    const { size } = await file.stat()
    const start = Math.max(0, size - READ_BYTES)
    const bytes = Buffer.alloc(size - start)
    const { bytesRead } = await file.read(bytes, 0, bytes.length, start)
    return bytes.toString('utf8', 0, bytesRead)
  } finally {
    await file.close()
  }
}

/** Undefined: another kind of line, or a partial one. */
function parseLine(line: string, area: string, host: string): JournalLine | undefined {
  try {
    const entry = JSON.parse(line) as Readonly<Record<string, unknown>>
    const { event, host: where, step, time, who, title, result, reason } = entry
    const isMeant = event === 'end' && where === host && typeof step === 'string' && step.startsWith(`${area}/`)
    if (!isMeant) return undefined
    const reasonPart = reason === undefined ? {} : { reason: String(reason) }
    return { time: String(time), who: String(who), title: String(title), result: String(result), ...reasonPart }
  } catch {
    return undefined
  }
}

function resultOf({ end, durationMs }: Extract<ApplyEvent, { type: 'end' }>): object {
  return { result: end.kind, ...('reason' in end ? { reason: end.reason } : {}), durationMs: Math.round(durationMs) }
}

function orExplain(directory: string, write: () => void): void {
  try {
    write()
  } catch (error) {
    if (error instanceof MusterError) throw error
    const reason = `cannot write the journal: ${fileReason(error)}`
    const hint = `Nothing is changed without a journal. Make ${printable(directory)} writable, or set XDG_STATE_HOME.`
    throw new MusterError('configuration', reason, { hint, cause: error })
  }
}
