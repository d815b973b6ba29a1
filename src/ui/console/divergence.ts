/**
 * Notices when receivers differ: one is in an editor while others are at a prompt, waits for a password, still runs
 * something, has lost its shell, or echoes nothing while the others do. Different output of the same command is none of these.
 */
import { type Clock, hasPassed, remainingMs } from '../../base/clock.ts'
import type { Screen } from '../../terminal/headless-screen.ts'
import { HAS_SIGN, PROMPT_STATUS } from '../report/asks-secret.ts'
import { ThrottledAction } from '../rows/throttled-action.ts'
import { type ConsoleState, type HostState, isLive, isTrouble } from '../state/console-state.ts'

type ShownScreen = Pick<Screen, 'modes' | 'lineToCursor' | 'visibleText'>

export type GuardedHost = {
  readonly host: HostState
  readonly screen: ShownScreen | undefined
  /** Its first prompt, if it was seen. */
  readonly home: string | undefined
  /** Its output has stopped for the moment. */
  readonly isQuiet: boolean
  /** At which its line editor reads the line that is typed now, whatever it looks like; undefined: not known. */
  readonly prompt: string | undefined
  /** Something is typed into that line. */
  readonly isTyped: boolean
}

/** Words of a full screen: the first ones, and all. */
type Words = { readonly first: ReadonlySet<string>; readonly all: ReadonlySet<string> }

/** What a host waits for, without what differs between hosts anyway. `words`: of a full screen. `prompt`: the line begins with it. */
type Shape = { readonly text: string; readonly words?: Words; readonly prompt?: Prompt }

type Prompt = {
  readonly text: string
  readonly isHome: boolean
  readonly hasDirectory: boolean
  /** Its first prompt, and words of this one that the first one does not have: a directory, mostly. */
  readonly home?: { readonly text: string; readonly hasDirectory: boolean; readonly isOfSameSign: boolean }
  readonly newWords: ReadonlySet<string>
}

const PROMPT = /^(.*?[#$%>❯»λ➜])(\s.*)$/u
const QUESTION = /[:?)\]]\s?$/u
const EDITOR_MODE = /^-- ([A-Z ]{4,20}) --/u
const NAME = /[\p{L}\p{N}_.-]{2,}/gu
const PLACE = '\u0001'
const MOST_CHARACTERS = 200
const MOST_SCREEN_CHARACTERS = 20_000
/** Two full screens are different programs where fewer of the first words of one are anywhere on the other. */
const SAME_PROGRAM = 1 / 3

/** Numbers and the host's own names look alike on all hosts. */
function plain(text: string, names: ReadonlySet<string>): string {
  return text
    .slice(0, MOST_CHARACTERS)
    .replace(NAME, (word) => (names.has(word) ? PLACE : word))
    .replace(/@[\w.-]+/g, `@${PLACE}`)
    .replace(/\d+/g, '0')
    .replace(/\s+/g, ' ')
}

const wordsIn = (text: string): ReadonlySet<string> => new Set(text.match(/\p{L}{2,}/gu))

const namesOf = ({ host, home }: Pick<GuardedHost, 'host' | 'home'>): ReadonlySet<string> =>
  new Set([host.ownName, host.address, ...(home?.match(NAME) ?? [])])

/** The prompt left of the cursor, if nothing has been typed after it. */
export function emptyPrompt(line: string): string | undefined {
  const [, prompt, typed] = PROMPT.exec(line) ?? []
  return typed?.trim() === '' ? prompt : undefined
}

const NAMES_DIRECTORY = /[~/]/

const signOf = (prompt: string): string | undefined => HAS_SIGN.exec(prompt)?.[0]

/** A clock, a date, a duration, an exit status: not a number in a path. */
const CHANGING_WORD = /^(?:[\d.,-]+|(?:\d+(?:ms|[dhms]))+|[ap]m)$/i
const HALF_OF_DAY = /(?<=\d ?)[ap]m\b/gi

/** Of directories, their last names. Without what changes by itself. */
const wordsOfPrompt = (prompt: string): readonly string[] =>
  prompt
    .split(/[^\p{L}\p{M}\p{N}_~./+-]+/u)
    .filter((word) => !CHANGING_WORD.test(word))
    .map((word) => word.split('/').findLast((part) => part !== '') ?? word)
    .filter((word) => word !== '')

const textOfPrompt = (prompt: string, names: ReadonlySet<string>): string =>
  plain(prompt.replace(PROMPT_STATUS, '').replace(HALF_OF_DAY, ''), names)

