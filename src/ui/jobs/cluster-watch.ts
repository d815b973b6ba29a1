/** The cluster of an engine, read while the tab that is shown has its picture. */
import type { PageContext } from '../state/console-state.ts'
import type { ClusterSource, EnginePlace, JobsPort, QueueView } from './queue-view.ts'
import type { QueueWatch } from './queue-watch.ts'

export class ClusterWatch implements Disposable {
  readonly #context: PageContext
  readonly #watch: QueueWatch
  readonly #jobs: JobsPort
  #sources: readonly ClusterSource[] | undefined
  #isFinding = false
  #running: (Disposable & { readonly place: EnginePlace }) | undefined

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

  /** Shows something else: what was read of another cluster goes. */
  show(patch: Partial<QueueView>): void {
    this.#watch.set(patch)
    this.#follow()
  }

  #follow(): void {
    const { tab, queue } = this.#context.state
    const wanted = tab === 'packing' ? queue.picture : tab === 'jobs' ? queue.listed : undefined
    const source = this.#sources?.find(({ place }) => place === wanted)
    if (source?.place === this.#running?.place) return
    this.#running?.[Symbol.dispose]()
    this.#running = undefined
    if (source === undefined) return
    const { place } = source
    if (queue.cluster?.place !== place) this.#watch.set({ cluster: undefined })
    let isOver = false
    const reading = source.watch((picture) => {
      if (!isOver) this.#watch.set({ cluster: { place, picture } })
    })
    this.#running = {
      place,
      [Symbol.dispose]() {
        isOver = true
        reading[Symbol.dispose]()
      },
    }
  }

  [Symbol.dispose](): void {
    this.#running?.[Symbol.dispose]()
    this.#running = undefined
  }
}
