/** The background process that holds warm connections for one user's programs. It ends when it holds nothing. */

import { createServer } from 'node:net'
import type { Clock } from '../../base/clock.ts'
import { freeFiles } from '../../base/open-files.ts'
import type { Transport } from '../transport.ts'
import { type Claim, claimAddress } from './claim-address.ts'
import { preparePrivateDirectory, readToken, socketAddress } from './keeper-directory.ts'
import { ServedProgram } from './serve-program.ts'
import type { DoWork } from './served-work.ts'
import { WarmConnections } from './warm-connections.ts'

type KeeperOptions = {
  readonly directory: string
  /** A transport for each program that comes. */
  createTransport(): Transport
  /** Does what programs ask the keeper to do in their place, over connections that are warm. Undefined: nothing. */
  doWork?(warm: WarmConnections, ...work: Parameters<DoWork>): ReturnType<DoWork>
  readonly clock: Clock
  /** Ends it at once, with everything that it holds. */
  readonly signal: AbortSignal
  /** How long it waits for the program that started it, and for one more when it holds nothing. */
  readonly lingerMs?: number
}

const LINGER_MS = 3_000
/** Sockets that have not proved themselves yet: more are turned away, and come again. */
const MAX_STRANGERS = 64

/** For programs that come, the files of keys, and questions to an agent. */
const SPARE_FILES = 12
/** A socket, or the pipes of a proxy command with both ends while it starts. */
const FILES_A_LOGIN = 8

/** Resolves when the keeper has ended; at once where another one serves the directory already. */
export async function runKeeper({ directory, clock, signal, ...options }: KeeperOptions): Promise<void> {
  const { lingerMs = LINGER_MS, doWork } = options
  await preparePrivateDirectory(directory)
  const token = await readToken(directory)
  const ended = Promise.withResolvers<void>()
  const programs = new Set<ServedProgram>()
  let lingering: Disposable | undefined
  let claim: Claim | undefined

  const lingerWhenIdle = () => {
    lingering?.[Symbol.dispose]()
    lingering = undefined
    if (programs.size > 0) return
    // Programs no longer find this keeper: there is nothing to keep warm for.
    if (claim?.isOurs() === false) return ended.resolve()
    if (warm.isEmpty) lingering = clock.after(lingerMs, () => ended.resolve())
  }
  const warm = new WarmConnections(
    clock,
    lingerWhenIdle,
    (connecting, closing) => freeFiles() + closing >= SPARE_FILES + (connecting + 1) * FILES_A_LOGIN,
  )

  const server = createServer((socket) => {
    if ([...programs].filter(({ isTrusted }) => !isTrusted).length >= MAX_STRANGERS) return void socket.destroy()
    lingering?.[Symbol.dispose]()
    const transport = options.createTransport()
    const program = new ServedProgram(socket, {
      token,
      warm,
      clock,
      transport,
      doWork: doWork && ((request, streams) => doWork(warm, request, streams)),
      onGone: () => {
        programs.delete(program)
        lingerWhenIdle()
      },
    })
    programs.add(program)
  })
  claim = await claimAddress(server, [socketAddress(directory)])
  if (claim === undefined) {
    server.close()
    return
  }
  signal.addEventListener('abort', () => ended.resolve(), { once: true })
  if (signal.aborted) ended.resolve()
  lingerWhenIdle()
  await ended.promise
  lingering?.[Symbol.dispose]()
  claim[Symbol.dispose]()
  server.close()
  warm[Symbol.dispose]()
  for (const program of programs) program.close()
}