/** The prompt at the cursor and what is typed after it. Output without a final line break may precede the prompt. */
function splitPrompt(line: string, home: string | undefined, known?: string): { prompt?: string; typed: string } {
  const ahead = home === undefined ? -1 : (known?.replace(PROMPT_STATUS, '').indexOf(`${home} `) ?? -1)
  // Behind the first prompt, what was typed before it came.
  if (known !== undefined && ahead < 0 && line.startsWith(known))
    return { prompt: home !== undefined && known.endsWith(home) ? home : known, typed: line.slice(known.length) }
  const at = home === undefined ? -1 : line.lastIndexOf(home)
  if (home !== undefined && at >= 0 && /^\s/.test(line.slice(at + home.length)))
    return { prompt: home, typed: line.slice(at + home.length) }
  const [, prompt, typed = ''] = PROMPT.exec(line) ?? []
  return prompt === undefined ? { typed } : { prompt, typed }
}

function promptFacts(prompt: string, home: string | undefined, names: ReadonlySet<string>): Prompt {
  const text = textOfPrompt(prompt, names)
  const hasDirectory = NAMES_DIRECTORY.test(prompt)
  if (home === undefined) return { text, isHome: false, hasDirectory, newWords: new Set() }
  const old = new Set(wordsOfPrompt(home))
  const first = {
    text: textOfPrompt(home, names),
    hasDirectory: NAMES_DIRECTORY.test(home),
    isOfSameSign: signOf(home) === signOf(prompt),
  }
  const newWords = new Set(wordsOfPrompt(prompt.replace(PROMPT_STATUS, '')).filter((word) => !old.has(word)))
  return { text, isHome: prompt === home || text === first.text, hasDirectory, home: first, newWords }
}

function shapeOf(guarded: GuardedHost, comparesTyped: boolean): Shape | undefined {
  const { host, screen, home, isQuiet } = guarded
  // One that never had a shell is not up, which is said elsewhere.
  if (isTrouble(host)) return host.shell.kind === 'none' ? undefined : { text: 'ended' }
  if (screen === undefined || !isLive(host)) return undefined
  const { modes } = screen
  const flags = `${modes.isApplicationCursor} ${modes.mouse}`
  const names = namesOf(guarded)
  if (modes.isAlternateScreen) {
    const rows = screen.visibleText()
    const editorMode = EDITOR_MODE.exec(rows.findLast((row) => row !== '') ?? '')?.[1] ?? ''
    // A shell in a terminal multiplexer: what stands above its prompt says as little as in a shell without one.
    const inside = isQuiet && editorMode === '' ? emptyPrompt(screen.lineToCursor()) : undefined
    if (inside !== undefined) return { text: `full ${flags} prompt`, prompt: promptFacts(inside, home, names) }
    const shown = rows.join(' ').slice(0, MOST_SCREEN_CHARACTERS)
    return { text: `full ${flags} ${editorMode}`, words: { first: wordsIn(plain(shown, names)), all: wordsIn(shown) } }
  }
  const line = screen.lineToCursor()
  // A line to all, or a question to all, may contain a word of one first prompt, such as the name of the user.
  const ownNames = namesOf({ host, home: undefined })
  const { prompt, typed } = splitPrompt(line, home, guarded.prompt)
  if (prompt !== undefined && (prompt === home || isQuiet)) {
    const behind = comparesTyped ? plain(typed, ownNames).trim() : ''
    return { text: `prompt ${behind}`, prompt: promptFacts(prompt, home, names) }
  }
  // The last row of several.
  if (isQuiet && guarded.isTyped && modes.isBracketedPaste)
    return { text: `line ${comparesTyped ? plain(line, ownNames).trim() : ''}` }
  if (isQuiet && QUESTION.test(line)) return { text: `question ${plain(line, ownNames)}` }
  return { text: `running ${flags}` }
}

/** Of a shell that waits for a line and has got nothing of it. */
function waitingShape(guarded: GuardedHost): Shape | undefined {
  const shape = shapeOf(guarded, true)
  if (shape?.prompt !== undefined) return shape.text.trim() === 'prompt' ? shape : undefined
  // A prompt that is not known as one.
  const { screen, isQuiet } = guarded
  const line = screen?.lineToCursor() ?? ''
  if (!isQuiet || shape === undefined || shape.words !== undefined || line.trim() === '') return undefined
  return { text: `line ${plain(line, namesOf(guarded))}` }
}

