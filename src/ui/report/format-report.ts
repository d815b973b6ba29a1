/** A session report as Markdown and as HTML. Text of hosts is in code blocks or escaped, so that nothing of it acts in a reader. */
import { counted } from '../../base/counted.ts'
import { escapeHtml } from '../../base/escape-html.ts'
import { printable } from '../../base/printable.ts'
import { dayText, timeText } from '../../base/time-text.ts'
import { foldHostSet } from '../../inventory/host-set.ts'
import type { ReportGroup, ReportSection, SessionReport } from './build-report.ts'

export type ReportFacts = { readonly cluster: string; readonly nowMs: number }

/** Names the hosts that did not echo what others echoed: a host may lie to hide it. */
function withoutEcho({ hiddenBy, hosts }: ReportSection): string {
  const isAll = hiddenBy.length === 0 || hiddenBy.length === hosts.length
  return isAll ? 'typed without echo' : `not shown: ${foldHostSet(hiddenBy)} did not echo it`
}

const comparable = ({ groups }: ReportSection): readonly ReportGroup[] => groups.filter(({ isMixed }) => !isMixed)

/** The hosts beside the largest group; none if no two hosts agree. */
const differing = (section: ReportSection): readonly string[] => {
  const [first, ...others] = comparable(section)
  return first === undefined || first.hosts.length === 1 ? [] : others.flatMap(({ hosts }) => hosts)
}

const allDiffer = (section: ReportSection): boolean => {
  const groups = comparable(section)
  return groups.length > 1 && groups.every(({ hosts }) => hosts.length === 1)
}

/** `, different: m2, typed ahead: m3` */
const differenceOf = (section: ReportSection): string => {
  const { inFullScreen, inOddMode } = section
  const different = differing(section)
  const mixed = section.groups.flatMap(({ hosts, isMixed }) => (isMixed ? hosts : []))
  return [
    ...(allDiffer(section) ? [', all different'] : []),
    ...(different.length === 0 ? [] : [`, different: ${foldHostSet(different)}`]),
    ...(mixed.length === 0 || section.groups.length === 1 ? [] : [`, typed ahead: ${foldHostSet(mixed)}`]),
    ...(inOddMode.length === 0
      ? []
      : [`, in an unusual mode that a program has left the terminal in (reset ends it): ${foldHostSet(inOddMode)}`]),
    ...(inFullScreen.length === 0 ? [] : [`, not recorded, in a full-screen program: ${foldHostSet(inFullScreen)}`]),
  ].join('')
}

/** How often each host printed something else than most, the most frequent first. */
function differences({ sections, hosts }: SessionReport): readonly (readonly [host: string, count: number])[] {
  const counts = hosts.map((host) => [host, sections.filter((each) => differing(each).includes(host)).length] as const)
  return counts.filter(([, count]) => count > 0).sort(([, a], [, b]) => b - a)
}

function summaryOf(report: SessionReport, { nowMs }: ReportFacts): readonly string[] {
  const { sections, hosts, droppedSections, withoutEcho: silent } = report
  const [from = nowMs, to = nowMs] = [sections[0]?.atMs, sections.at(-1)?.atMs]
  const count = counted(sections.length, 'entry', 'entries')
  const entirely = sections.filter(allDiffer).length
  const different = [
    ...differences(report).map(([host, times]) => `${host} (${times})`),
    ...(entirely === 0 ? [] : [`all from each other (${entirely})`]),
  ]
  return [
    `${count} on ${foldHostSet(hosts)}, ${dayText(from)} ${clockOf(from)} to ${clockOf(to)}`,
    ...(different.length === 0 ? [] : [`Output differed: ${different.join(', ')}`]),
    ...(silent.length === 0
      ? []
      : [`${foldHostSet(silent)} echoed nothing: what was typed there is hidden on all hosts`]),
    ...(droppedSections === 0 ? [] : [`${droppedSections} earlier entries were left out`]),
  ]
}

const clockOf = (ms: number): string => timeText(ms, ms)

function headOf(section: ReportSection) {
  const { kind, title, isUnclear, isUnfinished, hosts, atMs } = section
  return {
    time: clockOf(atMs),
    title: title ?? (isUnclear ? 'recalled or completed: no line is that of most hosts' : withoutEcho(section)),
    isCode: title !== undefined,
    about: `${kind === 'run' ? 'run' : 'typed'} on ${foldHostSet(hosts)}${isUnfinished ? ', Enter not typed' : ''}`,
  }
}

