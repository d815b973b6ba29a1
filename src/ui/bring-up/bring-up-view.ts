/** The state of the Bring-up tab: status of the hosts, selection, and the running change. Pure. */
import { counted } from '../../base/counted.ts'
import { drawnLine } from '../../base/drawn-line.ts'
import { printable } from '../../base/printable.ts'
import { foldHostSet } from '../../inventory/host-set.ts'
import type { ApplyEvent, StepEnd } from '../../ops/kernel/apply.ts'
import type { ChangeDirection } from '../../ops/kernel/area.ts'
import type { HostStatus, StatusWord } from '../../ops/kernel/bring-up.ts'
import type { ChangeHandlers, ChangePhase } from '../../ops/kernel/change.ts'
import type { JournalLine } from '../../ops/kernel/journal.ts'
import type { Operation, Step } from '../../ops/kernel/operation.ts'
import type { Plan } from '../../ops/kernel/plan.ts'

export type StepState =
  | { readonly kind: 'waiting' }
  | { readonly kind: 'running'; readonly sinceMs: number }
  | (StepEnd & { readonly durationMs: number })

export type StepView = {
  readonly operation: Operation
  readonly step: Step
  readonly state: StepState
  /** The last lines of output, printable; the last one may continue. */
  readonly output: readonly string[]
  /** The beginning of that one, as it came. */
  readonly rest: string
}

export type ChangeView = {
  readonly order: Pick<ChangeOrder, 'direction' | 'areas' | 'hosts'>
  /** `ask`: the plan waits for an answer. */
  readonly phase: ChangePhase | 'ask' | 'ended'
  readonly sinceMs: number
  readonly plan?: Plan | undefined
  /** The hosts have changed since the plan was shown. */
  readonly isAgain: boolean
  /** By their ids, in the plan's order. */
  readonly steps: ReadonlyMap<string, StepView>
  /** Messages about locks and failures of the whole change; printable. */
  readonly said: readonly string[]
  readonly end?: ChangeResult['kind'] | 'error' | undefined
  readonly endedMs?: number | undefined
  readonly isStopping: boolean
}

/** The pane beside the table, or in its place. */
export type SideKind = 'details' | 'plan' | 'steps'

export type BringUpView = {
  /** Undefined: not read yet. */
  readonly columns?: readonly AreaColumn[] | undefined
  /** The name of the file that they were read from, for messages; printable. */
  readonly file: string
  /** Why they cannot be read; printable. */
  readonly trouble?: string | undefined
  /** By `cellKey`. */
  readonly statuses: ReadonlyMap<string, HostStatus>
  /** A check is running. */
  readonly check?: { readonly answered: ReadonlySet<string> } | undefined
  readonly cursor: { readonly host?: string | undefined; readonly area?: string | undefined }
  /** Hosts that a change is for; none: all. */
  readonly marked: ReadonlySet<string>
  /** The area that a change is for; undefined: all. */
  readonly onlyArea?: string | undefined
  readonly side: SideKind
  /** Keys go to the pane beside the table. */
  readonly hasSideKeys: boolean
  /** The first row of that pane. */
  readonly sideOffset: number
  /** Shows the steps of all hosts with their whole output. */
  readonly isWhole: boolean
  readonly change?: ChangeView | undefined
  /** The change before it that began. */
  readonly past?: ChangeView | undefined
  /** By `cellKey`. */
  readonly journal: ReadonlyMap<string, readonly JournalLine[]>
}

export const noBringUp: BringUpView = {
  file: 'hosts.yaml',
  statuses: new Map(),
  cursor: {},
  marked: new Set(),
  side: 'details',
  hasSideKeys: false,
  sideOffset: 0,
  isWhole: false,
  journal: new Map(),
}

/** The change that began last: a plan that is only shown, or was discarded, has changed nothing. */
export const lastBegun = ({ change, past }: Pick<BringUpView, 'change' | 'past'>): ChangeView | undefined =>
  change !== undefined && [...change.steps.values()].some(({ state }) => state.kind !== 'waiting') ? change : past

/** Undefined or no areas: a text is shown instead of the table, and there are no details. */
export const hasRows = ({ columns }: BringUpView): boolean =>
  columns?.some((column) => column.hosts !== undefined) === true

