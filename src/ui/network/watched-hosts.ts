/** Live resources of the console's hosts and its own machine, for the tabs Network and Packing; sampled from the first `follow` on. */
import type { Clock } from '../../base/clock.ts'
import { DisposableStore } from '../../base/disposable.ts'
import { Emitter } from '../../base/emitter.ts'
import { ProcessWatch, type WatchedProcesses } from '../../ops/net/watch/processes.ts'
import type { WatchPort } from '../../ops/net/watch/repeated-script.ts'
import type { Sample } from '../../ops/net/watch/sample.ts'
import { HostWatch, OwnMachine, type OwnMachinePort, type WatchedHost } from '../../ops/net/watch/watch-hosts.ts'
import { formatOutcome } from '../../ops/run/outcome.ts'
import type { Fleet } from '../../ssh/create-fleet.ts'
import { startScript, type WorkPort } from '../work-views/work-port.ts'

export type WatchedHostsPorts = {
  readonly clock: Clock
  readonly work: Pick<WorkPort, 'startCommand'>
  readonly ownMachine?: OwnMachinePort | undefined
  readonly fleet: Pick<Fleet, 'on'>
}

/** What other tabs need of them. */
export type WatchedResources = Pick<WatchedHosts, 'hosts' | 'follow'> & {
  readonly changes: Pick<WatchedHosts['changes'], 'on'>
}

export class WatchedHosts implements Disposable {
  /** A new sample of a host; undefined: something else changed. */
  readonly changes = new Emitter<{ readonly host: string; readonly sample: Sample } | undefined>()
  readonly #ports: WatchedHostsPorts
  readonly #owned = new DisposableStore()
  #watch: HostWatch | undefined
  #own: OwnMachine | undefined
  #processes: ProcessWatch | undefined

  constructor(ports: WatchedHostsPorts) {
    this.#ports = ports
    this.#owned.own(
      ports.fleet.on((event) => {
        if (event.type !== 'session' || event.state.kind !== 'ready') return
        this.#watch?.resume(event.host)
        if (this.#processes?.view.host === event.host) this.#processes.resume()
      }),
    )
  }

  /** Everything known since the first `follow`; empty before. */
  get hosts(): readonly WatchedHost[] {
    return [...(this.#watch?.hosts ?? []), ...(this.#own === undefined ? [] : [this.#own.view])]
  }

  follow(names: readonly string[]): void {
    if (this.#watch !== undefined) return this.#watch.follow(names)
    const { clock, ownMachine } = this.#ports
    const onChange = () => this.changes.emit(undefined)
    this.#watch = this.#owned.own(
      new HostWatch(names, {
        port: this.#port,
        clock,
        onSample: (host, sample) => this.changes.emit({ host, sample }),
        onTrouble: onChange,
      }),
    )
    if (ownMachine !== undefined) this.#own = this.#owned.own(new OwnMachine({ port: ownMachine, clock, onChange }))
  }

  /** Of one host, or of none; `changes` reports new ones. */
  watchProcesses(host: string | undefined): void {
    if (host === this.#processes?.view.host) return
    this.#processes?.[Symbol.dispose]()
    const { clock } = this.#ports
    const onChange = () => this.changes.emit(undefined)
    this.#processes = host === undefined ? undefined : new ProcessWatch({ host, port: this.#port, clock, onChange })
  }

  get processes(): WatchedProcesses | undefined {
    return this.#processes?.view
  }

  get #port(): WatchPort {
    const { work } = this.#ports
    return {
      start: (host, script, { onText, onEnd }) =>
        startScript(work, host, script, onText, (end) => onEnd(formatOutcome(end))),
    }
  }

  [Symbol.dispose](): void {
    this.#processes?.[Symbol.dispose]()
    this.#owned[Symbol.dispose]()
  }
}