function isAlike(one: Shape, other: Shape): boolean {
  if (one.text !== other.text) return false
  if (one.prompt !== undefined && other.prompt !== undefined) return areAtOnePlace(one.prompt, other.prompt)
  if (one.words === undefined || other.words === undefined) return true
  return areAlike(one.words, other.words)
}

const isSame = (one: Shape, other: Shape): boolean =>
  one.text === other.text && one.prompt !== undefined && one.prompt.text === other.prompt?.text

/** First prompts count as one, whatever they look like. Where they are different, the new words tell whether hosts went to one directory. */
function areAtOnePlace(one: Prompt, other: Prompt): boolean {
  if (one.isHome && other.isHome) return true
  if (one.text === other.text) return true
  if (!one.home?.isOfSameSign || !other.home?.isOfSameSign) return false
  if (one.home.text === other.home.text && (one.hasDirectory || other.hasDirectory)) return false
  const [from, to] = one.newWords.size > 0 ? [one, other] : [other, one]
  if (to.newWords.size === 0) return from.newWords.size === 0 || !to.home?.hasDirectory
  return [...from.newWords].some((word) => to.newWords.has(word))
}

/** Panes have different sizes: a large one has room for more words, and begins with fewer where a program spreads them out. */
function areAlike(one: Words, other: Words): boolean {
  const [from, to] = one.first.size >= other.first.size ? [one, other] : [other, one]
  const common = [...from.first].filter((word) => to.all.has(word)).length
  return common >= from.first.size * SAME_PROGRAM
}

/** `names`: the hosts outside the largest group. `hasTie`: another group is as large. */
type Diverged = { readonly names: ReadonlySet<string>; readonly hasTie: boolean }

/** Hosts that are still logging in do not count. */
function divergedHosts(hosts: readonly GuardedHost[], comparesTyped: boolean): Diverged {
  const groups: { readonly shapes: Shape[]; readonly members: string[] }[] = []
  const shown = hosts.flatMap((guarded) => {
    const shape = shapeOf(guarded, comparesTyped)
    return shape === undefined ? [] : [{ shape, name: guarded.host.host }]
  })
  // A prompt without a directory, or of another shell than the first one, says least: its host counts to the others where it can.
  const says = ({ shape: { prompt } }: { readonly shape: Shape }): number =>
    Number(prompt?.home?.hasDirectory === false) + 2 * Number(prompt?.home?.isOfSameSign === false)
  for (const { shape, name } of shown.toSorted((one, other) => says(one) - says(other))) {
    const group = groups
      .filter(
        ({ shapes }) => shapes.every((known) => isAlike(known, shape)) || shapes.some((each) => isSame(each, shape)),
      )
      .reduce<(typeof groups)[number] | undefined>(
        (best, each) => (best === undefined || each.members.length > best.members.length ? each : best),
        undefined,
      )
    if (group === undefined) {
      groups.push({ shapes: [shape], members: [name] })
      continue
    }
    group.members.push(name)
    if (shape.prompt !== undefined) group.shapes.push(shape)
  }
  const live = groups.filter(({ shapes }) => shapes[0]?.text !== 'ended')
  const size = ({ members }: { members: readonly string[] }): number => members.length
  const majority = live.reduce<(typeof live)[number] | undefined>(
    (best, group) => (best === undefined || size(group) > size(best) ? group : best),
    undefined,
  )
  // There is nothing to differ from: the header says that no host gets keys.
  if (majority === undefined) return { names: new Set(), hasTie: false }
  return {
    names: new Set(groups.filter((group) => group !== majority).flatMap(({ members }) => members)),
    hasTie: live.some((group) => group !== majority && size(group) === size(majority)),
  }
}

const GATHER_MS = 250
/** A host without output for this long is quiet. */
const QUIET_MS = 200
/** A host that has echoed nothing for this long does not answer. */
const SILENT_MS = 3000
const ESCAPE = 0x1b
const ENTER = 0x0d
/** Enter, Ctrl-C, Ctrl-D, Ctrl-U, Ctrl-Z */
const ENDS_LINE: ReadonlySet<number> = new Set([ENTER, 0x03, 0x04, 0x15, 0x1a])
/** Ctrl-L */
const REDRAW = 0x0c
/** While output never stops, hosts are compared this often, without what was typed. */
const BUSY_MS = 1500

