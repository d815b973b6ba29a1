/** The system's ssh, for what ssh2 cannot do (GSSAPI, security keys, certificates): clients of a ControlMaster for each host. */

import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { type Clock, systemClock } from '../../base/clock.ts'
import { getOrMake } from '../../base/collections.ts'
import { connectUnixSocket } from '../../base/connect-stream.ts'
import { defined } from '../../base/defined.ts'
import { messageOf } from '../../base/errors.ts'
import { printable } from '../../base/printable.ts'
import type { PtySpawner } from '../../base/pty.ts'
import type { Endpoint } from '../../inventory/host.ts'
import { isPort } from '../../inventory/host-name.ts'
import { findProgram } from '../../inventory/ssh-config/openssh-source.ts'
import { streamOf } from '../local/child-stream.ts'
import { openPtyShell, spawnProcess } from '../local/spawn-process.ts'
import type { HostKeyReviewer } from '../questions.ts'
import { HANDSHAKES_PER_SERVER, Throttle } from '../ssh2/session-slots.ts'
import { type ChannelEnd, ConnectError, type Connection, type Transport } from '../transport.ts'
import { type AskpassServer, startAskpassServer } from './askpass-server.ts'
import { type Master, type MasterOptions, openMaster } from './open-master.ts'
import { clientArguments, forwardArguments, option, socketAddress } from './ssh-arguments.ts'

type OpensshTransportOptions = {
  readonly spawnPty: PtySpawner
  readonly clock?: Clock
  /** Decides about keys that known_hosts does not name; without it they are not accepted. */
  readonly reviewer?: HostKeyReviewer
  /** Default `ssh`, found in PATH. */
  readonly sshFile?: string
  /** May change: later connections get the new values. */
  readonly environment?: Readonly<Record<string, string | undefined>>
}

/** ssh's own status for 'the connection failed', and also what a remote command may exit with. */
const CONNECTION_FAILED = 255
/** For the master to listen on a socket of this machine. */
const FORWARD_LIMIT_MS = 15_000
/** Of what a client says on stderr. */
const WORDS_LIMIT = 2000
/** How long after a client's end the master's end may come to light. */
const MASTER_ENDS_WITHIN_MS = 250

/** Disposing of it ends nothing that is connected, but no question can be asked any more. */
export function createOpensshTransport(options: OpensshTransportOptions): Transport & Disposable {
  const { spawnPty, clock = systemClock, sshFile = 'ssh' } = options
  const throttle = new Throttle(HANDSHAKES_PER_SERVER)
  let askpass: Promise<AskpassServer> | undefined
  return {
    async connect(endpoint, context) {
      const environment = defined(options.environment ?? process.env) as Record<string, string>
      if (findProgram(sshFile, environment.PATH) === undefined)
        throw new ConnectError({
          kind: 'configuration',
          phase: 'name',
          reason: `the program ${sshFile} is not installed`,
          hint: 'Install the OpenSSH client, or use the transport ssh2 for this host.',
        })
      askpass ??= startAskpassServer()
      const masterOptions: MasterOptions = {
        sshFile,
        spawnPty,
        clock,
        environment,
        askpass: await askpass,
        reviewer: options.reviewer,
      }
      const leave = await throttle.enter(firstServerOf(endpoint), context.signal)
      const master = await openMaster(endpoint, context, masterOptions).finally(leave)
      master.onGone((reason) => context.onLost(reason))
      return connectionOf(endpoint, master, { spawnPty, clock, sshFile, environment })
    },
    [Symbol.dispose]() {
      askpass?.then(
        (server) => server[Symbol.dispose](),
        () => {},
      )
    },
  }
}

type ClientOptions = {
  readonly spawnPty: PtySpawner
  readonly clock: Clock
  readonly sshFile: string
  readonly environment: Record<string, string>
}

