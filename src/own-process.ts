/** What a process of Muster does around its work: signals, warnings of Node, errors that nothing caught, and the exit. */
import { writeSync } from 'node:fs'
import { formatBytes } from './base/format-bytes.ts'
import { workingDirectory } from './base/working-directory.ts'
import { describeError } from './cli/command-line/describe-error.ts'
import { type CliContext, EXIT } from './cli/command-line/verb.ts'
import { keepToAscii } from './cli/output/ascii-output.ts'
import { tameNodeWarnings } from './node-warnings.ts'

/** Words and streams are the process's own. */
export type Work = (words: readonly string[], context: CliContext) => Promise<number>

export type OwnProcess = {
  /** What programs that are started from here inherit: as the user set it. */
  readonly environment: Record<string, string | undefined>
  /** Aborted by the first signal, and by `interrupt`. */
  readonly signal: AbortSignal
  interrupt(reason: string): void
  /** Resolves to the exit code, which is set. */
  run(work: Work, words: readonly string[], more?: Partial<CliContext>): Promise<number>
}

/** `onFault` gets the description of an error that nothing caught. */
export function ownProcess(
  signals: readonly ('SIGINT' | 'SIGTERM' | 'SIGHUP')[] = ['SIGINT', 'SIGTERM', 'SIGHUP'],
  onFault: (description: string) => void = exitWith,
): OwnProcess {
  // Behind `--` are words of another program. Without it, -v of a command shows Node's warnings as well, which are rare.
  const own = process.argv.includes('--') ? process.argv.slice(0, process.argv.indexOf('--')) : process.argv
  const isVerbose = own.includes('-v') || own.includes('--verbose')
  tameNodeWarnings(isVerbose ? (line) => process.stderr.write(line) : undefined)
  const interrupted = new AbortController()
  const environment = { ...process.env }
  // Otherwise React makes checks for developers, which take time.
  process.env.NODE_ENV ??= 'production'
  for (const signal of signals) process.once(signal, () => interrupted.abort(signal))
  process.on('SIGCONT', () => process.stderr.emit('continued'))
  for (const stream of [process.stdout, process.stderr]) keepToAscii(stream, environment)
  // The console has a handler of its own, which restores the terminal first.
  process.on('uncaughtException', (error) => {
    if (process.listenerCount('uncaughtException') <= 1) onFault(describeError(error))
  })
  return {
    environment,
    signal: interrupted.signal,
    interrupt: (reason) => interrupted.abort(reason),
    async run(work, words, more = {}) {
      const code = await work(words, {
        stdin: process.stdin,
        stdout: process.stdout,
        stderr: process.stderr,
        environment,
        workingDirectory: workingDirectory(),
        signal: interrupted.signal,
        now: Date.now,
        ...more,
      })
      process.exitCode = code
      // Whatever a verb has left open (a socket, a timer) does not keep the program alive after it has said how it went.
      setTimeout(() => process.exit(), 1000).unref()
      return code
    },
  }
}

/** Before that no process needs so much; what looks at memory takes as long to load as a short command runs. */
const MEMORY_FREE_MS = 50

/** Ends the process with a line before V8 runs out of memory. */
export function limitMemory(): void {
  setTimeout(() => void endWhenFull(), MEMORY_FREE_MS).unref()
}

async function endWhenFull(): Promise<void> {
  const { watchMemory } = await import('./memory-watch.ts')
  watchMemory((limitBytes) => {
    const line = `muster: out of memory: it needs more than ${formatBytes(limitBytes)}. For twice as much: NODE_OPTIONS=--max-old-space-size=${Math.ceil(limitBytes / 2 ** 19)}\n`
    // Runs after the handlers that restore the terminal.
    process.on('exit', () => writeSync(2, line))
    process.exit(1)
  })
}

export function exitWith(description: string): void {
  writeSync(2, description)
  process.exit(EXIT.failed)
}
