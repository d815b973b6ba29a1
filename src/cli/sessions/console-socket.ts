/**
 * The socket at which the user's other processes find a console. A console may last for weeks in a directory of temporary files, where
 * old ones are removed: its files stay young, and a socket that is gone is made again.
 */
import { utimes } from 'node:fs/promises'
import { createServer, type Server, type Socket } from 'node:net'
import { type Clock, systemClock } from '../../base/clock.ts'
import { MusterError } from '../../base/errors.ts'
import { type Claim, claimAddress } from '../../ssh/persist/claim-address.ts'
import { keeperDirectory, preparePrivateDirectory, readToken } from '../../ssh/persist/keeper-directory.ts'
import { markOf, sessionAddresses } from './session-directory.ts'

const HOUR_MS = 3_600_000

type Environment = Readonly<Record<string, string | undefined>>

export type ConsoleSocketOptions = {
  readonly environment: Environment
  readonly cluster: string
  /** `token`: the secret that the other end has to know. */
  accept(socket: Socket, token: Buffer): void
  /** Other processes find the console now. */
  onOpen(): void
  onError(error: unknown): void
  readonly clock?: Clock
}

export class ConsoleSocket implements Disposable {
  readonly #options: ConsoleSocketOptions
  readonly #clock: Clock
  #claim: Claim | undefined
  #server: Server | undefined
  #token: Buffer = Buffer.alloc(0)
  #opening: Promise<void> | undefined
  #timer: Disposable | undefined
  #wasOpen = false
  #isDisposed = false

  constructor(options: ConsoleSocketOptions) {
    this.#options = options
    this.#clock = options.clock ?? systemClock
    this.#begin()
  }

  /** Undefined: there is none, or not yet. */
  get address(): string | undefined {
    return this.#claim?.address
  }

  /** Set while the socket is being made; never rejects. */
  get opening(): Promise<void> | undefined {
    return this.#opening
  }

  /** Begins to make the socket again if somebody has removed it. */
  check(): void {
    if (this.#opening !== undefined || !this.#wasOpen || this.#claim?.isOurs()) return
    this.#close()
    this.#begin()
  }

  [Symbol.dispose](): void {
    this.#isDisposed = true
    this.#timer?.[Symbol.dispose]()
    this.#close()
  }

  /** Connections that were accepted stay open. */
  #close(): void {
    this.#claim?.[Symbol.dispose]()
    this.#claim = undefined
    this.#server?.close()
  }

  #begin(): void {
    this.#opening = this.#open()
      .catch((error: unknown) => this.#options.onError(error))
      .finally(() => {
        this.#opening = undefined
      })
  }

  async #open(): Promise<void> {
    const directory = keeperDirectory(this.#options.environment)
    await this.#readToken(directory)
    const server = createServer((socket) => this.#options.accept(socket, this.#token))
    this.#server = server
    this.#claim = await claimAddress(server, sessionAddresses(directory, this.#options.cluster))
    if (this.#isDisposed) return this.#close()
    if (this.#claim === undefined) throw new MusterError('usage', 'too many consoles of this name are open')
    if (!this.#wasOpen) this.#refreshLater()
    this.#wasOpen = true
    this.#options.onOpen()
  }

  async #readToken(directory: string): Promise<void> {
    await preparePrivateDirectory(directory)
    this.#token = await readToken(directory)
  }

  #refreshLater(): void {
    this.#timer = this.#clock.after(HOUR_MS, () => void this.#refresh())
  }

  async #refresh(): Promise<void> {
    const { address } = this
    const now = new Date()
    // Only a detached console has it.
    if (address !== undefined) await utimes(markOf(address), now, now).catch(() => {})
    await this.#readToken(keeperDirectory(this.#options.environment)).catch(() => {})
    if (this.#isDisposed) return
    this.check()
    this.#refreshLater()
  }
}
