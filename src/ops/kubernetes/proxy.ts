/**
 * `kubectl proxy` as the way to an API server: on this machine, or on the host of `via`, where the kubeconfig is. It authenticates,
 * so that Muster never sees a credential; its socket is in a directory that only this account can enter.
 */
import { spawn } from 'node:child_process'
import type { Duplex } from 'node:stream'
import { onAbort, untilAborted } from '../../base/abort.ts'
import { type Clock, hasPassed } from '../../base/clock.ts'
import { connectUnixSocket } from '../../base/connect-stream.ts'
import { HOST_TEMPORARY } from '../../base/host-temporary.ts'
import { signalGroup } from '../../base/processes.ts'
import { shellQuote } from '../../base/shell-quote.ts'
import { type OpsHosts, reasonOfResult } from '../kernel/host-port.ts'
import { formatOutcome } from '../run/outcome.ts'
import { type Dial, remoteWords } from './api.ts'
import type { KubernetesSpec } from './section.ts'

/** Where kubectl runs. */
type ProxyPlace = {
  /** Runs a program of sh until it ends, or until the signal ends it and everything that it started. Resolves to why it ended. */
  run(program: string, onOutput: (text: string) => void, signal: AbortSignal): Promise<string>
  connect(path: string, signal: AbortSignal): Promise<Duplex>
}

/** Prints how to start kubectl: its options alone, quoted for sh. */
export function kubectlWords({ context, kubeconfig }: KubernetesSpec): string {
  const file = kubeconfig?.startsWith('~/')
    ? `"$HOME"/${shellQuote(kubeconfig.slice(2))}`
    : kubeconfig && shellQuote(kubeconfig)
  return [
    'kubectl',
    ...(file ? [`--kubeconfig=${file}`] : []),
    ...(context === undefined ? [] : [`--context=${shellQuote(context)}`]),
  ].join(' ')
}

const NO_KUBECTL = 'kubectl is not installed'
export const NO_KUBECTL_HINT =
  'Install it (https://kubernetes.io/docs/tasks/tools), or name a host that has it with via in the section k8s of hosts.yaml.'

/** Prints the server and the namespace of the context, then the path of its socket. `isWatched`: it ends when its stdin is closed. */
const proxyProgram = (kubectl: string, isWatched: boolean): string => `
command -v kubectl >/dev/null 2>&1 || { echo ${shellQuote(NO_KUBECTL)} >&2; exit 127; }
umask 077
# The reader may be gone, and the shell reports that kubectl was killed.
trap '' PIPE
${HOST_TEMPORARY.join('\n')}
d=$(temporary "\${TMPDIR:-/tmp}") || exit 1
p= w=
leave() { trap '' HUP INT TERM; for j in $p $w; do kill "$j" 2>/dev/null; done; wait; rm -rf "$d"; }
trap 'leave; exit 143' HUP INT TERM
exec 3<&0
${kubectl} config view --minify -o 'jsonpath=server {.clusters[0].cluster.server}{"\\n"}namespace {.contexts[0].context.namespace}{"\\n"}' </dev/null 2>/dev/null 3<&-
${kubectl} proxy --unix-socket="$d/s" </dev/null 3<&- & p=$!
${isWatched ? '(while read -r _; do :; done; kill -TERM $$ || { kill "$p"; rm -rf "$d"; }) <&3 >/dev/null 2>&1 & w=$!' : ''}
exec 3<&-
wait "$p"; c=$?
p=; leave; exit $c
`

const START_MS = 20_000
const LEAST_PAUSE_MS = 1_000
const MOST_PAUSE_MS = 60_000
/** Of what it prints, for words about its end. */
const MOST_SAID = 4_000

type Serving = {
  readonly path: string
  /** Of the context; undefined: it names none. */
  readonly namespace: string | undefined
  /** Of the cluster of the context. */
  readonly server: string | undefined
}

export type ProxyOptions = {
  readonly clock: Clock
  readonly environment: Readonly<Record<string, string | undefined>>
  /** Needed with `via`. */
  readonly hosts?: OpsHosts
}

/** Started when it is first needed, and again after it ended, with longer and longer pauses; disposing ends it. */
export class KubectlProxy implements Disposable {
  readonly #place: ProxyPlace
  readonly #program: string
  readonly #where: string
  readonly #clock: Clock
  readonly #abort = new AbortController()
  #serving: Promise<Serving> | undefined
  #failure: { readonly error: Error; readonly atMs: number; readonly pauseMs: number } | undefined

  constructor(spec: KubernetesSpec, { clock, environment, hosts }: ProxyOptions) {
    const { via } = spec
    this.#place = via === undefined ? thisMachine(environment) : onHost(hosts, via)
    this.#program = proxyProgram(kubectlWords(spec), via === undefined)
    this.#where = via ?? 'this machine'
    this.#clock = clock
  }

