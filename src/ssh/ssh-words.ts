/** What to type after `ssh` or `ssh-copy-id`, for advice. */
import { printable } from '../base/printable.ts'
import { shellQuote } from '../base/shell-quote.ts'
import type { Endpoint } from '../inventory/host.ts'
import { formatHostSpec } from '../inventory/host-name.ts'

/** As Muster reaches the host, since ssh knows neither the names of hosts.yaml nor the user that was asked for. */
export function sshWords({ host, alias = host, address, port, user, jump, proxyCommand, hostKeyAlias }: Endpoint) {
  // A proxy command is in ssh_config, under the host's name there.
  if (proxyCommand !== undefined) return wordsOf([`${user}@${alias}`])
  const hops = jump.map((hop) => formatHostSpec({ user: hop.user, host: hop.address, port: hop.port }))
  return wordsOf([
    ...(hostKeyAlias === undefined ? [] : ['-o', `HostKeyAlias=${hostKeyAlias}`]),
    ...(hops.length === 0 ? [] : ['-o', `ProxyJump=${hops.join(',')}`]),
    ...(port === 22 ? [] : ['-p', String(port)]),
    `${user}@${address}`,
  ])
}

const wordsOf = (words: readonly string[]): string => words.map((word) => shellQuote(printable(word))).join(' ')
