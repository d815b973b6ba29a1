/** The algorithms of the built-in transport that ssh_config allows: the lists contain all of them, in the order of OpenSSH. */
import { matchesGlob } from '../host-name.ts'
import { type SshConfigValues, settingOf } from './source.ts'

/** Names in the order of ssh_config. */
export type AlgorithmChoice = {
  readonly names: readonly string[]
  /** The order differs from all defaults of OpenSSH, so it is intended: nothing else is put first. */
  readonly isOrdered: boolean
}

/** Undefined if ssh_config changes nothing. */
export type Algorithms = { readonly [K in 'hostKeys' | 'keyExchanges' | 'ciphers' | 'macs']?: AlgorithmChoice }

type Kind = {
  readonly field: keyof Algorithms
  readonly option: string
  readonly usual: readonly string[]
  /** Used only if ssh_config names it. */
  readonly onRequest?: readonly string[]
  /** The order of other versions of OpenSSH, if it differs. */
  readonly otherOrder?: readonly string[]
}

const ECDSA = ['ecdsa-sha2-nistp256', 'ecdsa-sha2-nistp384', 'ecdsa-sha2-nistp521']
const RSA = ['rsa-sha2-512', 'rsa-sha2-256']
const CHACHA = 'chacha20-poly1305@openssh.com'
const CTR = ['aes128-ctr', 'aes256-ctr']
const GCM = ['aes128-gcm@openssh.com', 'aes256-gcm@openssh.com']

export const HOST_KEYS: readonly string[] = ['ssh-ed25519', ...ECDSA, ...RSA]
export const MACS = ['hmac-sha2-256-etm@openssh.com', 'hmac-sha2-512-etm@openssh.com', 'hmac-sha2-256', 'hmac-sha2-512']

const KINDS: readonly Kind[] = [
  {
    field: 'hostKeys',
    option: 'HostKeyAlgorithms',
    usual: HOST_KEYS,
    onRequest: ['ssh-rsa'],
    // Before 8.5.
    otherOrder: [...ECDSA, 'ssh-ed25519', ...RSA, 'ssh-rsa'],
  },
  {
    field: 'keyExchanges',
    option: 'KexAlgorithms',
    usual: [
      'curve25519-sha256',
      'curve25519-sha256@libssh.org',
      'ecdh-sha2-nistp256',
      'ecdh-sha2-nistp384',
      'ecdh-sha2-nistp521',
      'diffie-hellman-group-exchange-sha256',
      'diffie-hellman-group16-sha512',
      'diffie-hellman-group18-sha512',
      'diffie-hellman-group14-sha256',
    ],
  },
  {
    field: 'ciphers',
    option: 'Ciphers',
    usual: [CHACHA, ...CTR, ...GCM],
    // From version 10 on.
    otherOrder: [CHACHA, ...GCM, ...CTR],
  },
  { field: 'macs', option: 'MACs', usual: MACS },
]

export function algorithmsOf(values: SshConfigValues): Algorithms | undefined {
  const choices: Partial<Record<keyof Algorithms, AlgorithmChoice>> = {}
  for (const kind of KINDS) {
    const choice = choiceOf(kind, settingOf(values, kind.option.toLowerCase()))
    if (choice !== undefined) choices[kind.field] = choice
  }
  return Object.keys(choices).length === 0 ? undefined : choices
}

/** Says that the built-in transport has nothing that ssh_config allows, as a clause, or undefined. */
export function lacksAlgorithms(values: SshConfigValues): string | undefined {
  const choices = algorithmsOf(values) ?? {}
  const kind = KINDS.find(({ field }) => choices[field]?.names.length === 0)
  if (kind === undefined) return undefined
  return `${kind.option} allows nothing that the built-in transport has (${settingOf(values, kind.option.toLowerCase())})`
}

function choiceOf(
  { usual, onRequest = [], otherOrder }: Kind,
  written: string | undefined,
): AlgorithmChoice | undefined {
  if (written === undefined) return undefined
  const can = [...usual, ...onRequest]
  const names = [...new Set(assembled(written, usual))].filter((name) => can.includes(name))
  const isOrdered = ![can, otherOrder ?? can].some((order) => isInOrder(names, order))
  const isUsual = !isOrdered && names.length === usual.length && usual.every((name) => names.includes(name))
  return isUsual ? undefined : { names, isOrdered }
}

/** `ssh -G` prints whole lists; files that are read without ssh may begin with `+`, `-` or `^` (ssh_config(5)). */
function assembled(written: string, usual: readonly string[]): readonly string[] {
  const sign = /^[+^-]/.exec(written)?.[0]
  const words = written.slice(sign === undefined ? 0 : 1).split(',')
  if (sign === '+') return [...usual, ...words]
  if (sign === '^') return [...words, ...usual]
  return sign === '-' ? usual.filter((name) => !words.some((pattern) => matchesGlob(pattern, name))) : words
}

function isInOrder(names: readonly string[], order: readonly string[]): boolean {
  const places = names.map((name) => order.indexOf(name))
  return places.every((place, index) => place > (places[index - 1] ?? -1))
}
