/** What the console does over the connections of its shells: status and bring-up, and the Ray cluster. */

import { basename } from 'node:path'
import { systemClock } from '../../base/clock.ts'
import { messageOf } from '../../base/errors.ts'
import { printable } from '../../base/printable.ts'
import type { Endpoint } from '../../inventory/host.ts'
import { sectionOf } from '../../inventory/hosts-yaml-schema.ts'
import { fileTitle, type Inventory } from '../../inventory/inventory.ts'
import { type Area, prepareAreas } from '../../ops/kernel/area.ts'
import { gatherAreaFacts, type HostStatus, statusesOf, verifyAreas } from '../../ops/kernel/bring-up.ts'
import { type ChangeEnd, type ChangeHandlers, type ChangeOptions, changeHosts } from '../../ops/kernel/change.ts'
import { THIS_MACHINE } from '../../ops/kernel/host-port.ts'
import { openJournal, readJournal } from '../../ops/kernel/journal.ts'
import { makePlan } from '../../ops/kernel/plan.ts'
import { askForJobs, type RayJobOrder } from '../../ops/ray/jobs.ts'
import { section } from '../../ops/ray/section.ts'
import { nodesOf, type RayWanted, wantedRay } from '../../ops/ray/wanted.ts'
import { watchCluster } from '../../ops/ray/watch.ts'
import type { CommandEnd, CommandHandlers } from '../../ops/run/run-hosts.ts'
import { parseShellPrograms, SHELL_PROGRAMS_SCRIPT } from '../../ops/run/shell-programs.ts'
import type { CredentialDialog } from '../../ssh/questions.ts'
import type { BringUpPort } from '../../ui/bring-up/bring-up-view.ts'
import type { ConsolePorts } from '../../ui/console/console-app.ts'
import type { RayCommand, RayPort } from '../../ui/ray/ray-view.ts'
import type { WorkPort } from '../../ui/work-views/work-port.ts'
import { AREAS, loadAreas } from '../bring-up/areas.ts'
import { jobsAtStake } from '../bring-up/jobs-at-stake.ts'
import { newMark, ownerWords } from '../bring-up/prepare.ts'
import type { CliContext } from '../command-line/verb.ts'
import { createFleetOpsHosts, withoutSome } from '../connect/ops-hosts.ts'
import type { Wires } from '../connect/transports.ts'
import { SudoPassword } from '../connect/tty-dialog.ts'
import { TERMINAL } from '../output/table.ts'
import { answerTimeoutMs, JobReport, packDirectory } from '../ray/jobs.ts'
import type { Connections } from './fleet-of-file.ts'

/** What works over the connections of the console's shells. */
export type ConsoleConnections = {
  readonly fleet: Connections
  readonly wires: Wires
  readonly dialog: CredentialDialog
  readonly fanOut: number
  /** Multiplies every timeout. */
  readonly limitFactor: number
  /** What hosts.yaml declares now; a new object after the file has changed. */
  readonly inventory: Inventory
  /** Of all its hosts; resolved when first needed. */
  endpoints(): Promise<readonly Endpoint[]>
  /** Where the names of these hosts are not those of the console. */
  nameInConsole?(host: string): string
  readonly context: CliContext
}

/** What runs in the shell of a host; undefined: unknown. */
export function createShellPrograms({ fleet, wires }: ConsoleConnections): NonNullable<ConsolePorts['shellPrograms']> {
  const hosts = createFleetOpsHosts(fleet, wires)
  return async (host, signal) => {
    const options = { timeoutMs: 5000, signal, isBrief: true }
    const { outcome, stdout } = await hosts.exec(host, SHELL_PROGRAMS_SCRIPT, options)
    const isDone = outcome.kind === 'exit' && outcome.code === 0
    return isDone ? parseShellPrograms(Buffer.from(stdout).toString()) : undefined
  }
}

const JOURNAL_LINES = 12

type OwnChange = Pick<ChangeOptions, 'direction' | 'areas' | 'isSelected' | 'signal'>

/** Changes hosts as the verbs do, but those with a reason against it. Asks for the sudo password once. */
export function createConsoleChanges(
  connections: ConsoleConnections,
  reasonAgainst: (host: string) => string | undefined = () => undefined,
) {
  const { fleet, wires, dialog, fanOut, limitFactor, context } = connections
  const { now, environment } = context
  const sudo = new SudoPassword(dialog)
  const all = createFleetOpsHosts(fleet, { ...wires, sudoPassword: () => sudo.ask() })
  const hosts = sudo.watch(withoutSome(all, reasonAgainst))
  const common = { hosts, mark: newMark(), now, limitFactor }
  return {
    common,
    /** Must be called before facts of these hosts are gathered. */
    begin: (names: readonly string[]): void =>
      sudo.begin(names.map((name) => connections.nameInConsole?.(name) ?? name)),
    change: async (change: OwnChange, handlers: ChangeHandlers): Promise<ChangeEnd> =>
      await changeHosts(
        {
          ...common,
          ...change,
          fanOut,
          owner: ownerWords(now()),
          openJournal: () => openJournal({ environment, now }),
        },
        handlers,
      ),
  }
}

