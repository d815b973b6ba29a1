/** A program that starts an embedded host and a shell on it, says where, and waits to be killed. */
import { embeddedEndpoints, startEmbeddedHosts } from '../../../src/ssh/embedded/start-embedded-hosts.ts'
import { createSsh2Transport } from '../../../src/ssh/ssh2/transport.ts'
import { spawnLocalPty } from '../../../src/terminal/local-pty.ts'
import { openWatchedShell, watchedContext } from '../../support/ssh-context.ts'

const embedded = await startEmbeddedHosts({ count: 1, spawnPty: spawnLocalPty })
const [endpoint] = embeddedEndpoints(embedded)
if (endpoint === undefined) throw new Error('no host')
const shell = await openWatchedShell(await createSsh2Transport().connect(endpoint, watchedContext()))
shell.type('echo "pid=$$="\n')
const pid = Number(/pid=(\d+)=/.exec(await shell.shows(/pid=\d+=/))?.[1])
process.stdout.write(`${JSON.stringify({ directory: embedded.directory, pid })}\n`)