const groupTitle = ({ hosts, outcome }: ReportGroup): string =>
  [`${foldHostSet(hosts)} (${hosts.length})`, ...(outcome === undefined ? [] : [outcome])].join(': ')

const EMPTY = 'no output'

export function formatMarkdown(report: SessionReport, facts: ReportFacts): string {
  const parts = report.sections.flatMap((section): string[] => {
    const { time, title, isCode, about } = headOf(section)
    return [
      `## ${time} ${isCode ? inlineCode(title) : title}`,
      escapeMarkdown(about + differenceOf(section)),
      ...(section.text.length === 0 ? [] : [codeBlock(section.text, keepingTabs(printable))]),
      ...section.groups.flatMap((group) => [
        `**${escapeMarkdown(groupTitle(group))}**`,
        group.lines.length === 0 ? EMPTY : codeBlock(group.lines),
      ]),
    ]
  })
  const heading = `# Session on ${escapeMarkdown(facts.cluster)}`
  const summary = summaryOf(report, facts).map((line) => `- ${escapeMarkdown(line)}`)
  return `${[heading, summary.join('\n'), ...parts].join('\n\n')}\n`
}

const longestRun = (text: string): number => Math.max(0, ...(text.match(/`+/g) ?? []).map((run) => run.length))

function inlineCode(text: string): string {
  const fence = '`'.repeat(longestRun(text) + 1)
  return `${fence} ${printable(text)} ${fence}`
}

const keepingTabs =
  (escaped: (text: string) => string) =>
  (line: string): string =>
    line.split('\t').map(escaped).join('\t')

function codeBlock(lines: readonly string[], escaped = printable): string {
  const text = lines.map((line) => escaped(line)).join('\n')
  const fence = '`'.repeat(Math.max(3, longestRun(text) + 1))
  return `${fence}\n${text}\n${fence}`
}

const escapeMarkdown = (text: string): string => printable(text).replace(/[\\`*_{}[\]<>#|!&~]/g, '\\$&')

const STYLE = `
:root { color-scheme: light dark }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60em; margin: 2em auto; padding: 0 1em }
pre { font: 13px/1.4 ui-monospace, monospace; overflow-x: auto; padding: .6em .8em; border: 1px solid #8886; border-radius: 6px; margin: .3em 0 }
h2 { font-size: 1em; margin: 2em 0 .2em; border-top: 1px solid #8886; padding-top: 1em }
h2 time { color: #888; font-weight: normal; margin-right: .6em }
h2 code { font-size: 1.05em }
.about { color: #888; margin: 0 0 .5em }
.group { font-weight: 600; margin: .8em 0 0 }
.different { border-left: 4px solid #d97706; padding-left: .8em }
`

/** One file that loads nothing and runs nothing. */
export function formatHtml(report: SessionReport, facts: ReportFacts): string {
  const parts = report.sections.map((section) => {
    const { time, title, isCode, about } = headOf(section)
    const different = new Set(differing(section))
    const groups = section.groups.map((group) => {
      const isDifferent = group.hosts.some((host) => different.has(host))
      const output = group.lines.map(escapeHtml).join('\n')
      return `<div${isDifferent ? ' class="different"' : ''}><p class="group">${escapeHtml(groupTitle(group))}</p>
${output === '' ? `<p class="about">${EMPTY}</p>` : `<pre>${output}</pre>`}</div>`
    })
    const shown = isCode ? `<code>${escapeHtml(title)}</code>` : escapeHtml(title)
    return `<section><h2><time>${time}</time>${shown}</h2>
<p class="about">${escapeHtml(about + differenceOf(section))}</p>
${section.text.length === 0 ? '' : `<pre>${section.text.map(keepingTabs(escapeHtml)).join('\n')}</pre>\n`}${groups.join('\n')}</section>`
  })
  const title = escapeHtml(`Session on ${facts.cluster}`)
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width">
<title>${title}</title><style>${STYLE}</style></head>
<body><h1>${title}</h1>
${summaryOf(report, facts)
  .map((line) => `<p>${escapeHtml(line)}</p>`)
  .join('\n')}
${parts.join('\n')}
</body></html>
`
}
