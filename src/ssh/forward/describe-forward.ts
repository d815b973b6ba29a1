/** A forward in words. Pure. */
import { printable } from '../../base/printable.ts'
import { formatSocketAddress, isLoopback, urlOf } from './forward-spec.ts'
import type { Forward } from './forwards.ts'

/** `127.0.0.1:8265`, `localhost:9000 on m8`. */
export function listensOn({ spec, listen, host }: Forward): string {
  if (spec.kind !== 'remote') return formatSocketAddress(listen)
  const port = listen.port === 0 ? 'a free port' : formatSocketAddress(listen)
  return `${port} on ${printable(host)}`
}

/** `localhost:8265`, `127.0.0.1:80 here`, `SOCKS 5`. */
export function leadsTo({ spec, title }: Forward): string {
  if (spec.kind === 'dynamic') return 'SOCKS 5'
  const to = formatSocketAddress(spec.to)
  if (spec.kind === 'remote') return `${to} here`
  return title === undefined ? to : `${to} (${title})`
}

/** For a browser here; undefined: there is nothing to open. */
export const urlOfForward = ({ spec, listen }: Forward): string | undefined =>
  spec.kind === 'local' ? urlOf(listen) : undefined

/** What the user should know about it; undefined: nothing. */
export function noteOn({ spec, listen }: Forward): string | undefined {
  if (spec.kind === 'remote') return undefined
  const { port } = spec.listen
  if (listen.port !== port) return port < 1024 ? `${port} is not available here` : `${port} is in use here`
  return isLoopback(listen.address) ? undefined : 'open to other machines'
}
