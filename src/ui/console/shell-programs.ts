/** What runs in the shells of hosts. The hosts are asked while a dialog is open whose answer would end it. */
import { clip } from '../../base/text-width.ts'
import { foldHostSet } from '../../inventory/host-set.ts'
import type { DialogLine } from '../dialogs/dialog.ts'
import { isLive } from '../state/console-state.ts'
import type { ConsoleApp } from './console-app.ts'

/** After this time, a host that has not answered counts as idle if its screen shows a prompt. */
const ANSWER_MS = 3000
/** The width of the dialog that shows `lines`. */
export const PROGRAMS_WIDTH = 76
const NAMES_WIDTH = 24

export class ShellPrograms implements Disposable {
  readonly #app: ConsoleApp
  readonly #hosts: readonly string[]
  readonly #answers = new Map<string, readonly string[] | undefined>()
  readonly #stop = new AbortController()
  readonly #timer: Disposable | undefined
  #isAsking: boolean

  /** Asks the hosts that have a shell. `onAnswer` is called when all have answered or the time is over, then for each late answer. */
  constructor(app: ConsoleApp, hosts: readonly string[], onAnswer: () => void) {
    const { shellPrograms } = app.ports
    this.#app = app
    this.#hosts =
      shellPrograms === undefined
        ? []
        : hosts.filter((host) => {
            const known = app.state.hosts.get(host)
            return known !== undefined && isLive(known)
          })
    this.#isAsking = this.#hosts.length > 0
    const answer = (): void => {
      this.#isAsking = false
      onAnswer()
    }
    this.#timer = this.#isAsking ? app.clock.after(ANSWER_MS, answer) : undefined
    const note = (host: string, programs: readonly string[] | undefined): void => {
      this.#answers.set(host, programs)
      if (this.#stop.signal.aborted) return
      if (!this.#isAsking || this.#answers.size === this.#hosts.length) answer()
    }
    for (const host of this.#hosts) {
      shellPrograms?.(host, this.#stop.signal).then(
        (programs) => note(host, programs),
        () => note(host, undefined),
      )
    }
  }

  /** Hosts where something runs, or may run. */
  get hosts(): readonly string[] {
    return [...new Set([...this.#running.flatMap(([, on]) => on), ...this.#unknown])]
  }

  /** One line for each program, with its hosts. */
  get lines(): readonly DialogLine[] {
    return [
      ...this.#running.map(([program, on]) => programLine(program, on)),
      ...lineIfAny('an unknown program', this.#unknown, 'warning'),
    ]
  }

  get pendingLines(): readonly DialogLine[] {
    return lineIfAny('checking what runs …', this.#pending, 'muted')
  }

  [Symbol.dispose](): void {
    this.#stop.abort()
    this.#timer?.[Symbol.dispose]()
  }

  get #pending(): readonly string[] {
    return this.#hosts.filter((host) => !this.#answers.has(host) && (this.#isAsking || !this.#app.isAtPrompt(host)))
  }

  get #unknown(): readonly string[] {
    const hasNoList = (host: string): boolean => this.#answers.has(host) && this.#answers.get(host) === undefined
    return this.#hosts.filter((host) => hasNoList(host) && !this.#app.isAtPrompt(host))
  }

  get #running(): readonly (readonly [string, readonly string[]])[] {
    const all = this.#hosts.flatMap((host) => (this.#answers.get(host) ?? []).map((program) => ({ host, program })))
    const groups = Map.groupBy(all, ({ program }) => program)
    return [...groups].map(([program, on]) => [program, [...new Set(on.map(({ host }) => host))]])
  }
}

export const foldedNames = (hosts: readonly string[]): string => clip(foldHostSet(hosts), NAMES_WIDTH)

export function programLine(text: string, on: readonly string[]): DialogLine {
  const right = foldedNames(on)
  return { text: clip(text, PROGRAMS_WIDTH - right.length - 8), right }
}

const lineIfAny = (text: string, on: readonly string[], tone: 'warning' | 'muted'): DialogLine[] =>
  on.length === 0 ? [] : [{ ...programLine(text, on), tone }]

/** The lines that fit, and how many do not. */
export const fewLines = (lines: readonly DialogLine[], most: number): readonly DialogLine[] =>
  lines.length <= most
    ? lines
    : [...lines.slice(0, most), { text: `… and ${lines.length - most} more`, tone: 'muted' as const }]
