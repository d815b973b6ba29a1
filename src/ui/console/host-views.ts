/**
 * The emulated screen behind each pane, fed from the fleet's bytes, and its recording. Replies of the emulator go only to
 * the host that asked.
 */
import type { Fleet, FleetEvent } from '../../ssh/create-fleet.ts'
import type { Feeder } from '../../terminal/feeder.ts'
import { createScreen, type Screen } from '../../terminal/headless-screen.ts'
import { firstFrame } from './first-frame.ts'

export interface Recorder extends Disposable {
  output(bytes: Uint8Array): void
  resize(columns: number, rows: number): void
}

export type HostViewsOptions = {
  readonly fleet: Fleet
  readonly feeder: Feeder
  readonly historyLines: number
  /** The screen of the host shows something else now. */
  onChange(host: string): void
  onBell(host: string): void
  /** Between what the last shell printed and a new one; undefined: there was none. */
  newShellText(host: string): string | undefined
}

/** `screen`: undefined until the host has something to show, because making hundreds takes longer than drawing their frames. */
type View = { screen: Screen | undefined; size: { columns: number; rows: number } }

/** Leaves the screen of a full-screen program, resets modes and clears, for what is played before. */
const NEW_TERMINAL = Buffer.from('\x18\x1b[?1049l\x1b[!p\x1b[2J\x1b[H')

/** A screen before its pane has a size. */
const FIRST_SIZE = { columns: 80, rows: 24 }

export class HostViews implements Disposable {
  readonly #options: HostViewsOptions
  readonly #views = new Map<string, View>()
  readonly #recorders = new Map<string, Recorder>()
  readonly #subscription: Disposable
  #receivedBytes = 0
  #historyLines: number

  constructor(options: HostViewsOptions) {
    this.#options = options
    this.#historyLines = options.historyLines
    this.#subscription = options.fleet.on((event) => this.#handleEvent(event))
  }

  /** The output of all hosts so far. */
  get receivedBytes(): number {
    return this.#receivedBytes
  }

  /** How many lines each screen keeps; of those that keep more, the oldest are dropped. */
  setHistory(lines: number): void {
    if (lines === this.#historyLines) return
    this.#historyLines = lines
    for (const { screen } of this.#views.values()) screen?.setHistory(lines)
  }

  screen(host: string): Screen | undefined {
    return this.#views.get(host)?.screen
  }

  add(host: string): void {
    if (!this.#views.has(host)) this.#views.set(host, { screen: undefined, size: FIRST_SIZE })
  }

  #needScreen(host: string): Screen | undefined {
    const view = this.#views.get(host)
    if (view === undefined || view.screen !== undefined) return view?.screen
    const { feeder, fleet, onBell } = this.#options
    view.screen = createScreen({
      ...view.size,
      historyLines: this.#historyLines,
      handlers: {
        onReply: (bytes) => fleet.write([host], bytes),
        onBell: () => onBell(host),
      },
    })
    feeder.add(host, view.screen)
    return view.screen
  }

  remove(host: string): void {
    this.stopRecording(host)
    const view = this.#views.get(host)
    if (!view) return
    this.#views.delete(host)
    this.#options.feeder.remove(host)
    view.screen?.[Symbol.dispose]()
  }

  /** The size of the host's screen and of its remote terminal. False: it has this size already. */
  resize(host: string, columns: number, rows: number): boolean {
    const view = this.#views.get(host)
    if (!view || (view.size.columns === columns && view.size.rows === rows)) return false
    view.size = { columns, rows }
    view.screen?.resize(columns, rows)
    this.#options.fleet.resize(host, { columns, rows })
    this.#recorders.get(host)?.resize(columns, rows)
    this.#options.onChange(host)
    return true
  }

  size(host: string): { columns: number; rows: number } {
    return this.#views.get(host)?.size ?? FIRST_SIZE
  }

  /** It begins with what the pane shows now. */
  record(host: string, recorder: Recorder): void {
    this.stopRecording(host)
    this.#recorders.set(host, recorder)
    const { screen } = this.#views.get(host) ?? {}
    if (screen !== undefined) recorder.output(firstFrame(screen))
  }

  stopRecording(host: string): void {
    this.#recorders.get(host)?.[Symbol.dispose]()
    this.#recorders.delete(host)
  }

  #restart(host: string): void {
    const screen = this.screen(host)
    if (screen === undefined) return
    screen.restart(this.#options.newShellText(host))
    const recorder = this.#recorders.get(host)
    if (recorder === undefined) return
    recorder.output(NEW_TERMINAL)
    recorder.output(firstFrame(screen))
  }

  #handleEvent(event: FleetEvent): void {
    switch (event.type) {
      case 'added':
        return this.add(event.host)
      case 'removed':
        return this.remove(event.host)
      case 'data':
        this.#receivedBytes += event.bytes.length
        this.#recorders.get(event.host)?.output(event.bytes)
        this.#needScreen(event.host)
        return this.#options.feeder.push(event.host, event.bytes)
      case 'shell':
        this.#needScreen(event.host)
        // A new shell starts with the modes of a fresh terminal; the old output stays readable.
        if (event.state.kind === 'opening') this.#restart(event.host)
        return this.#options.onChange(event.host)
      default:
    }
  }

  [Symbol.dispose](): void {
    this.#subscription[Symbol.dispose]()
    for (const host of [...this.#views.keys()]) this.remove(host)
  }
}
