/** What up, down and status say: lines for people, or one JSON object a line. */

import { drawnLine } from '../../base/drawn-line.ts'
import { printable } from '../../base/printable.ts'
import { formatDuration } from '../../base/time-text.ts'
import { foldHostSet } from '../../inventory/host-set.ts'
import type { ApplyEvent } from '../../ops/kernel/apply.ts'
import type { AreaFinding, HostStatus } from '../../ops/kernel/bring-up.ts'
import { formatFinding } from '../../ops/kernel/finding.ts'
import { formatPlan, type PaintChange, planEvent, sharedHomeLine } from '../../ops/kernel/format-plan.ts'
import type { Plan } from '../../ops/kernel/plan.ts'
import type { SharedHome } from '../../ops/kernel/shared-home.ts'
import type { CliContext, GlobalOptions } from '../command-line/verb.ts'
import { painterOf } from '../output/colour.ts'
import { writeEvent } from '../output/json-lines.ts'

/** How often each of these kinds was found. */
export function tally<Kind extends string>(kinds: readonly Kind[], found: readonly Kind[]): Record<Kind, number> {
  const counts = kinds.map((kind) => [kind, found.filter((each) => each === kind).length])
  return Object.fromEntries(counts) as Record<Kind, number>
}

/** `2 good`, for those that are there. */
export const tallyWords = (counts: Readonly<Record<string, number>>): string[] =>
  Object.entries(counts).flatMap(([kind, count]) => (count > 0 ? [`${count} ${wordOf(kind)}`] : []))

/** A status as people read it, here and in the console. */
const wordOf = (status: string): string => (status === 'away' ? 'no answer' : status)

const STATUS_WIDTH = 8

const COLOURS = { '+': 'green', '-': 'red', '~': 'yellow', '!': 'red', head: 'bold', quiet: 'dim' } as const

const END_WORDS = {
  done: 'done',
  unneeded: 'already done',
  cancelled: 'cancelled',
  failed: 'FAILED',
  skipped: 'not started',
} as const

export class BringUpReport {
  readonly #context: CliContext
  readonly #isJson: boolean
  readonly #isVerbose: boolean
  /** The plan says why the rest needs nothing. */
  readonly #isWhole: boolean
  readonly #paint: PaintChange

  constructor(options: GlobalOptions, context: CliContext) {
    const { json = false, verbose = false, dryRun = false } = options
    const paint = painterOf(options, context)
    this.#context = context
    this.#isJson = json
    this.#isVerbose = verbose
    this.#isWhole = verbose || dryRun
    this.#paint = (kind, text) => (paint === undefined || kind === 'plain' ? text : paint(COLOURS[kind], text))
  }

  plan(plan: Plan): void {
    if (this.#isJson) {
      this.sharedHomes(plan.sharedHomes)
      for (const operation of plan.operations) this.#event(planEvent(operation))
    } else this.#context.stdout.write(formatPlan(plan, foldHostSet, this.#paint, this.#isWhole))
  }

  sharedHomes(homes: readonly SharedHome[] = []): void {
    for (const home of homes) {
      if (this.#isJson) this.#event({ type: 'shared-home', hosts: home.hosts, path: home.path })
      else this.lines([sharedHomeLine(home, foldHostSet)])
    }
  }

  apply(event: ApplyEvent): void {
    const { operation, step } = event
    const base = { host: operation.host, area: operation.area, step: step.id }
    if (event.type === 'output') {
      const { stream, text } = event
      if (this.#isJson) this.#event({ type: 'output', ...base, stream, text })
      else if (this.#isVerbose) this.lines(text.replace(/\n$/, '').split('\n').map(drawnLine), `${operation.host}: `)
      return
    }
    if (this.#isJson) {
      const end = event.type === 'begin' ? { state: 'begin' } : { state: event.end.kind, ...event.end, kind: undefined }
      const durationMs = event.type === 'begin' ? undefined : Math.round(event.durationMs)
      this.#event({ type: 'step', ...base, title: step.title, ...end, durationMs })
      return
    }
    if (event.type === 'begin') {
      if (this.#isVerbose) this.lines([`${step.title} …`], `${operation.host}: `)
      return
    }
    const { end, durationMs } = event
    const why = 'reason' in end ? `: ${end.reason}` : end.kind === 'done' ? ` (${formatDuration(durationMs)})` : ''
    this.lines([`${operation.host}: ${step.title}: ${END_WORDS[end.kind]}${why}`])
  }

  findings(findings: readonly AreaFinding[]): void {
    if (this.#isJson) {
      for (const finding of findings) this.#event({ type: 'finding', ...finding })
      return
    }
    const groups = Map.groupBy(findings, (finding) =>
      JSON.stringify([finding.area, finding.gravity, formatFinding(finding)]),
    )
    for (const [first, ...others] of groups.values()) {
      if (first === undefined) continue
      const hosts = foldHostSet([first, ...others].map(({ host }) => host))
      this.lines([`${first.gravity}  ${first.area} · ${hosts}: ${formatFinding(first)}`])
    }
  }

  statuses(statuses: readonly HostStatus[]): void {
    if (this.#isJson) {
      for (const { area, host, status, because, atMs } of statuses) {
        const at = atMs === undefined ? null : new Date(atMs).toISOString()
        this.#event({ type: 'status', area, host, status, because, at })
      }
      return
    }
    // Equal hosts stand together.
    const groups = Map.groupBy(statuses, ({ area, status, because }) =>
      JSON.stringify([area, status, status === 'good' ? [] : because]),
    )
    const width = Math.max(STATUS_WIDTH, ...statuses.map(({ status }) => wordOf(status).length))
    for (const group of groups.values()) {
      const [first] = group
      if (first === undefined) continue
      const words = first.status === 'good' ? '' : `: ${first.because.join(' · ')}`
      this.lines([
        `${wordOf(first.status).padEnd(width)} ${first.area} · ${foldHostSet(group.map(({ host }) => host))}${words}`,
      ])
    }
  }

  /** The scheduler of the queue on this machine. */
  service({ name, state }: { readonly name: string; readonly state: string }): void {
    if (this.#isJson) this.#event({ type: 'service', name, state })
    else
      this.lines([`${(state === 'active' ? 'good' : 'failed').padEnd(STATUS_WIDTH)} job scheduler · ${name}: ${state}`])
  }

  summary(counts: object, words: string): void {
    if (this.#isJson) this.#event({ type: 'summary', ...counts })
    else this.lines([words])
  }

  /** Where JSON is wanted. */
  event(event: object): void {
    if (this.#isJson) this.#event(event)
  }

  /** Beside the results. */
  say(text: string): void {
    this.#context.stderr.write(`muster: ${printable(text)}\n`)
  }

  lines(lines: readonly string[], prefix = ''): void {
    this.#context.stdout.write(lines.map((line) => `${printable(`${prefix}${line}`)}\n`).join(''))
  }

  #event(event: object): void {
    writeEvent(event, this.#context)
  }
}
