/** What the doctor needs of a host, over a connection: commands with a time limit, and a conversation line by line. */
import type { Clock } from '../../base/clock.ts'
import { messageOf } from '../../base/errors.ts'
import type { CommandOptions, CommandResult, DoctorEnd, DoctorHost, Exchange } from '../../ops/doctor/host-port.ts'
import type { Connection, RemoteProcess } from '../../ssh/transport.ts'

/** No expected answer is longer. */
const STDOUT_LIMIT_BYTES = 1024 * 1024
const STDERR_LIMIT_BYTES = 64 * 1024

export function createDoctorHost(connection: Connection, clock: Clock): DoctorHost {
  return {
    async exec(command, options) {
      const stdout: Uint8Array[] = []
      const stderr: Uint8Array[] = []
      const sizes = { stdout: 0, stderr: 0 }
      const until = options.until === undefined ? undefined : Buffer.from(options.until)
      let tail = Buffer.alloc(0)
      const startedAtMs = clock.now()
      const end = await runUntil(connection, clock, command, options, (stop) => ({
        onStdout(bytes) {
          sizes.stdout += bytes.length
          if (sizes.stdout > STDOUT_LIMIT_BYTES) return stop({ kind: 'enough' })
          stdout.push(bytes)
          if (until === undefined) return
          // The words may be cut in two between packets.
          tail = Buffer.concat([tail.subarray(Math.max(0, tail.length - until.length + 1)), bytes])
          if (tail.includes(until)) stop({ kind: 'enough' })
        },
        onStderr(bytes) {
          sizes.stderr += bytes.length
          if (sizes.stderr <= STDERR_LIMIT_BYTES) stderr.push(bytes)
        },
      }))
      const result: CommandResult = {
        stdout: Buffer.concat(stdout),
        stderr: Buffer.concat(stderr),
        end,
        durationMs: clock.now() - startedAtMs,
      }
      return result
    },

    async converse(command, questions, options) {
      const exchanges: Exchange[] = []
      let sentAtMs = clock.now()
      let isReady = false
      let partial = ''
      let received = 0
      await runUntil(connection, clock, command, options, (stop, write) => ({
        onStdout(bytes) {
          const receivedAtMs = clock.now()
          received += bytes.length
          if (received > STDOUT_LIMIT_BYTES) return stop({ kind: 'enough' })
          const lines = (partial + Buffer.from(bytes).toString('latin1')).split('\n')
          partial = lines.pop() ?? ''
          for (const line of lines) {
            if (!isReady && !line.startsWith(options.ready)) continue
            isReady = true
            if (exchanges.length > questions.length) return
            exchanges.push({ answer: line, sentAtMs, receivedAtMs })
            const question = questions[exchanges.length - 1]
            if (question === undefined) return stop({ kind: 'enough' })
            sentAtMs = clock.now()
            write(Buffer.from(`${question}\n`))
          }
        },
        onStderr() {},
      }))
      return exchanges
    },
  }
}

type Listeners = { onStdout(bytes: Uint8Array): void; onStderr(bytes: Uint8Array): void }
type Listen = (stop: (end: DoctorEnd) => void, write: (bytes: Uint8Array) => void) => Listeners

/** Runs until the command ends or `stop` is called; the channel is closed in any case. */
function runUntil(
  connection: Connection,
  clock: Clock,
  command: string,
  { timeoutMs, silenceMs, signal, stdin }: CommandOptions,
  listen: Listen,
): Promise<DoctorEnd> {
  return new Promise((resolve) => {
    let remote: RemoteProcess | undefined
    let isOver = false
    const stop = (end: DoctorEnd): void => {
      if (isOver) return
      isOver = true
      timer[Symbol.dispose]()
      silence?.[Symbol.dispose]()
      signal.removeEventListener('abort', handleAbort)
      // A hanging command is killed; where a server does not pass signals on, its stdin ends.
      if (end.kind === 'timeout' || end.kind === 'cancelled') remote?.signal('KILL')
      remote?.close()
      resolve(end)
    }
    const handleAbort = (): void => stop({ kind: 'cancelled' })
    const timer = clock.after(timeoutMs, () => stop({ kind: 'timeout' }))
    let silence: Disposable | undefined
    const listenOn = (): void => {
      if (silenceMs === undefined) return
      silence?.[Symbol.dispose]()
      silence = clock.after(silenceMs, () => stop({ kind: 'timeout' }))
    }
    listenOn()
    signal.addEventListener('abort', handleAbort, { once: true })
    if (signal.aborted) return handleAbort()
    const listeners = listen(stop, (bytes) => remote?.write(bytes))
    connection
      .exec(command, {
        onStdout: (bytes) => {
          if (isOver) return
          listenOn()
          listeners.onStdout(bytes)
        },
        onStderr: (bytes) => {
          if (!isOver) listeners.onStderr(bytes)
        },
        onEnd: stop,
      })
      .then(
        (started) => {
          remote = started
          if (isOver) {
            started.signal('KILL')
            started.close()
          } else if (stdin !== undefined) started.write(Buffer.from(stdin))
        },
        (error: unknown) => stop({ kind: 'refused', reason: messageOf(error) }),
      )
  })
}