/** Changes are for the area that the cursor is on, and no other. */
export const isOnlyArea = ({ onlyArea, cursor }: BringUpView): boolean =>
  onlyArea !== undefined && onlyArea === cursor.area

export const cellKey = (area: string, host: string): string => `${area} ${host}`

export function statusesByCell(statuses: readonly HostStatus[]): ReadonlyMap<string, HostStatus> {
  return new Map(statuses.map((status) => [cellKey(status.area, status.host), status]))
}

/** A failed step of the change makes the status of its cell `failed`. */
export function withFailures(statuses: readonly HostStatus[], change: ChangeView | undefined): HostStatus[] {
  return statuses.map((status) => {
    const reasons = stepsOf(change, status.area, status.host).flatMap(({ step, state }) =>
      state.kind === 'failed' ? [`${step.title} failed: ${state.reason}`] : [],
    )
    if (reasons.length === 0) return status
    return { ...status, status: 'failed', because: [...reasons, ...status.because] }
  })
}

/** The hosts of the table: those of the console, then others that hosts.yaml declares something for. */
export function rowsOf({ columns = [] }: BringUpView, hosts: Iterable<string>): string[] {
  return [...new Set([...hosts, ...columns.flatMap((column) => column.hosts ?? [])])]
}

export type Cell =
  | { readonly kind: 'undeclared' }
  /** Not checked yet. */
  | { readonly kind: 'unknown' }
  /** `isBad`: a step failed or was not started. */
  | { readonly kind: 'changing'; readonly ended: number; readonly steps: number; readonly isBad: boolean }
  | { readonly kind: 'status'; readonly status: HostStatus }

export function cellOf(view: BringUpView, column: AreaColumn, host: string): Cell {
  if (column.hosts?.includes(host) !== true) return { kind: 'undeclared' }
  const steps = isApplying(view.change) ? stepsOf(view.change, column.name, host) : []
  if (steps.length > 0) {
    const isBad = toneOf(steps) === 'bad'
    return { kind: 'changing', ended: steps.filter(isBad ? isOk : isEnded).length, steps: steps.length, isBad }
  }
  const status = view.statuses.get(cellKey(column.name, host))
  return status === undefined ? { kind: 'unknown' } : { kind: 'status', status }
}

export function stepsOf(change: ChangeView | undefined, area: string | undefined, host: string): StepView[] {
  return [...(change?.steps.values() ?? [])].filter(
    ({ operation }) => operation.host === host && (area === undefined || operation.area === area),
  )
}

export const isEnded = ({ state }: StepView): boolean => state.kind !== 'waiting' && state.kind !== 'running'
const isOk = ({ state }: StepView): boolean => state.kind === 'done' || state.kind === 'unneeded'

export function toneOf(steps: readonly StepView[]): 'waiting' | 'running' | 'ok' | 'bad' {
  if (steps.some((step) => isEnded(step) && !isOk(step))) return 'bad'
  if (steps.every(isOk)) return 'ok'
  return steps.every(({ state }) => state.kind === 'waiting') ? 'waiting' : 'running'
}

/** The areas of a change that have something on its hosts; all, until the plan says so. */
export function areasOf({ order, plan }: ChangeView): readonly string[] {
  const planned = new Set(plan?.operations.map(({ area }) => area))
  return planned.size === 0 ? order.areas : order.areas.filter((area) => planned.has(area))
}

/** What does not work though it is as declared or its steps are done, of the hosts and areas of a change. */
export function notWorking({ statuses }: Pick<BringUpView, 'statuses'>, { order }: ChangeView): HostStatus[] {
  if (order.direction === 'down') return []
  const all = order.areas.flatMap((area) => order.hosts.flatMap((host) => statuses.get(cellKey(area, host)) ?? []))
  return all.filter(
    ({ status, findings }) => status !== 'blocked' && findings.some(({ gravity }) => gravity === 'blocker'),
  )
}

/** `3 of 3 steps done`, `1 of 3 steps done, 2 failed or not started` */
export function stepsText(steps: ChangeView['steps']): string {
  const states = [...steps.values()]
  const bad = states.filter((step) => isEnded(step) && !isOk(step)).length
  const done = `${states.filter(isOk).length} of ${counted(states.length, 'step')} done`
  return bad > 0 ? `${done}, ${bad} failed or not started` : done
}

