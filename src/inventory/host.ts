/** What a host is: as the inventory declares it (`Host`), and as SSH will reach it (`Endpoint`). Data only. */

import type { Algorithms } from './ssh-config/algorithms.ts'

export type TransportName = 'ssh2' | 'openssh' | 'local'

/** Units: cpu in cores, gpu in devices, memory in bytes. */
export type Resources = {
  readonly cpu?: number
  readonly gpu?: number
  readonly memoryBytes?: number
  readonly custom?: Readonly<Record<string, number>>
}

/** A machine as hosts.yaml or a target on the command line describes it, without ssh_config. */
export type Host = {
  /** Unique, valid in a host set, and shown everywhere. */
  readonly name: string
  /** The name that ssh_config knows it by; undefined: `name`. */
  readonly sshAlias?: string
  /** Its place in the inventory, from 1: the value of `%n` in commands and macros. */
  readonly number: number
  readonly address?: string
  readonly port?: number
  readonly user?: string
  readonly transport?: TransportName
  /** Jump hosts, the first one reached first: names of the inventory or `[user@]host[:port]`. */
  readonly jump?: readonly string[]
  readonly identityFiles?: readonly string[]
  readonly forwardAgent?: boolean
  /** How long its connection is kept after its last use; 0: not at all. */
  readonly persistMs?: number
  /** The program that runs in place of the login shell. */
  readonly shell?: string
  readonly resources?: Resources
  readonly labels?: Readonly<Record<string, string>>
}

/** Everything needed to reach one machine: hosts.yaml over ssh_config over defaults. */
export type Endpoint = {
  readonly host: string
  readonly number: number
  /** Its name in its own file, the value of `%h`, where a console on several files shows it as `FILE/HOST`; undefined: `host`. */
  readonly ownName?: string
  /** The name that ssh_config and the system's ssh know it by; undefined: `host`. */
  readonly alias?: string
  readonly transport: TransportName
  readonly address: string
  readonly port: number
  readonly user: string
  /** A password goes only to hosts with the same scope: in a console on several files, the title of the file. */
  readonly passwordScope?: string
  /** Absolute paths, `~` and tokens expanded; in the order in which they are tried. */
  readonly identityFiles: readonly string[]
  /** Only `identityFiles`, not every key of the agent. */
  readonly identitiesOnly: boolean
  /** Socket of the agent; undefined: no agent. */
  readonly agentSocket?: string
  readonly forwardAgent: boolean
  /** Jump hosts, the first one reached first. */
  readonly jump: readonly Endpoint[]
  /** A shell command whose stdin and stdout are the connection; tokens expanded. */
  readonly proxyCommand?: string
  readonly knownHostsFiles: readonly string[]
  readonly globalKnownHostsFiles: readonly string[]
  /** The name under which the host key is looked up and stored; undefined: the address (with the port if it is not 22). */
  readonly hostKeyAlias?: string
  readonly strictHostKeyChecking: 'yes' | 'ask' | 'accept-new' | 'no'
  readonly hashKnownHosts: boolean
  /** Restrictions and orders of ssh_config for what the built-in transport offers; undefined: none. */
  readonly algorithms?: Algorithms
  /** Shorter RSA keys are refused, of the host and of the user; undefined: 1024. */
  readonly requiredRsaBits?: number
  readonly connectTimeoutMs: number
  /** 0: no keep-alive. */
  readonly keepAliveIntervalMs: number
  readonly keepAliveMaxMissed: number
  /** How long its connection is kept after its last use; undefined: it ends with the program. */
  readonly persistMs?: number
  /** Which of `publickey`, `keyboard-interactive`, `password` may be tried, in order. */
  readonly authentications: readonly string[]
  readonly shell?: string
  /** The variables of SetEnv and SendEnv in ssh_config. */
  readonly environment?: Readonly<Record<string, string>>
  /** The ssh_config that was read instead of the user's and the system's own (`ssh -F`). */
  readonly sshConfigFile?: string
  /** Why this endpoint needs the system's ssh (a directive that ssh2 cannot do), or undefined. */
  readonly needsOpenSsh?: string
}
