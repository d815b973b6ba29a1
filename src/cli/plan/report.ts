/** What `muster plan` prints: groups × hosts, what waits, and what to change. Pure. */

import { printable } from '../../base/printable.ts'
import { shellQuote } from '../../base/shell-quote.ts'
import { timeText } from '../../base/time-text.ts'
import { foldHostSet } from '../../inventory/host-set.ts'
import type { Placement } from '../../scheduler/model/cluster.ts'
import type { Amounts, Framework, GroupsPlan, Values } from '../../scheduler/plans/framework.ts'
import { needsOf, writeNeeds } from '../../scheduler/plans/needs.ts'
import { countOf, type PlacedGroup, type PlanOutcome, type PlanRoom } from '../../scheduler/plans/place-plan.ts'
import type { ReadCommand } from '../../scheduler/plans/read-command.ts'
import { formatTable, type TableOutput } from '../output/table.ts'

export type ShownPlan = {
  readonly framework: Framework
  readonly plan: GroupsPlan
  readonly outcome: PlanOutcome
  readonly room: PlanRoom
  readonly read: ReadCommand | undefined
  readonly notes: readonly string[]
  readonly nowMs: number
}

/** One line of --json, without its time. */
export function describePlan({ framework, plan, outcome, room, read, notes }: ShownPlan): object {
  const needs = needsOf(plan)
  const { groups, fits, heldGpuMilli, refusal, after, change } = outcome
  return {
    type: 'plan',
    rules: framework.source,
    fits,
    groups: groups.map(({ group: { name, bundles, strategy, sharedBy, isLoose }, placements, lacks }) => ({
      name,
      strategy: isLoose === true ? null : strategy,
      bundles,
      sharedBy: sharedBy ?? [name],
      places: placements === undefined ? null : placesOf(placements, room),
      ...(lacks === undefined ? {} : { lacks }),
    })),
    heldGpuMilli: fits === 'now' ? 0 : heldGpuMilli,
    ...(refusal === undefined ? {} : { refusal }),
    waitsFor: after.tenants.map(({ id, endS, isEstimated }) => ({
      job: id,
      ...(isEstimated ? { until: new Date(endS * 1000).toISOString() } : {}),
    })),
    hostsDown: after.hosts.map((host) => room.cluster.hosts[host]?.name),
    ...(change === undefined ? {} : { change: { options: wordsOf(framework, change.values), onIdle: change.onIdle } }),
    ...(needs === undefined || fits === 'never' ? {} : { needs: writeNeeds(needs) }),
    unused: read?.unknown ?? [],
    renamed: read?.renamed ?? [],
    notes,
  }
}

export function formatPlan(shown: ShownPlan, out: TableOutput): string {
  const { framework, plan, outcome, room, read, notes } = shown
  const rows = foldGroups(outcome.groups).map(({ group, placements, lacks, count }) => [
    printable(count > 1 ? `${group.family} ×${count}` : group.name),
    describeBundles(group.bundles),
    group.isLoose === true ? 'actors' : group.strategy,
    placements === undefined ? waitWords(lacks, plan) : formatPlaces(placements, room),
  ])
  const lines = [
    ...verdict(shown),
    ...notes,
    ...(read !== undefined && Object.keys(read.values).length === 0
      ? ['--from-command has no option that matters for placement: these are the defaults.']
      : []),
    ...(read?.renamed ?? []).map(({ old, now }) => `${old} is now ${now}`),
    ...(read === undefined || read.unknown.length === 0 ? [] : [`Not used for placement: ${listed(read.unknown)}`]),
    `Rules of ${framework.source}.`,
  ]
  return (
    formatTable(['GROUP', 'BUNDLES', 'STRATEGY', 'HOST: GPUS'], rows, out) +
    lines.map((line) => `${printable(line)}\n`).join('')
  )
}

const MOST_LISTED = 12

const listed = (names: readonly string[]) =>
  names.length <= MOST_LISTED
    ? names.join(' ')
    : `${names.slice(0, MOST_LISTED).join(' ')} and ${names.length - MOST_LISTED} more`

type GroupRow = PlacedGroup & { readonly count: number }

/** Neighbours of one family that are alike, and all placed or all not, are one row. */
function foldGroups(groups: readonly PlacedGroup[]): readonly GroupRow[] {
  const rows: GroupRow[] = []
  for (const one of groups) {
    const last = rows.at(-1)
    const isAlike =
      last !== undefined &&
      one.group.family !== undefined &&
      last.group.family === one.group.family &&
      describeBundles(last.group.bundles) === describeBundles(one.group.bundles) &&
      (last.placements === undefined) === (one.placements === undefined)
    if (!isAlike) rows.push({ ...one, count: 1 })
    else
      rows[rows.length - 1] = {
        ...last,
        count: last.count + 1,
        ...(last.placements === undefined ? {} : { placements: [...last.placements, ...(one.placements ?? [])] }),
      }
  }
  return rows
}

const waitWords = (lacks: string | undefined, { shortage }: GroupsPlan) => {
  if (lacks === undefined) return shortage === 'fails' ? 'not placed' : 'not asked for yet'
  return `${shortage === 'fails' ? 'fails' : 'waits'}: ${lacks}`
}