/**
 * `3 of 3 steps done`, `1 of 3 steps done, 2 failed or not started`, `3 of 3 steps done; blocked on m8; not working: m9`,
 * `nothing to do`. `failed`: hosts that do not work.
 */
export function changeEnd(
  { steps, plan, end }: ChangeView,
  failed: readonly string[] = [],
): { readonly text: string; readonly isWhole: boolean } {
  const all = stepsText(steps)
  const operations = plan?.operations ?? []
  const blocked = new Set(operations.flatMap(({ host, verdict }) => (verdict.kind === 'blocked' ? [host] : [])))
  const rest = [
    ...(blocked.size === 0 ? [] : [`blocked on ${foldHostSet([...blocked])}`]),
    ...(failed.length === 0 ? [] : [`not working: ${foldHostSet([...new Set(failed)])}`]),
  ]
  const begin = steps.size > 0 && end !== 'unchanged' ? all : rest.length === 0 ? 'nothing to do' : 'no change'
  return { text: [begin, ...rest].join('; '), isWhole: rest.length === 0 && toneOf([...steps.values()]) !== 'bad' }
}

export const isChanging = (change: ChangeView | undefined): boolean => change !== undefined && change.phase !== 'ended'

/** What failed there is done: a later check found the cell as declared. */
export function isOvercome(change: ChangeView, status: HostStatus | undefined): boolean {
  const { atMs } = status ?? {}
  return status?.status === 'good' && atMs !== undefined && change.endedMs !== undefined && atMs > change.endedMs
}

const isApplying = (change: ChangeView | undefined): boolean => change?.phase === 'apply' || change?.phase === 'verify'

/** What is known of the cells in which no step of the change has begun: of the others it was true before. */
export function untouched({ statuses, change }: Pick<BringUpView, 'statuses' | 'change'>): BringUpView['statuses'] {
  const begun = [...(change?.steps.values() ?? [])].flatMap(({ operation: { area, host }, state }) =>
    state.kind === 'waiting' || state.kind === 'unneeded' ? [] : [cellKey(area, host)],
  )
  return new Map([...statuses].filter(([cell]) => !begun.includes(cell)))
}

/** Hosts where an ended change failed. */
export function retryable({ change, statuses }: BringUpView): string[] {
  if (change === undefined || isChanging(change) || change.end === 'declined') return []
  const { direction, areas, hosts } = change.order
  const statusOf = ({ operation: { area, host } }: StepView) => statuses.get(cellKey(area, host))
  const isDone = (step: StepView) => isOk(step) || (direction === 'up' && isOvercome(change, statusOf(step)))
  const failed = new Set([...change.steps.values()].flatMap((step) => (isDone(step) ? [] : [step.operation.host])))
  const isBad = (host: string) =>
    direction === 'up' &&
    areas.some((area) => !['good', 'unasked'].includes(statuses.get(cellKey(area, host))?.status ?? 'good'))
  return hosts.filter((host) => failed.has(host) || isBad(host))
}

/** The worst first. */
export const STATUS_WORDS: readonly StatusWord[] = [
  'failed',
  'blocked',
  'away',
  'differs',
  'missing',
  'unasked',
  'good',
]

/** What may fail where all is as declared and works. */
export const risksOf = ({ findings }: HostStatus): number => findings.filter(({ gravity }) => gravity === 'risk').length

export type CountedWord = StatusWord | 'unknown'

/** The worst first. Not checked yet is worse than good: it may be anything. */
const COUNTED_WORDS: readonly CountedWord[] = STATUS_WORDS.flatMap((word) =>
  word === 'unasked' ? ['unknown', word] : [word],
)

/** Hosts counted by the worst status of their areas, the worst first; none before the first check. */
export function countHosts({ statuses, columns = [] }: BringUpView): readonly (readonly [CountedWord, number])[] {
  if (statuses.size === 0) return []
  const worst = new Map<string, number>()
  const take = (host: string, word: CountedWord) =>
    worst.set(host, Math.min(worst.get(host) ?? COUNTED_WORDS.length, COUNTED_WORDS.indexOf(word)))
  for (const { host, status } of statuses.values()) take(host, status)
  for (const { name, hosts = [] } of columns) {
    for (const host of hosts) if (!statuses.has(cellKey(name, host))) take(host, 'unknown')
  }
  return COUNTED_WORDS.flatMap((word, rank) => {
    const count = [...worst.values()].filter((each) => each === rank).length
    return count === 0 ? [] : [[word, count] as const]
  })
}

