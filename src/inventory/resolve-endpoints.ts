/** How each host is reached: hosts.yaml over ssh_config over defaults. */

import { existsSync } from 'node:fs'
import { hostname } from 'node:os'
import { dirname, resolve } from 'node:path'
import { currentAccount } from '../base/account.ts'
import { getOrMake } from '../base/collections.ts'
import { defined } from '../base/defined.ts'
import { MusterError } from '../base/errors.ts'
import { printable } from '../base/printable.ts'
import {
  createEndpoint,
  createLocalEndpoint,
  EndpointProblem,
  type EndpointSettings,
  type Surroundings,
} from './endpoint.ts'
import type { Endpoint, Host } from './host.ts'
import { parseHostSpec } from './host-name.ts'
import { bareName, foldHostSet } from './host-set.ts'
import type { Inventory } from './inventory.ts'
import { type ReadAuthorities, readAuthorities } from './known-hosts/parse.ts'
import { createLibrarySource } from './ssh-config/library-source.ts'
import { type ReadSmallFile, readSmallFile } from './ssh-config/openssh-only.ts'
import { createOpenSshSource, findProgram } from './ssh-config/openssh-source.ts'
import {
  type LocalUser,
  NO_ANSWER,
  type SshConfigAnswer,
  type SshConfigQuestion,
  type SshConfigSource,
  type SshConfigValues,
  settingOf,
} from './ssh-config/source.ts'

export type EndpointOptions = EndpointSettings & {
  readonly signal?: AbortSignal
  /** Replaced in tests. */
  readonly source?: SshConfigSource
  readonly localUser?: LocalUser
  readonly files?: {
    exists(path: string): boolean
    readonly read: ReadSmallFile
    readonly authorities?: ReadAuthorities
  }
}

const MAX_HOPS = 16
const MAX_ROUNDS = 32

const currentUser = (): LocalUser => ({ ...currentAccount(), hostName: hostname() })

/** `ssh -G` if ssh is installed, otherwise a library that reads the same files. */
export function createSshConfigSource({ env, sshConfigFile, localUser }: EndpointOptions): SshConfigSource {
  const ssh = findProgram('ssh', env.PATH)
  const file = defined({ configFile: sshConfigFile })
  return ssh === undefined
    ? createLibrarySource({ ...file, localUser: localUser ?? currentUser() })
    : createOpenSshSource({ ...file, ssh, env })
}

function remembered<T>(look: (path: string) => T): (path: string) => T {
  const known = new Map<string, { readonly value: T }>()
  return (path) => getOrMake(known, path, () => ({ value: look(path) })).value
}

class EndpointResolver {
  readonly #inventory: Inventory
  readonly #byName: ReadonlyMap<string, Host>
  readonly #options: EndpointOptions
  readonly #answers = new Map<string, SshConfigAnswer>()
  readonly #questions = new Map<string, SshConfigQuestion>()
  readonly #surroundings: Surroundings

