/** The composition root: by the arguments, this process is a console's client, a console or any other verb, and loads only that. */
import { isatty } from 'node:tty'
import { CONSOLE_PROCESS } from './cli/sessions/messages.ts'
import { hasDetached } from './cli/sessions/session-directory.ts'
import { spawnConsole } from './cli/sessions/spawn-console.ts'
import { VERB_NAMES } from './cli/verb-names.ts'
import { keepCompiledCode } from './compile-cache.ts'
import { nearestWord } from './inventory/nearest-word.ts'

/** The arguments open a console, and no detached one can have the same hosts. A word that resembles a verb may be one with a typing error. */
function isNewConsole(words: readonly string[]): boolean {
  if (!isatty(0) || !isatty(1)) return false
  const isForVerbs = (word: string) =>
    word.startsWith('-')
      ? /^(-[^-]*[hV]|--help|--version|--complete|--)$/.test(word)
      : nearestWord(word, VERB_NAMES) !== undefined
  return !words.some(isForVerbs) && !hasDetached(process.env)
}

const words = process.argv.slice(2)
if (words[0] === CONSOLE_PROCESS) {
  // As bin/muster.js does for a process that the user starts.
  if (import.meta.filename.endsWith('.js')) keepCompiledCode()
  await import('./console-process.ts')
} else if (isNewConsole(words)) {
  const { env: environment, stdin } = process
  // Before anything else, so that both processes load their code at the same time.
  const started = spawnConsole(words, { stdin, environment, workingDirectory: process.cwd() })
  const { followStarted } = await import('./console-client.ts')
  await followStarted(started)
} else await import('./whole-program.ts')
