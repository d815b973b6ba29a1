/** Runs a Python program on a host, or on this machine, with a text for its stdin, and reads the JSON lines that it prints. */
import { spawn } from 'node:child_process'
import { onAbort } from '../../base/abort.ts'
import { Lines, parseJson } from '../../base/json-lines.ts'
import { pythonWords } from '../../base/python-words.ts'
import { type OpsHosts, reasonOfResult } from '../../ops/kernel/host-port.ts'
import { READ_OPTUNA_PROGRAM } from '../../ops/optuna/read-program.ts'
import { READ_EXPERIMENT_PROGRAM } from '../../ops/ray/read-experiment.ts'
import { formatOutcome } from '../../ops/run/outcome.ts'
import type { ReadSource } from '../../scheduler/jobs/study-sources.ts'
import type { CliContext } from '../command-line/verb.ts'

export type PythonCall = {
  readonly program: string
  /** Undefined: this machine. */
  readonly host: string | undefined
  /** Lines of sh that make `python3` the one that is meant. */
  readonly setUp: string | undefined
  readonly stdin: string
  readonly timeoutMs: number
  readonly signal: AbortSignal
  onLine?(line: unknown): void
}

/** The lines as values, those that are no JSON left out; else why there are none. Never rejects. */
export type CallPython = (
  call: PythonCall,
) => Promise<{ readonly lines: readonly unknown[] } | { readonly trouble: string }>

const MOST_LINE = 16 * 1024 * 1024
const MOST_CHARACTERS = 64 * 1024 * 1024
const MOST_STDERR = 64 * 1024
const NO_PYTHON = 127

/** `hosts`: of the inventory, opened when one is needed. */
export const callPython =
  (hosts: () => OpsHosts | Promise<OpsHosts>, context: CliContext): CallPython =>
  async ({ program, host, setUp = '', stdin, timeoutMs, signal, onLine }) => {
    const lines: unknown[] = []
    let length = 0
    const tooMuch = new AbortController()
    const cut = () => tooMuch.abort()
    const reader = new Lines(
      (line) => {
        const value = parseJson(line)
        if (onLine !== undefined) onLine(value)
        else lines.push(value)
      },
      cut,
      MOST_LINE,
    )
    const onText = (text: string) => {
      length += text.length
      if (length > MOST_CHARACTERS) cut()
      else reader.push(text)
    }
    const script = `${setUp}\npython3 ${pythonWords(program)}`
    const own = AbortSignal.any([signal, tooMuch.signal])
    const where = host ?? 'this machine'
    try {
      const trouble =
        host === undefined
          ? await runHere(script, stdin, timeoutMs, own, onText, context)
          : await runOn(await hosts(), host, script, stdin, timeoutMs, own, onText)
      if (tooMuch.signal.aborted) return { trouble: `${where} answered with too much` }
      return trouble === undefined ? { lines } : { trouble: trouble === '' ? `${where} has no python3` : trouble }
    } catch {
      return { trouble: `hosts.yaml has no host ${where}` }
    }
  }

type OnText = (text: string) => void

async function runOn(
  hosts: OpsHosts,
  host: string,
  script: string,
  stdin: string,
  timeoutMs: number,
  signal: AbortSignal,
  onText: OnText,
): Promise<string | undefined> {
  const result = await hosts.exec(host, script, {
    stdin: Buffer.from(stdin),
    timeoutMs,
    signal,
    onOutput: (stream, text) => (stream === 'stdout' ? onText(text) : undefined),
  })
  const { outcome } = result
  if (outcome.kind === 'exit' && outcome.code === 0) return undefined
  if (outcome.kind === 'exit' && outcome.code === NO_PYTHON) return ''
  return reasonOfResult({ ...result, stdout: new Uint8Array() }, formatOutcome)
}

/** In a group of its own, so that all of it ends. */
function runHere(
  script: string,
  stdin: string,
  timeoutMs: number,
  signal: AbortSignal,
  onText: OnText,
  { environment, workingDirectory }: CliContext,
): Promise<string | undefined> {
  const { promise, resolve } = Promise.withResolvers<string | undefined>()
  const child = spawn('/bin/sh', ['-c', script], { env: environment, cwd: workingDirectory, detached: true })
  let [said, isLate] = ['', false]
  const end = () => {
    try {
      if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL')
    } catch {
      // It has ended.
    }
  }
  const timer = Number.isFinite(timeoutMs)
    ? setTimeout(() => {
        isLate = true
        end()
      }, timeoutMs)
    : undefined
  const abort = onAbort(signal, end)
  const finish = (trouble: string | undefined) => {
    clearTimeout(timer)
    abort[Symbol.dispose]()
    resolve(trouble)
  }
  const decoder = new TextDecoder()
  child.stdout.on('data', (bytes: Uint8Array) => onText(decoder.decode(bytes, { stream: true })))
  child.stderr.on('data', (bytes: Uint8Array) => {
    said = `${said}${String(bytes)}`.slice(-MOST_STDERR)
  })
  // It may have ended without reading all.
  child.stdin.on('error', () => undefined)
  child.stdin.end(stdin)
  child.once('error', (error) => finish(error.message))
  child.once('close', (code, signalName) => {
    if (isLate) finish(`no answer for ${timeoutMs / 1000} s`)
    else if (code === 0) finish(undefined)
    else if (code === NO_PYTHON) finish('')
    else finish(said.trim().split('\n').at(-1) || (code === null ? `ended by ${signalName}` : `exit ${code}`))
  })
  return promise
}

const READ_MS = 120_000

/** For studies that run elsewhere. */
export const readSourceWith =
  (call: CallPython): ReadSource =>
  ({ kind, host, setUp }, request, signal) =>
    call({
      program: kind === 'ray' ? READ_EXPERIMENT_PROGRAM : READ_OPTUNA_PROGRAM,
      host,
      setUp,
      stdin: JSON.stringify(request),
      timeoutMs: READ_MS,
      signal,
    })