export function createConsoleBringUp(options: ConsoleConnections): BringUpPort {
  const { fleet, context } = options
  const { now, environment } = context
  let moved: ReadonlyMap<string, string> = new Map()
  const changes = createConsoleChanges(options, (host) => moved.get(host))
  // Prepared each time, since the files that hosts.yaml names may have changed.
  const prepare = async (): Promise<readonly Area[]> => {
    const endpoints = await options.endpoints()
    moved = movedHosts(fleet, endpoints)
    return (await prepareAreas(await loadAreas(), options.inventory, endpoints)).areas
  }
  const begin = async (): Promise<readonly Area[]> => {
    const areas = await prepare()
    changes.begin([...new Set(areas.flatMap((area) => area.hosts))])
    return areas
  }
  const presentOf = (areas: readonly Area[]): ReadonlySet<string> =>
    new Set(
      areas.flatMap((area) => area.hosts).filter((host) => host === THIS_MACHINE || fleet.endpoint(host) !== undefined),
    )
  return {
    get file() {
      // Without its directory, as the tab may be narrow.
      return basename(fileTitle(options.inventory))
    },
    async areas() {
      const areas = await prepare()
      return AREAS.map(({ name }) => {
        const area = areas.find((one) => one.name === name)
        return { name, hosts: area?.hosts, digest: area?.digest() }
      })
    },
    async check(signal, onHost) {
      const areas = await begin()
      const began = { atMs: now(), here: presentOf(areas) }
      const onGathered = ({ host }: { readonly host: string }): void => onHost(host)
      const factsByArea = await gatherAreaFacts(areas, { ...changes.common, signal, onHost: onGathered })
      const plan = makePlan('up', areas, factsByArea)
      const findings = await verifyAreas(areas, factsByArea, plan, { ...changes.common, signal }, 'status')
      return withTrials(statusesOf(areas, factsByArea, plan, findings), began)
    },
    async change({ direction, areas: names, hosts: chosen, signal }, handlers) {
      const all = await begin()
      const areas = all.filter(({ name }) => names.includes(name))
      const selection = new Set(chosen)
      const began = { atMs: now(), here: presentOf(areas) }
      const end = await changes.change(
        { direction, areas, signal, isSelected: (host) => selection.has(host) },
        {
          ...handlers,
          onPlan(plan, isAgain) {
            handlers.onPlan(plan, isAgain)
            for (const text of jobsAtStake(plan, areas, options.inventory, context))
              handlers.onSay(printable(text), false)
          },
        },
      )
      if (end.kind !== 'done' || direction === 'down') return { kind: end.kind }
      // The facts give the status of all hosts in these areas, also of those that were not changed.
      const plan = makePlan('up', areas, end.factsByArea)
      return { kind: end.kind, statuses: withTrials(statusesOf(areas, end.factsByArea, plan, end.findings), began) }
    },
    journal: (area, host) => readJournal(environment, { area, host }, JOURNAL_LINES),
  }
}

/** For what the queue has on hosts: nothing is read over a connection that leads to another machine than hosts.yaml says now. */
export function createQueueWork(
  work: WorkPort,
  { fleet, endpoints }: Pick<ConsoleConnections, 'endpoints'> & { readonly fleet: Pick<Connections, 'endpoint'> },
): WorkPort {
  let moved: ReadonlyMap<string, string> = new Map()
  const look = async () => {
    moved = movedHosts(fleet, await endpoints())
  }
  return {
    ...work,
    startCommand(host, command, handlers, isRetry) {
      // What it finds counts from the next reading on.
      void look().catch(() => {})
      const reason = moved.get(host)
      if (reason === undefined) return work.startCommand(host, command, handlers, isRetry)
      queueMicrotask(() => handlers.onEnd({ kind: 'unreachable', reason }))
      return { stop() {}, abandon() {}, pause() {}, resume() {} }
    },
  }
}

/** Hosts whose connections lead to another machine than hosts.yaml says now, each with a sentence that says so. */
function movedHosts(
  fleet: Pick<Connections, 'endpoint'>,
  endpoints: readonly Pick<Endpoint, 'host' | 'address'>[],
): ReadonlyMap<string, string> {
  return new Map(
    endpoints.flatMap(({ host, address }) => {
      const open = fleet.endpoint(host)
      if (open === undefined || open.address === address) return []
      const words = `it is connected to ${open.address}, and hosts.yaml now says ${address}: close it and add it again`
      return [[host, words] as const]
    }),
  )
}

