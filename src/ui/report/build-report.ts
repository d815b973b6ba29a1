/** Makes a report of what was typed and printed: output as it looked, folded by equal text, without text that was typed without echo. */

import { defined } from '../../base/defined.ts'
import { formatBytes } from '../../base/format-bytes.ts'
import { literalPattern } from '../../base/literal-pattern.ts'
import { textWidth } from '../../base/text-width.ts'
import { createScreen, type Screen } from '../../terminal/headless-screen.ts'
import { HAS_SIGN, IS_PROMPT, SHORTEST_SECRET } from './asks-secret.ts'
import { readingsOf } from './entered-text.ts'
import { findEcho } from './find-echo.ts'
import { endsInFullScreen, entersFullScreen, withoutFullScreen } from './full-screen.ts'
import {
  CONTROLS,
  EDITOR_STARTS,
  type HostPart,
  isAtPrompt,
  MOST_PROMPT_ROWS,
  type RunEntry,
  type SessionEntry,
  type SessionLog,
  type TypedEntry,
} from './session-log.ts'
import { EDITOR_STOPS, type TypedLines, type TypedState } from './typed-line.ts'
import { WrittenSecrets } from './written-secrets.ts'

export type ReportGroup = {
  readonly hosts: readonly string[]
  /** `exit 1`, `still running`; undefined: nothing but what it printed is known. */
  readonly outcome?: string
  /** It cannot be told from what was printed for lines that were typed ahead. */
  readonly isMixed?: boolean
  readonly lines: readonly string[]
}

export type ReportSection = {
  readonly kind: 'typed' | 'run'
  readonly atMs: number
  /** What was typed; undefined: it was not echoed, a host did not echo it, or hosts show different lines. */
  readonly title: string | undefined
  /** All lines, where more than one was typed or pasted. */
  readonly text: readonly string[]
  /** Enter was not typed. */
  readonly isUnfinished: boolean
  /** The line was recalled or completed, and no line is that of most hosts. */
  readonly isUnclear: boolean
  /** The hosts that did not echo it. */
  readonly hiddenBy: readonly string[]
  /** Hosts whose full-screen programs got it: what those drew is not recorded. */
  readonly inFullScreen: readonly string[]
  /** Those of `hiddenBy` whose terminals an earlier program had left in a mode in which it is not known what they show. */
  readonly inOddMode: readonly string[]
  readonly hosts: readonly string[]
  /** The largest group first. */
  readonly groups: readonly ReportGroup[]
}

export type SessionReport = {
  readonly sections: readonly ReportSection[]
  readonly droppedSections: number
  /** Hosts that echoed nothing while others did. */
  readonly withoutEcho: readonly string[]
  readonly hosts: readonly string[]
}

