/** Starts a lab, names it on stdout and never closes it: for tests of what happens around a lab that stands. */
import { startLab } from './lab.ts'

const lab = await startLab({ count: 2 })
const hostPids = lab.hosts.map(({ pid }) => pid)
process.stdout.write(`${JSON.stringify({ directory: lab.directory, pid: lab.pid, hostPids })}\n`)
setInterval(() => {}, 60_000)