/** `2 × {GPU 1, CPU 1} + 1 × {CPU 1}` */
function describeBundles(bundles: readonly Amounts[]): string {
  const counts = new Map<string, number>()
  for (const bundle of bundles) {
    const names = ['GPU', 'CPU', ...Object.keys(bundle).filter((name) => name !== 'GPU' && name !== 'CPU')]
    const parts = names.flatMap((name) => (bundle[name] === undefined ? [] : [`${name}${amountOf(bundle[name])}`]))
    const key = `{${parts.join(', ')}}`
    counts.set(key, (counts.get(key) ?? 0) + 1)
  }
  return [...counts].map(([text, count]) => `${count} × ${text}`).join(' + ')
}

/** A thousandth only says which hosts it may be. */
const amountOf = (amount: number) => (amount === 0.001 ? '' : ` ${amount}`)

/** By host: the bundles, and the devices that they have; a shared device is there once for each bundle. */
function placesOf(placements: readonly Placement[], { cluster }: PlanRoom) {
  const byHost = Map.groupBy(placements, ({ host }) => host)
  return [...byHost]
    .sort(([one], [other]) => one - other)
    .map(([host, own]) => ({
      host: cluster.hosts[host]?.name ?? '',
      bundles: own.length,
      devices: own.flatMap(({ devices }) => devices).sort((one, other) => one - other),
      withoutGpu: own.filter(({ devices }) => devices.length === 0).length,
    }))
}

/** `m[1-2]: 0 1 2 3; m3: 0×4, CPU ×2` */
function formatPlaces(placements: readonly Placement[], room: PlanRoom): string {
  const byText = Map.groupBy(placesOf(placements, room), ({ devices, withoutGpu }) => {
    const counts = [...Map.groupBy(devices, (device) => device)].map(([device, same]) =>
      same.length === 1 ? `${device}` : `${device}×${same.length}`,
    )
    return [counts.join(' '), ...(withoutGpu === 0 ? [] : [`CPU ×${withoutGpu}`])]
      .filter((part) => part !== '')
      .join(', ')
  })
  return [...byText].map(([text, hosts]) => `${foldHostSet(hosts.map(({ host }) => host))}: ${text}`).join('; ')
}

/** What it does now, when it fits, and what to change. */
function verdict(shown: ShownPlan): readonly string[] {
  const { plan, outcome } = shown
  const { fits, groups, refusal } = outcome
  const waiting = groups.findIndex(({ placements }) => placements === undefined)
  if (fits === 'now')
    return waiting < 0
      ? ['It fits now.']
      : [`It fits now: ${waiting} of ${groups.length} at once, the others wait until these end.`]
  const first = groups[Math.max(0, waiting)]?.group.name
  const held = outcome.heldGpuMilli / 1000
  const gpus = countOf(held, 'GPU')
  const ending =
    plan.shortage === 'fails'
      ? `so it fails${held > 0 ? `, and ${gpus} stay held until its first process ends` : ''}`
      : `and the job ${held > 0 ? `hangs with ${gpus} held` : 'waits without a limit'}`
  const now = `It does not fit now${refusal === undefined ? `: no place for ${first}, ${ending}` : `. ${refusal}`}.`
  return [now, ...laterWords(shown), ...changeWords(shown)]
}

function laterWords({
  plan,
  outcome: { fits, after, groups },
  room: { cluster },
  nowMs,
}: ShownPlan): readonly string[] {
  if (fits === 'never') {
    const bundles = groups.flatMap(({ group }) => group.bundles)
    const cores = cluster.hosts.reduce((sum, { cpuMilli }) => sum + cpuMilli, 0)
    const why = (
      [
        ['GPU', cluster.totalGpuMilli],
        ['CPU', cores],
      ] as const
    ).flatMap(([resource, milli]) => {
      const asked = bundles.reduce((sum, bundle) => sum + (bundle[resource] ?? 0), 0)
      return asked > milli / 1000 ? [`: it needs ${countOf(asked, resource)}, and they have ${milli / 1000}`] : []
    })[0]
    return [`As asked, it never fits these hosts${why ?? ', not even when they are idle'}.`]
  }
  const jobs = after.tenants.map(({ id, endS, isEstimated, placements }) => {
    const held = placements.reduce((sum, { devices }) => sum + devices.length, 0)
    const hosts = foldHostSet(new Set(placements.map(({ host }) => cluster.hosts[host]?.name ?? '')))
    const until = isEstimated ? ` until about ${timeText(endS * 1000, nowMs)}` : ''
    return `job ${id} ends (it holds ${hosts}${held > 0 ? `: ${countOf(held, 'GPU')}` : ''}${until})`
  })
  const hosts = after.hosts.map((host) => `${cluster.hosts[host]?.name} is back`)
  const needs = needsOf(plan)
  return [
    `It fits when ${[...jobs, ...hosts].join(', and ')}.`,
    ...(needs === undefined
      ? []
      : [`Keep it in the queue until then: muster job submit --engine ray --needs ${shellQuote(writeNeeds(needs))}`]),
  ]
}

const wordsOf = (framework: Framework, values: Values) =>
  Object.entries(values).map(([word, value]) => framework.write(word, value))

function changeWords({ framework, outcome: { change } }: ShownPlan): readonly string[] {
  if (change === undefined) return []
  return [
    `It fits ${change.onIdle ? 'these hosts when they are idle' : 'now'} with ${wordsOf(framework, change.values).join(' ')}`,
  ]
}
