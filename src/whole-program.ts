/** Every verb, and consoles that need more than a client: arguments → context → one verb → exit code. */
import { runProgram } from './cli/program.ts'
import { limitMemory, ownProcess } from './own-process.ts'

limitMemory()
await ownProcess().run((words, context) => runProgram(words, context), process.argv.slice(2))
