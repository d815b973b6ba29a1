/** `muster run`: where a keeper holds the connections, it does the work in less time than this process takes to load the code. */
import { runInKeeper } from './cli/run/in-keeper.ts'

const code = await runInKeeper(process.argv.slice(2))
if (code === undefined) await import('./run-here.ts')
else {
  process.exitCode = code
  // Node's own end frees the heap, which takes longer than a command on a warm host.
  if (process.stdout.writableLength + process.stderr.writableLength === 0) process.exit()
}
