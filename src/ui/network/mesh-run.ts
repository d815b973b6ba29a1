/** A mesh that is planned or measured in the Network tab, and how events change it. Pure. */
import type { NetFinding } from '../../ops/net/mesh/judge.ts'
import type { KeptMesh } from '../../ops/net/mesh/kept-mesh.ts'
import type { LinkResult } from '../../ops/net/mesh/link.ts'
import type { MeshEvent, MeshHost, MeshOptions, MeshReport } from '../../ops/net/mesh/measure-mesh.ts'
import { type MeshPlan, planMesh, planTools, type ToolPlan } from '../../ops/net/mesh/mesh-plan.ts'
import type { PingResult } from '../../ops/net/mesh/scripts.ts'
import { type PictureState, pictureOf, withPicture } from './mesh-picture.ts'

export type MeshOrder = { readonly hosts: readonly string[]; readonly options: MeshOptions }

export type MeshRun = {
  readonly order: MeshOrder
  /** `survey`: the hosts are asked for their tools; `plan` waits for Enter. */
  readonly phase: 'survey' | 'plan' | 'measuring' | 'done'
  readonly plan: MeshPlan
  readonly tools: ToolPlan | undefined
  readonly hosts: readonly MeshHost[]
  readonly pings: readonly PingResult[]
  readonly links: readonly LinkResult[]
  readonly step: { readonly index: number; readonly endMs: number } | undefined
  readonly isStopping: boolean
  /** Why a result was not kept, or how the measurement failed. */
  readonly problem: string | undefined
  /** Of the plan, the first row shown. */
  readonly offset: number
  readonly shown: PictureState
}

/** A host that has not answered yet, so that its row is there from the beginning. */
const silent = (name: string): MeshHost => ({ name, cause: 'away', reason: 'no answer yet' })

export function beginMesh(order: MeshOrder): MeshRun {
  const hosts = order.hosts.map(silent)
  const report = { hosts, pings: [], links: [] }
  return {
    order,
    phase: 'survey',
    plan: planMesh(order.hosts, order.options),
    tools: undefined,
    ...report,
    step: undefined,
    isStopping: false,
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

export const takeStart = (run: MeshRun): MeshRun => ({ ...run, phase: 'measuring' })

export function takeEvent(run: MeshRun, event: MeshEvent, nowMs: number): MeshRun {
  switch (event.type) {
    case 'host':
      return { ...run, hosts: run.hosts.map((host) => (host.name === event.host.name ? event.host : host)) }
    case 'ping':
      return { ...run, pings: [...run.pings, event.ping] }
    case 'slot':
      return { ...run, step: { index: event.index, endMs: nowMs + event.remainingMs } }
    case 'link':
      return { ...run, links: [...run.links, event.link] }
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
  last: KeptMesh | undefined,
  problem: string | undefined,
  nowMs: number,
): MeshRun {
  const picture = pictureOf(report, nowMs, findings, last)
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
export const isPlan = ({ phase }: MeshRun): boolean => phase === 'survey' || phase === 'plan'
