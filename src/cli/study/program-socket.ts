/**
 * The socket at which programs ask the scheduler for points and tell their values. It lies beside the queue, in a directory for its
 * user alone, so that whoever can connect may also use the queue.
 */
import { createHash, randomBytes } from 'node:crypto'
import { chmodSync, existsSync, readdirSync, renameSync, unlinkSync } from 'node:fs'
import { connect, createServer, type Socket } from 'node:net'
import { basename, dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { MusterError, messageOf } from '../../base/errors.ts'
import { foreignDirectory, foreignOwnerOf, makeOwnDirectories, notOwn } from '../../base/foreign-place.ts'
import { type JsonRecord, Lines, parseJson, record } from '../../base/json-lines.ts'
import { freeFiles } from '../../base/open-files.ts'
import { printable } from '../../base/printable.ts'
import type { ProgramDesk } from '../../scheduler/jobs/study-desk.ts'
import { answerLine, MOST_LINE, parseRequest } from '../../scheduler/study/program-lines.ts'
import { identityOf } from '../../ssh/persist/claim-address.ts'
import type { CliContext } from '../command-line/verb.ts'
import { notice } from '../output/notices.ts'

const SUFFIX = 9
/** Bytes; macOS allows 103, Linux 107. */
const MOST_ADDRESS = 103 - SUFFIX
const MOST_CONNECTIONS = 512
/** They stay free for connections to hosts. */
const SPARE_FILES = 64
/** A program that has said nothing for so long after it connected is disconnected. */
const SILENT_MS = 30_000
/** So long a refused program may take to read why. */
const REFUSED_MS = 2_000

/** Of the queue at this path. In /tmp where the path would be too long for a socket. */
export function programSocket(queue: string): string {
  const beside = queue.replace(/\.db$/, '.sock')
  if (Buffer.byteLength(beside) <= MOST_ADDRESS) return beside
  const name = createHash('sha256').update(queue).digest('hex').slice(0, 16)
  return join('/tmp', `muster-${process.getuid?.() ?? 'user'}`, `${name}.sock`)
}

/** Only for the scheduler that has the lease: it takes the place of one that was killed. */
export function servePrograms(address: string, desk: ProgramDesk, say: (text: string) => void): Disposable {
  const sockets = new Set<Socket>()
  const own = `${address}-${randomBytes(4).toString('hex')}`
  let identity: string | undefined
  let isClosed = false
  const complain = (error: unknown) =>
    say(`programs cannot ask for points at ${printable(address)}: ${messageOf(error)}`)
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    socket.on('error', () => socket.destroy())
    if (sockets.size >= MOST_CONNECTIONS || freeFiles() < SPARE_FILES) return void socket.destroy()
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
    serveProgram(socket, desk)
  })
  server.on('error', complain)
  try {
    makeOwnDirectories(dirname(address))
    chmodSync(dirname(address), 0o700)
    removeLeft(address)
    server.listen(own, () => {
      if (isClosed) return
      try {
        chmodSync(own, 0o600)
        identity = identityOf(own)
        renameSync(own, address)
      } catch (error) {
        complain(error)
      }
    })
  } catch (error) {
    complain(error)
  }
  return {
    [Symbol.dispose]() {
      isClosed = true
      server.close()
      for (const socket of sockets) socket.destroy()
      // Another scheduler's stays.
      if (identity !== undefined && identityOf(address) === identity) remove(address)
    },
  }
}

