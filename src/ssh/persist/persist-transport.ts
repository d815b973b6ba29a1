/** The transport that borrows connections from the keeper. Without a keeper it makes them itself, with a warning. */
import { type Clock, sleep, systemClock } from '../../base/clock.ts'
import { messageOf } from '../../base/errors.ts'
import { KeptPromise } from '../../base/kept-promise.ts'
import { raiseFilesCommand } from '../../base/open-files.ts'
import { ConnectError, type Connection, type Transport } from '../transport.ts'
import { type KeeperClient, KeeperGone, openKeeper } from './keeper-client.ts'
import { preparePrivateDirectory, readToken, socketAddress } from './keeper-directory.ts'
import { persistMsOf } from './warm-connections.ts'

export type PersistOptions = {
  /** Of `keeperDirectory`; made if it is missing, refused if another user could enter it. */
  readonly directory: string
  /** How long every connection stays after its last use, 0: not at all; undefined: what each endpoint says. */
  readonly persistMs?: number | undefined
  /** Makes connections that are not kept, and all of them when there is no keeper. */
  readonly direct: Transport
  /** Starts the background process, which calls `runKeeper`; returns at once. */
  startKeeper(directory: string): void
  /** Once, why connections are not kept: printable, one line. */
  onWarning(message: string): void
  readonly clock?: Clock
}

/** For a keeper that was just started to listen: Node's own start, on a machine under load. */
const START_LIMIT_MS = 30_000
const POLL_MS = 10

/** Disposing of it leaves the connections with the keeper. */
export function createPersistTransport(options: PersistOptions): Transport & Disposable {
  const clock = options.clock ?? systemClock
  let client: KeeperClient | undefined
  let asking: Promise<KeeperClient | undefined> | undefined
  let hasWarned = false
  let isDisposed = false

  const warn = (message: string) => {
    if (!hasWarned) options.onWarning(message)
    hasWarned = true
  }
  const warnOfLimit = (limit: number) =>
    warn(
      `not all connections are kept: the process that keeps them may open only ${limit} files. To raise that: muster hosts --persisted --stop, then ${raiseFilesCommand(4096)}`,
    )

  /** Undefined: connections are made without it. Simultaneous calls share one answer. */
  const askForKeeper = async (): Promise<KeeperClient | undefined> => {
    if (isDisposed || client?.isGone === false) return client
    asking ??= findOrStart(options, clock, warnOfLimit)
      .then(
        (found) => {
          client = found
          if (isDisposed) found[Symbol.dispose]()
          return found
        },
        (error: unknown) => {
          warn(`connections are not kept: ${messageOf(error)}`)
          return undefined
        },
      )
      .finally(() => {
        asking = undefined
      })
    return await asking
  }

  return {
    async connect(endpoint, context) {
      const persistMs = persistMsOf(endpoint, options.persistMs)
      if (persistMs === 0) return await options.direct.connect(endpoint, context)
      const keeper = await askForKeeper()
      if (context.signal.aborted) {
        throw new ConnectError({ kind: 'declined', phase: 'tcp', reason: 'connecting was stopped' })
      }
      if (keeper === undefined) return await options.direct.connect(endpoint, context)
      try {
        // For streams, which the keeper does not pass on. The loss of one counts as the loss of both.
        const own: KeptPromise<Connection> = new KeptPromise(() =>
          options.direct.connect(endpoint, {
            ...context,
            onPhase: () => {},
            onLost(reason) {
              kept.close()
              context.onLost(reason)
            },
          }),
        )
        const closeOwn = () =>
          void own.made?.then(
            (connection) => connection.close(),
            () => {},
          )
        const kept = await keeper.connect(endpoint, persistMs, {
          ...context,
          onLost(reason) {
            closeOwn()
            context.onLost(reason)
          },
        })
        return {
          ...kept,
          connectSocket: async (path) => await (await own.get()).connectSocket(path),
          connectTcp: async (address, port) => await (await own.get()).connectTcp(address, port),
          listenTcp: async (address, port, onStream) => await (await own.get()).listenTcp(address, port, onStream),
          close() {
            kept.close()
            closeOwn()
          },
        }
      } catch (error) {
        const isFull = error instanceof ConnectError && error.failure.isFull === true
        if (!(error instanceof KeeperGone || isFull)) throw error
        if (error instanceof KeeperGone && error.cutFor !== undefined) warn(`connections are not kept: ${error.cutFor}`)
        return await options.direct.connect(endpoint, context)
      }
    },
    [Symbol.dispose]() {
      isDisposed = true
      client?.[Symbol.dispose]()
    },
  }
}

/** The keeper that runs, without starting one; undefined: none does. Rejects with MusterError: it is not to be trusted. */
export async function findKeeper(
  directory: string,
  clock: Clock = systemClock,
  onCrowded?: (limit: number) => void,
): Promise<KeeperClient | undefined> {
  try {
    await preparePrivateDirectory(directory)
    return await openKeeper(socketAddress(directory), await readToken(directory), clock, onCrowded)
  } catch (error) {
    if (isNotListening(error)) return undefined
    throw error
  }
}

async function findOrStart(
  { directory, startKeeper }: PersistOptions,
  clock: Clock,
  onCrowded: (limit: number) => void,
): Promise<KeeperClient> {
  const found = await findKeeper(directory, clock, onCrowded)
  if (found !== undefined) return found
  startKeeper(directory)
  const deadlineMs = clock.now() + START_LIMIT_MS
  for (;;) {
    await sleep(clock, POLL_MS)
    const client = await findKeeper(directory, clock, onCrowded)
    if (client !== undefined) return client
    if (clock.now() > deadlineMs) throw new Error('the keeper did not start')
  }
}

function isNotListening(error: unknown): boolean {
  // It was about to end.
  if (error instanceof KeeperGone) return true
  const { code } = error as NodeJS.ErrnoException
  return code === 'ENOENT' || code === 'ECONNREFUSED' || code === 'ECONNRESET'
}
