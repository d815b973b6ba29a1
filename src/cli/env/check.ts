/** `muster env check`: asks every host once, and shows what differs as a table. */

import { counted } from '../../base/counted.ts'
import { printable } from '../../base/printable.ts'
import { foldHostSet } from '../../inventory/host-set.ts'
import { sectionOf } from '../../inventory/hosts-yaml-schema.ts'
import type { Drift } from '../../ops/env/drift.ts'
import type { EnvAreaFacts } from '../../ops/env/plan.ts'
import { section } from '../../ops/env/section.ts'
import { envDriftOf } from '../../ops/env/verify.ts'
import { gatherAreaFacts } from '../../ops/kernel/bring-up.ts'
import { type BringUpOptions, prepareBringUp } from '../bring-up/prepare.ts'
import { BringUpReport, tally } from '../bring-up/report.ts'
import { type CliContext, EXIT, type VerbCode } from '../command-line/verb.ts'
import { fitsIn, formatTable, type TableOutput, TERMINAL } from '../output/table.ts'

const USUAL_COLUMNS = 100

export const verb: VerbCode = {
  define: (command) => command.option('--on <target>', 'compare only these hosts'),
  help: `
Examples:
  muster env check                packages, Python, C library, driver and image: what differs
  muster env check --on 'm[8-9]'  compare only these hosts

Exit codes: 0 no differences except notes, 1 something differs or is unknown, 4 a host could not be reached.
`,
  async run(options: BringUpOptions, context: CliContext) {
    using prepared = await prepareBringUp(['env'], options, context)
    const { areas, hosts, mark, limitFactor, isSelected, inventory } = prepared
    const { signal, now, stdout } = context
    const factsByArea = await gatherAreaFacts(areas, { hosts, signal, mark, now, limitFactor })
    if (signal.aborted) return EXIT.interrupted
    // The facts of this area, which the kernel hands on without their type.
    const areaFacts = factsByArea.get('env') as unknown as EnvAreaFacts
    const from = sectionOf(inventory, section)?.from ?? ''
    const facts = new Map([...areaFacts.facts].filter(([host]) => isSelected(host) || host === from))
    const drift = envDriftOf(from, { facts })
    const away = new Map([...areaFacts.away].filter(([host]) => isSelected(host)))
    const report = new BringUpReport(options, context)
    const unknown = [...facts].flatMap(([host, { facts: own }]) =>
      Object.entries(own).flatMap(([name, fact]) =>
        fact.kind === 'unknown' ? [{ host, name: NAMES[name] ?? name, because: fact.because }] : [],
      ),
    )
    for (const row of drift.rows) {
      const { values, reference = null, ...rest } = row
      const hosts = Object.fromEntries([...values].map(([host, value]) => [host, value ?? null]))
      report.event({ type: 'drift', ...rest, reference, hosts })
    }
    for (const each of unknown) report.event({ type: 'unknown', ...each })
    for (const [host, reason] of away) report.event({ type: 'away', host, reason })
    if (options.json !== true) {
      stdout.write(formatDrift(drift, stdout.columns ?? USUAL_COLUMNS, stdout))
      const lines = [
        ...groups(unknown.map(({ host, name, because }) => [host, `cannot determine ${name}: ${because}`])),
        ...groups([...away].map(([host, reason]) => [host, `not reached: ${reason}`])),
      ]
      report.lines(lines)
    }
    const counts = tally(
      ['blocker', 'risk', 'note'],
      drift.rows.map(({ gravity }) => gravity),
    )
    const words = Object.entries(counts).flatMap(([word, number]) => (number === 0 ? [] : [counted(number, word)]))
    const compared = drift.followed === undefined ? 'with what most of them have' : `with ${drift.followed}`
    const head = `${counted(facts.size, 'host')} compared ${compared}`
    const unreached = away.size === 0 ? [] : [`${away.size} not reached`]
    report.summary(
      {
        hosts: facts.size,
        followed: drift.followed ?? null,
        ...counts,
        unknown: unknown.length,
        unreachable: away.size,
      },
      `${head}: ${[...(words.length === 0 ? ['no drift'] : words), ...unreached].join(', ')}`,
    )
    if (away.size > 0) return EXIT.unreachable
    return counts.blocker + counts.risk + unknown.length > 0 ? EXIT.failed : EXIT.ok
  },
}

const NAMES: Readonly<Record<string, string>> = { system: 'the system', content: 'the environment' }

/** Groups hosts with the same text. */
function groups(pairs: readonly (readonly [string, string])[]): string[] {
  return [...Map.groupBy(pairs, ([, words]) => words)].map(
    ([words, group]) => `${foldHostSet(group.map(([host]) => host))}: ${words}`,
  )
}

const ABSENT = '-'
const INDENT = ' '.repeat(11)

/** Empty when nothing differs. `columns`: of the terminal, if it is one. */
export function formatDrift({ hosts, rows, followed }: Drift, columns: number, out: TableOutput): string {
  if (rows.length === 0) return ''
  const cell = (row: Drift['rows'][number], host: string) =>
    row.values.has(host) ? (row.values.get(host) ?? ABSENT) : '='
  const first = followed ?? 'most'
  const groups = [...Map.groupBy(hosts, (host) => JSON.stringify(rows.map((row) => cell(row, host)))).values()].filter(
    (group) => rows.some((row) => row.values.has(group[0] ?? '')),
  )
  const whole = out.isTTY === true ? TERMINAL : out
  const table = formatTable(
    ['', 'what', first, ...groups.map((group) => foldHostSet(group))],
    rows.map((row) => [
      row.gravity,
      row.name,
      row.reference ?? ABSENT,
      ...groups.map((group) => cell(row, group[0] ?? '')),
    ]),
    whole,
  )
  if (out.isTTY !== true || fitsIn(table, columns)) return table
  const othersOf = (row: Drift['rows'][number]) =>
    [...Map.groupBy(row.values, ([, value]) => value ?? ABSENT)].map(
      ([value, pairs]) => `${foldHostSet(pairs.map(([host]) => host))} ${value}`,
    )
  const list = formatTable(
    ['', 'what', first, 'others'],
    rows.map((row) => [row.gravity, row.name, row.reference ?? ABSENT, othersOf(row).join(' · ')]),
    whole,
  )
  if (fitsIn(list, columns)) return list
  return rows
    .map((row) => [`${row.gravity.padEnd(7)}  ${row.name}`, `${first} ${row.reference ?? ABSENT}`, ...othersOf(row)])
    .map((lines) => lines.map((line) => `${printable(line)}\n`).join(INDENT))
    .join('')
}