  readonly dial: Dial = async (signal) => {
    const { path } = await untilAborted(this.#serve(), signal)
    return await this.#place.connect(path, signal)
  }

  /** Of the context; undefined: it names none. Rejects as `dial` does. */
  async namespace(signal: AbortSignal): Promise<string | undefined> {
    return (await untilAborted(this.#serve(), signal)).namespace
  }

  /** Where kubectl finds the API server; undefined: it does not say. Rejects as `dial` does. */
  async server(signal: AbortSignal): Promise<string | undefined> {
    return (await untilAborted(this.#serve(), signal)).server
  }

  [Symbol.dispose](): void {
    this.#abort.abort()
  }

  #serve(): Promise<Serving> {
    if (this.#serving !== undefined) return this.#serving
    const last = this.#failure
    if (last !== undefined && !hasPassed(last.atMs, last.pauseMs, this.#clock.now())) return Promise.reject(last.error)
    const serving = Promise.withResolvers<Serving>()
    this.#serving = serving.promise
    // Each caller gets the rejection by itself.
    serving.promise.catch(() => {})
    void this.#run(serving.resolve).then((error) => {
      this.#serving = undefined
      serving.reject(error)
    })
    return serving.promise
  }

  /** Resolves when it has ended, with why. */
  async #run(onServing: (serving: Serving) => void): Promise<Error> {
    const slow = new AbortController()
    const limit = this.#clock.after(START_MS, () => slow.abort())
    const signal = AbortSignal.any([this.#abort.signal, slow.signal])
    const sinceMs = this.#clock.now()
    let said = ''
    let isServing = false
    const take = (text: string) => {
      if (isServing) said = ''
      said = (said + text).slice(-MOST_SAID)
      const path = /^Starting to serve on (\/[\w./+@-]{1,100})\n/m.exec(said)?.[1]
      if (path === undefined || isServing) return
      limit[Symbol.dispose]()
      isServing = true
      const namespace = /^namespace ([a-z0-9-]{1,63})\n/m.exec(said)?.[1]
      onServing({ path, namespace, server: /^server (https?:\/\/[\w.:[\]/-]{1,300})\n/m.exec(said)?.[1] })
    }
    const reason = await this.#place.run(this.#program, take, signal)
    limit[Symbol.dispose]()
    const nowMs = this.#clock.now()
    const hasServed = isServing && hasPassed(sinceMs, MOST_PAUSE_MS, nowMs)
    const before = hasServed ? undefined : this.#failure
    const error = new Error(
      slow.signal.aborted
        ? `kubectl proxy on ${this.#where} did not start within ${START_MS / 1000} s`
        : proxyWords(this.#where, said, reason),
    )
    const pauseMs = before === undefined ? LEAST_PAUSE_MS : Math.min(2 * before.pauseMs, MOST_PAUSE_MS)
    this.#failure = { error, atMs: nowMs, pauseMs }
    return error
  }
}

function proxyWords(where: string, said: string, reason: string): string {
  if (said.includes(NO_KUBECTL)) return `kubectl is not installed on ${where}. ${NO_KUBECTL_HINT}`
  const lines = said
    .split('\n')
    .filter((line) => /\S/.test(line) && !/^(server |namespace |Starting to serve)/.test(line))
  const words = remoteWords(lines.at(-1) ?? '').replace(/^error: /i, '')
  if (words === '') return `cannot run kubectl on ${where}: ${remoteWords(reason)}`
  const isConfig = /context|configuration|config file|no such file/i.test(words)
  return isConfig ? `${where}: ${configWords(words)}` : `kubectl proxy on ${where} ended: ${words}`
}

/** What kubectl says of a kubeconfig that it cannot use, and what to do. */
export function configWords(said: string): string {
  if (/context .* does not exist|no context exists|cannot locate context/i.test(said))
    return `the kubeconfig has no such context (${said}). List them: kubectl config get-contexts`
  return `kubectl has no usable kubeconfig (${said}). Set kubeconfig or context in the section k8s of hosts.yaml`
}

const thisMachine = (environment: ProxyOptions['environment']): ProxyPlace => ({
  run: (program, onOutput, signal) =>
    new Promise((resolve) => {
      // A group of its own: Ctrl-C at the terminal is for Muster.
      const child = spawn('/bin/sh', ['-c', program], { env: environment, detached: true, stdio: 'pipe' })
      const abort = onAbort(signal, () => signalGroup(child.pid, 'SIGTERM'))
      const end = (reason: string) => {
        abort[Symbol.dispose]()
        resolve(reason)
      }
      child.on('error', (error) => end(error.message))
      if (child.pid === undefined) return
      child.stdin.on('error', () => {})
      for (const output of [child.stdout, child.stderr]) output.setEncoding('utf8').on('data', onOutput)
      child.on('close', (code) => end(`exit code ${code}`))
    }),
  connect: connectUnixSocket,
})

const onHost = (hosts: OpsHosts | undefined, host: string): ProxyPlace => ({
  async run(program, onOutput, signal) {
    if (hosts === undefined) return `${host} is not reached`
    const result = await hosts.exec(host, program, {
      timeoutMs: Number.POSITIVE_INFINITY,
      signal,
      onOutput: (_, text) => onOutput(text),
    })
    return reasonOfResult(result, formatOutcome)
  },
  connect(path, signal) {
    if (hosts?.connectSocket === undefined) return Promise.reject(new Error(`${host} is not reached`))
    return hosts.connectSocket(host, path, signal)
  },
})
