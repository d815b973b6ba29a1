/**
 * The greetings of hosts: a greeting moves from the pane into the scroll-back, or, below the output of an earlier shell, out
 * of the pane (unless `greeting: show`). It is kept for one key, and its warnings are named in the log. A line that the user must answer stays: only complete lines above it move, and
 * only when a shell asks.
 */

import { hostname, networkInterfaces } from 'node:os'
import type { Clock } from '../../base/clock.ts'
import { counted } from '../../base/counted.ts'
import { printable } from '../../base/printable.ts'
import { wrapText } from '../../base/text-width.ts'
import type { Endpoint } from '../../inventory/host.ts'
import { foldHostSet } from '../../inventory/host-set.ts'
import type { ShellState } from '../../ssh/create-fleet.ts'
import type { LoginPrompt, Screen } from '../../terminal/headless-screen.ts'
import type { DialogLine } from '../dialogs/dialog.ts'
import { textDialog } from '../dialogs/text-dialog.ts'
import { commandLabel } from '../keys/registry.ts'
import type { PageContext } from '../state/console-state.ts'
import { lastLoginFrom, loginWarnings } from './login-warnings.ts'

/** Of one host; the newest are kept. */
const MOST_LINES = 200
const MOST_COLUMNS = 400
/** A prompt without a line editor counts after this long without output. */
const QUIET_MS = 300
/** Hosts that print the same within this time share a line in the log. */
const TOGETHER_MS = 500
/** Fewer lines than this are moved without a notice. */
const WORTH_A_WORD = 3

/** `24 lines at login`; `count`: above `MOST_LINES` if earlier lines were left out. */
export const loginWords = (count: number): string =>
  `${count > MOST_LINES ? `more than ${MOST_LINES}` : count} lines at login`

type LoginOutputOptions = {
  readonly clock: Clock
  readonly context: PageContext
  screen(host: string): Screen | undefined
  isHidden(): boolean
  /** Addresses and names of this machine and of the host's jump hosts. */
  comesFromHere(host: string, from: string): boolean
}

/** The prompt of a shell, not of another program: a menu, a password prompt or a question ends differently. */
export function isShellPrompt({ text, isLineEditor }: Pick<LoginPrompt, 'text' | 'isLineEditor'>): boolean {
  const end = text.trimEnd().at(-1) ?? ''
  return isLineEditor ? end !== '' && !':?'.includes(end) : '$#%'.includes(end) && end !== ''
}

export class LoginOutput implements Disposable {
  readonly #options: LoginOutputOptions
  /** Hosts whose shell has shown no prompt yet, and the wait for quiet. */
  readonly #waiting = new Map<string, Disposable | undefined>()
  readonly #texts = new Map<string, readonly string[]>()
  readonly #banners = new Map<string, readonly string[]>()
  /** Hosts that printed more than is kept. */
  readonly #cut = new Set<string>()
  /** What is not in the log yet, with the hosts of each text. */
  readonly #news = new Map<string, { readonly hosts: string[]; readonly isWarning: boolean }>()
  #newsTimer: Disposable | undefined

  constructor(options: LoginOutputOptions) {
    this.#options = options
  }

