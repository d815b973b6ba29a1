/** The embedded hosts as their users see them. */
import type { PtySpawner } from '../../base/pty.ts'

export type EmbeddedAuthentication = 'publickey' | 'password' | 'keyboard-interactive'

/** A program for sh that hosts have besides, and how it is used. */
export type HostCommand = {
  readonly name: string
  readonly script: string
  readonly example: string
  readonly about: string
}

export type EmbeddedHostsOptions = {
  readonly count: number
  readonly spawnPty: PtySpawner
  /** Default m1…mN. */
  readonly names?: readonly string[]
  /** Default: public key only. */
  readonly authentications?: readonly EmbeddedAuthentication[]
  /** What `password` and `keyboard-interactive` accept; without it they accept nothing. */
  readonly password?: string
  readonly commands?: readonly HostCommand[]
}

export interface EmbeddedHost {
  readonly name: string
  /** 127.0.0.1, and a port that stays the same over `stop` and `start`. */
  readonly address: string
  readonly port: number
  /** `ssh-ed25519 AAAA…` */
  readonly publicKeyLine: string
  /** Connections that are open now, and all that ever were accepted. */
  readonly connectionCount: number
  readonly acceptedCount: number
  /** Cuts every connection, as a crash of the host would. */
  dropConnections(): void
  /** Stops listening, and cuts connections. */
  stop(): Promise<void>
  start(): Promise<void>
}

export interface EmbeddedHosts extends AsyncDisposable {
  readonly hosts: readonly EmbeddedHost[]
  /** An error if there is no such host. */
  host(name: string): EmbeddedHost
  /** The account that the shells run as: this one. */
  readonly user: string
  /** Temporary, private, removed by `close`. Each host's home is a directory of it. */
  readonly directory: string
  /** The accepted client key (mode 0600), and the true host keys. */
  readonly identityFile: string
  readonly knownHostsFile: string
  /** Ends everything: connections, children, files. */
  close(): Promise<void>
}
