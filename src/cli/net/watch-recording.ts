/** `--record FILE` and `--replay FILE`: a JSON object a line, `host` and the sample. */
import { closeSync, openSync, writeSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { Emitter } from '../../base/emitter.ts'
import { MusterError, messageOf } from '../../base/errors.ts'
import { printable } from '../../base/printable.ts'
import type { Sample } from '../../ops/net/watch/sample.ts'
import { keepSample, type WatchedHost } from '../../ops/net/watch/watch-hosts.ts'
import type { CliContext } from '../context.ts'

export type Recorder = Disposable & { write(host: string, sample: Sample): void }

const STEP_MS = 10_000
const TICK_MS = 250

/** @throws MusterError `usage` when the file is there already, or cannot be made. */
export function startRecording(path: string, { workingDirectory }: CliContext): Recorder {
  let descriptor: number
  try {
    descriptor = openSync(resolve(workingDirectory, path), 'wx', 0o600)
  } catch (error) {
    throw new MusterError('usage', `--record ${printable(path)}: ${printable(messageOf(error))}`)
  }
  return {
    write(host, sample) {
      writeSync(descriptor, `${JSON.stringify({ host, ...sample })}\n`)
    },
    [Symbol.dispose]() {
      closeSync(descriptor)
    },
  }
}

type Line = { readonly host: string; readonly sample: Sample }

/** The recording as a screen shows it: Space halts it, the arrows step through it. */
export async function openReplay(path: string, speed: number, { workingDirectory }: CliContext) {
  const lines = await readRecording(resolve(workingDirectory, path), path)
  const firstMs = lines[0]?.sample.atMs ?? 0
  const lastMs = lines.at(-1)?.sample.atMs ?? 0
  const changes = new Emitter<void>()
  const names = [...new Set(lines.map(({ host }) => host))]
  let nowMs = firstMs
  let isHalted = false
  const timer = setInterval(() => {
    if (isHalted || nowMs >= lastMs) return
    nowMs = Math.min(lastMs, nowMs + TICK_MS * speed)
    changes.emit()
  }, TICK_MS)
  return {
    hosts: () => hostsAt(lines, names, nowMs),
    now: () => nowMs,
    subscribe: (changed: () => void) => changes.on(changed),
    title: () => `${new Date(nowMs).toISOString().slice(11, 19)} UTC${isHalted ? ', halted' : ''}`,
    handleKey(label: string): boolean {
      if (label === 'p') isHalted = !isHalted
      else if (label === 'Left') nowMs = Math.max(firstMs, nowMs - STEP_MS)
      else if (label === 'Right') nowMs = Math.min(lastMs, nowMs + STEP_MS)
      else return false
      return true
    },
    [Symbol.dispose]() {
      clearInterval(timer)
    },
  }
}

function hostsAt(lines: readonly Line[], names: readonly string[], nowMs: number): readonly WatchedHost[] {
  const samples = new Map(names.map((name): [string, Sample[]] => [name, []]))
  for (const { host, sample } of lines) {
    if (sample.atMs > nowMs) break
    keepSample(samples.get(host) ?? [], sample)
  }
  return names.map((host) => ({ host, samples: samples.get(host) ?? [] }))
}

async function readRecording(file: string, path: string): Promise<readonly Line[]> {
  let text: string
  try {
    text = await readFile(file, 'utf8')
  } catch (error) {
    throw new MusterError('usage', `--replay ${printable(path)} cannot be read: ${printable(messageOf(error))}`)
  }
  const lines = text.split('\n').flatMap((line): Line[] => {
    try {
      const { host, ...sample } = JSON.parse(line) as { host: unknown } & Sample
      const isWhole = typeof host === 'string' && typeof sample.atMs === 'number' && Array.isArray(sample.gpus)
      return isWhole && Array.isArray(sample.cards) ? [{ host: printable(host as string), sample }] : []
    } catch {
      // The last line of a recording that was cut.
      return []
    }
  })
  if (lines.length === 0) throw new MusterError('usage', `${printable(path)} is no recording of muster net watch`)
  return lines.toSorted((one, other) => one.sample.atMs - other.sample.atMs)
}