const HIDDEN = '[not shown: typed without echo]'
const HIDDEN_OUTPUT = '[output not shown: the line may be a password that another host did not echo]'
const HIDDEN_ON_HOST = '[output not shown: a line that was not echoed may be a password]'
/** A word of a program, not a password: it may stand anywhere in a report. */
const SHORT_WORD = /^\p{L}{4,8}$/u
const KEYWORDS: ReadonlySet<string> = new Set(
  'begin break case continue done elif else elsif endif esac except exit finally pass quit return then'.split(' '),
)
/** What ends a word for a shell: it may print each part of a password that landed at its prompt. */
const SHELL_BREAKS = /[\s;&|!()<>{}[\]$"'`\\*?~#=,:^]+/
/** Where a line has one of these, a shell may join its parts to other text, also of another line. */
const SHELL_JOINS = /[!{}[\]$"'`\\*?^]/
/** From the beginning and from the end of an answer. */
const HALF_LINES = 200
const MOST_COLUMNS = 2000
/** What `clear` prints: what comes before it is still part of the session. */
const CLEARS = /\x1b\[H\x1b\[[0-3]?J(?:\x1b\[3J)?/g
/** How zsh begins a prompt: first it ends a row of output that has no line feed. */
const ZSH_ENDS_ROW = /(?:\x1b\[[\d;]*m){1,4}[%#](?:\x1b\[[\d;]*m){1,4} +\r \r/g
/** How zsh draws a prompt, for the first time or again. */
const ZSH_DRAWS = /\r(?:\x1b\[\d*A){0,6}(?:\x1b\[[\d;]*m){1,4}\x1b\[J/g

/** `promptOf`: the text left of the cursor now, for what was typed last. */
export async function buildReport(
  all: readonly SessionEntry[],
  log: Pick<SessionLog, 'droppedEntries' | 'otherSecrets'>,
  promptOf: (host: string) => string | undefined,
): Promise<SessionReport> {
  const entries = withoutPagers(all)
  const words = wordsOfPrograms(entries, log.otherSecrets())
  const hidden = partsOf(entries).flatMap(([, { typed }]) => typed.hidden)
  const refused = entries.flatMap(refusedLines)
  const known = new Set(
    [...hidden, ...refused, ...log.otherSecrets()].filter((text) => text !== '' && !words.has(text)),
  )
  const edited = entries.flatMap((entry) => editedSecrets(entry, promptOf))
  const secrets = new Set([...known, ...edited, ...restsOfSecrets(entries, known)])
  const withoutEcho = hostsWithoutEcho(entries)
  const lines = passwordsAtShells(entries, secrets, withoutEcho)
  const pieces = lines.filter((text) => SHELL_JOINS.test(text)).flatMap(piecesOf)
  const hideWhole = hidingRows(pieces, hiding(secrets, wordsOf(lines)))
  const passwords = [
    ...log.otherSecrets(),
    ...refused.filter((text) => !text.includes(' ')),
    ...passwordsOf(entries, secrets, withoutEcho),
  ]
  const parts = new WrittenSecrets([], passwords)
  const hide: Hide = (text) => parts.hide(hideWhole(text), HIDDEN)
  const written = new WrittenSecrets(secrets, passwords)
  const hideAcross: HideRows = (rows) => hidingAcross(rows, (text) => written.hide(text, HIDDEN))
  const askers = askersOf(entries)
  const sections: ReportSection[] = []
  for (const entry of entries) {
    const section =
      entry.kind === 'run'
        ? runSection(entry, hide)
        : await typedSection(entry, promptOf, secrets, askers, hidingOwn(entry, secrets, words, hide), hideAcross)
    if (section !== undefined) sections.push(section)
  }
  const hosts = [...new Set(sections.flatMap((section) => section.hosts))]
  return { sections, droppedSections: log.droppedEntries, withoutEcho, hosts }
}

/** How shells and Python answer what is no command, and what they cannot read at all. */
const REFUSED = /not found|unknown command|no such file|permission denied|is a directory|not defined/i
const UNREADABLE = /syntax error|SyntaxError|event not found/

/** Not what a program says of what it was given: `ls: cannot access 'x': No such file or directory`. */
function isRefused({ typed, head }: HostPart): boolean {
  const [first = ''] = (typed.lines[0]?.text ?? '').split(SHELL_BREAKS).filter((word) => word !== '')
  const own = new RegExp(`(?:^|[\\s'"/])${literalPattern(first)}(?:$|['":]|: )`)
  return head
    .toString()
    .replace(/\r/g, '')
    .split('\n')
    .some((row) => UNREADABLE.test(row) || (REFUSED.test(row) && own.test(row.replace(/: cannot .*/, ' '))))
}

/** The answer to a question that a full-screen program of one host may show in any way: the shells of other hosts know no such command. */
function refusedLines(entry: SessionEntry): readonly string[] {
  if (entry.kind !== 'typed' || entry.inFullScreen.length === 0) return []
  const parts = [...entry.parts.values()]
  return parts.some(isRefused) ? parts.flatMap(({ typed }) => typed.lines.map(({ text }) => text)) : []
}

/** Programs that show text, page by page, and ask for no password. */
const RUNS_PAGER =
  /^(?:\S+=\S* +)*(?:less|more|most|man|info|zless|zmore|journalctl|git (?:-\S+ )*(?:log|diff|show|branch|tag|blame|reflog|help))\b|\|\s*(?:less|more|most)\b/

/** What less and its like send while they run: no question for a password does. */
const KEYPAD_STARTS = '\x1b[?1h'
const KEYPAD_ENDS = '\x1b[?1l'

/** Undefined: nothing is known of it. A line editor may use the keypad, too, until Enter. */
function showsPager({ head, tail }: HostPart): boolean | undefined {
  const bytes = Buffer.concat([head, tail])
  const ends = Math.max(bytes.lastIndexOf(KEYPAD_ENDS), bytes.lastIndexOf(EDITOR_STARTS))
  const starts = bytes.lastIndexOf(KEYPAD_STARTS)
  return starts === ends ? undefined : starts > ends
}

/**
 * Keys that a pager of one host got are no password where shells of other hosts show them, and no host asks for one: what the pager
 * draws then is left out, as with full-screen programs.
 */
function withoutPagers(entries: readonly SessionEntry[]): readonly SessionEntry[] {
  const inPager = new Set<string>()
  return entries.map((entry) => {
    if (entry.kind !== 'typed') return entry
    const parts = [...entry.parts]
    const lineOf = ({ typed }: HostPart) => typed.lines[0]
    const isPaged = ([host, part]: readonly [string, HostPart]): boolean =>
      inPager.has(host) && !part.typed.asksSecret && lineOf(part)?.state !== 'echoed'
    const paged = parts.filter(isPaged)
    const others = parts.filter((each) => !paged.includes(each))
    // Also where a script or an alias has started it.
    for (const [host, part] of others)
      if (RUNS_PAGER.test(lineOf(part)?.text ?? '') || showsPager(part) === true) inPager.add(host)
      else inPager.delete(host)
    for (const [host, part] of paged) if (showsPager(part) === false) inPager.delete(host)
    const isHidden = others.some(([, part]) => lineOf(part)?.state === 'hidden')
    const isOpen = others.some(([, part]) => lineOf(part)?.state === 'echoed')
    if (paged.length === 0 || isHidden || !isOpen || others.some(([, part]) => isRefused(part))) return entry
    const inFullScreen = [...entry.inFullScreen, ...paged.map(([host]) => host)]
    return { ...entry, parts: new Map(others), inFullScreen }
  })
}

const partsOf = (entries: readonly SessionEntry[]): (readonly [string, HostPart])[] =>
  entries.flatMap((entry) => (entry.kind === 'typed' ? [...entry.parts] : []))

function hostsWithoutEcho(entries: readonly SessionEntry[]): readonly string[] {
  const parts = partsOf(entries)
  const hostsWith = (state: TypedState) =>
    new Set(parts.flatMap(([host, { typed }]) => (typed.lines[0]?.state === state ? [host] : [])))
  const echoing = hostsWith('echoed')
  return echoing.size === 0 ? [] : [...hostsWith('hidden')].filter((host) => !echoing.has(host))
}

/**
 * Among lines that were typed at once, an echo may be overlooked. A short word is no secret outside of its entry if it is a keyword,
 * or if it stands in a line that was typed visibly before. What may answer a question stays a secret.
 */
function wordsOfPrograms(entries: readonly SessionEntry[], otherSecrets: ReadonlySet<string>): ReadonlySet<string> {
  const seen: string[] = []
  const words = new Set<string>()
  const secrets = new Set(otherSecrets)
  for (const entry of entries) {
    if (entry.kind !== 'typed') continue
    const all = [...entry.parts.values()].map(({ typed }) => typed.lines)
    for (const index of Array.from({ length: Math.max(...all.map(({ length }) => length)) }).keys()) {
      const lines = all.flatMap((each) => each[index] ?? [])
      for (const { text, isEdited, mayAnswer } of lines.filter(({ state }) => state === 'hidden')) {
        if (!mayAnswer && !isEdited && SHORT_WORD.test(text) && isWordOf(text, seen)) words.add(text)
        else for (const each of isEdited ? [text, text.slice(1)] : [text]) secrets.add(each)
      }
      if (lines.every(isEchoed)) seen.push(...new Set(lines.map(({ text }) => text)))
    }
  }
  return new Set([...words].filter((word) => !secrets.has(word)))
}

/** Alone in a line, it may be a password that was typed at a prompt by mistake. */
const isWordOf = (word: string, lines: readonly string[]): boolean =>
  KEYWORDS.has(word) || lines.some((line) => line !== word && line.split(/[^\p{L}\p{N}]+/u).includes(word))

type Hide = (text: string) => string
type HideRows = (rows: readonly string[]) => readonly string[]

/** A line that one host did not echo, as line editors of other hosts changed it: their shells may print that text. */
function editedSecrets(entry: SessionEntry, promptOf: (host: string) => string | undefined): readonly string[] {
  if (entry.kind !== 'typed' || hidersOf(entry).length === 0) return []
  return [...entry.parts].flatMap(([host, part]) => {
    const [line] = part.typed.lines
    if (line?.isEdited !== true || line.state === 'hidden' || part.head.length === 0) return []
    const { command } = rendered(part, part.after ?? promptOf(host) ?? '', false)
    return command.length < SHORTEST_SECRET ? [] : [command]
  })
}

/** What a shell got of a line that another host did not echo, because a program that was still open had taken its first keys. */
function restsOfSecrets(entries: readonly SessionEntry[], secrets: ReadonlySet<string>): readonly string[] {
  const typed = entries.flatMap((entry) => (entry.kind === 'typed' ? [entry] : []))
  return [...Map.groupBy(typed, ({ atMs }) => atMs).values()].flatMap((together) => {
    const texts = new Set(together.flatMap(textsOf))
    const whole = [...texts].filter((text) => secrets.has(text))
    return [...texts].filter((text) => text !== '' && whole.some((each) => each.endsWith(text)))
  })
}

const textsOf = ({ parts }: TypedEntry): readonly string[] =>
  [...parts.values()].flatMap(({ typed }) => typed.lines.map(({ text }) => text))

/** Text that a host did not echo is hidden everywhere: another host may have shown it. `words`: only where they are whole words. */
function hiding(secrets: ReadonlySet<string>, words: readonly string[]): Hide {
  const written = new WrittenSecrets(secrets)
  const hideWords = beside(hidingWords(words))
  return (text) => hideWords(written.hide(text, HIDDEN))
}

/** Leaves what already stands in place of hidden text: its words are no secrets. */
const beside =
  (hide: Hide): Hide =>
  (text) =>
    text.split(HIDDEN).map(hide).join(HIDDEN)

/** Hides the whole row if it contains one of the pieces: its other text may be the rest of the password. */
const hidingRows =
  (pieces: readonly string[], hide: Hide): Hide =>
  (text) => {
    const shown = hide(text)
    return pieces.some((piece) => shown.split(HIDDEN).some((part) => part.includes(piece))) ? HIDDEN : shown
  }

function hidingWords(words: readonly string[]): Hide {
  if (words.length === 0) return (text) => text
  const pattern = new RegExp(`(?<![\\p{L}\\p{N}])(?:${words.map(literalPattern).join('|')})(?![\\p{L}\\p{N}])`, 'gu')
  return (text) => text.replace(pattern, HIDDEN)
}

const hidersOf = ({ parts }: TypedEntry): (readonly [string, HostPart])[] =>
  [...parts].filter(([, { typed }]) => typed.lines[0]?.state === 'hidden')

/** A line of it was not echoed by a host, here or in a full-screen program: on the other hosts it may be a password at a prompt. */
const isSecret = (entry: TypedEntry, secrets: ReadonlySet<string>): boolean =>
  hidersOf(entry).length > 0 ||
  [...entry.parts.values()].some(({ typed }) =>
    typed.lines.some(({ text }) => text.length >= SHORTEST_SECRET && secrets.has(text)),
  )

/** By line, the hosts that asked for it as a password. */
function askersOf(entries: readonly SessionEntry[]): ReadonlyMap<string, readonly string[]> {
  const asked = partsOf(entries).flatMap(([host, { typed }]) =>
    typed.asksSecret ? typed.lines.map(({ text }) => ({ text, host })) : [],
  )
  return new Map([...Map.groupBy(asked, ({ text }) => text)].map(([text, all]) => [text, all.map(({ host }) => host)]))
}

/** What hosts did not echo that asked for a password, or that echo other lines: of several words only where it was asked for. */
function passwordsOf(
  entries: readonly SessionEntry[],
  secrets: ReadonlySet<string>,
  withoutEcho: readonly string[],
): readonly string[] {
  return partsOf(entries).flatMap(([host, { typed }]) =>
    typed.asksSecret || !withoutEcho.includes(host)
      ? typed.lines.flatMap(({ text, keys, state }) =>
          state === 'hidden' && secrets.has(text) && (typed.asksSecret || !text.includes(' '))
            ? [text, ...readingsOf(keys)]
            : [],
        )
      : [],
  )
}

/** Passwords that a shell took for a command. A host that never echoes anything does not count: all of its commands would be passwords. */
function passwordsAtShells(
  entries: readonly SessionEntry[],
  secrets: ReadonlySet<string>,
  withoutEcho: readonly string[],
): readonly string[] {
  const lines = entries.flatMap((entry) => {
    if (entry.kind !== 'typed' || !isSecret(entry, secrets)) return []
    const hiders = hidersOf(entry)
    const isPassword = hiders.some(([host, { typed }]) => typed.asksSecret || !withoutEcho.includes(host))
    if (hiders.length > 0 && !isPassword) return []
    const all = [...entry.parts.values()].map(({ typed }) => typed.lines)
    // Of a paste, a line that every host echoed is no password, whatever became of the others.
    const isOpenly = (text: string, index: number): boolean =>
      !secrets.has(text) && all.every((each) => each[index]?.text === text && each[index].state === 'echoed')
    return all.flatMap((each) => each.filter(({ text }, index) => !isOpenly(text, index)))
  })
  return lines.filter(isEchoed).map(({ text }) => text)
}

/** The words that a shell may print, without short ones. */
const wordsOf = (lines: readonly string[]): readonly string[] =>
  [...new Set(lines.flatMap((text) => text.split(SHELL_BREAKS)))].filter((word) => word.length >= SHORTEST_SECRET)

/** Plain words of a line of several words are left out: they may belong to a command, and many rows may contain them. */
const piecesOf = (text: string): readonly string[] =>
  wordsOf([text]).filter((word) => !text.includes(' ') || !/^\p{L}\p{Ll}*$/u.test(word))

/** Also hides the short secrets that were typed in this entry, on any host, and the lines of a paste that no host has shown. */
function hidingOwn(
  { parts }: TypedEntry,
  secrets: ReadonlySet<string>,
  wordsOfPrograms: ReadonlySet<string>,
  hide: Hide,
): Hide {
  const typed = [...parts.values()].flatMap((part) => part.typed.lines)
  const isShort = (text: string): boolean => text.length < SHORTEST_SECRET && secrets.has(text)
  const short = typed.flatMap(({ text, state }) =>
    isShort(text) || (state === 'hidden' && wordsOfPrograms.has(text)) ? [text] : [],
  )
  const shown = typed.filter(isEchoed).map(({ text }) => text)
  const unseen = typed.flatMap(({ text, state }) => (state === 'unseen' && !shown.includes(text) ? [text] : []))
  const shownWords = new Set(wordsOf(shown))
  const words = wordsOf(unseen).filter((word) => !shownWords.has(word))
  const hideOwn = hiding(new Set(unseen), [...new Set([...short, ...words])])
  return (text) => hide(hideOwn(text))
}

function runSection({ atMs, command, groups }: RunEntry, hide: Hide): ReportSection {
  const shown = groups
    .map(({ hosts, outcome, lines }) => ({ hosts, outcome, lines: lines.map(hide) }))
    .sort((a, b) => b.hosts.length - a.hosts.length)
  const hosts = groups.flatMap((group) => group.hosts)
  return {
    kind: 'run',
    atMs,
    title: hide(command),
    text: [],
    isUnfinished: false,
    isUnclear: false,
    hiddenBy: [],
    inFullScreen: [],
    inOddMode: [],
    hosts,
    groups: shown,
  }
}

type Shown = {
  readonly host: string
  readonly command: string
  readonly lines: readonly string[]
  readonly isMixed: boolean
  readonly outcome: string | undefined
}

async function typedSection(
  entry: TypedEntry,
  promptOf: (host: string) => string | undefined,
  secrets: ReadonlySet<string>,
  askers: ReadonlyMap<string, readonly string[]>,
  hide: Hide,
  hideAcross: HideRows,
): Promise<ReportSection | undefined> {
  const { atMs, parts, inFullScreen } = entry
  const hiddenBy = hidersOf(entry).map(([host]) => host)
  const hidesOutput = isSecret(entry, secrets)
  const isAsked = [...parts.values()].some(({ typed }) => typed.asksSecret)
  const known = new Map<string, Omit<Shown, 'host'>>()
  const shown: Shown[] = []
  for (const [host, part] of parts) {
    // Keys are handled between hosts.
    await new Promise((resolve) => setImmediate(resolve))
    const now = promptOf(host)
    const after = part.after ?? now ?? ''
    const isLast = part.after === undefined && part.cut === undefined && part.typed.isEntered && !part.isMixed
    const isRunning = isLast && now !== undefined && !isAtPrompt(now, part.before)
    const head = part.head
    const hasAsked = hiddenBy.includes(host) && (part.typed.asksSecret || !isAsked)
    // What another host asked for was typed before the line here had ended: its answer is here.
    const hasAnother = [...part.ahead, ...part.besides].some(({ lines }) =>
      lines.some(({ text }) => askers.get(text)?.some((each) => each !== host)),
    )
    if (((hidesOutput && !hasAsked) || hasAnother || part.typed.isAnyText) && head.length > 0) {
      const isOwn = part.typed.lines.some(({ state }) => state === 'hidden')
      const note = isOwn ? HIDDEN_ON_HOST : HIDDEN_OUTPUT
      shown.push({ host, command: '', lines: [note], isMixed: false, outcome: undefined })
      continue
    }
    const key = [
      part.columns,
      part.before,
      after,
      part.droppedBytes,
      part.isMixed,
      part.isAhead,
      part.isEchoDropped,
      part.cut,
      isRunning,
      part.promptRows,
      part.typed.isEntered,
      part.ahead.map(({ lines }) => lines),
      part.cancelled,
      head.toString('latin1'),
      part.tail.toString('latin1'),
    ]
    const id = JSON.stringify(key)
    const result = known.get(id) ?? rendered(part, after, isRunning, hide, hideAcross)
    known.set(id, result)
    shown.push({ host, ...result })
  }
  const typed = [...parts.values()].flatMap((part) => part.typed.lines)
  // Keys that left no trace on any host, such as an arrow where there is no line to recall, or a search that was given up.
  const isEmpty = shown.every(({ command, lines }) => lines.length === 0 && (command === '' || typed.length === 0))
  if (isEmpty && typed.every((line) => line.text === '' || (line.isEdited && isEchoed(line)))) return undefined
  const echoed = [...parts.values()].flatMap((part) => part.typed.lines[0] ?? []).filter(isEchoed)
  // Completed or recalled: only the hosts show the line, and one of them may lie.
  const isEdited = echoed.some((line) => line.isEdited)
  const common = isEdited ? commonCommand(shown) : undefined
  const told = isEdited ? shown.map((each) => (each.command === common ? each : withOwnLine(each))) : shown
  const groups = [...Map.groupBy(told, ({ lines, outcome = '' }) => [outcome, ...lines].join('\n')).values()]
    .map((members) => ({
      hosts: members.map(({ host }) => host),
      ...defined({ outcome: members[0]?.outcome }),
      lines: members[0]?.lines ?? [],
      isMixed: members.every((each) => each.isMixed),
    }))
    .sort((a, b) => Number(a.isMixed) - Number(b.isMixed) || b.hosts.length - a.hosts.length)
  // One host may ask for a password while the others show it at their prompts.
  const shownLines = linesOfAll([...parts.values()].map((part) => part.typed.lines))
  const line = hiddenBy.length > 0 ? '' : isEdited ? (common ?? '') : (shownLines[0]?.trim() ?? '')
  const isUnclear = isEdited && hiddenBy.length === 0 && common === undefined
  const count = shownLines.length
  const title = line === '' ? undefined : hide(count > 1 ? `${line} … (${count} lines)` : line) || undefined
  const text = title === undefined || count < 2 ? [] : shownLines
  const isUnfinished = [...parts.values()].every((part) => !part.typed.isEntered)
  const hosts = [...parts.keys()]
  const shownText = text.map(hide)
  const inOddMode = hiddenBy.filter((host) => parts.get(host)?.isInOddMode === true)
  const notes = { isUnfinished, isUnclear, hiddenBy, inFullScreen, inOddMode }
  return { kind: 'typed', atMs, title, text: shownText, ...notes, hosts, groups }
}

/** As they were typed, blank ones in the middle included. Hosts of one entry got the same lines. */
function linesOfAll(typed: readonly TypedLines['lines'][]): readonly string[] {
  if (!typed.flat().some(({ state }) => state === 'echoed' || state === 'unseen')) return []
  const count = Math.max(...typed.map((lines) => lines.length))
  return Array.from({ length: count }).flatMap((_, index) => {
    const lines = typed.flatMap((each) => each[index] ?? [])
    const blanks = index === 0 ? 0 : (lines[0]?.blanks ?? 0)
    return [...Array<string>(blanks).fill(''), lines.find(isEchoed)?.shown ?? '[not shown: not echoed]']
  })
}

const isEchoed = ({ state }: { readonly state: TypedState }): boolean => state === 'echoed'

/** The line that more than half of the hosts show. */
function commonCommand(shown: readonly Shown[]): string | undefined {
  const alike = [...Map.groupBy(shown, ({ command }) => command)]
  const [command = ''] = alike.find(([, members]) => members.length > shown.length / 2) ?? []
  return command === '' ? undefined : command
}

const withOwnLine = (each: Shown): Shown =>
  each.command === '' ? each : { ...each, lines: [`[line on this host: ${each.command}]`, ...each.lines] }

/** The line that was typed, as the host shows it, and what it printed then. */
function rendered(
  part: HostPart,
  after: string,
  isRunning: boolean,
  hide: Hide = (text) => text,
  hideAcross: HideRows = (rows) => rows,
): Omit<Shown, 'host'> {
  const { before } = part
  const { head, tail, droppedBytes } = printedBy(part)
  const bytes = Buffer.concat([head, tail])
  const whole = bytes.subarray(0, promptAt(bytes, part))
  const start = upToLine(droppedBytes > 0 ? wholeLines(head) : whole, HALF_LINES)
  // Where bytes are missing, half a line could be half a password.
  const from = droppedBytes > 0 ? head.length + tail.indexOf('\n') + 1 : start.length
  const end = fromLine(whole.subarray(Math.min(from, whole.length)), HALF_LINES)
  const leftOutBytes = droppedBytes + whole.length - start.length - end.length
  // It was typed before its prompt came.
  const prompt = before === '' ? after : before
  const drawn = shownOf(Buffer.concat([Buffer.from(before), start]), part, true)
  const shown = withoutUpperRows(withoutLists(drawn, prompt, part), prompt, part)
  const { command, rest } = withoutEcho(shown, prompt, part)
  const cut = leftOutBytes > 0 ? [`[… ${formatBytes(leftOutBytes)} left out]`] : []
  const own = command === '' || isOnlyEcho(command, part) ? [] : [command]
  const answer = [...own, ...rest, ...cut, ...linesOf(end, part)]
  const output = withoutPrompts(withoutCancelled(answer, part, [before, after]), [before, after])
  const { lines, isMixed } = withoutAhead(withoutPrompt(output, before, after), part)
  const isElsewhere = part.isAhead && part.isPending && bytes.length === 0
  const isSilent = part.typed.isEntered && !part.isPending && bytes.length === 0
  const note = [
    ...(isSilent ? ['[the host did not answer]'] : []),
    ...(isElsewhere ? ['[typed ahead: its output, if any, is with a line before it]'] : []),
    ...(entersFullScreen(head)
      ? [endsInFullScreen(bytes) === true ? KEEPS_SCREEN : '[a full-screen program ran here]']
      : []),
  ]
  return {
    command: hide(command).slice(0, MOST_COLUMNS),
    lines: [...hideAcross(lines).map((line) => hide(line).slice(0, MOST_COLUMNS)), ...note],
    isMixed,
    // A line editor that reads is at its prompt, wherever the cursor is now.
    outcome:
      isRunning && bytes.lastIndexOf(EDITOR_STARTS) <= bytes.lastIndexOf(EDITOR_STOPS)
        ? RUNNING
        : outcomeOf(part, bytes),
  }
}

/** Also after it was killed, or its connection was lost: a shell at whose prompt lines are typed then is not told from it. */
const KEEPS_SCREEN =
  '[a full-screen program has the screen here, and what was typed since is not recorded; if it was killed, reset gives the screen back]'

/** What was printed, without what full-screen programs drew: that is as much as their windows have room for, and no output. */
function printedBy(part: HostPart): Pick<HostPart, 'head' | 'tail' | 'droppedBytes'> {
  const { head, tail, droppedBytes, tailIsInFullScreen } = part
  if (droppedBytes === 0)
    return { head: withoutFullScreen(Buffer.concat([head, tail])), tail: Buffer.alloc(0), droppedBytes }
  const isHeadEnd = endsInFullScreen(head)
  return {
    head: withoutFullScreen(head),
    tail: withoutFullScreen(tail, tailIsInFullScreen ?? isHeadEnd),
    droppedBytes: isHeadEnd && tailIsInFullScreen === undefined ? 0 : droppedBytes,
  }
}

/** Hides rows that show a secret together: some line editors break a line that is longer than a row themselves. */
function hidingAcross(rows: readonly string[], hide: Hide): readonly string[] {
  const shownLength = (text: string): number => hide(text).replaceAll(HIDDEN, '').length
  const whole = rows.join('')
  const hidden = new Set<number>()
  let seam = 0
  for (const [index, row] of rows.entries()) {
    const [left, right] = [whole.slice(Math.max(0, seam - SEAM), seam), whole.slice(seam, seam + SEAM)]
    seam += row.length
    if (left === '' || right === '' || shownLength(left + right) >= shownLength(left) + shownLength(right)) continue
    hidden.add(index - 1).add(index)
  }
  return rows.map((row, index) => (hidden.has(index) ? HIDDEN : row))
}

/** Longer than most passwords. */
const SEAM = 100

const RUNNING = 'still running'

/** Undefined: the prompt came back, or the shell ended well. */
function outcomeOf({ cut, failure }: HostPart, bytes: Buffer): string | undefined {
  if (cut === 'lost') return 'connection lost before it ended'
  if (cut === 'closed') return 'closed before it ended'
  // After a prompt, Ctrl-D ended it, or the like.
  return bytes.includes(EDITOR_STARTS) ? undefined : failure
}

/** Without an echo, the answer begins on the line that was typed; other output may stand in it. */
function isOnlyEcho(command: string, { typed, isAhead }: HostPart): boolean {
  const [line] = typed.lines
  if (line === undefined || line.isEdited) return true
  if (line.state === 'hidden') return false
  const { at, end } = findEcho(line.text, command) ?? { at: -1, end: 0 }
  const follows = command.slice(end)
  // Some shells show a prompt on the right as well.
  return (at === 0 || (at > 0 && isAhead)) && (follows === '' || follows.startsWith('  '))
}

/** What was typed, as the host shows it. Its other rows, and those of the other lines of a paste, are no output. */
function withoutEcho(
  { lines: [first = '', ...others], edited }: Drawn,
  prompt: string,
  { typed, isEchoDropped }: HostPart,
): { readonly command: string; readonly rest: readonly string[] } {
  const command = first.startsWith(prompt.trimEnd()) ? first.slice(prompt.length).trim() : first.trim()
  const [line, ...pasted] = typed.lines
  const own = Math.max(0, edited - 1)
  const count = line === undefined || line.isEdited ? undefined : rowsOf(line.text, [command, ...others.slice(0, own)])
  const rest = others.slice(Math.max(0, (count ?? 1) - 1))
  // What is typed after the first line may be read by it, unless a line editor has all of it.
  const most = typed.enters > 1 ? Math.max(0, edited - (others.length - rest.length) - 1) : rest.length
  const rows = isEchoDropped ? 0 : (rowsOf(pasted.map(({ text }) => text).join(''), rest.slice(0, most)) ?? 0)
  return { command: count === undefined || count < 2 ? command : (line?.text ?? ''), rest: rest.slice(rows) }
}

/** How many of the rows at the start hold the text and nothing else, whatever the blanks. */
function rowsOf(text: string, rows: readonly string[]): number | undefined {
  const whole = text.replace(BLANKS, '')
  let shown = ''
  for (const [count, row] of rows.entries()) {
    if (shown === whole) return count
    shown += row.replace(BLANKS, '')
    if (!whole.startsWith(shown)) return undefined
  }
  return shown === whole ? rows.length : undefined
}

const BLANKS = /\s+/gu

/** Around a paste, as a terminal echoes it while no line editor reads. */
const BRACKETS = /^\^\[\[200~|\^\[\[201~$/g

/** Without the echo of what was typed ahead; mixed if some of it is not a line of its own. */
function withoutAhead(lines: readonly string[], part: HostPart): Pick<Shown, 'lines' | 'isMixed'> {
  const { isMixed } = part
  const ahead = part.isSilent ? [] : part.ahead
  const left = [...lines]
  let isApart = true
  for (const { text } of ahead.flatMap((typed) => typed.lines)) {
    const at = left.findIndex((line) => line.replace(BRACKETS, '').trim() === text)
    if (at < 0) isApart = false
    else left.splice(at, 1)
  }
  return { lines: left, isMixed: isMixed || !isApart }
}

/** Without the rows of lines that were cancelled: of several lines, or of one that fish breaks itself. */
function withoutCancelled(
  rows: readonly string[],
  { cancelled, promptRows }: HostPart,
  prompts: readonly string[],
): readonly string[] {
  return cancelled.reduce((left, text) => {
    const lengths = left.map((row, at) => {
      const prompt = prompts.find((each) => each.trim() !== '' && row.startsWith(each.trimEnd()))
      const own = [row.slice(prompt?.length), ...left.slice(at + 1)].map((each) => each.replace(/\^C$/, ''))
      return prompt === undefined ? undefined : rowsOf(text, own)
    })
    const at = lengths.findIndex((length) => length !== undefined)
    if (at < 0) return left
    const from = Math.max(0, at - promptRows)
    const end = at + (lengths[at] ?? 0)
    return left.toSpliced(from, end - from + (left[end] === '^C' ? 1 : 0))
  }, rows)
}

/** Of a prompt in front of a line that may name the host, its sign alone. Without lines that Ctrl-C cancelled. */
function withoutPrompts(lines: readonly string[], prompts: readonly string[]): readonly string[] {
  const shown = [...new Set(prompts.map((prompt) => prompt.trimEnd()))]
  // Such as `➜  ~`; no short text, which may be output.
  const whole = shown.filter((prompt) => prompt.length > 2 && HAS_SIGN.test(prompt))
  return shown
    .filter((prompt) => IS_PROMPT.test(prompt))
    .reduce(
      (sum, prompt) =>
        sum
          .filter(
            (line, at) => !isCancelled(line, prompt, sum.slice(at + 1)) && (line !== prompt || prompt.length === 1),
          )
          .map((line) => (line.startsWith(`${prompt} `) && NAMES.test(prompt) ? line.slice(prompt.length - 1) : line)),
      lines.filter((line) => !whole.includes(line.replace(/ *\^C$/, ''))),
    )
}

const NAMES = /[\p{L}\p{N}]/u

/** Also where a line editor has listed what it may be completed to, and drawn it again below. */
const isCancelled = (line: string, prompt: string, below: readonly string[]): boolean =>
  line.startsWith(`${prompt} `) &&
  (line.endsWith('^C') || below.some((other) => other.startsWith(line) && other.endsWith('^C')))

const wholeLines = (bytes: Buffer): Buffer => bytes.subarray(0, bytes.lastIndexOf('\n') + 1)

/** The first lines, at most this many, after the line that was typed: line editors print many line feeds. */
function upToLine(bytes: Buffer, count: number): Buffer {
  let at = Math.max(0, bytes.indexOf(EDITOR_STOPS))
  for (let left = count; left > 0; left--) {
    const end = bytes.indexOf('\n', at)
    if (end < 0) return bytes
    at = end + 1
  }
  return bytes.subarray(0, at)
}

/** The last lines, at most this many, and the text after the last line feed. */
function fromLine(bytes: Buffer, count: number): Buffer {
  let at = bytes.length
  for (let left = count + 1; left > 0; left--) {
    const end = at === 0 ? -1 : bytes.lastIndexOf('\n', at - 1)
    if (end < 0) return bytes
    at = end
  }
  return bytes.subarray(at + 1)
}

/** Where the next prompt begins. What has more rows than the prompt before it is output: any program may print the mark. */
function promptAt(bytes: Buffer, { promptRows }: HostPart): number {
  const at = bytes.lastIndexOf(EDITOR_STARTS)
  if (at < 0 || at < bytes.lastIndexOf(EDITOR_STOPS)) return bytes.length
  const isPrompt = bytes.subarray(at).filter((byte) => byte === 10).length <= promptRows
  const text = bytes.toString('latin1')
  const isEnd = text.slice(at).split(ZSH_DRAWS)[0]?.replace(CONTROLS, '').trim() === ''
  return (isEnd ? zshPromptAt(text.slice(0, at)) : undefined) ?? (isPrompt ? at : bytes.length)
}

/** Where the prompt at the end of `text` begins. Zsh prints its mark after a prompt; other shells print theirs before it. */
function zshPromptAt(text: string): number | undefined {
  const rows = text.slice(text.lastIndexOf(EDITOR_STOPS) + 1).split('\n')
  const end = rows.slice(-1 - MOST_PROMPT_ROWS).join('\n')
  const begin = [...end.matchAll(ZSH_ENDS_ROW)].at(-1) ?? [...end.matchAll(ZSH_DRAWS)].at(-1)
  return begin && text.length - end.length + begin.index
}

/** `edited`: how many of the lines stood when the line was entered. */
type Drawn = { readonly lines: readonly string[]; readonly edited: number }

/** Leaves out lists of completions: a line editor prints them below the line, and draws the line again below the list. */
function withoutLists({ lines, edited }: Drawn, prompt: string, { typed }: HostPart): Drawn {
  if (prompt.trim() === '' || typed.lines[0]?.isEdited !== true) return { lines, edited }
  const at = Math.max(
    0,
    lines.slice(0, edited).findLastIndex((line) => line.startsWith(prompt.trimEnd())),
  )
  return { lines: lines.slice(at), edited: edited - at }
}

/** Of the prompt of several rows before a line that was typed ahead. */
function withoutUpperRows({ lines, edited }: Drawn, prompt: string, { isAhead, typed }: HostPart): Drawn {
  const text = typed.lines[0]?.text ?? ''
  if (!isAhead || text === '' || prompt.trim() === '') return { lines, edited }
  const at = lines
    .slice(0, MOST_PROMPT_ROWS)
    .findIndex((line) => line.startsWith(prompt.trimEnd()) && line.endsWith(text))
  return at <= 0 ? { lines, edited } : { lines: lines.slice(at), edited: Math.max(0, edited - at) }
}

const linesOf = (bytes: Buffer, part: HostPart): readonly string[] => shownOf(bytes, part, false).lines

/** Output as the host's terminal showed it. `isStart`: it begins with the line that was typed. */
function shownOf(bytes: Buffer, part: HostPart, isStart: boolean): Drawn {
  const { columns, typed } = part
  const text = bytes.toString('latin1')
  const isFullScreen = entersFullScreen(bytes)
  const shown = Buffer.from(text.replace(CLEARS, ''), 'latin1')
  using screen = createScreen({ columns, rows: ROWS, historyLines: 4 * HALF_LINES, handlers: { onReply() {} } })
  // A line editor also draws the rows above, of a command or a prompt of several lines.
  let above = isStart && typed.isEditing ? ROWS - 1 : 0
  screen.parse(Buffer.from('\n'.repeat(above)))
  const at = isStart ? parseEcho(screen, shown) : 0
  const isOver = shown.includes(EDITOR_STOPS)
  if (isOver) above = dropAbove(screen, above)
  const edited = at === 0 ? 0 : screen.allText().length - above
  screen.parse(shown.subarray(at))
  if (isFullScreen) screen.parse(Buffer.from('\x18\x1b[?1049l'))
  if (!isOver) above = dropAbove(screen, above)
  return { lines: screen.allText().slice(above), edited }
}

const ROWS = 24

/** Takes out the first lines. How many are left: those that have scrolled away. */
function dropAbove(screen: Screen, lines: number): number {
  const rows = lines - screen.historyLines
  if (rows <= 0) return lines
  screen.parse(Buffer.from(`\x1b[3J\x1b[${rows}S\x1b[${rows}A`))
  return 0
}

/**
 * The line up to its end, and how many bytes it has. Line editors move down with line feeds, at Enter as well, and erase the row that
 * they have wrapped into. The terminal would take the row below for another line.
 */
function parseEcho(screen: Screen, bytes: Buffer): number {
  const stops = bytes.indexOf(EDITOR_STOPS)
  const last = stops < 0 ? -1 : bytes.subarray(0, stops).lastIndexOf('\n')
  const parse = (from: number, to: number): void => {
    // Erases as much, and still continues the row above.
    const text = bytes.toString('latin1', from, to).replaceAll(WRAPS, ` \r\x1b[${screen.columns}X`)
    screen.parse(Buffer.from(text, 'latin1'))
  }
  let from = 0
  for (let at = bytes.indexOf('\n'); at >= 0 && (stops < 0 || at < stops); at = bytes.indexOf('\n', from)) {
    parse(from, at)
    const line = screen.historyLines + screen.printPlace.row
    const [, end] = screen.lineAround(line)
    const isInLine = line < end && (textOf(screen, line + 1, end).trim() !== '' || at < last)
    // A wide character that does not fit into this row.
    const [next = ''] = bytes.toString('utf8', at + 1, at + 5)
    const isWideNext = line === end && at < last && textWidth(next) > 1
    const wraps = isWideNext && textWidth(textOf(screen, line, line)) === screen.columns - 1
    screen.parse(Buffer.from(isInLine ? '\x1b[B' : wraps ? `\x1b[${screen.columns}G` : '\n'))
    from = at + 1
    // Without marks, the line ends here.
    if (stops < 0 && !isInLine) return from
  }
  if (stops < 0) return from
  parse(from, stops)
  return stops
}

const textOf = (screen: Screen, first: number, last: number): string =>
  screen.textBetween({ line: first, column: 0 }, { line: last, column: screen.columns - 1 })

/** How zsh goes on in the next row. */
const WRAPS = / \r(?:\x1b\[K)+/g

/** Without the prompt at the end; other text left of the cursor is a question, or half a line of output. */
function withoutPrompt(lines: readonly string[], before: string, after: string): readonly string[] {
  const [old, now] = [before.trimEnd(), after.trimEnd()]
  const prompt = old !== '' && now.endsWith(old) ? old : now
  const last = lines.at(-1)
  if (last === undefined || !IS_PROMPT.test(prompt) || !last.endsWith(prompt)) return lines
  const rest = last.slice(0, last.length - prompt.length)
  return rest.trim() === '' ? lines.slice(0, -1) : [...lines.slice(0, -1), rest]
}
