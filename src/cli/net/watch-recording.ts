/** `--record FILE` and `--replay FILE` of `muster net watch`. */
import { closeSync, openSync, writeSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { Emitter } from '../../base/emitter.ts'
import { fileReason, MusterError } from '../../base/errors.ts'
import { printable } from '../../base/printable.ts'
import { parseRecording, Replay, recordingLine } from '../../ops/net/watch/recording.ts'
import type { Sample } from '../../ops/net/watch/sample.ts'
import type { CliContext } from '../command-line/context.ts'

export type SampleRecorder = Disposable & { write(host: string, sample: Sample): void }

const TICK_MS = 250

/** @throws MusterError `usage` when the file is there already, or cannot be made. */
export function startRecording(path: string, { workingDirectory }: CliContext): SampleRecorder {
  let descriptor: number
  try {
    descriptor = openSync(resolve(workingDirectory, path), 'wx', 0o600)
  } catch (error) {
    throw new MusterError('usage', `--record ${printable(path)}: ${fileReason(error)}`)
  }
  return {
    write(host, sample) {
      writeSync(descriptor, recordingLine({ host, sample }))
    },
    [Symbol.dispose]() {
      closeSync(descriptor)
    },
  }
}

/** The recording as a screen shows it: p halts it, the arrows step through it. */
export async function openReplay(path: string, speed: number, { workingDirectory }: CliContext) {
  let text: string
  try {
    text = await readFile(resolve(workingDirectory, path), 'utf8')
  } catch (error) {
    throw new MusterError('usage', `cannot read --replay ${printable(path)}: ${fileReason(error)}`)
  }
  const lines = parseRecording(text)
  if (lines.length === 0) throw new MusterError('usage', `${printable(path)} is not a recording of muster net watch`)
  const replay = new Replay(lines)
  const changes = new Emitter<void>()
  const timer = setInterval(() => {
    if (replay.advance(TICK_MS * speed)) changes.emit()
  }, TICK_MS)
  return {
    hosts: () => replay.hosts(),
    now: () => replay.nowMs,
    subscribe: (changed: () => void) => changes.on(changed),
    title: () => replay.title,
    handleKey: (label: string) => replay.handleKey(label),
    [Symbol.dispose]() {
      clearInterval(timer)
    },
  }
}
