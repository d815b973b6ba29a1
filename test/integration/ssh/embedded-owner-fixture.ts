/** A program that starts an embedded host, a shell on it and from there a program in a session of its own, says where, and waits to be killed. */
import { embeddedEndpoints, startEmbeddedHosts } from '../../../src/ssh/embedded/start-embedded-hosts.ts'
import { createSsh2Transport } from '../../../src/ssh/ssh2/transport.ts'
import { spawnLocalPty } from '../../../src/terminal/local-pty.ts'
import { openWatchedShell, watchedContext } from '../../support/ssh-context.ts'

const embedded = await startEmbeddedHosts({ count: 1, spawnPty: spawnLocalPty })
const [endpoint] = embeddedEndpoints(embedded)
if (endpoint === undefined) throw new Error('no host')
const shell = await openWatchedShell(await createSsh2Transport().connect(endpoint, watchedContext()))
const pidShown = async (name: string, command: string): Promise<number> => {
  shell.type(`${command}\n`)
  const shown = new RegExp(`${name}=(\\d+)=`)
  return Number(shown.exec(await shell.shows(shown))?.[1])
}
const pids = [
  await pidShown('pid', 'echo "pid=$$="'),
  await pidShown('left', `setsid sh -c 'echo "left=$$="; trap "" HUP; while :; do sleep 1; done' || echo left=$((0))=`),
]
process.stdout.write(`${JSON.stringify({ directory: embedded.directory, pids })}\n`)
