/** `muster run` in this process: a file of its own, as its commands on kept connections take less time than the whole program takes to load. */
import { runVerbs } from './cli/command-line/run-verbs.ts'
import { RUN } from './cli/run/entry.ts'
import { limitMemory, ownProcess } from './own-process.ts'

limitMemory()
await ownProcess().run((words, context) => runVerbs({ verbs: { run: RUN } }, words, context), process.argv.slice(2))