export type DivergenceOptions = {
  readonly clock: Clock
  readonly state: () => ConsoleState
  readonly screen: (host: string) => ShownScreen | undefined
  /** `hasTie`: no group is the largest, and the hosts are outside the first of the equally large ones. */
  onDiverged(hosts: readonly string[], hasTie: boolean): void
  /** Screens were compared. */
  onChecked?(): void
}

/** Compares the receivers soon after their output, and costs nothing while there is none. */
export class Divergence implements Disposable {
  readonly #options: DivergenceOptions
  readonly #checking: ThrottledAction
  readonly #changedMs = new Map<string, number>()
  readonly #homes = new Map<string, string>()
  /** Of hosts that have got keys, whether some may stand in the line that is typed now. */
  readonly #isTyped = new Map<string, boolean>()
  /** By host, where the line that is typed now begins. */
  readonly #prompts = new Map<string, string>()
  /** Of hosts that have not answered what was typed, when that began. */
  readonly #askedMs = new Map<string, number>()
  #answerTimer: Disposable | undefined
  #busySinceMs: number | undefined

  constructor(options: DivergenceOptions) {
    this.#options = options
    this.#checking = new ThrottledAction({ clock: options.clock, everyMs: 0, gatherMs: GATHER_MS }, () => this.#check())
  }