/** A host without an answer: with the time of the attempt, or not asked because it is not open in the console. */
function withTrials(
  statuses: readonly HostStatus[],
  { atMs, here }: { readonly atMs: number; readonly here: ReadonlySet<string> },
): readonly HostStatus[] {
  return statuses.map((status) => {
    if (status.status !== 'away') return status
    return here.has(status.host) ? { ...status, atMs } : { ...status, status: 'unasked', because: [] }
  })
}

/** What ends a command: `onStop` changes while it runs. */
type Running = { readonly signal: AbortSignal; onStop(): unknown }

export function createConsoleRay(connections: ConsoleConnections): RayPort {
  const { fleet, wires, context } = connections
  const hosts = createFleetOpsHosts(fleet, wires)
  const wantedNow = async (): Promise<RayWanted | undefined> => {
    const { inventory } = connections
    return wantedRay({ inventory, endpoints: new Map((await connections.endpoints()).map((one) => [one.host, one])) })
  }

  const run = async (order: RayCommand, handlers: CommandHandlers, running: Running): Promise<CommandEnd> => {
    const wanted = sectionOf(connections.inventory, section) === undefined ? undefined : await wantedNow()
    const say = (text: string): void => handlers.onStderr(Buffer.from(`${text}\n`))
    if (wanted === undefined) {
      say(`${fileTitle(connections.inventory)} declares no Ray cluster`)
      return { kind: 'exit', code: 1 }
    }
    const whole = await wholeOrder(order, context)
    const report = new JobReport(whole, false, {
      stdout: { ...TERMINAL, write: (text) => handlers.onStdout(Buffer.from(text)) },
      stderr: { write: (text) => handlers.onStderr(Buffer.from(text)) },
      now: context.now,
    })
    const ask = { hosts, signal: running.signal }
    const abort = running.onStop
    running.onStop = async () => {
      const { id } = report
      // Only a job that this command submitted is stopped.
      if (order.do !== 'submit' || id === undefined) return abort()
      const stop: RayJobOrder = { do: 'stop', id }
      await askForJobs(wanted, stop, { ...ask, timeoutMs: answerTimeoutMs(stop), onEvent() {} })
    }
    handlers.onBegin()
    const end = await askForJobs(wanted, whole, {
      ...ask,
      timeoutMs: answerTimeoutMs(whole),
      onEvent: (event) => report.event(event),
    })
    switch (end.kind) {
      case 'done':
        return { kind: 'exit', code: report.finish() }
      case 'cancelled':
        return { kind: 'cancelled' }
      case 'away':
        return { kind: 'unreachable', reason: printable(end.reason) }
      case 'refused':
        say(end.reason)
        return { kind: 'exit', code: 1 }
    }
  }

  return {
    async cluster() {
      if (sectionOf(connections.inventory, section) === undefined) return undefined
      const wanted = await wantedNow()
      if (wanted === undefined) return undefined
      return { head: wanted.head.host, nodes: new Map(nodesOf(wanted).map(({ address, host }) => [address, host])) }
    },
    async watch(options) {
      const wanted = await wantedNow()
      return wanted === undefined
        ? undefined
        : await watchCluster(wanted, { ...options, hosts, clock: systemClock, rounds: 0 })
    },
    start(order, handlers) {
      const aborting = new AbortController()
      const running = { signal: aborting.signal, onStop: (): unknown => aborting.abort() }
      let isAbandoned = false
      const own: CommandHandlers = {
        onBegin: () => isAbandoned || handlers.onBegin(),
        onStdout: (bytes) => isAbandoned || handlers.onStdout(bytes),
        onStderr: (bytes) => isAbandoned || handlers.onStderr(bytes),
        onEnd: (end) => isAbandoned || handlers.onEnd(end),
      }
      // After this has returned.
      setImmediate(() =>
        run(order, own, running).then(own.onEnd, (error: unknown) => {
          own.onStderr(Buffer.from(`${printable(messageOf(error))}\n`))
          own.onEnd({ kind: 'exit', code: 1 })
        }),
      )
      return {
        stop: () => void running.onStop(),
        abandon: () => {
          isAbandoned = true
          aborting.abort()
        },
        pause() {},
        resume() {},
      }
    },
  }
}

async function wholeOrder(order: RayCommand, context: CliContext): Promise<RayJobOrder> {
  if (order.do !== 'submit') return order
  const { directory, job, follow } = order
  if (directory === undefined) return { do: 'submit', job, follow }
  return { do: 'submit', job: { ...job, archive: await packDirectory(directory, context) }, follow }
}