/** The time of the oldest check; undefined: none. */
export function oldestFactMs({ statuses }: BringUpView): number | undefined {
  const times = [...statuses.values()].flatMap(({ atMs }) => atMs ?? [])
  return times.length === 0 ? undefined : Math.min(...times)
}

export function beginChange(order: ChangeView['order'], sinceMs: number): ChangeView {
  return { order, phase: 'check', sinceMs, isAgain: false, steps: new Map(), said: [], isStopping: false }
}

export function takePlan(change: ChangeView, plan: Plan, isAgain: boolean): ChangeView {
  const steps = plan.operations.flatMap((operation) =>
    operation.verdict.kind === 'steps'
      ? operation.verdict.steps.map((step) => {
          const view: StepView = { operation, step, state: { kind: 'waiting' }, output: [], rest: '' }
          return [step.id, view] as const
        })
      : [],
  )
  return { ...change, plan, isAgain, steps: new Map(steps) }
}

/** Steps that an error left behind run no longer. */
export function endChange(change: ChangeView, end: NonNullable<ChangeView['end']>, nowMs: number): ChangeView {
  const steps = [...change.steps].map(([id, step]): [string, StepView] =>
    step.state.kind === 'running'
      ? [id, { ...step, state: { kind: 'cancelled', durationMs: nowMs - step.state.sinceMs } }]
      : [id, step],
  )
  return { ...change, phase: 'ended', end, endedMs: nowMs, isStopping: false, steps: new Map(steps) }
}

const OUTPUT_LINES = 200
const LINE_CHARACTERS = 500

/** Keeps the last lines of output; a line that continues in the next piece stays one line. */
export function takeStep(change: ChangeView, event: ApplyEvent, nowMs: number): ChangeView {
  const known = change.steps.get(event.step.id)
  if (known === undefined) return change
  return { ...change, steps: new Map(change.steps).set(event.step.id, nextStep(known, event, nowMs)) }
}

function nextStep(known: StepView, event: ApplyEvent, nowMs: number): StepView {
  switch (event.type) {
    case 'begin':
      return { ...known, state: { kind: 'running', sinceMs: nowMs } }
    case 'end':
      return { ...known, state: { ...event.end, durationMs: event.durationMs } }
    case 'output': {
      const pieces = (known.rest + event.text).split('\n')
      const lines = pieces.map((line) => printable(drawnLine(line)).slice(0, LINE_CHARACTERS))
      const last = pieces.at(-1) ?? ''
      // What may be drawn over stays short, however often it is.
      const rest = last.slice(last.trimEnd().lastIndexOf('\r') + 1).slice(0, LINE_CHARACTERS)
      return { ...known, output: [...known.output.slice(0, -1), ...lines].slice(-OUTPUT_LINES), rest }
    }
  }
}

/** A part of bring-up. `hosts`: undefined when hosts.yaml does not declare it. `digest`: differs when it declares something else. */
export type AreaColumn = {
  readonly name: string
  readonly hosts: readonly string[] | undefined
  readonly digest?: string | undefined
}

export type ChangeOrder = {
  readonly direction: ChangeDirection
  readonly areas: readonly string[]
  /** Hosts that may be changed; the others are only checked. */
  readonly hosts: readonly string[]
  readonly signal: AbortSignal
}

/** How a change ended; `statuses`: of its areas afterwards, when it verified them. */
export type ChangeResult = {
  readonly kind: 'unchanged' | 'declined' | 'locked' | 'lost' | 'cancelled' | 'done'
  readonly statuses?: readonly HostStatus[]
}

/** Uses only the connections of the shells, and asks no questions. */
export interface BringUpPort {
  /** The name of the hosts.yaml that was read, for messages; printable. */
  readonly file: string
  /** All areas, in the order of bring-up; rejects when hosts.yaml cannot be read. */
  areas(): Promise<readonly AreaColumn[]>
  /** Reads the facts of all hosts and verifies what is declared, without changes. `onHost`: a host has answered. */
  check(signal: AbortSignal, onHost: (host: string) => void): Promise<readonly HostStatus[]>
  change(order: ChangeOrder, handlers: ChangeHandlers): Promise<ChangeResult>
  /** The newest first. */
  journal(area: string, host: string): Promise<readonly JournalLine[]>
}
