/** The keys of an SSH agent. Private keys stay there: it lists public keys and passes signatures on. */
import type { ParsedKey } from 'ssh2'
import { BaseAgent, OpenSSHAgent } from './ssh2/library.ts'

export type Signer = (data: Buffer, hash: string | undefined) => Promise<Buffer>

export type AgentKey = {
  readonly publicKey: ParsedKey
  readonly comment: string
  readonly sign: Signer
}

/** Keys in the agent's order; rejects when it cannot be reached. Certificates and hardware keys are left out. */
export async function listAgentKeys(socket: string): Promise<readonly AgentKey[]> {
  const agent = new OpenSSHAgent(socket)
  const keys = await new Promise<readonly ParsedKey[]>((resolve, reject) => {
    agent.getIdentities((error, found) => {
      if (error) reject(error)
      else resolve((found ?? []) as unknown as readonly ParsedKey[])
    })
  })
  return keys.map((publicKey) => ({
    publicKey,
    comment: publicKey.comment,
    sign: (data, hash) =>
      new Promise((resolve, reject) => {
        const options = hash === undefined ? {} : { hash: hash as 'sha256' | 'sha512' }
        agent.sign(publicKey, data, options, (error, signature) => {
          if (error || signature === undefined) reject(error ?? new Error('the agent gave no signature'))
          else resolve(signature)
        })
      }),
  }))
}

/** One key as an agent of its own: so that ssh2 offers it alone, and waits for its signature however long that takes. */
export class SingleKeyAgent extends BaseAgent {
  readonly #publicKey: ParsedKey
  readonly #sign: Signer

  constructor(publicKey: ParsedKey, sign: Signer) {
    super()
    this.#publicKey = publicKey
    this.#sign = sign
  }

  override getIdentities(callback: (error: Error | null, keys?: ParsedKey[]) => void): void {
    callback(null, [this.#publicKey])
  }

  override sign(_key: unknown, data: Buffer, ...rest: unknown[]): void {
    const callback = rest.at(-1) as (error: Error | null, signature?: Buffer) => void
    const options = (rest.length > 1 ? rest[0] : undefined) as { hash?: string } | undefined
    this.#sign(data, options?.hash).then(
      (signature) => callback(null, signature),
      (error: Error) => callback(error),
    )
  }
}
