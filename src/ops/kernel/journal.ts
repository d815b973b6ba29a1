/**
 * What was done, by whom, with what result: one JSON line a step begun and a step ended, in
 * `$XDG_STATE_HOME/muster/journal/YYYY-MM.jsonl` (mode 0600). No script, no output and no secret is in it.
 */
import { appendFileSync, mkdirSync } from 'node:fs'
import { homedir, hostname, userInfo } from 'node:os'
import { join } from 'node:path'
import type { ApplyEvent } from './apply.ts'

export interface Journal {
  write(event: ApplyEvent): void
}

export type JournalOptions = {
  readonly environment: Readonly<Record<string, string | undefined>>
  now(): number
}

/** @throws when the directory cannot be written; each line is on its way to the disk when `write` returns. */
export function openJournal({ environment, now }: JournalOptions): Journal & { readonly directory: string } {
  const state = environment.XDG_STATE_HOME || join(environment.HOME || homedir(), '.local', 'state')
  const directory = join(state, 'muster', 'journal')
  mkdirSync(directory, { recursive: true, mode: 0o700 })
  const who = `${userInfo().username}@${hostname()}`
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
        ...(event.type === 'begin' ? {} : { ...resultOf(event.end), durationMs: Math.round(event.durationMs) }),
      }
      appendFileSync(join(directory, `${time.slice(0, 7)}.jsonl`), `${JSON.stringify(line)}\n`, { mode: 0o600 })
    },
  }
}

function resultOf(end: Extract<ApplyEvent, { type: 'end' }>['end']): object {
  return { result: end.kind, ...('reason' in end ? { reason: end.reason } : {}) }
}
