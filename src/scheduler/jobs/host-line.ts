/**
 * One shell on a host that is asked round after round: opened when it is needed, and again when it was lost. One round at a
 * time. What bundles tell between rounds and within them is handed on at once. It keeps nothing and decides nothing.
 */
import type { Clock } from '../../base/clock.ts'
import { endLine, formatRound, NOTICE, PRELUDE, type Round, type RoundResult } from './host-program.ts'

/** A shell of POSIX sh that reads its program from stdin. Disposing ends it. */
export interface HostShell extends Disposable {
  write(text: string): void
}

export type ShellHandlers = {
  onText(text: string): void
  /** Once, last; not after it was disposed of. */
  onEnd(reason: string): void
}

export interface JobHosts {
  /** What is written before it is there is kept for it. Calls back later only. */
  open(host: string, handlers: ShellHandlers): HostShell
}

export type HostLineOptions = {
  readonly host: string
  readonly port: JobHosts
  readonly clock: Clock
  /** Lines as bundles told them, several at once. */
  onNotice(text: string): void
  /** While nobody asked. */
  onLost(): void
}

/** A round has to be over by then, whatever its host does. */
const ROUND_MS = 60_000
/** Of a line that never ends. */
const MOST_HELD = 64 * 1024

export class HostLine implements Disposable {
  readonly #options: HostLineOptions
  #shell: HostShell | undefined
  #round: { readonly last: string; lines: string[]; readonly end: (result: RoundResult) => void } | undefined
  #number = 0
  #held = ''

  constructor(options: HostLineOptions) {
    this.#options = options
  }

  /** Whether the next round begins a new shell, which knows nothing of earlier ones. */
  get isNew(): boolean {
    return this.#shell === undefined
  }

  /** Not before the one before it has ended. Never rejects. */
  async round(round: Omit<Round, 'number'>): Promise<RoundResult> {
    const number = ++this.#number
    const { promise, resolve } = Promise.withResolvers<RoundResult>()
    this.#round = { last: endLine(number), lines: [], end: resolve }
    const isNew = this.#shell === undefined
    const shell = this.#shell ?? this.#open()
    this.#shell = shell
    shell.write(`${isNew ? PRELUDE : ''}${formatRound({ ...round, number, wantsFacts: round.wantsFacts || isNew })}`)
    using _ = this.#options.clock.after(ROUND_MS, () => this.#lose(`it did not answer within ${ROUND_MS / 1000} s`))
    return await promise
  }

  [Symbol.dispose](): void {
    this.#shell?.[Symbol.dispose]()
    this.#shell = undefined
    this.#end({ kind: 'trouble', reason: 'cancelled' })
  }

  #open(): HostShell {
    this.#held = ''
    const { host, port } = this.#options
    const shell: HostShell = port.open(host, {
      onText: (text) => {
        if (this.#shell === shell) this.#take(text)
      },
      onEnd: (reason) => {
        if (this.#shell === shell) this.#lose(reason)
      },
    })
    return shell
  }

  #take(text: string): void {
    const lines = (this.#held + text).split('\n')
    this.#held = (lines.pop() ?? '').slice(-MOST_HELD)
    const told = lines.filter((line) => line.startsWith(NOTICE)).map((line) => line.slice(NOTICE.length))
    if (told.length > 0) this.#options.onNotice(told.join('\n'))
    for (const line of lines) {
      if (line.startsWith(NOTICE)) continue
      if (line === this.#round?.last) this.#end({ kind: 'answer', text: this.#round.lines.join('\n') })
      else this.#round?.lines.push(line)
    }
  }

  /** A shell that ends by itself may have said why. */
  #lose(reason: string): void {
    this.#shell?.[Symbol.dispose]()
    this.#shell = undefined
    if (this.#round === undefined) return this.#options.onLost()
    const said = this.#round.lines.find((line) => line.startsWith('trouble '))
    this.#end(said === undefined ? { kind: 'trouble', reason } : { kind: 'answer', text: said })
  }

  #end(result: RoundResult): void {
    const round = this.#round
    this.#round = undefined
    round?.end(result)
  }
}
