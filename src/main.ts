/** The composition root: arguments → context → one verb → exit code. */
import { isatty } from 'node:tty'
import type { HeldConsole } from './cli/sessions/held-console.ts'
import { CONSOLE_PROCESS } from './cli/sessions/messages.ts'
import { VERB_NAMES } from './cli/verb-names.ts'
import { keepCompiledCode } from './compile-cache.ts'
import { exitWith, limitMemory, ownProcess } from './own-process.ts'

/** The arguments open a console, and no detached one can have the same hosts: this process need not load the rest of the program. */
async function isNewConsole(words: readonly string[]): Promise<boolean> {
  if (!isatty(0) || !isatty(1)) return false
  if (words.some((word) => VERB_NAMES.has(word) || /^(-[^-]*[hV]|--help|--version|--complete|--)$/.test(word)))
    return false
  const { hasDetached } = await import('./cli/sessions/session-directory.ts')
  return !hasDetached(own.environment)
}

const isHeld = process.argv[2] === CONSOLE_PROCESS
// As bin/muster.js does for a process that the user starts.
if (isHeld && import.meta.filename.endsWith('.js')) keepCompiledCode()
let held: HeldConsole | undefined
const own = ownProcess(isHeld ? ['SIGINT', 'SIGTERM'] : undefined, (description) =>
  held ? held.fail(description) : exitWith(description),
)
if (isHeld) {
  const { holdConsole } = await import('./cli/sessions/held-console.ts')
  held = holdConsole(own.environment, process.argv[3] ?? '', () => own.interrupt('SIGHUP'))
}
// React checks much more while it is developed on; the console that loads it is not.
process.env.NODE_ENV ??= 'production'

const words = process.argv.slice(isHeld ? 4 : 2)
const isClient = !isHeld && (await isNewConsole(words))
const work = isClient
  ? (await import('./cli/sessions/console-client.ts')).startConsole
  : (await import('./cli/program.ts')).runProgram

// The client of a console needs no memory limit.
if (!isClient) limitMemory()

const code = await own.run(
  (given, context) => work(given, context),
  words,
  held && { stdin: held.stdin, stdout: held.stdout, stderr: held.stderr, held },
)
held?.leave(code)