  /** No host waits for its prompt to be recognised. */
  get isIdle(): boolean {
    return [...this.#waiting.values()].every((timer) => timer === undefined)
  }

  noteShell(host: string, state: ShellState): void {
    if (state.kind === 'open') return
    this.#stop(host)
    if (state.kind === 'opening') this.#waiting.set(host, undefined)
  }

  /** What the server printed before the login, which is in no pane. */
  noteBanner(host: string, text: string): void {
    const lines = text.split(/\r\n|[\r\n]/, MOST_LINES).map((line) => line.replaceAll('\t', '  '))
    this.#banners.set(host, trimBlank(lines.map((line) => printable(line.slice(0, MOST_COLUMNS)))))
  }

  /** After the first key nothing moves any more. */
  noteTyped(hosts: readonly string[]): void {
    for (const host of hosts) {
      this.#stop(host)
      if ((this.#options.context.state.hosts.get(host)?.loginLines ?? 0) > 0) this.#mark(host, 0)
    }
  }

  noteParsed(host: string): void {
    if (!this.#waiting.has(host)) return
    this.#waiting.get(host)?.[Symbol.dispose]()
    this.#waiting.set(host, undefined)
    const prompt = this.#options.screen(host)?.loginPrompt()
    if (prompt === undefined || !isShellPrompt(prompt)) return
    if (prompt.isLineEditor) return this.#take(host, prompt)
    const timer = this.#options.clock.after(QUIET_MS, () => this.#take(host, prompt))
    this.#waiting.set(host, timer)
  }

  #take(host: string, { rowsAbove, isFirstShell }: LoginPrompt): void {
    const { screen, isHidden } = this.#options
    this.#stop(host)
    const lines = screen(host)?.loginLines(MOST_LINES + 1) ?? []
    const shown = trimBlank(lines.slice(-MOST_LINES).map((line) => printable(line.slice(0, MOST_COLUMNS))))
    this.#texts.set(host, shown)
    if (lines.length > MOST_LINES) this.#cut.add(host)
    else this.#cut.delete(host)
    const hides = isHidden() && rowsAbove > 0 && this.#hide(host, { rowsAbove, isFirstShell })
    if (hides && shown.length >= WORTH_A_WORD) {
      this.#mark(host, this.#count(host))
      this.#tell(host, loginWords(this.#count(host)), false)
    }
    for (const warning of loginWarnings(shown)) this.#tell(host, `at login: ${warning}`, true)
    const from = lastLoginFrom(shown)
    if (from !== undefined && !this.#options.comesFromHere(host, from))
      this.#tell(host, `at login: last login from ${from}`, true)
  }

  /** After a reconnection the output of the previous shell is above, and stays in view. */
  #hide(host: string, { rowsAbove, isFirstShell }: Pick<LoginPrompt, 'rowsAbove' | 'isFirstShell'>): boolean {
    const screen = this.#options.screen(host)
    // Nothing is taken out that could not be shown.
    if (!isFirstShell) return !this.#cut.has(host) && screen?.removeLogin() === true
    screen?.scrollOut(rowsAbove)
    return true
  }

  /** Shows what all hosts printed, equal texts once. */
  open(): void {
    const { context } = this.#options
    const printed = [...context.state.hosts.keys()].flatMap((host) => {
      const text = [...(this.#banners.get(host) ?? []), ...(this.#texts.get(host) ?? [])].join('\n')
      return text === '' ? [] : [{ host, text }]
    })
    if (printed.length === 0)
      return context.notice(
        'no greeting was set aside: nothing was printed before a first prompt, or you were typing by then',
        'info',
        'key',
      )
    const groups = [...Map.groupBy(printed, ({ text }) => text)].sort(([, a], [, b]) => b.length - a.length)
    const linesOf = (columns: number, text: string, members: typeof printed): DialogLine[] => {
      const wrapped = (line: string) => wrapText(line, columns - 2).map((part) => ({ text: `  ${part}` }))
      const texts = text.split('\n')
      const hosts = members.map(({ host }) => host)
      const count = counted(texts.length, 'line')
      const title = `${foldHostSet(hosts)}: ${hosts.some((host) => this.#cut.has(host)) ? `the last ${count}` : count}`
      return [{ text: title, tone: 'accent' }, ...texts.flatMap(wrapped), { text: '' }]
    }
    const lines = (columns: number) => groups.flatMap(([text, members]) => linesOf(columns, text, members))
    context.openDialog(textDialog({ id: 'login-output', title: 'Printed at login', width: 110, lines }))
  }

  #mark(host: string, loginLines: number): void {
    this.#options.context.change(({ hosts }) => {
      const known = hosts.get(host)
      return known === undefined ? {} : { hosts: hosts.with(host, { ...known, loginLines }) }
    })
  }

  #tell(host: string, text: string, isWarning: boolean): void {
    const news = this.#news.get(text) ?? { hosts: [], isWarning }
    news.hosts.push(host)
    this.#news.set(text, news)
    this.#newsTimer ??= this.#options.clock.after(TOGETHER_MS, () => this.#log())
  }

  #log(): void {
    const { context } = this.#options
    this.#newsTimer = undefined
    const hidden = new Set<string>()
    for (const [text, { hosts, isWarning }] of this.#news) {
      context.log(foldHostSet(hosts), text, isWarning ? 'warning' : 'info')
      if (!isWarning) for (const host of hosts) hidden.add(host)
    }
    this.#news.clear()
    if (hidden.size === 0) return
    const counts = [...hidden].map((host) => this.#count(host))
    const most = Math.max(...counts)
    const isExact = most > MOST_LINES || counts.every((each) => each === most)
    const words = `${isExact ? '' : 'up to '}${loginWords(most)}`
    context.notice(`${foldHostSet(hidden)}: ${words}, ${commandLabel(context.state, 'login-output')} shows them`)
  }

  #count(host: string): number {
    return (this.#texts.get(host)?.length ?? 0) + (this.#cut.has(host) ? MOST_LINES : 0)
  }

  #stop(host: string): void {
    this.#waiting.get(host)?.[Symbol.dispose]()
    this.#waiting.delete(host)
  }

  [Symbol.dispose](): void {
    this.#newsTimer?.[Symbol.dispose]()
    for (const host of [...this.#waiting.keys()]) this.#stop(host)
  }
}

export function isOwnAddress(from: string): boolean {
  const interfaces = Object.values(networkInterfaces()).flatMap((addresses = []) => addresses)
  return from === 'localhost' || from === hostname() || interfaces.some(({ address }) => address === from)
}

export const isJumpHost = (endpoint: Endpoint | undefined, from: string): boolean =>
  endpoint?.jump.some(({ host, address }) => host === from || address === from) ?? false

function trimBlank(lines: readonly string[]): readonly string[] {
  const isText = (line: string): boolean => line.trim() !== ''
  return lines.slice(Math.max(0, lines.findIndex(isText)), lines.findLastIndex(isText) + 1)
}
