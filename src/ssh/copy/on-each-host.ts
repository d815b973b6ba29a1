/** Works on many hosts under the fan-out limit. A host that fails or is slow delays no other; nothing is retried. */
import { onAbort } from '../../base/abort.ts'
import type { Clock } from '../../base/clock.ts'
import { messageOf } from '../../base/errors.ts'
import { printable } from '../../base/printable.ts'
import type { Endpoint } from '../../inventory/host.ts'
import { ConnectGate, inTurn } from '../connect-gate.ts'
import { connectLimits } from '../connect-limits.ts'
import { type Askers, ConnectError, type Connection, connectTo, type Transports, withHint } from '../transport.ts'
import { showPath } from './byte-path.ts'
import type { CopyAction, CopyEvent, HostResult } from './events.ts'
import { RemoteFiles, RemoteLost, RemoteRefusal, reasonOf } from './remote-files.ts'

export type CopyWires = Askers & {
  readonly transports: Transports
  readonly clock: Clock
  readonly fanOut: number
  readonly signal: AbortSignal
  onEvent(event: CopyEvent): void
}

/** The events of one host; `onFile` gets paths as bytes. */
export type HostReport = {
  onBegin(files: number, totalBytes: number): void
  onFile(path: string, action: CopyAction, sizeBytes: number, more?: { resumedBytes?: number; reason?: string }): void
  onProgress(bytes: number, isSent: boolean): void
  onPassedOn(bytes: number): void
}

export type HostConnection = {
  readonly remote: RemoteFiles
  readonly connection: Connection
  readonly endpoint: Endpoint
}

/** The function that it may return is awaited after the result is reported and before the connection closes. */
type HostWork = (host: HostConnection, report: HostReport) => Promise<undefined | (() => Promise<void>)>

/** Never throws: a failure is the result of its host. */
export async function onEachHost(endpoints: readonly Endpoint[], wires: CopyWires, work: HostWork): Promise<void> {
  const gate = new ConnectGate(wires.fanOut)
  await Promise.all(
    endpoints.map((endpoint) =>
      inTurn(gate, wires, wires.clock, (askers) => workOnHost(endpoint, { ...wires, ...askers }, work)),
    ),
  )
}

async function workOnHost(endpoint: Endpoint, wires: CopyWires, work: HostWork): Promise<void> {
  const { clock, signal, onEvent } = wires
  const { host } = endpoint
  const startedAtMs = clock.now()
  let [copied, identical, failed, sentBytes, passedOnBytes] = [0, 0, 0, 0, 0]
  const end = (outcome: HostResult['outcome'], reason?: string) => {
    const durationMs = clock.now() - startedAtMs
    const words = reason === undefined ? {} : { reason }
    const passedOn = passedOnBytes === 0 ? {} : { passedOnBytes }
    onEvent({
      type: 'result',
      host,
      result: { outcome, ...words, copied, identical, failed, sentBytes, ...passedOn, durationMs },
    })
  }
  let connection: Connection | undefined
  let remote: RemoteFiles | undefined
  let lostReason: string | undefined
  const stop = () => {
    remote?.close()
    connection?.close()
  }
  using _abort = onAbort(signal, () => stop())
  try {
    signal.throwIfAborted()
    connection = await connectTo(endpoint, wires, signal, {
      onLost: (reason) => {
        lostReason = reason
      },
    })
    signal.throwIfAborted()
    remote = await RemoteFiles.start(connection, { clock, startLimitMs: connectLimits(endpoint).shellStartMs, signal })
    const linger = await work(
      { remote, connection, endpoint },
      {
        onBegin: (files, totalBytes) => onEvent({ type: 'begin', host, files, totalBytes }),
        onFile: (path, action, sizeBytes, more = {}) => {
          if (action === 'failed') failed += 1
          else if (action === 'identical') identical += 1
          else copied += 1
          onEvent({ type: 'file', host, path: showPath(path), action, sizeBytes, ...more })
        },
        onProgress: (bytes, isSent) => {
          if (isSent) sentBytes += bytes
          onEvent({ type: 'progress', host, bytes })
        },
        onPassedOn: (bytes) => {
          passedOnBytes += bytes
          onEvent({ type: 'progress', host, bytes })
        },
      },
    )
    end(failed > 0 ? 'failed' : 'ok')
    await linger?.()
  } catch (error) {
    if (signal.aborted) end('cancelled', 'cancelled')
    else if (error instanceof ConnectError) {
      end(error.failure.kind === 'unreachable' ? 'unreachable' : 'refused', withHint(error.failure))
    } else if (error instanceof RemoteRefusal) end('failed', describeRefusal(error))
    else if (error instanceof RemoteLost) {
      end('unreachable', lostReason === undefined ? error.message : `lost: ${printable(lostReason)}`)
    } else end('failed', printable(messageOf(error)))
  } finally {
    stop()
  }
}

/** With the path, as it concerns the whole host. */
function describeRefusal(refusal: RemoteRefusal): string {
  const at = refusal.message.lastIndexOf(': ')
  if (at < 0) return reasonOf(refusal)
  return `${showPath(refusal.message.slice(0, at).replace(/^\.\//, ''))}: ${reasonOf(refusal)}`
}