/** Never pauses the socket, so that its end is noticed while the program waits. */
function serveProgram(socket: Socket, desk: ProgramDesk): void {
  const line = Symbol('program')
  const pending: string[] = []
  let pendingLength = 0
  let working: string | undefined
  let isEnded = false
  const refuse = (error: string) => {
    pending.length = 0
    lines.stop()
    // It may go on sending, and never read.
    socket.pause()
    socket.setTimeout(REFUSED_MS)
    socket.end(answerLine({ error }), () => socket.destroy())
  }
  const next = () => {
    if (working !== undefined || socket.writableEnded) return
    const text = pending.shift()
    if (text === undefined) return void (isEnded && socket.end())
    pendingLength -= text.length
    const request = parseRequest(text)
    if (typeof request === 'string') return refuse(request)
    working = request.kind
    socket.setTimeout(0)
    void desk.request(request, line).then((answer) => {
      working = undefined
      if (!socket.destroyed && !socket.writableEnded) socket.write(answerLine(answer))
      // It sends without reading.
      if (socket.writableLength > MOST_LINE) socket.destroy()
      next()
    })
  }
  const lines = new Lines(
    (text) => {
      pending.push(text)
      pendingLength += text.length + 1
      if (pendingLength > MOST_LINE) refuse('too many lines before the first one is answered')
      else next()
    },
    () => refuse(`a line must be shorter than ${MOST_LINE} characters`),
    MOST_LINE,
  )
  socket.setTimeout(SILENT_MS, () => socket.destroy())
  socket.setEncoding('utf8').on('data', (text: string) => lines.push(text))
  socket.once('end', () => {
    isEnded = true
    desk.leave(line)
    if (working === 'ask' || working === 'hold') socket.destroy()
    else next()
  })
  socket.once('close', () => desk.leave(line))
}

/** Sockets of schedulers that were killed before they had moved them to the address. */
function removeLeft(address: string): void {
  const prefix = `${basename(address)}-`
  for (const name of readdirSync(dirname(address)))
    if (name.startsWith(prefix) && name.length === basename(address).length + SUFFIX)
      remove(join(dirname(address), name))
}

function remove(path: string): void {
  try {
    unlinkSync(path)
  } catch {
    // Gone already.
  }
}

const RETRY_MS = 500
/** A scheduler that restarts is there again within this time. */
const WAIT_MS = 30_000

/**
 * One request, and its answer. `command`: the one that starts the scheduler.
 * @throws MusterError 'unreachable' when no scheduler listens, 'usage' when it refuses the request
 */
export async function askScheduler(
  address: string,
  request: object,
  context: Pick<CliContext, 'signal' | 'stderr' | 'isQuiet' | 'now'>,
  command = 'muster job work',
): Promise<JsonRecord> {
  const { signal, now } = context
  const foreign = existsSync(dirname(address)) ? foreignDirectory(dirname(address)) : undefined
  if (foreign !== undefined) throw notOwn(`the socket ${printable(address)}`, foreign, 'remove its directory')
  // A shell runs what it answers (`eval`).
  const owner = foreignOwnerOf(address)
  if (owner !== undefined) throw notOwn(`the socket ${printable(address)}`, owner, 'use a directory of your own for it')
  const sinceMs = now()
  for (let isFirst = true; ; isFirst = false) {
    const answer = await exchange(address, `${JSON.stringify(request)}\n`, signal)
    if (signal.aborted) throw new MusterError('interrupted', 'stopped before the scheduler answered')
    const error = answer?.error
    if (typeof error === 'string') throw new MusterError('usage', printable(error))
    if (answer !== undefined) return answer
    if (now() - sinceMs >= WAIT_MS)
      throw new MusterError('unreachable', 'no scheduler is running', { hint: `Run: ${command}` })
    if (isFirst) notice(context, `muster: waiting for a scheduler. Run: ${command}\n`)
    await sleep(RETRY_MS, undefined, { signal }).catch(() => undefined)
  }
}

/** Undefined: there is no scheduler, or it ended before it answered. */
function exchange(address: string, line: string, signal: AbortSignal): Promise<JsonRecord | undefined> {
  const { promise, resolve } = Promise.withResolvers<JsonRecord | undefined>()
  const socket = connect(address)
  const end = () => socket.destroy()
  signal.addEventListener('abort', end, { once: true })
  const lines = new Lines((text) => {
    resolve(record(parseJson(text)))
    end()
  }, end)
  socket.setEncoding('utf8').on('data', (text: string) => lines.push(text))
  socket.once('end', end)
  socket.once('error', end)
  socket.once('close', () => {
    signal.removeEventListener('abort', end)
    resolve(undefined)
  })
  if (signal.aborted) end()
  else socket.write(line)
  return promise
}
