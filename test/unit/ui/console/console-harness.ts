/** A console on fakes: a fleet that keeps what was written, real screens and feeder, and a fake clock. */

import { tmpdir } from 'node:os'
import { Emitter } from '../../../../src/base/emitter.ts'
import type { Endpoint } from '../../../../src/inventory/host.ts'
import { expandHostSet } from '../../../../src/inventory/host-set.ts'
import { nfsTest, pairTest } from '../../../../src/ops/net/kept-test.ts'
import type { Fleet, FleetEvent, ShellState, WriteReport } from '../../../../src/ssh/create-fleet.ts'
import type { SessionState } from '../../../../src/ssh/session-transition.ts'
import { createCellGrid } from '../../../../src/terminal/cells.ts'
import type { BringUpPort } from '../../../../src/ui/bring-up/bring-up-view.ts'
import { ConsoleApp, type ConsolePorts, WORD_MS } from '../../../../src/ui/console/console-app.ts'
import { InputRouter } from '../../../../src/ui/console/input-router.ts'
import { buildScene } from '../../../../src/ui/console/pane-view.ts'
import type { JobsPort } from '../../../../src/ui/jobs/queue-view.ts'
import { InputDecoder } from '../../../../src/ui/keys/decode-input.ts'
import type { NetTestsPort } from '../../../../src/ui/network/net-tests-port.ts'
import { defaultPreferences, type Preferences } from '../../../../src/ui/preferences.ts'
import type { RayPort } from '../../../../src/ui/ray/ray-view.ts'
import { createPages, type FilePorts, type PagePorts } from '../../../../src/ui/tabs/create-pages.ts'
import type { WorkPort } from '../../../../src/ui/work-views/work-port.ts'
import type { ResolveHosts } from '../../../../src/ui/work-views/work-questions.ts'
import { endpointOf as anyEndpoint } from '../../../support/endpoint.ts'
import { ManualClock } from '../../ssh/manual-clock.ts'

export const endpointOf = (host: string, number: number): Endpoint =>
  anyEndpoint(host, { number, address: `10.9.0.${number}` })

