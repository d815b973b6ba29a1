/** `muster k8s exec`: kubectl runs it, on this machine or in a terminal over the SSH connection to its host. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { untilAborted } from '../../base/abort.ts'
import { MusterError, messageOf } from '../../base/errors.ts'
import { printable, printableLines } from '../../base/printable.ts'
import { shellQuote } from '../../base/shell-quote.ts'
import type { Endpoint } from '../../inventory/host.ts'
import { resolveEndpoints } from '../../inventory/resolve-endpoints.ts'
import { forbiddenWords, type KubernetesAction, mayI } from '../../ops/kubernetes/discovery.ts'
import { kubectlWords } from '../../ops/kubernetes/proxy.ts'
import { type Channel, type ChannelEnd, connectTo } from '../../ssh/transport.ts'
import { type CliContext, EXIT, type VerbCode } from '../command-line/verb.ts'
import { endpointOptions } from '../connect/endpoints.ts'
import { createVerbWires, SHELL_TERM } from '../connect/transports.ts'
import {
  declaredCluster,
  inNamespace,
  kubernetesName,
  type NamespaceOptions,
  namespaceOf,
  openCluster,
  refused,
} from './open.ts'

type ExecOptions = NamespaceOptions & { readonly container?: string }

export const verb: VerbCode = {
  define: (command) =>
    inNamespace(command.argument('<pod>', 'name of the pod', kubernetesName))
      .argument('[command...]', 'the command and its arguments (default: sh)')
      .option('-c, --container <name>', 'run in this container (default: the first)', kubernetesName),
  help: `
Examples:
  muster k8s exec train-0-x8k2p           open a shell in a pod
  muster k8s exec train-0-x8k2p -- nvidia-smi

Exit code: that of the command.
`,
  async run(pod: string, words: readonly string[], options: ExecOptions, context: CliContext) {
    const { inventory, spec } = await declaredCluster(options, context)
    const namespace = await allowedNamespace(options, context)
    if (typeof namespace === 'number') return namespace
    const isTerminal = context.stdin.isTTY === true && context.stdout.isTTY === true
    const container = options.container === undefined ? [] : ['-c', options.container]
    const command = words.length === 0 ? ['sh'] : words
    const rest = ['exec', isTerminal ? '-it' : '-i', '-n', namespace, ...container, pod, '--', ...command]
    const line = `exec ${kubectlWords(spec)} ${rest.map(shellQuote).join(' ')}`
    const end =
      spec.via === undefined
        ? await runHere(line, isTerminal, context)
        : await runThere(
            await resolveEndpoints(inventory, inventory.hosts, endpointOptions(options, context)),
            spec.via,
            line,
            isTerminal,
            options,
            context,
          )
    if (end.kind === 'exit') return end.code
    context.stderr.write(`muster: ${end.kind === 'signal' ? `it was ended by ${end.signal}` : printable(end.reason)}\n`)
    return end.kind === 'signal' ? EXIT.failed : EXIT.unreachable
  },
}

/** The namespace, or the exit code where the credentials do not allow it. */
async function allowedNamespace(options: ExecOptions, context: CliContext): Promise<string | number> {
  using kubernetes = await openCluster(options, context)
  const where = await namespaceOf(kubernetes, options)
  if (!where.ok) return refused(where, context)
  const action: KubernetesAction = {
    verb: 'create',
    group: '',
    resource: 'pods',
    subresource: 'exec',
    namespace: where.name,
  }
  const review = await mayI(kubernetes.api, action, context.signal)
  if (!review.ok) return refused(review, context)
  if (review.isAllowed) return where.name
  context.stderr.write(`muster: Kubernetes: ${forbiddenWords(action)}\n`)
  return EXIT.failed
}

type Output = CliContext['stdout'] | CliContext['stderr']

/** Whether a pod's output reaches a terminal that is not the command's own. */
const isShown = (output: Output, isTerminal: boolean): boolean => !isTerminal && output.isTTY === true

/** Writes bytes as they are, or with escapes; `source` is held back while the output is full. */
function writerFor(output: Output, hasEscapes: boolean, source: () => Pick<Channel, 'pause' | 'resume'>) {
  const decoder = new TextDecoder()
  return (bytes: Uint8Array) => {
    const isRead = output.write(hasEscapes ? printableLines(decoder.decode(bytes, { stream: true })) : bytes)
    if (isRead) return
    source().pause()
    output.once('drain', () => source().resume())
  }
}

/** With this process's own stdin, and its terminal if it has one. */
async function runHere(line: string, isTerminal: boolean, context: CliContext): Promise<ChannelEnd> {
  const { stdout, stderr, environment } = context
  const way = (output: Output) => (isShown(output, isTerminal) ? 'pipe' : 'inherit')
  const child = spawn('/bin/sh', ['-c', line], { env: environment, stdio: ['inherit', way(stdout), way(stderr)] })
  const show = (source: typeof child.stdout, output: Output) =>
    source?.on(
      'data',
      writerFor(output, true, () => source),
    )
  show(child.stdout, stdout)
  show(child.stderr, stderr)
  try {
    const [code, signal] = (await once(child, 'close')) as [number | null, string | null]
    return code === null ? { kind: 'signal', signal: signal ?? '' } : { kind: 'exit', code }
  } catch (error) {
    return { kind: 'lost', reason: messageOf(error) }
  }
}

async function runThere(
  endpoints: readonly Endpoint[],
  host: string,
  line: string,
  isTerminal: boolean,
  options: ExecOptions,
  context: CliContext,
): Promise<ChannelEnd> {
  const { stdin, stdout, stderr, signal } = context
  const endpoint = endpoints.find((each) => each.host === host)
  if (endpoint === undefined) throw new MusterError('internal', `there is no host ${host}`)
  using wires = createVerbWires(context, options.persist)
  const ended = Promise.withResolvers<ChannelEnd>()
  const connection = await connectTo({ ...endpoint, shell: line }, wires, signal, {
    onLost: (reason) => ended.resolve({ kind: 'lost', reason }),
  })
  const input = stdin as NodeJS.ReadStream
  const onDrain = () => void input.resume()
  const onEnd = ended.resolve
  let channel: Channel | undefined
  const source = { pause: () => channel?.pause(), resume: () => channel?.resume() }
  const onStdout = writerFor(stdout, isShown(stdout, isTerminal), () => source)
  const onStderr = writerFor(stderr, isShown(stderr, isTerminal), () => source)
  const size = () => ({ columns: stdout.columns || 80, rows: stdout.rows || 24 })
  let resize = () => {}
  const take = (bytes: Uint8Array) => {
    if (channel?.write(bytes) === false) input.pause()
  }
  if (isTerminal) {
    const term = context.environment.TERM ?? SHELL_TERM
    const shell = await connection.openShell({ size: size(), term }, { onData: onStdout, onDrain, onEnd })
    resize = () => shell.resize(size())
    stdout.on('resize', resize)
    input.setRawMode(true)
    channel = shell
  } else {
    const process = await connection.exec(line, { onStdout, onStderr, onDrain, onEnd })
    input.once('end', () => process.endInput())
    channel = process
  }
  input.on('data', take)
  try {
    return await untilAborted(ended.promise, signal).catch(() => ({ kind: 'lost', reason: 'stopped' }) as const)
  } finally {
    input.off('data', take).pause()
    if (isTerminal) input.setRawMode(false)
    stdout.off('resize', resize)
    connection.close()
  }
}
