/** `muster k8s exec`: kubectl runs it, on this machine or in a terminal over the SSH connection to its host. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { untilAborted } from '../../base/abort.ts'
import { defined } from '../../base/defined.ts'
import { MusterError, messageOf } from '../../base/errors.ts'
import { printable, printableLines } from '../../base/printable.ts'
import { shellQuote } from '../../base/shell-quote.ts'
import type { Endpoint } from '../../inventory/host.ts'
import { resolveEndpoints } from '../../inventory/resolve-endpoints.ts'
import { forbiddenWords, type KubernetesAction, mayI } from '../../ops/kubernetes/discovery.ts'
import { kubectlWords } from '../../ops/kubernetes/proxy.ts'
import { openPtyShell } from '../../ssh/local/spawn-process.ts'
import {
  type Channel,
  type ChannelEnd,
  connectTo,
  type ExecHandlers,
  type RemoteProcess,
  type Shell,
  type ShellHandlers,
  type ShellOptions,
} from '../../ssh/transport.ts'
import { AnswerCount } from '../../terminal/answer-count.ts'
import { HarmlessOutput } from '../../terminal/harmless-output.ts'
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
        ? await (isTerminal ? runHereOnTerminal : runHere)(line, context)
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
type Shaped = (bytes: Uint8Array) => string | Uint8Array

/** For a command without a terminal. The user's own terminal gets escapes for control characters; programs get the bytes as they are. */
function shapedFor(output: Output): Shaped {
  const decoder = new TextDecoder()
  return output.isTTY ? (bytes) => printableLines(decoder.decode(bytes, { stream: true })) : (bytes) => bytes
}

/** Pauses `source` while the output is full. */
function writerFor(output: Output, shaped: Shaped, source: () => Pick<Channel, 'pause' | 'resume'> | undefined) {
  return (bytes: Uint8Array) => {
    if (output.write(shaped(bytes))) return
    source()?.pause()
    output.once('drain', () => source()?.resume())
  }
}

/** The command gets the stdin of this process, and its stdout and stderr unless they are a terminal. */
async function runHere(line: string, { stdout, stderr, environment }: CliContext): Promise<ChannelEnd> {
  const way = (output: Output) => (output.isTTY ? 'pipe' : 'inherit')
  const child = spawn('/bin/sh', ['-c', line], { env: environment, stdio: ['inherit', way(stdout), way(stderr)] })
  const show = (source: typeof child.stdout, output: Output) =>
    source?.on(
      'data',
      writerFor(output, shapedFor(output), () => source),
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

async function runHereOnTerminal(line: string, context: CliContext): Promise<ChannelEnd> {
  const { spawnLocalPty } = await import('../../terminal/local-pty.ts')
  const { environment, workingDirectory } = context
  const command = { file: '/bin/sh', args: ['-c', line], directory: workingDirectory }
  return await onTerminal(context, ({ size, term }, handlers) =>
    openPtyShell(
      spawnLocalPty,
      { ...command, ...size, term, environment: { ...(defined(environment) as Record<string, string>), TERM: term } },
      handlers,
      handlers.onEnd,
    ),
  )
}

async function runThere(
  endpoints: readonly Endpoint[],
  host: string,
  line: string,
  isTerminal: boolean,
  options: ExecOptions,
  context: CliContext,
): Promise<ChannelEnd> {
  const endpoint = endpoints.find((each) => each.host === host)
  if (endpoint === undefined) throw new MusterError('internal', `there is no host ${host}`)
  using wires = createVerbWires(context, options.persist)
  const lost = Promise.withResolvers<ChannelEnd>()
  const connection = await connectTo({ ...endpoint, shell: line }, wires, context.signal, {
    onLost: (reason) => lost.resolve({ kind: 'lost', reason }),
  })
  try {
    return isTerminal
      ? await onTerminal(context, (shell, handlers) => connection.openShell(shell, handlers), lost.promise)
      : await onPipes(context, (handlers) => connection.exec(line, handlers), lost.promise)
  } finally {
    connection.close()
  }
}

type Outer = Pick<CliContext, 'stdin' | 'stdout' | 'stderr' | 'environment' | 'signal'>

async function onPipes(
  context: Outer,
  start: (handlers: ExecHandlers) => Promise<RemoteProcess>,
  lost: Promise<ChannelEnd>,
): Promise<ChannelEnd> {
  const { stdin, stdout, stderr } = context
  const ended = Promise.withResolvers<ChannelEnd>()
  let channel: Channel | undefined
  const remote = await start({
    onStdout: writerFor(stdout, shapedFor(stdout), () => channel),
    onStderr: writerFor(stderr, shapedFor(stderr), () => channel),
    onDrain: () => void stdin.resume(),
    onEnd: ended.resolve,
  })
  channel = remote
  stdin.once('end', () => remote.endInput())
  return await feed(remote, context, Promise.race([ended.promise, lost]))
}

/**
 * Runs the program on the user's own terminal. Output that could act on the terminal or type into it is dropped. However the program
 * ends, the modes that it left on are switched off.
 */
async function onTerminal(
  context: Outer,
  open: (options: ShellOptions, handlers: ShellHandlers) => Shell | Promise<Shell>,
  lost?: Promise<ChannelEnd>,
): Promise<ChannelEnd> {
  const { stdout, environment } = context
  const stdin = context.stdin as NodeJS.ReadStream
  const ended = Promise.withResolvers<ChannelEnd>()
  const harmless = new HarmlessOutput({ isInteractive: true })
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true })
  // As bytes: with an ASCII locale, stdout replaces characters of strings.
  const shaped = (bytes: Uint8Array) => Buffer.from(harmless.push(decoder.decode(bytes, { stream: true })))
  const size = () => ({ columns: stdout.columns || 80, rows: stdout.rows || 24 })
  let channel: Channel | undefined
  let isOver = false
  const show = writerFor(stdout, shaped, () => channel)
  const shell = await open(
    { size: size(), term: environment.TERM ?? SHELL_TERM },
    {
      onData: (bytes) => {
        if (!isOver) show(bytes)
      },
      onDrain: () => void stdin.resume(),
      onEnd: ended.resolve,
    },
  )
  channel = shell
  const resize = () => shell.resize(size())
  const restore = () => void stdout.write(Buffer.from(harmless.restore()))
  const answers = new AnswerCount()
  const count = (bytes: Buffer) => answers.take(bytes)
  stdout.on('resize', resize)
  stdin.setRawMode(true)
  stdin.on('data', count)
  // Muster may also end by an uncaught error, or when memory runs out.
  process.on('exit', restore)
  try {
    return await feed(shell, context, lost === undefined ? ended.promise : Promise.race([ended.promise, lost]))
  } finally {
    isOver = true
    shell.close()
    restore()
    process.off('exit', restore)
    stdin.resume()
    await answers.reach(harmless.questions)
    stdin.off('data', count).pause()
    stdin.setRawMode(false)
    stdout.off('resize', resize)
  }
}

/** Passes stdin to the channel until the command ends. */
async function feed(channel: Channel, { stdin, signal }: Outer, ended: Promise<ChannelEnd>): Promise<ChannelEnd> {
  const take = (bytes: Uint8Array) => {
    if (!channel.write(bytes)) stdin.pause()
  }
  stdin.on('data', take)
  try {
    return await untilAborted(ended, signal).catch(() => ({ kind: 'lost', reason: 'stopped' }) as const)
  } finally {
    stdin.off('data', take).pause()
  }
}