function connectionOf(endpoint: Endpoint, master: Master, options: ClientOptions): Connection {
  const { spawnPty, clock, sshFile, environment } = options
  const open = new Set<{ close(): void }>()
  const { controlPath } = master

  /** A client that ends with 255 in the same moment as its master did not exit: it was cut off. */
  const reportEnd = (end: ChannelEnd, report: (end: ChannelEnd) => void) => {
    if (end.kind !== 'exit' || end.code !== CONNECTION_FAILED) return report(end)
    let isReported = false
    const reportOnce = (each: ChannelEnd) => {
      if (isReported) return
      isReported = true
      timer[Symbol.dispose]()
      report(each)
    }
    const timer = clock.after(MASTER_ENDS_WITHIN_MS, () => reportOnce(end))
    master.onGone((reason) => reportOnce({ kind: 'lost', reason }))
  }

  /** By path on the host: the master listens on a socket beside its own, and passes what connects there on to the host. */
  const forwards = new Map<string, Promise<string>>()
  const forwardSocket = async (path: string): Promise<string> => {
    const local = `${controlPath}-${forwards.size}`
    await askMaster('forward', '-L', `${local}:${path}`)
    return local
  }

  /** Resolves with what it prints; rejects with its last words. */
  const askMaster = (command: 'forward' | 'cancel', way: '-L' | '-R', forward: string): Promise<string> =>
    new Promise((resolve, reject) => {
      const args = forwardArguments(endpoint, controlPath, command, way, forward)
      execFile(sshFile, args, { env: environment, timeout: FORWARD_LIMIT_MS }, (error, stdout, stderr) => {
        if (error === null) resolve(stdout)
        else reject(new Error(printable(stderr.trim().split('\n').at(-1) || messageOf(error))))
      })
    })

  let listenCount = 0

  return {
    async openShell({ size, term, environment: extra }, handlers) {
      const names = Object.keys(extra ?? {})
      const shell = openPtyShell(
        spawnPty,
        {
          file: sshFile,
          args: clientArguments(
            endpoint,
            controlPath,
            ['-tt', ...option('LogLevel', 'QUIET'), ...names.flatMap((name) => option('SendEnv', name))],
            endpoint.shell,
          ),
          ...size,
          term,
          environment: { ...environment, ...extra, TERM: term },
        },
        handlers,
        (end) => {
          open.delete(shell)
          reportEnd(end, (known) => handlers.onEnd(known))
        },
      )
      open.add(shell)
      return shell
    },
    async exec(command, handlers) {
      const remote = await spawnProcess(
        {
          file: sshFile,
          args: clientArguments(endpoint, controlPath, ['-T', ...option('LogLevel', 'ERROR')], command),
          environment,
          clock,
        },
        {
          ...handlers,
          onEnd: (end) => {
            open.delete(remote)
            reportEnd(end, (known) => handlers.onEnd(known))
          },
        },
      )
      open.add(remote)
      return remote
    },
    async connectSocket(path) {
      const forward = getOrMake(forwards, path, () => forwardSocket(path))
      // The next request tries again.
      const local = await forward.catch((error: unknown) => {
        forwards.delete(path)
        throw error
      })
      return await connectUnixSocket(local)
    },
    async connectTcp(address, port) {
      const way = ['-T', ...option('LogLevel', 'ERROR'), '-W', socketAddress({ address, port })]
      const child = spawn(sshFile, clientArguments(endpoint, controlPath, way), {
        env: environment,
        stdio: ['pipe', 'pipe', 'pipe'],
        detached: true,
      })
      let stderr = ''
      child.stderr.setEncoding('utf8').on('data', (text: string) => {
        stderr = (stderr + text).slice(-WORDS_LIMIT)
      })
      await once(child, 'spawn')
      const stream = streamOf(child, { allowHalfOpen: true })
      child.once('close', (code) => {
        if (code !== CONNECTION_FAILED) return
        const words = printable(stderr.trim().split('\n').at(-1) ?? '')
        stream.destroy(new Error(`ssh cannot reach ${printable(socketAddress({ address, port }))}: ${words}`))
      })
      return stream
    },
    async listenTcp(address, port, onStream) {
      listenCount += 1
      const path = `${controlPath}-r${listenCount}`
      const server = createServer({ allowHalfOpen: true }, onStream)
      server.listen(path)
      await once(server, 'listening')
      // Such as too many open files: those that wait are taken when there is room.
      server.on('error', () => {})
      const where = (actual: number) => `${socketAddress({ address, port: actual })}:${path}`
      try {
        const printed = await askMaster('forward', '-R', where(port))
        const actual = port === 0 ? Number(/^\s*(?:Allocated port )?(\d{1,5})\b/.exec(printed)?.[1]) : port
        if (!isPort(actual)) throw new Error('ssh did not say which port it is')
        return {
          port: actual,
          close() {
            server.close()
            askMaster('cancel', '-R', where(port)).catch(() => {})
          },
        }
      } catch (error) {
        server.close()
        const what = `it does not listen on ${printable(socketAddress({ address, port }))}`
        throw new ConnectError({ kind: 'configuration', phase: 'shell', reason: `${what}: ${messageOf(error)}` }, error)
      }
    },
    close() {
      for (const each of open) each.close()
      open.clear()
      master.close()
    },
  }
}

/** The sshd that sees the burst of logins: each login through a jump host is one to the jump host too. */
function firstServerOf(endpoint: Endpoint): string {
  const { address, port } = endpoint.jump[0] ?? endpoint
  return `${address}:${port}`
}
