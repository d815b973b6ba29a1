/** Opens the console for a verb (preferences, colours, connections, the resolution of host sets), and has the terminal for other screens. */
import { randomBytes } from 'node:crypto'
import { access, constants, opendir, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { systemClock } from '../../base/clock.ts'
import { defined } from '../../base/defined.ts'
import { MusterError } from '../../base/errors.ts'
import { collectWhenIdle } from '../../base/idle-memory.ts'
import { KeptPromise } from '../../base/kept-promise.ts'
import { printable } from '../../base/printable.ts'
import { homeDirectory, stateDirectory } from '../../base/user-directories.ts'
import type { Endpoint } from '../../inventory/host.ts'
import { expandHostSet, withCommas } from '../../inventory/host-set.ts'
import type { Inventory } from '../../inventory/inventory.ts'
import type { OpsHosts } from '../../ops/kernel/host-port.ts'
import { expandCommand, expandWord } from '../../ops/run/command-template.ts'
import { isDamagedFile } from '../../scheduler/jobs/damage.ts'
import { bytePathOf } from '../../ssh/copy/byte-path.ts'
import { copyToHosts } from '../../ssh/copy/copy-to-hosts.ts'
import { scanSources, systemReason } from '../../ssh/copy/source.ts'
import { createConnectingTransport, createFleetTransport } from '../../ssh/create-fleet.ts'
import { createHostExec } from '../../ssh/exec/host-exec.ts'
import type { Transport } from '../../ssh/transport.ts'
import type { ColourDepth } from '../../ui/compositor/colours.ts'
import { guessTheme } from '../../ui/compositor/scene.ts'
import { PromptHistory } from '../../ui/dialogs/prompt-history.ts'
import type { JobDetails, JobsPort, QueueStatus } from '../../ui/jobs/queue-view.ts'
import type { PaneTerminal } from '../../ui/network/pane-screen.ts'
import { type OpenConsoleOptions, openConsole } from '../../ui/open-console.tsx'
import { loadPreferences, type Preferences, preferencesFile } from '../../ui/preferences.ts'
import type { FilePorts } from '../../ui/tabs/create-pages.ts'
import type { WorkPort } from '../../ui/work-views/work-port.ts'
import type { ResolveHosts } from '../../ui/work-views/work-questions.ts'
import { limitFactorOf } from '../bring-up/prepare.ts'
import { type CliContext, EXIT, type GlobalOptions } from '../command-line/verb.ts'
import { createFleetOpsHosts } from '../connect/ops-hosts.ts'
import { createShellFleet, createWires, fanOutFor, requireRoomFor } from '../connect/transports.ts'
import { knownDashboards, readKnownDashboards } from '../forward/known-dashboards.ts'
import type { ConsoleQueue } from '../job/console-queue.ts'
import { createOwnMachine } from '../net/own-machine.ts'
import { isColoured } from '../output/colour.ts'
import { notice } from '../output/notices.ts'
import { OutputDirectory } from '../run/exec-files.ts'
import { createConsoleNetTests } from './console-net-tests.ts'
import {
  type ConsoleConnections,
  createConsoleBringUp,
  createConsoleRay,
  createQueueWork,
  createShellPrograms,
} from './console-ops.ts'
import type { WorkspaceFile } from './declared-hosts.ts'
import { fleetOfFile } from './fleet-of-file.ts'

export type ConsoleRequest = {
  readonly cluster: string
  /** To show at once. */
  readonly hosts: OpenConsoleOptions['hosts']
  readonly endpoints: Promise<readonly Endpoint[]>
  readonly groups: ReadonlyMap<string, readonly string[]>
  readonly options: GlobalOptions & { readonly keep?: boolean }
  /** Instead of what preferences.yaml says. */
  readonly preferences?: Partial<Preferences>
  /** For bring-up: all hosts of hosts.yaml, even if the console is open on some of them only. `files`: of a workspace. */
  readonly declared: Pick<WorkspaceFile, 'inventory' | 'endpoints'> & { readonly files?: readonly WorkspaceFile[] }
  /** The files that declare the hosts, and may change. */
  readonly hostsFiles?: NonNullable<OpenConsoleOptions['hostsFiles']>
  readonly resolveNewHosts: OpenConsoleOptions['resolveNewHosts']
  /** Where the journal of bring-up goes, instead of the user's own state directory. */
  readonly stateDirectory?: string
  /** Instead of the queue of hosts.yaml; opened when one of its tabs is first shown. */
  readonly openQueue?: () => Promise<ConsoleQueue>
  readonly saveGroup?: (name: string, hosts: readonly string[], isReplaced: boolean) => Promise<string>
  /** Keep the history of prompts on disk. */
  readonly keepsPrompts?: true
  /** As `opened` of SessionDescription, for the hosts that are open now. */
  readonly opened?: (hosts: readonly string[]) => readonly string[]
}

function colourDepthOf(environment: CliContext['environment'], color: GlobalOptions['color']): ColourDepth {
  if (!isColoured(color, environment, true)) return 'none'
  if (/truecolor|24bit/i.test(environment.COLORTERM ?? '')) return 'truecolor'
  const term = environment.TERM ?? ''
  if (/-direct$/.test(term)) return 'truecolor'
  return /256/.test(term) ? '256' : '16'
}

/** They are read again when their file changes; a file with mistakes leaves what was read before. */
export class LivePreferences {
  readonly #read: () => Preferences
  #now: Preferences

  constructor(read: () => Preferences) {
    this.#read = read
    this.#now = read()
  }

  get now(): Preferences {
    return this.#now
  }

  /** @throws what the reading throws */
  read(): Preferences {
    this.#now = this.#read()
    return this.#now
  }
}

/** Returns the exit code: 0, or 130 when a signal ended the console. */
export async function runConsole(context: CliContext, request: ConsoleRequest): Promise<number> {
  const { environment, signal } = context
  // Which hosts need the system's ssh is not known yet, so none counts as one.
  requireRoomFor(request.hosts.map(({ transport = 'ssh2' }) => ({ transport })))
  const { keep } = request.options
  const given = { ...request.preferences, ...defined({ keep }) }
  const settings = new LivePreferences(() => ({ ...loadPreferences(environment), ...given }))
  const { held } = context
  let warn: (message: string) => void = () => {}
  const holding = held?.hold({
    cluster: request.cluster,
    opened: request.opened ?? (() => []),
    get isKept() {
      return settings.now.keep
    },
    get keepMs() {
      return settings.now.keep_for * 3_600_000
    },
    colourDepth: (theirs) => colourDepthOf(theirs, request.options.color),
    onWarning: (message) => warn(message),
  })
  using _idle = collectWhenIdle()
  const declaredHosts = () => request.declared.inventory.hosts.map(({ name }) => name)
  await openConsole({
    ...request,
    ...holding,
    preferences: settings.now,
    preferencesFile: { path: preferencesFile(environment), read: () => settings.read() },
    ...terminalOf(request.options.color, context),
    environment,
    promptHistory: new PromptHistory(
      request.keepsPrompts === true ? join(stateDirectory(environment), 'prompts.jsonl') : undefined,
    ),
    listFiles: (directory) => listFiles(localPath(directory === '' ? '.' : directory, context)),
    createFleet: (questions, own) => {
      warn = (message) => questions.warn(message)
      const wires = createWires({
        dialog: questions,
        reviewer: questions,
        environment,
        persist: request.options.persist,
        onWarning: (message) => questions.warn(message),
      })
      own(wires)
      const fanOut = fanOutFor(request.hosts.length, request.options, context)
      const fleet = createShellFleet(wires, fanOut)
      const { declared } = request
      const connectionsOf = (source: typeof declared | WorkspaceFile, own: CliContext): ConsoleConnections => ({
        fleet: 'title' in source ? fleetOfFile(fleet, source) : fleet,
        wires,
        dialog: questions,
        fanOut,
        limitFactor: limitFactorOf(request.options),
        get inventory() {
          return source.inventory
        },
        endpoints: () => source.endpoints(),
        nameInConsole: (host) => ('title' in source ? source.names.get(host) : undefined) ?? host,
        context: own,
      })
      const stateContext = withState(context, request.stateDirectory)
      const portsOf = (source: typeof declared | WorkspaceFile, openQueue: () => Promise<ConsoleQueue>): FilePorts => {
        const connections = connectionsOf(source, context)
        const jobs = createConsoleJobs(openQueue, createFleetOpsHosts(connections.fleet, wires))
        own(jobs)
        return {
          ...('title' in source ? { file: source } : {}),
          fleet: connections.fleet,
          work: createQueueWork(createConsoleWork(connections), connections),
          bringUp: createConsoleBringUp(connectionsOf(source, stateContext)),
          jobs,
          ray: createConsoleRay(connections),
        }
      }
      const { files = [], inventory } = declared
      const ofOneFile = () =>
        portsOf(
          declared,
          request.openQueue ??
            declaredQueue(request.options, context, inventory.file !== undefined, () => declared.inventory),
        )
      const optionsOf = (part: WorkspaceFile) => ({ ...request.options, ...defined({ hosts: part.inventory.file }) })
      const ofPart = (part: WorkspaceFile) =>
        portsOf(
          part,
          declaredQueue(optionsOf(part), context, true, () => part.inventory),
        )
      const dashboardsOf = async (part: WorkspaceFile) =>
        (await readKnownDashboards(optionsOf(part), context)).flatMap((dashboard) => {
          const host = part.names.get(dashboard.host)
          return host === undefined ? [] : [{ ...dashboard, host }]
        })
      const connections = connectionsOf(declared, context)
      return {
        fleet,
        shellPrograms: createShellPrograms(connections),
        work: createConsoleWork(connections),
        knownDashboards: async () => {
          if (files.length > 0) return (await Promise.all(files.map(dashboardsOf))).flat()
          return request.openQueue === undefined && inventory.file !== undefined
            ? await readKnownDashboards(request.options, context)
            : knownDashboards(declared.inventory, [])
        },
        netTests: createConsoleNetTests(connectionsOf(declared, stateContext), (path) => localPath(path, context)),
        files: files.length === 0 ? [ofOneFile()] : files.map(ofPart),
      }
    },
    resolveNewHosts: (expression, isTaken) => request.resolveNewHosts(withCommas(expression), isTaken),
    declaredHosts,
    resolveHosts: openHostsResolver(declaredHosts),
    ownMachine: createOwnMachine(),
  })
  return signal.aborted ? EXIT.interrupted : EXIT.ok
}

/** Host sets of open hosts. `declared`: hosts that could be open. */
export const openHostsResolver =
  (declared: () => readonly string[]): ResolveHosts =>
  (expression, known, groups) => {
    const hosts = new Set(known)
    return expandHostSet(withCommas(expression), {
      names: known,
      groupNames: [...groups.keys()],
      group: (name) => groups.get(name),
      isHost: (name) => hosts.has(name),
      whyNoHost: (name) => (declared().includes(name) ? `${printable(name)} is not open: add it first` : undefined),
    })
  }

const withState = (context: CliContext, directory: string | undefined): CliContext =>
  directory === undefined ? context : { ...context, environment: { ...context.environment, XDG_STATE_HOME: directory } }

const WITHOUT_FILE = 'no job queue: a queue belongs to a hosts.yaml, and this console has none'

/** The queue of hosts.yaml, if the console is open on its hosts: the hosts.yaml of the working directory says nothing about others. */
export function declaredQueue(
  options: GlobalOptions,
  context: CliContext,
  isDeclared: boolean,
  inventory?: () => Inventory,
): () => Promise<ConsoleQueue> {
  return async () => {
    if (!isDeclared) throw new MusterError('configuration', WITHOUT_FILE)
    const { openConsoleQueue } = await import('../job/console-queue.ts')
    return await openConsoleQueue(options, context, inventory)
  }
}

/** `hosts`: those of the console, on which engines read. */
export function createConsoleJobs(openQueue: () => Promise<ConsoleQueue>, hosts: OpsHosts): JobsPort & Disposable {
  const opening = new KeptPromise(openQueue)
  /** One whose file was moved away, or deleted, is opened again where it should be. */
  const open = async (): Promise<ConsoleQueue> => {
    const made = opening.get()
    const queue = await made
    if (!queue.isAway) return queue
    // Unless another call has done so.
    if (opening.made === made) close(queue)
    return await open()
  }
  const close = (queue: ConsoleQueue): void => {
    opening.forget()
    queue[Symbol.dispose]()
  }
  return {
    async read(shown): Promise<QueueStatus | undefined> {
      const queue = await open()
      try {
        return queue.read(shown)
      } catch (error) {
        // A whole file may have taken its place, which is noticed only when it is opened.
        if (isDamagedFile(error)) close(queue)
        throw error
      }
    },
    tryOut: async (whatIf, away) => (await open()).tryOut(whatIf, away),
    details: async (id): Promise<JobDetails | undefined> => (await open()).details(id),
    sweep: async (id) => (await open()).sweep(id),
    study: async (id) => (await open()).study(id),
    submitWords: async () => await (await open()).submitWords(),
    submit: async (text) => await (await open()).submit(text),
    members: async (spec, kinds) => (await open()).members(spec, kinds),
    clusters: async () => (await open()).clusters(hosts),
    readLog: async (log, signal) => await (await open()).readLog(log, hosts, signal),
    [Symbol.dispose]() {
      opening.made?.then(
        (queue) => queue[Symbol.dispose](),
        () => undefined,
      )
    },
  }
}

const NOT_HERE = { kind: 'unreachable', reason: 'it is not open in the console' } as const

function createConsoleWork({ fleet, wires, fanOut, context }: ConsoleConnections): WorkPort {
  const over = (transport: Transport) => ({
    ...wires,
    transports: { ssh2: transport, openssh: transport, local: transport },
    clock: systemClock,
  })
  const overOpen = over(createFleetTransport(fleet))
  const overNew = over(createConnectingTransport(fleet))
  const token = randomBytes(8).toString('hex')
  const exec = createHostExec({ ...overOpen, token })
  const execAgain = createHostExec({ ...overNew, token })
  const here = (path: string): string => localPath(path, context)
  return {
    fanOut,
    spillDirectory: tmpdir(),
    startCommand(host, command, handlers, isRetry = false) {
      const endpoint = fleet.endpoint(host)
      if (endpoint !== undefined)
        return (isRetry ? execAgain : exec).start(endpoint, { command: expandCommand(command, endpoint) }, handlers)
      queueMicrotask(() => handlers.onEnd(NOT_HERE))
      return { stop() {}, abandon() {}, pause() {}, resume() {} }
    },
    async checkSources(sources) {
      for (const source of sources) {
        try {
          await access(here(source), constants.R_OK)
        } catch (error) {
          throw new MusterError('usage', `${printable(source)}: ${systemReason(error)}`)
        }
      }
    },
    async copy({ hosts, sources, destination, isRetry, signal, onEvent, onProblems }) {
      const tree = await scanSources(sources.map((source) => bytePathOf(here(source))))
      onProblems(tree.problems.map(({ path, reason }) => `${path}: ${reason}`))
      if (tree.entries.length === 0) throw new MusterError('usage', 'there is nothing to copy')
      await copyToHosts(
        hosts.flatMap((host) => fleet.endpoint(host) ?? []),
        { tree, isDryRun: false, destinationOf: (endpoint) => expandWord(destination, endpoint) },
        { ...(isRetry ? overNew : overOpen), fanOut, signal, onEvent },
      )
      for (const host of hosts) {
        if (fleet.endpoint(host) !== undefined) continue
        const none = { copied: 0, identical: 0, failed: 0, sentBytes: 0, durationMs: 0 }
        onEvent({ type: 'result', host, result: { outcome: 'unreachable', reason: NOT_HERE.reason, ...none } })
      }
    },
    async saveOutput(directory, outputs) {
      const files = new OutputDirectory(here(directory), [...outputs.keys()], false)
      files.writeAll(outputs)
      return files.path
    },
  }
}

const MOST_FILES = 10_000

/** Names in a directory, those of directories with a slash at their end. */
async function listFiles(directory: string): Promise<readonly string[]> {
  const names: string[] = []
  for await (const entry of await opendir(directory)) {
    const isDirectory =
      entry.isDirectory() || (entry.isSymbolicLink() && (await isDirectoryAt(join(directory, entry.name))))
    names.push(isDirectory ? `${entry.name}/` : entry.name)
    if (names.length >= MOST_FILES) break
  }
  return names
}

const isDirectoryAt = async (path: string): Promise<boolean> =>
  await stat(path).then(
    (stats) => stats.isDirectory(),
    () => false,
  )

/** A path as a local shell would read it. `site/.` means the contents of `site`: resolve would drop the dot. */
function localPath(path: string, { workingDirectory, environment }: CliContext): string {
  const home = homeDirectory(environment)
  const absolute = resolve(workingDirectory, path.replace(/^~(?=\/|$)/, home))
  return /(^|\/)\.\/*$/.test(path) ? `${absolute}/.` : absolute
}

export function terminalOf(color: GlobalOptions['color'], context: CliContext): PaneTerminal {
  const { environment, signal } = context
  const colourDepth = colourDepthOf(environment, color)
  return {
    stdin: context.stdin as NodeJS.ReadStream,
    stdout: context.stdout as NodeJS.WriteStream & { readonly fd: number },
    colourDepth,
    themeName: colourDepth === 'none' ? 'none' : guessTheme(environment),
    signal,
  }
}

/** For a command that does nothing. */
const SIGN_IN_MS = 10_000

/** Logs in everywhere before a screen opens, so that questions are asked on the plain terminal. */
export async function signIn(names: readonly string[], hosts: OpsHosts, context: CliContext): Promise<void> {
  const { signal } = context
  if (names.length > 1) notice(context, `connecting to ${names.length} hosts\n`)
  await Promise.all(names.map((name) => hosts.exec(name, ':', { timeoutMs: SIGN_IN_MS, signal })))
}