  /** The screen of a host changed. */
  noteOutput(host: string): void {
    this.#askedMs.delete(host)
    this.#changedMs.set(host, this.#options.clock.now())
    if (this.#isTyped.get(host) && !this.#options.screen(host)?.modes.isBracketedPaste) this.#isTyped.set(host, false)
    // The first prompt may be gone when the hosts are compared.
    if (!this.#homes.has(host)) this.#learnHome(host)
    this.#checking.soon()
  }

  /** Keys that a host answers if it works: it echoes them. */
  noteTyped(hosts: readonly string[], bytes: Uint8Array): void {
    const line = bytes.subarray(bytes.findLastIndex((byte) => ENDS_LINE.has(byte)) + 1)
    const isTyped = line.length === bytes.length ? line.some((byte) => byte !== REDRAW) : line.length > 0
    for (const host of hosts) {
      // Other programs take keys for themselves.
      const isInLine = isTyped && this.#options.screen(host)?.modes.isBracketedPaste === true
      if (isInLine && bytes.length === line.length && this.#isTyped.get(host) !== true) this.#learnPrompt(host)
      if (isTyped || line.length < bytes.length) this.#isTyped.set(host, isInLine)
    }
    if (bytes[0] === ESCAPE || !bytes.some((byte) => byte === ENTER || (byte >= 0x20 && byte !== 0x7f))) return
    const nowMs = this.#options.clock.now()
    for (const host of hosts) if (!this.#askedMs.has(host)) this.#askedMs.set(host, nowMs)
    this.#awaitAnswers(SILENT_MS)
  }

  /** Receivers or shells changed. */
  noteChange(): void {
    this.#checking.soon()
  }

  /** The host gets a new shell, or is gone. */
  forget(host: string): void {
    this.#homes.delete(host)
    this.#isTyped.delete(host)
    this.#prompts.delete(host)
    this.#changedMs.delete(host)
    this.#askedMs.delete(host)
  }

  /** The host's shell waits for a line, and so do at least half of the others, at the same prompt, which have printed since their last key. */
  isInStep(host: string, others: readonly string[], lastKeyMs: (host: string) => number): boolean {
    const shapeOfHost = (name: string): Shape | undefined => {
      const guarded = this.#guarded(name)
      return guarded?.isQuiet ? waitingShape(guarded) : undefined
    }
    const own = shapeOfHost(host)
    if (own === undefined) return false
    const alike = others.filter((name) => {
      const shape = (this.#changedMs.get(name) ?? 0) >= lastKeyMs(name) ? shapeOfHost(name) : undefined
      return shape !== undefined && isAlike(own, shape)
    })
    return alike.length * 2 >= others.length
  }

  /** Of its shell, if it was seen. */
  firstPrompt(host: string): string | undefined {
    return this.#homes.get(host)
  }

  hasChangedSince(host: string, atMs: number): boolean {
    return (this.#changedMs.get(host) ?? 0) >= atMs
  }

  /** Its shell waits for a line, of which something may be typed: the line begins with a prompt like its first one. */
  isAtPrompt(host: string): boolean {
    const screen = this.#options.screen(host)
    if (screen === undefined || screen.modes.isAlternateScreen) return false
    const home = this.#homes.get(host)
    const line = screen.lineToCursor()
    const { prompt } = splitPrompt(line, home)
    // A prompt in another directory ends like the first one; those of root, of Python and of an unfinished command do not.
    if (home !== undefined) return prompt !== undefined && signOf(prompt) === signOf(home)
    return line.trim() !== '' && !QUESTION.test(line)
  }

  #guarded(name: string): GuardedHost | undefined {
    const { clock, state, screen } = this.#options
    const host = state().hosts.get(name)
    const isQuiet = clock.now() - (this.#changedMs.get(name) ?? 0) >= QUIET_MS
    const isTyped = this.#isTyped.get(name) === true
    const prompt = isTyped ? this.#prompts.get(name) : this.#lineBeforeKeys(name)
    return host && { host, screen: screen(name), home: this.#homes.get(name), isQuiet, prompt, isTyped }
  }

  /** What its line editor shows as long as nothing is typed: the prompt. */
  #lineBeforeKeys(host: string): string | undefined {
    const screen = this.#options.screen(host)
    if (!screen?.modes.isBracketedPaste || screen.modes.isAlternateScreen) return undefined
    return screen.lineToCursor().trimEnd() || undefined
  }

  #learnPrompt(host: string): void {
    const prompt = this.#lineBeforeKeys(host)
    if (prompt === undefined) this.#prompts.delete(host)
    else this.#prompts.set(host, prompt)
  }

  /** Before any key, what the line editor of a host at rest shows is its first prompt. */
  #learnOtherHome(host: string): void {
    const { isQuiet = false, prompt } = this.#guarded(host) ?? {}
    if (isQuiet && prompt !== undefined && !this.#isTyped.has(host)) this.#homes.set(host, prompt)
  }

  #learnHome(host: string): void {
    const home = emptyPrompt(this.#options.screen(host)?.lineToCursor() ?? '')
    if (home !== undefined) this.#homes.set(host, home)
  }

  #awaitAnswers(afterMs: number): void {
    const { clock } = this.#options
    this.#answerTimer ??= clock.after(afterMs, () => {
      this.#answerTimer = undefined
      this.#checking.soon()
      const left = [...this.#askedMs.values()].map((askedMs) => remainingMs(askedMs, SILENT_MS, clock.now()))
      const next = Math.min(...left.filter((leftMs) => leftMs > 0))
      if (Number.isFinite(next)) this.#awaitAnswers(next)
    })
  }

  /** It has not answered for a while what at least half of the others have answered, or printed something since. */
  #isSilent(host: string, hosts: readonly string[]): boolean {
    const askedMs = this.#askedMs.get(host)
    if (askedMs === undefined || !hasPassed(askedMs, SILENT_MS, this.#options.clock.now())) return false
    const others = hosts.filter((name) => name !== host)
    const answering = others.filter((name) => this.hasChangedSince(name, askedMs))
    return answering.length > 0 && answering.length * 2 >= others.length
  }

  #check(): void {
    const { clock, state, onDiverged, onChecked } = this.#options
    const nowMs = clock.now()
    const current = state()
    const compares = comparedHosts(current)
    for (const host of compares) if (!this.#homes.has(host)) this.#learnOtherHome(host)
    const receivers = compares.flatMap((host) => this.#guarded(host) ?? [])
    const areQuiet = receivers.every(({ isQuiet }) => isQuiet)
    if (!areQuiet) {
      this.#busySinceMs ??= nowMs
      this.#checking.soon()
      if (nowMs - this.#busySinceMs < BUSY_MS) return
    }
    this.#busySinceMs = undefined
    // What gets no keys is named as such.
    const compared = receivers.filter(({ host }) => !host.isLate)
    const names = compared.map(({ host }) => host.host)
    const { names: outside, hasTie } = divergedHosts(compared, areQuiet)
    const diverged = names.filter((host) => outside.has(host) || this.#isSilent(host, names))
    if (diverged.join('\n') !== current.diverged.join('\n') || hasTie !== current.hasTie) onDiverged(diverged, hasTie)
    onChecked?.()
  }

  [Symbol.dispose](): void {
    this.#answerTimer?.[Symbol.dispose]()
    this.#checking[Symbol.dispose]()
  }
}

/** The receivers, also those that are left out while one host is selected alone. */
export function comparedHosts({ hosts, receivers, receiversBeforeSolo }: ConsoleState): string[] {
  const compared = receiversBeforeSolo ?? receivers
  return [...hosts.keys()].filter((host) => compared.has(host))
}
