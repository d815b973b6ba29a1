/** A console's own process. It knows no verb but the console: the process that started it has checked the arguments. */
import { runVerbs } from './cli/command-line/run-verbs.ts'
import { CONSOLE } from './cli/console/entry.ts'
import { type HeldConsole, holdConsole } from './cli/sessions/held-console.ts'
import { exitWith, limitMemory, ownProcess } from './own-process.ts'

let held: HeldConsole | undefined
const own = ownProcess(['SIGINT', 'SIGTERM'], (description) => (held ? held.fail(description) : exitWith(description)))
held = holdConsole(own.environment, process.argv[3] ?? '', () => own.interrupt('SIGHUP'))
limitMemory()
const { stdin, stdout, stderr } = held
const code = await own.run(
  (words, context) => runVerbs({ root: CONSOLE, verbs: {} }, words, context),
  process.argv.slice(4),
  { stdin, stdout, stderr, held },
)
held.leave(code)