  constructor(inventory: Inventory, options: EndpointOptions) {
    this.#inventory = inventory
    this.#byName = new Map(inventory.hosts.map((host) => [host.name, host]))
    this.#options = options
    const { files } = options
    this.#surroundings = {
      ...options,
      localUser: options.localUser ?? currentUser(),
      // Hundreds of hosts ask about the same few files.
      exists: remembered(files?.exists ?? existsSync),
      read: remembered(files?.read ?? readSmallFile),
      authorities: remembered(files?.authorities ?? readAuthorities),
    }
  }

  async resolve(hosts: readonly Host[]): Promise<readonly Endpoint[]> {
    const source = this.#options.source ?? createSshConfigSource(this.#options)
    // Jump hosts are known only when ssh_config has answered for the hosts behind them: one round per hop.
    for (let round = 0; round < MAX_ROUNDS; round += 1) {
      const problems = new Map<string, string[]>()
      const endpoints = hosts.map((host) => {
        try {
          return this.#endpoint(host, [])
        } catch (error) {
          if (!(error instanceof EndpointProblem)) throw error
          getOrMake(problems, error.message, (): string[] => []).push(host.name)
          return undefined
        }
      })
      if (this.#questions.size === 0) {
        if (problems.size > 0) {
          const lines = [...problems].map(([reason, names]) => `${foldHostSet(names)}: ${reason}`)
          throw new MusterError('configuration', lines.join('\n'), {
            hint: 'Check with `ssh -G HOST`; jump hosts and addresses may also come from hosts.yaml.',
          })
        }
        return endpoints.filter((endpoint) => endpoint !== undefined)
      }
      const asked = [...this.#questions]
      this.#questions.clear()
      const answers = await source.ask(
        asked.map(([, question]) => question),
        this.#options.signal,
      )
      asked.forEach(([key], index) => {
        this.#answers.set(key, answers[index] ?? NO_ANSWER)
      })
    }
    throw new MusterError('configuration', 'the chain of jump hosts is endless')
  }

  #questionOf(host: Host): SshConfigQuestion {
    const alias = bareName(host.name)
    const base = this.#inventory.file === undefined ? '.' : dirname(this.#inventory.file)
    const { address, port, user } = host
    const identityFiles = host.identityFiles?.map((path) => (/^[~/$%]/.test(path) ? path : resolve(base, path)))
    return { alias, ...defined({ address, port, user, identityFiles }) }
  }

  /** Undefined: ssh must be asked first. `trail`: the hosts that are reached through this one. */
  #endpoint(host: Host, trail: readonly string[]): Endpoint | undefined {
    if (host.transport === 'local') {
      if (trail.length > 0) throw new EndpointProblem(`jump host ${printable(host.name)} has transport: local`)
      return createLocalEndpoint(host, this.#surroundings)
    }
    const question = this.#questionOf(host)
    const key = JSON.stringify(question)
    const answer = this.#answers.get(key)
    if (answer === undefined) {
      this.#questions.set(key, question)
      return undefined
    }
    if (!answer.ok) throw new EndpointProblem(answer.reason)
    const jump = this.#jumpOf(host, question.alias, answer.values, [...trail, host.name])
    return jump && createEndpoint(host, question, answer.values, jump, this.#surroundings)
  }

  #jumpOf(
    host: Host,
    alias: string,
    values: SshConfigValues,
    trail: readonly string[],
  ): readonly Endpoint[] | undefined {
    if (trail.length > MAX_HOPS)
      throw new EndpointProblem(`more than ${MAX_HOPS} jump hosts: ${printable(trail.join(' → '))}`)
    const configured = settingOf(values, 'proxyjump')?.split(',') ?? []
    const hops = (host.jump ?? configured).map((hop) => hop.trim())
    const hopHosts = hops.map((hop) => this.#hopHost(hop))
    // `Host *` with a ProxyJump means the jump host too: it does not jump over itself.
    if (host.jump === undefined && hopHosts.some(({ name }) => name === host.name || name === alias)) return []
    const chain: Endpoint[] = []
    let isComplete = true
    for (const [index, hop] of hopHosts.entries()) {
      if (trail.includes(hop.name)) {
        throw new EndpointProblem(`jump hosts form a loop: ${printable([...trail, hop.name].join(' → '))}`)
      }
      // A later hop is reached through the one before it, whatever its own route would be.
      const endpoint = this.#endpoint(index === 0 ? hop : { ...hop, jump: [] }, trail)
      isComplete &&= endpoint !== undefined
      if (endpoint === undefined) continue
      const { proxyCommand: _, ...direct } = endpoint
      const isFirst = index === 0 && endpoint.jump.length === 0
      chain.push(...endpoint.jump, { ...(isFirst ? endpoint : direct), jump: [] })
    }
    return isComplete ? chain : undefined
  }

  #hopHost(hop: string): Host {
    const spec = parseHostSpec(hop)
    if (spec === undefined) throw new EndpointProblem(`${printable(hop)} is not a jump host`)
    const { host: name, ...login } = spec
    return { ...(this.#byName.get(hop) ?? this.#byName.get(name) ?? { name, number: 0 }), ...login }
  }
}

/**
 * Resolves hosts into endpoints, in their order, with one parallel round of `ssh -G` per hop.
 * @throws MusterError `configuration` with a line for each problem, the hosts that have it folded.
 */
export async function resolveEndpoints(
  inventory: Inventory,
  hosts: readonly Host[],
  options: EndpointOptions,
): Promise<readonly Endpoint[]> {
  return new EndpointResolver(inventory, options).resolve(hosts)
}
