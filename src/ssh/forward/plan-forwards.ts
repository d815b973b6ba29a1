/** From words (`8265`, `ray`, texts of -L, -R and -D) to forwards for each host. Pure. */
import { MusterError } from '../../base/errors.ts'
import { nearestWord } from '../../inventory/nearest-word.ts'
import {
  type ForwardSpec,
  parseDynamicForward,
  parseLocalForward,
  parsePlainForward,
  parseRemoteForward,
  type SocketAddress,
} from './forward-spec.ts'
import type { ForwardRequest } from './forwards.ts'

export const DASHBOARDS = ['ray', 'optuna', 'tensorboard', 'jupyter'] as const
export type Dashboard = (typeof DASHBOARDS)[number]

const ABOUT: Readonly<Record<Dashboard, { readonly title: string; readonly port: number }>> = {
  ray: { title: 'Ray dashboard', port: 8265 },
  optuna: { title: 'Optuna dashboard', port: 8080 },
  tensorboard: { title: 'TensorBoard', port: 6006 },
  jupyter: { title: 'Jupyter', port: 8888 },
}

export const titleOf = (name: Dashboard): string => ABOUT[name].title
export const usualPortOf = (name: Dashboard): number => ABOUT[name].port

/** A dashboard that hosts.yaml declares or that a running job is. */
export type KnownDashboard = {
  readonly name: Dashboard
  readonly host: string
  /** As the host sees it. */
  readonly at: SocketAddress
  /** `job 7`; undefined: hosts.yaml says so. */
  readonly source?: string
}

export type ForwardWords = {
  /** `8265`, `9000:db:5432`, `ray`. */
  readonly plain: readonly string[]
  readonly local?: readonly string[]
  readonly remote?: readonly string[]
  readonly dynamic?: readonly string[]
}

export const isDashboard = (word: string): word is Dashboard => DASHBOARDS.some((name) => name === word)

/** What a line of the console asks for: `8265 ray -R 9000:localhost:80`. @throws MusterError `usage` */
export function forwardWords(words: readonly string[]): ForwardWords {
  const found = { plain: [] as string[], local: [] as string[], remote: [] as string[], dynamic: [] as string[] }
  const options = { '-L': found.local, '-R': found.remote, '-D': found.dynamic }
  for (let at = 0; at < words.length; at += 1) {
    const [, option, given] = /^(-[LRD])(.*)$/s.exec(words[at] ?? '') ?? []
    if (option === undefined) found.plain.push(words[at] ?? '')
    else if (given !== '') options[option as keyof typeof options].push(given ?? '')
    else {
      at += 1
      options[option as keyof typeof options].push(words[at] ?? '')
    }
  }
  return found
}

/**
 * Every host gets each of them. A local port that was named exactly is the first host's, and the next hosts get the ports after
 * it; any other port is chosen when it is opened.
 * @throws MusterError `usage`
 */
export function planForwards(
  hosts: readonly string[],
  { plain, local = [], remote = [], dynamic = [] }: ForwardWords,
  known: readonly KnownDashboard[] = [],
): readonly ForwardRequest[] {
  const named = plain.map((word) => (isDashboard(word) ? word : parseWord(word)))
  const exact = [
    ...local.map(parseLocalForward),
    ...remote.map(parseRemoteForward),
    ...dynamic.map(parseDynamicForward),
  ]
  if (named.length + exact.length === 0)
    throw new MusterError('usage', 'nothing to forward', { hint: `Name a port or one of ${DASHBOARDS.join(', ')}.` })
  return hosts.flatMap((host, at) => [
    ...named.map((what) => (typeof what === 'string' ? dashboardOf(what, host, known) : { host, spec: what })),
    ...exact.map((spec) => ({ host, spec: shifted(spec, at) })),
  ])
}

function parseWord(word: string): ForwardSpec {
  if (/^[a-z][a-z-]*$/i.test(word)) {
    const near = nearestWord(word, DASHBOARDS)
    throw new MusterError('usage', `unknown dashboard: ${word}`, {
      hint: near === undefined ? `Use a port, or one of ${DASHBOARDS.join(', ')}.` : `Did you mean ${near}?`,
    })
  }
  return parsePlainForward(word)
}

function dashboardOf(name: Dashboard, host: string, known: readonly KnownDashboard[]): ForwardRequest {
  const { title, port } = ABOUT[name]
  const found = known.find((each) => each.name === name && each.host === host)
  const to = found?.at ?? { address: 'localhost', port }
  const source = found?.source === undefined ? '' : ` of ${found.source}`
  const listen = { address: '127.0.0.1', port: to.port }
  return { host, title: `${title}${source}`, spec: { kind: 'local', isExact: false, listen, to } }
}

/** On a host, other hosts' ports are not in the way. */
function shifted(spec: ForwardSpec, by: number): ForwardSpec {
  if (spec.kind === 'remote' || by === 0) return spec
  const port = spec.listen.port + by
  if (port > 65_535) throw new MusterError('usage', 'not enough ports for all hosts', { hint: 'Name a lower port.' })
  return { ...spec, listen: { ...spec.listen, port } }
}
