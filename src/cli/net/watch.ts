/** `muster net watch`: live resources of all hosts, on a screen, as JSON, or from a recording. */

import { readFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { onAbort } from '../../base/abort.ts'
import { systemClock } from '../../base/clock.ts'
import { Emitter } from '../../base/emitter.ts'
import { fileReason, MusterError } from '../../base/errors.ts'
import { printable } from '../../base/printable.ts'
import { type OpsHosts, reasonOfResult } from '../../ops/kernel/host-port.ts'
import { parseRecording, Replay } from '../../ops/net/watch/recording.ts'
import { RecordingFile } from '../../ops/net/watch/recording-file.ts'
import type { WatchPort } from '../../ops/net/watch/repeated-script.ts'
import type { Sample } from '../../ops/net/watch/sample.ts'
import { HostWatch, OwnMachine } from '../../ops/net/watch/watch-hosts.ts'
import { formatOutcome } from '../../ops/run/outcome.ts'
import { wholeNumber } from '../command-line/options.ts'
import { type CliContext, EXIT, type GlobalOptions, type VerbCode } from '../command-line/verb.ts'
import { selectEndpoints } from '../connect/endpoints.ts'
import { openOpsHosts } from '../connect/ops-hosts.ts'
import { requireTerminal } from '../console/require-terminal.ts'
import { signIn, terminalOf } from '../console/run-console.ts'
import { writeEvent } from '../output/json-lines.ts'
import { unwritten } from '../output/written-file.ts'
import { createOwnMachine } from './own-machine.ts'

type WatchCommandOptions = GlobalOptions & {
  readonly count?: number
  readonly record?: string
  readonly replay?: string
  readonly speed?: number
}

export const verb: VerbCode = {
  define: (command) =>
    command
      .argument('[target]', 'hosts (default: all)')
      .option('--count <n>', 'print N samples of each host as JSON, and exit', wholeNumber(1, 86_400))
      .option('--record <file>', 'write the samples to this file')
      .option('--replay <file>', 'show a recording')
      .option('--speed <n>', 'replay N times as fast (default: 1)', wholeNumber(1, 86_400)),
  help: `
Examples:
  muster net watch                             all hosts of hosts.yaml: processors, memory, network, disks, NFS, GPUs
  muster net watch @gpus --record today.jsonl  also record it; --replay today.jsonl shows it again
  muster net watch --count 5 --json            five samples of each host, for scripts

Keys: > and < sort, / filter, Enter charts of a host, q quit. Nothing is installed on the hosts: one line of sh reads /proc once a second.
`,
  async run(target: string | undefined, options: WatchCommandOptions, context: CliContext) {
    const isText = options.json === true || options.count !== undefined
    refuseIdleOptions(target, options)
    if (!isText) requireTerminal(context, 'muster net watch', '`--count N` (N samples of each host) or `--json`')
    if (options.replay !== undefined) {
      using replay = await openReplay(options.replay, options.speed ?? 1, context)
      await show(options, context, replay)
      return context.signal.aborted ? EXIT.interrupted : EXIT.ok
    }
    const { endpoints } = await selectEndpoints(target, options, context)
    const names = endpoints.map(({ host }) => host)
    using recorder = options.record === undefined ? undefined : new SampleRecorder(options.record, context)
    const stop = new AbortController()
    const signal = AbortSignal.any([context.signal, stop.signal])
    using opened = openOpsHosts(endpoints, options, context)
    if (!isText) await signIn(names, opened.hosts, context)
    const port = watchPort(opened.hosts, signal)
    try {
      const code = isText
        ? await print(names, port, options, context, recorder)
        : await watch(names, port, options, context, recorder)
      return code === EXIT.ok && recorder?.trouble !== undefined ? EXIT.failed : code
    } finally {
      stop.abort()
      // What runs on the hosts is stopped here, not left to notice by itself.
      await port.ended()
    }
  },
}

/** Options that would do nothing. */
function refuseIdleOptions(target: string | undefined, { replay, record, speed, count, json }: WatchCommandOptions) {
  if (replay === undefined) {
    if (speed !== undefined) throw new MusterError('usage', '--speed is only for --replay')
    return
  }
  if (json === true || count !== undefined)
    throw new MusterError('usage', '--replay shows a recording on the screen; its file is JSON already')
  if (record !== undefined) throw new MusterError('usage', '--replay and --record cannot be used together')
  if (target !== undefined) throw new MusterError('usage', '--replay shows the hosts of its recording: name none')
}

/** Over each host's login; `ended` resolves when everything that was started has ended. */
function watchPort(hosts: OpsHosts, signal: AbortSignal): WatchPort & { ended(): Promise<void> } {
  const running = new Set<Promise<void>>()
  return {
    start(host, script, { onText, onEnd }) {
      const own = new AbortController()
      const work = hosts
        .exec(host, script, {
          timeoutMs: Number.POSITIVE_INFINITY,
          signal: AbortSignal.any([signal, own.signal]),
          onOutput: (stream, text) => {
            if (stream === 'stdout') onText(text)
          },
        })
        .then((result) => {
          running.delete(work)
          const reason = reasonOfResult({ ...result, stdout: new Uint8Array() }, formatOutcome)
          onEnd(printable(reason), result.outcome.kind === 'refused')
        })
      running.add(work)
      return { stop: () => own.abort() }
    },
    async ended() {
      await Promise.all(running)
    },
  }
}

async function watch(
  names: readonly string[],
  port: WatchPort,
  options: WatchCommandOptions,
  context: CliContext,
  recorder: SampleRecorder | undefined,
): Promise<number> {
  const changes = new Emitter<void>()
  using watched = new HostWatch(names, {
    port,
    clock: systemClock,
    onSample(host, sample) {
      recorder?.write(host, sample)
      changes.emit()
    },
    onTrouble: () => changes.emit(),
  })
  using own = new OwnMachine({ port: createOwnMachine(), clock: systemClock, onChange: () => changes.emit() })
  await show(options, context, {
    hosts: () => [...watched.hosts, own.view],
    now: context.now,
    subscribe: (changed) => changes.on(changed),
    title: () => recorder?.trouble,
  })
  if (recorder?.trouble !== undefined) context.stderr.write(`muster: ${recorder.trouble}\n`)
  return context.signal.aborted ? EXIT.interrupted : EXIT.ok
}

type Shown = Pick<
  Parameters<typeof import('../../ui/network/pane-screen.ts').openWatchScreen>[0],
  'hosts' | 'now' | 'subscribe' | 'handleKey' | 'title'
>

async function show({ color }: GlobalOptions, context: CliContext, shown: Shown): Promise<void> {
  const { openWatchScreen } = await import('../../ui/network/pane-screen.ts')
  await openWatchScreen({ ...shown, ...terminalOf(color, context) })
}

/** `count` samples of each host (default: until Ctrl-C), one JSON object a line. */
async function print(
  names: readonly string[],
  port: WatchPort,
  { count = Number.POSITIVE_INFINITY, json }: WatchCommandOptions,
  context: CliContext,
  recorder: SampleRecorder | undefined,
): Promise<number> {
  const { stderr, signal } = context
  const left = new Map(names.map((name) => [name, count]))
  const failed = new Set<string>()
  const done = Promise.withResolvers<void>()
  const finish = (host: string) => {
    left.delete(host)
    if (left.size === 0) done.resolve()
  }
  using _watched = new HostWatch(names, {
    port,
    clock: systemClock,
    onSample(host, sample: Sample) {
      const rest = left.get(host)
      if (rest === undefined) return
      const trouble = recorder?.write(host, sample)
      if (trouble !== undefined) stderr.write(`muster: ${trouble}\n`)
      const { atMs: _, ...values } = sample
      writeEvent({ type: 'sample', host, ...values }, context)
      if (rest <= 1) finish(host)
      else left.set(host, rest - 1)
    },
    onTrouble(host, reason) {
      if (!left.has(host)) return
      failed.add(host)
      if (json === true) writeEvent({ type: 'trouble', host, reason }, context)
      else stderr.write(`muster: ${host}: ${reason}\n`)
      // With --count, a host that may never answer is not waited for.
      if (Number.isFinite(count)) finish(host)
    },
  })
  using _abort = onAbort(signal, () => done.resolve())
  await done.promise
  if (signal.aborted) return EXIT.interrupted
  return failed.size > 0 ? EXIT.unreachable : EXIT.ok
}

/** Writes the samples to a file until that fails; watching goes on without it. */
class SampleRecorder implements Disposable {
  readonly #file: RecordingFile
  readonly #path: string
  #trouble: string | undefined

  /** @throws MusterError `usage` if the file exists or cannot be created */
  constructor(path: string, { workingDirectory }: CliContext) {
    this.#path = path
    try {
      this.#file = new RecordingFile(resolve(workingDirectory, path))
    } catch (error) {
      throw unwritten(path, error)
    }
  }

  /** Why the recording has stopped: one line. */
  get trouble(): string | undefined {
    return this.#trouble
  }

  /** Returns the trouble, once. */
  write(host: string, sample: Sample): string | undefined {
    if (this.#trouble !== undefined) return undefined
    try {
      this.#file.write({ host, sample })
    } catch (error) {
      this.#trouble = `recording stopped: cannot write ${printable(this.#path)}: ${fileReason(error)}`
    }
    return this.#trouble
  }

  [Symbol.dispose](): void {
    this.#file[Symbol.dispose]()
  }
}

const TICK_MS = 250

/** The recording as a screen shows it: p halts it, the arrows step through it. */
async function openReplay(path: string, speed: number, { workingDirectory }: CliContext) {
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
