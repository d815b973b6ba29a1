/** The composition root: arguments → context → one verb → exit code. */
import { writeSync } from 'node:fs'
import { isatty } from 'node:tty'
import { formatBytes } from './base/format-bytes.ts'
import { describeError } from './cli/command-line/describe-error.ts'
import { EXIT } from './cli/command-line/verb.ts'
import { keepToAscii } from './cli/output/ascii-output.ts'
import { CONSOLE_PROCESS } from './cli/sessions/messages.ts'
import { VERB_NAMES } from './cli/verb-names.ts'
import { keepCompiledCode } from './compile-cache.ts'
import { watchMemory } from './memory-watch.ts'
import { tameNodeWarnings } from './node-warnings.ts'

// Behind `--` are words of another program.
const ownArgs = process.argv.includes('--') ? process.argv.slice(0, process.argv.indexOf('--')) : process.argv
const isVerbose = ownArgs.includes('-v') || ownArgs.includes('--verbose')
tameNodeWarnings(isVerbose ? (line) => process.stderr.write(line) : undefined)

const interrupted = new AbortController()
// What programs that are started from here inherit: as the user set it.
const environment = { ...process.env }
const isHeld = process.argv[2] === CONSOLE_PROCESS
// As bin/muster.js does for a process that the user starts.
if (isHeld && import.meta.filename.endsWith('.js')) keepCompiledCode()
const held = isHeld
  ? (await import('./cli/sessions/held-console.ts')).holdConsole(environment, process.argv[3] ?? '', () =>
      interrupted.abort('SIGHUP'),
    )
  : undefined
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  if (signal !== 'SIGHUP' || !isHeld) process.once(signal, () => interrupted.abort(signal))
}
// React checks much more while it is developed on; the console that loads it is not.
process.env.NODE_ENV ??= 'production'

for (const stream of [process.stdout, process.stderr]) keepToAscii(stream, environment)

// The console has a handler of its own, which restores the terminal first.
process.on('uncaughtException', (error) => {
  if (process.listenerCount('uncaughtException') > 1) return
  if (held) return held.fail(describeError(error))
  writeSync(2, describeError(error))
  process.exit(EXIT.failed)
})

/** The arguments open a console, and no detached one can have the same hosts: this process need not load the rest of the program. */
async function isNewConsole(words: readonly string[]): Promise<boolean> {
  if (!isatty(0) || !isatty(1)) return false
  if (words.some((word) => VERB_NAMES.has(word) || /^(-[^-]*[hV]|--help|--version|--complete|--)$/.test(word)))
    return false
  const { hasDetached } = await import('./cli/sessions/session-directory.ts')
  return !hasDetached(environment)
}

const words = process.argv.slice(isHeld ? 4 : 2)
const isClient = !isHeld && (await isNewConsole(words))
const start = isClient
  ? (await import('./cli/sessions/console-client.ts')).startConsole
  : (await import('./cli/program.ts')).runProgram

// The client of a console needs no memory limit.
if (!isClient)
  watchMemory((limitBytes) => {
    const line = `muster: out of memory: it needs more than ${formatBytes(limitBytes)}. For twice as much: NODE_OPTIONS=--max-old-space-size=${Math.ceil(limitBytes / 2 ** 19)}\n`
    // Runs after the handlers that restore the terminal.
    process.on('exit', () => writeSync(2, line))
    process.exit(1)
  })

process.exitCode = await start(words, {
  stdin: held?.stdin ?? process.stdin,
  stdout: held?.stdout ?? process.stdout,
  stderr: held?.stderr ?? process.stderr,
  ...(held && { held }),
  environment,
  workingDirectory: process.cwd(),
  signal: interrupted.signal,
  now: Date.now,
})
held?.leave(process.exitCode)

// Whatever a verb has left open (a socket, a timer) does not keep the program alive after it has said how it went.
setTimeout(() => process.exit(), 1000).unref()
