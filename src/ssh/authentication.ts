/**
 * The order of keys and methods of a login. It is ssh's (sshconnect2.c), except that key files that need no question come before
 * the agent's other keys: sshd hangs up after MaxAuthTries (6) keys, and an agent may hold more.
 */

/** What the order needs to know of a key file. `publicKey` is any text that equal keys share. */
export type FileKey = {
  readonly path: string
  readonly isEncrypted: boolean
  /** Whether the file has the private half; without it only the agent can use the key. */
  readonly isPrivate: boolean
  /** Undefined: an encrypted file in an old format that does not show it. */
  readonly publicKey: string | undefined
}

export type AgentKeyName = { readonly publicKey: string; readonly comment: string }

export type KeyOffer =
  | { readonly from: 'agent'; readonly publicKey: string; readonly label: string }
  | { readonly from: 'file'; readonly path: string; readonly label: string }

export function orderKeys(
  files: readonly FileKey[],
  agentKeys: readonly AgentKeyName[],
  identitiesOnly: boolean,
): readonly KeyOffer[] {
  const inAgent = new Set(agentKeys.map(({ publicKey }) => publicKey))
  const named = new Set(files.map(({ publicKey }) => publicKey))
  const fromFile = (file: FileKey): KeyOffer => ({ from: 'file', path: file.path, label: file.path })
  const isInAgent = (file: FileKey) => file.publicKey !== undefined && inAgent.has(file.publicKey)
  const ready = files.flatMap((file): KeyOffer[] => {
    if (file.publicKey !== undefined && inAgent.has(file.publicKey)) {
      return [{ from: 'agent', publicKey: file.publicKey, label: file.path }]
    }
    return file.isPrivate && !file.isEncrypted ? [fromFile(file)] : []
  })
  const others = identitiesOnly
    ? []
    : agentKeys
        .filter(({ publicKey }) => !named.has(publicKey))
        .map(({ publicKey, comment }): KeyOffer => ({ from: 'agent', publicKey, label: `agent key ${comment}`.trim() }))
  const locked = files.filter((file) => file.isPrivate && file.isEncrypted && !isInAgent(file))
  const shown = locked.filter(({ publicKey }) => publicKey !== undefined)
  const hidden = locked.filter(({ publicKey }) => publicKey === undefined)
  return unique([...ready, ...others, ...shown.map(fromFile), ...hidden.map(fromFile)])
}

function unique(offers: readonly KeyOffer[]): readonly KeyOffer[] {
  const seen = new Set<string>()
  return offers.filter((offer) => {
    const name = offer.from === 'agent' ? `agent ${offer.publicKey}` : `file ${offer.path}`
    if (seen.has(name)) return false
    seen.add(name)
    return true
  })
}

/** The next method: the first of the wanted ones that the server accepts and that still has something to try. */
export function nextMethod(
  wanted: readonly string[],
  accepted: readonly string[],
  isExhausted: (method: string) => boolean,
): string | undefined {
  return wanted.find((method) => accepted.includes(method) && !isExhausted(method))
}
