/** The clusters of engines, read while the tab that is shown has their pictures, and more about the selected job of one. */
import { timeText } from '../../base/time-text.ts'
import type { EnginePicture } from '../packing/engine-picture.ts'
import type { PageContext } from '../state/console-state.ts'
import { chosenClusterJob } from './jobs-tables.ts'
import { type ClusterSource, clusterJobKey, type EnginePlace, type JobsPort, type QueueView } from './queue-view.ts'
import type { QueueWatch } from './queue-watch.ts'

/** The selection may move on. */
const SETTLED_MS = 200
const DETAILS_EVERY_MS = 4000

export class ClusterWatch implements Disposable {
  readonly #context: PageContext
  readonly #watch: QueueWatch
  readonly #jobs: JobsPort
  #sources: readonly ClusterSource[] | undefined
  #isFinding = false
  readonly #running = new Map<EnginePlace, Disposable & { readonly source: ClusterSource }>()
  /** What was read last, also while nothing of it is shown. */
  readonly #last = new Map<EnginePlace, { readonly picture: EnginePicture; readonly readMs: number }>()
  #details: (Disposable & { readonly key: string }) | undefined

  constructor(context: PageContext, watch: QueueWatch, jobs: JobsPort) {
    this.#context = context
    this.#watch = watch
    this.#jobs = jobs
    watch.onRead(() => this.#follow())
  }

  /** Finds out which engines hosts.yaml declares. */
  open(): void {
    if (this.#sources !== undefined) this.#follow()
    else if (!this.#isFinding) void this.#find()
  }

  async #find(): Promise<void> {
    this.#isFinding = true
    try {
      this.#sources = await this.#jobs.clusters()
      this.#watch.set({ clusters: this.#sources.map(({ place }) => place) })
      this.#follow()
    } catch {
      // Why hosts.yaml or the queue cannot be read is shown instead of the queue.
    }
    this.#isFinding = false
  }

  /** Shows something else: another cluster is no longer read. */
  show(patch: Partial<QueueView>): void {
    this.#watch.set(patch)
    this.#follow()
  }

  #follow(): void {
    const wanted = this.#wanted()
    for (const [place, running] of this.#running) {
      if (wanted.some((source) => source.place === place)) continue
      running[Symbol.dispose]()
      this.#running.delete(place)
    }
    for (const source of wanted) if (!this.#running.has(source.place)) this.#start(source)
    this.#followJob()
  }

  #wanted(): readonly ClusterSource[] {
    const { tab, queue } = this.#context.state
    const wanted = tab === 'packing' ? queue.picture : tab === 'jobs' ? queue.listed : undefined
    return this.#sources?.filter(({ place }) => wanted === 'all' || place === wanted) ?? []
  }

  #start(source: ClusterSource): void {
    const { place } = source
    let isOver = false
    if (this.#last.has(place)) this.#tell(place, 'reading it again …')
    const reading = source.watch((picture) => {
      if (isOver) return
      this.#tell(place, picture)
      this.#followJob()
    })
    this.#running.set(place, {
      source,
      [Symbol.dispose]() {
        isOver = true
        reading[Symbol.dispose]()
      },
    })
  }

  /** Without a picture, the last one stays, with its time and the reason. */
  #tell(place: EnginePlace, told: EnginePicture | string): void {
    const nowMs = this.#context.clock.now()
    if (typeof told !== 'string') this.#last.set(place, { picture: told, readMs: nowMs })
    const last = this.#last.get(place)
    const note = `not up to date, read at ${timeText(last?.readMs ?? nowMs, nowMs)}: ${told}`
    const picture =
      typeof told !== 'string' || last === undefined ? told : { ...last.picture, note, isOld: true as const }
    this.#watch.set({ pictures: new Map(this.#context.state.queue.pictures).set(place, picture) })
  }

  /** What is known of the selected job may have changed. */
  readAgain(): void {
    this.#dropDetails()
    this.#followJob()
  }

  #followJob(): void {
    const { state } = this.#context
    const { listed } = state.queue
    const running = state.tab === 'jobs' && listed !== 'queue' ? this.#running.get(listed) : undefined
    const job = running && chosenClusterJob(state)
    const read = running?.source.details
    const key = job && clusterJobKey(job)
    if (key === this.#details?.key) return
    this.#dropDetails()
    if (job === undefined || key === undefined || read === undefined) return
    const life = new AbortController()
    let pause: Disposable | undefined
    const readOnce = async () => {
      const details = await read(job, life.signal)
      if (life.signal.aborted) return
      this.#watch.set({ clusterDetails: { key, details } })
      pause = this.#context.clock.after(DETAILS_EVERY_MS, () => void readOnce())
    }
    pause = this.#context.clock.after(SETTLED_MS, () => void readOnce())
    this.#details = {
      key,
      [Symbol.dispose]() {
        life.abort()
        pause?.[Symbol.dispose]()
      },
    }
  }

  #dropDetails(): void {
    this.#details?.[Symbol.dispose]()
    this.#details = undefined
  }

  [Symbol.dispose](): void {
    this.#dropDetails()
    for (const running of this.#running.values()) running[Symbol.dispose]()
    this.#running.clear()
  }
}