class FakeFleet implements Fleet {
  readonly events = new Emitter<FleetEvent>()
  readonly received = new Map<string, string>()
  readonly sizes = new Map<string, { columns: number; rows: number }>()
  readonly away = new Map<string, string>()
  /** What the next write says was dropped to make room for an interrupt. */
  discarded: WriteReport['discarded']
  readonly reconnected: string[] = []
  hosts: string[] = []
  readonly #endpoints = new Map<string, Endpoint>()
  endpoint = (host: string) => this.#endpoints.get(host)
  session = (): SessionState => ({ kind: 'idle' })
  shell = (): ShellState => ({ kind: 'none' })
  on = (listener: (event: FleetEvent) => void) => this.events.on(listener)
  add(endpoint: Endpoint): void {
    const { host } = endpoint
    this.#endpoints.set(host, endpoint)
    this.hosts.push(host)
    this.events.emit({ type: 'added', host })
  }
  remove(host: string): void {
    if (!this.#endpoints.delete(host)) return
    this.hosts = this.hosts.filter((other) => other !== host)
    this.events.emit({ type: 'removed', host })
  }
  connect(hosts: readonly string[]): void {
    for (const host of hosts) this.up(host)
  }
  reconnect(hosts: readonly string[]): void {
    this.reconnected.push(...hosts)
  }
  close = () => undefined
  write(hosts: readonly string[], bytes: Uint8Array): WriteReport {
    const sent = hosts.filter((host) => !this.away.has(host))
    for (const host of sent) this.received.set(host, (this.received.get(host) ?? '') + Buffer.from(bytes).toString())
    const { discarded = [] } = this
    this.discarded = undefined
    return {
      sent,
      skipped: hosts.flatMap((host) => (this.away.has(host) ? [{ host, reason: this.away.get(host) ?? '' }] : [])),
      discarded,
    }
  }
  resize(host: string, size: { columns: number; rows: number }): void {
    this.sizes.set(host, size)
  }
  pause = () => undefined
  resume = () => undefined
  connection(): undefined {
    return undefined
  }

  [Symbol.dispose](): void {}

  up(host: string): void {
    this.events.emit({ type: 'session', host, state: { kind: 'ready', sinceMs: 0, attempt: 1 } })
    this.events.emit({ type: 'shell', host, state: { kind: 'open' } })
  }

  /** The connection is lost and comes back, with a new shell. */
  renewShell(host: string): void {
    this.events.emit({ type: 'shell', host, state: { kind: 'ended', end: { kind: 'lost', reason: 'reset' } } })
    this.events.emit({ type: 'shell', host, state: { kind: 'opening' } })
    this.up(host)
  }
}

export const idleWork: WorkPort = {
  fanOut: 64,
  spillDirectory: tmpdir(),
  startCommand: () => ({ stop() {}, abandon() {}, pause() {}, resume() {} }),
  copy: async () => undefined,
  saveOutput: async (directory) => directory,
}

const nothingDeclared: BringUpPort = {
  file: 'hosts.yaml',
  areas: async () => [{ name: 'trust', hosts: undefined }],
  check: async () => [],
  change: async () => ({ kind: 'unchanged' }),
  journal: async () => [],
}

const noQueue: JobsPort = {
  read: async () => undefined,
  tryOut: async () => ({ places: undefined, why: [] }),
  details: async () => undefined,
  submitWords: async () => ({ options: [], values: {} }),
  submit: async () => [],
  sweep: async () => undefined,
  study: async () => undefined,
  clusters: async () => [],
  readLog: async () => new Uint8Array(),
  members: async () => [],
}

const noRay: RayPort = {
  cluster: async () => undefined,
  watch: async () => undefined,
  start: () => ({ stop() {}, abandon() {}, pause() {}, resume() {} }),
}

export const idleNetTests: NetTestsPort = {
  meshOptions: () => ({
    seconds: 5,
    streams: 1,
    isSerial: false,
    isBidirectional: false,
    isThisMachineOnly: false,
    declared: new Map(),
    ports: { first: 5301, last: 5399 },
    sshTarget: () => ({ user: '', port: 22 }),
  }),
  survey: async () => [],
  installIperf: async () => 'unchanged',
  measureMesh: async () => ({
    report: { hosts: [], pings: [], links: [] },
    findings: [],
    earlier: undefined,
    problem: undefined,
  }),
  pairOptions: () => ({
    seconds: 30,
    streams: 1,
    isOneWay: false,
    isThisMachineOnly: false,
    declared: new Map(),
    ports: { first: 5301, last: 5399 },
  }),
  measurePair: async (record) => ({
    test: pairTest(record, 'tcp', 0),
    findings: [],
    last: undefined,
    problem: undefined,
  }),
  nfsSeconds: () => 5,
  measureNfs: async (record) => ({ test: nfsTest(record, 0), findings: [], last: undefined, problem: undefined }),
  keptResults: () => [],
  readKept: () => undefined,
  save: (path) => path,
}

const resolveHosts: ResolveHosts = (expression, known, groups) =>
  expandHostSet(expression, {
    names: known,
    groupNames: [...groups.keys()],
    group: (name) => groups.get(name),
    isHost: (name) => known.includes(name),
  })

export type ConsoleHarness = {
  readonly console: ConsoleApp
  readonly fleet: FakeFleet
  readonly clock: ManualClock
  readonly quits: () => number
  /** What went to the user's terminal besides frames. */
  readonly sequences: string[]
  /** Bytes as the user's terminal sends them. A `y` alone is an answer: it comes some time after and before other keys. */
  type(text: string): void
  /** As if this had been typed before the terminal showed the console. */
  noteTypedAhead(): void
  /** Output of a host, parsed when this returns. */
  print(host: string, text: string): Promise<void>
  receivers(): string
  got(host: string): string
}

export function createConsoleHarness(
  options: {
    hosts?: readonly string[]
    /** Until connectFirst, only the names of the hosts are known. */
    isResolving?: boolean
    size?: { columns: number; rows: number }
    preferences?: Partial<Preferences>
    groups?: ReadonlyMap<string, readonly string[]>
    work?: WorkPort
    environment?: Readonly<Record<string, string>>
    bringUp?: BringUpPort
    jobs?: JobsPort
    ray?: RayPort
    /** Of several hosts.yaml. */
    files?: readonly (Partial<FilePorts> & Required<Pick<FilePorts, 'file'>>)[]
    shellPrograms?: ConsolePorts['shellPrograms']
    netTests?: NetTestsPort
    knownDashboards?: PagePorts['knownDashboards']
    prompts?: Pick<ConsolePorts, 'promptHistory' | 'listFiles' | 'saveGroup'> &
      Partial<Pick<ConsolePorts, 'resolveNewHosts' | 'declaredHosts'>>
  } = {},
): ConsoleHarness {
  const { hosts = ['m1', 'm2', 'm3', 'm4'], isResolving = false } = options
  const fleet = new FakeFleet()
  const clock = new ManualClock()
  const preferences = { ...defaultPreferences, ...options.preferences }
  let quits = 0
  const sequences: string[] = []
  const parsed = new Emitter<string>()
  const endpoints = hosts.map((host, index) => endpointOf(host, index + 1))
  if (!isResolving) for (const endpoint of endpoints) fleet.add(endpoint)
  const environment = options.environment ?? {}
  const work = options.work ?? idleWork
  const filePorts: FilePorts = {
    fleet,
    work,
    bringUp: options.bringUp ?? nothingDeclared,
    jobs: options.jobs ?? noQueue,
    ray: options.ray ?? noRay,
  }
  const console = new ConsoleApp(
    {
      cluster: 'lab',
      hosts: isResolving ? endpoints.map(({ host, number }) => ({ host, number })) : endpoints,
      groups: options.groups ?? new Map(),
      preferences,
      themeName: 'dark',
      size: options.size ?? { columns: 120, rows: 40 },
      onPaneChange: (host) => parsed.emit(host),
      onTyped: () => undefined,
      onFramesChange: () => undefined,
      onRedraw: () => undefined,
      onSequence: (bytes) => void sequences.push(Buffer.from(bytes).toString()),
      onQuit: () => quits++,
      detach: () => 'this console ends with its terminal',
      createParts: (context) =>
        createPages(context, {
          fleet,
          work,
          netTests: options.netTests ?? idleNetTests,
          knownDashboards: options.knownDashboards ?? (async () => []),
          environment,
          resolveHosts,
          files: options.files?.map((file) => ({ ...filePorts, ...file })) ?? [filePorts],
        }),
      fileTitles: options.files?.map(({ file }) => file.title) ?? [],
    },
    {
      fleet,
      clock,
      environment,
      resolveHosts,
      declaredHosts: () => hosts,
      ...(options.shellPrograms ? { shellPrograms: options.shellPrograms } : {}),
      resolveNewHosts: async (expression) =>
        expandHostSet(expression).map((host, index) => endpointOf(host, 100 + index)),
      ...options.prompts,
    },
  )
  if (!isResolving) fleet.connect(hosts)
  const router = new InputRouter(console)
  const decoder = new InputDecoder()
  return {
    console,
    fleet,
    clock,
    quits: () => quits,
    sequences,
    type(text) {
      const { columns, rows } = console.state
      console.drawn = buildScene(console, createCellGrid(columns, rows), console.state, rethrow).panes
      if (text === 'y') clock.advance(WORD_MS)
      router.handle([...decoder.push(Buffer.from(text)), ...decoder.flush()])
      if (text === 'y') clock.advance(WORD_MS)
    },
    noteTypedAhead: () => router.noteTypedAhead(),
    async print(host, text) {
      fleet.events.emit({ type: 'data', host, bytes: Buffer.from(text) })
      while (!console.isIdle) await new Promise((resolve) => setImmediate(resolve))
    },
    receivers: () => [...console.state.receivers].join(','),
    got: (host) => fleet.received.get(host) ?? '',
  }
}

function rethrow(error: unknown): never {
  throw error
}
