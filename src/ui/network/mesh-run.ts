/** A mesh that is planned or measured in the Network tab, and how events change it. Pure. */
import { printable } from '../../base/printable.ts'
import { foldHostSet } from '../../inventory/host-set.ts'
import type { NetFinding } from '../../ops/net/mesh/judge.ts'
import type { EarlierLinks } from '../../ops/net/mesh/kept-mesh.ts'
import type { LinkResult, Slot } from '../../ops/net/mesh/link.ts'
import type { MeshEvent, MeshHost, MeshOptions, MeshReport } from '../../ops/net/mesh/measure-mesh.ts'
import { type MeshPlan, planMesh, planTools, type ToolPlan } from '../../ops/net/mesh/mesh-plan.ts'
import type { PingResult } from '../../ops/net/mesh/scripts.ts'
import type { ChangeView } from '../bring-up/bring-up-view.ts'
import { type PictureState, pictureOf, withPicture } from './mesh-picture.ts'

export type MeshOrder = { readonly hosts: readonly string[]; readonly options: MeshOptions }

type MeshStep = {
  readonly index: number
  readonly count: number
  readonly slot: Slot
  readonly remainingMs: number
  readonly atMs: number
}

export type MeshRun = {
  readonly order: MeshOrder
  /** `survey`: the hosts are asked for their tools; `plan` waits for Enter. */
  readonly phase: 'survey' | 'plan' | 'install' | 'measuring' | 'done'
  readonly plan: MeshPlan
  readonly tools: ToolPlan | undefined
  /** The installation of iperf that is running, or that ended before this plan. */
  readonly install: ChangeView | undefined
  readonly hosts: readonly MeshHost[]
  readonly pings: readonly PingResult[]
  readonly links: readonly LinkResult[]
  readonly step: MeshStep | undefined
  readonly isStopping: boolean
  /** It ended while the table of hosts was shown. */
  readonly isUnseen: boolean
  /** Why a result was not kept, or how the measurement failed. */
  readonly problem: string | undefined
  /** Of the plan, the first row shown. */
  readonly offset: number
  readonly shown: PictureState
}

/** A host that has not answered yet, so that its row is there from the beginning. */
const silent = (name: string): MeshHost => ({ name, cause: 'away', reason: 'no answer yet' })

export function beginMesh(order: MeshOrder, install?: ChangeView): MeshRun {
  const hosts = order.hosts.map(silent)
  const report = { hosts, pings: [], links: [] }
  return {
    order,
    phase: 'survey',
    plan: planMesh(order.hosts, order.options),
    tools: undefined,
    install,
    ...report,
    step: undefined,
    isStopping: false,
    isUnseen: false,
    problem: undefined,
    offset: 0,
    shown: withPicture(undefined, pictureOf(report, 0, [])),
  }
}

export const takeSurvey = (run: MeshRun, hosts: readonly MeshHost[]): MeshRun => ({
  ...run,
  phase: 'plan',
  hosts,
  tools: planTools(hosts, run.order.options),
})

/** The plan without the hosts that are away, once these are known. */
export function shownPlan({ plan, tools, order, hosts }: MeshRun): MeshPlan {
  const ready = hosts.flatMap((host) => ('facts' in host ? [host.name] : []))
  return tools === undefined ? plan : planMesh(order.hosts, order.options, new Set(ready))
}

/** Whether anything can be measured. */
export const canStart = (run: MeshRun): boolean => run.phase === 'plan' && shownPlan(run).links > 0

/** Whether an installation would let more links be measured, or measured better. */
export const canInstall = ({ phase, tools }: MeshRun): boolean => phase === 'plan' && (tools?.lacking.length ?? 0) > 0

/** Nothing has been changed yet. */
export const isDeciding = ({ phase, install }: MeshRun): boolean =>
  phase === 'install' && (install?.phase === 'check' || install?.phase === 'ask')

/** The result of an installation, and how to undo it. Printable. */
export function installWords({ steps, plan, said }: ChangeView): readonly { text: string; isBad: boolean }[] {
  const ended = [...steps.values()]
  const done = ended.filter(({ state }) => state.kind === 'done')
  const hosts = foldHostSet(new Set(done.map(({ operation }) => operation.host)))
  const blocked = (plan?.operations ?? []).flatMap(({ host, verdict }) =>
    verdict.kind === 'blocked' ? verdict.findings.map(({ cause }) => `${host}: ${cause}`) : [],
  )
  const failed = ended.flatMap(({ operation: { host }, step, state }) =>
    state.kind === 'failed'
      ? [`${host}: ${step.title} failed: ${state.reason}`]
      : state.kind === 'cancelled'
        ? [`${host}: ${step.title}: cancelled`]
        : [],
  )
  return [
    ...(done[0] === undefined
      ? []
      : [
          {
            text: `installed ${done[0].operation.title} on ${hosts}; to remove it: muster net uninstall ${hosts}`,
            isBad: false,
          },
        ]),
    ...[...failed, ...blocked, ...said].map((text) => ({ text, isBad: true })),
  ].map(({ text, isBad }) => ({ text: printable(text), isBad }))
}

export const takeStart = (run: MeshRun): MeshRun => ({ ...run, phase: 'measuring' })

export function takeEvent(run: MeshRun, event: MeshEvent, nowMs: number): MeshRun {
  switch (event.type) {
    case 'host':
      return { ...run, hosts: run.hosts.map((host) => (host.name === event.host.name ? event.host : host)) }
    case 'ping':
      return { ...run, pings: [...run.pings, event.ping] }
    case 'slot': {
      const { index, count, remainingMs } = event
      const slot = shownPlan(run).slots[index] ?? []
      return { ...run, step: { index, count, slot, remainingMs, atMs: nowMs } }
    }
    case 'link':
      return { ...run, links: [...run.links, event.link] }
    case 'examined':
    case 'port-taken':
      return run
  }
}

/** The picture of what is measured so far. */
export function withLinks(run: MeshRun): MeshRun {
  const { hosts, pings, links, shown } = run
  return { ...run, shown: { ...shown, picture: pictureOf({ hosts, pings, links }, shown.picture.timeMs, []) } }
}

export function takeEnd(
  run: MeshRun,
  report: MeshReport,
  findings: readonly NetFinding[],
  earlier: EarlierLinks | undefined,
  problem: string | undefined,
  nowMs: number,
): MeshRun {
  const picture = pictureOf(report, nowMs, findings, earlier)
  // A cursor that the user has moved stays.
  const shown = isUntouched(run.shown)
    ? { ...withPicture(undefined, picture), isOpen: run.shown.isOpen }
    : withPicture(run.shown, picture)
  return { ...run, ...report, phase: 'done', step: undefined, problem, shown }
}

const isUntouched = ({ row, column, isOpen }: PictureState): boolean => row === 0 && column === 1 && !isOpen

export const takeFailure = (run: MeshRun, problem: string): MeshRun => ({ ...run, phase: 'done', problem })

export const isMeasuring = ({ phase }: MeshRun): boolean => phase === 'measuring'

/** Nothing is measured yet. */
export const isPlan = ({ phase }: MeshRun): boolean => phase === 'survey' || phase === 'plan' || phase === 'install'
