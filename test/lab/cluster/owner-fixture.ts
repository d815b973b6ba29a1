/** Starts a lab, names it on stdout and never closes it: for the test of an owner that is killed. */
import { startLab } from './lab.ts'

const lab = await startLab({ count: 2 })
process.stdout.write(`${JSON.stringify({ directory: lab.directory, pid: lab.pid })}\n`)
setInterval(() => {}, 60_000)
