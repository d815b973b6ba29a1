/**
 * Follows the Ray cluster while its head is connected: a program on the head reports every few seconds; a head that is gone
 * is noticed within ten.
 */
import { isDeepStrictEqual } from 'node:util'
import { messageOf } from '../../base/errors.ts'
import { printable } from '../../base/printable.ts'
import type { ClusterUsage } from '../../ops/ray/usage.ts'
import type { Fleet } from '../../ssh/create-fleet.ts'
import type { PageContext } from '../state/console-state.ts'
import { type RayCluster, type RayPort, type RayView, rayNews, viewOf } from './ray-view.ts'

const REPORT_EVERY_MS = 4000
const RETRY_MS = 10_000

export class RayWatch implements Disposable {
  readonly #context: PageContext
  readonly #port: RayPort
  readonly #subscription: Disposable
  #cluster: RayCluster | undefined
  #watching: AbortController | undefined
  #timer: Disposable | undefined
  #isDisposed = false

  constructor(context: PageContext, port: RayPort, fleet: Pick<Fleet, 'on'>) {
    this.#context = context
    this.#port = port
    this.#subscription = fleet.on((event) => {
      if (event.type === 'session' && event.host === this.#cluster?.head) this.#follow()
    })
    void this.#open()
  }

  get cluster(): RayCluster | undefined {
    return this.#cluster
  }

  [Symbol.dispose](): void {
    this.#isDisposed = true
    this.#subscription[Symbol.dispose]()
    this.#timer?.[Symbol.dispose]()
    this.#watching?.abort()
  }

  async #open(): Promise<void> {
    try {
      this.#cluster = await this.#port.cluster()
    } catch (error) {
      if (!this.#isDisposed) this.#context.log('', `cannot follow Ray: ${messageOf(error)}`, 'warning')
    }
    if (!this.#isDisposed && this.#cluster !== undefined) this.#follow()
  }

  /** Starts or stops with the connection of the head. */
  #follow(): void {
    if (this.#cluster === undefined) return
    const { hosts, ray } = this.#context.state
    const host = hosts.get(this.#cluster.head)
    if (host !== undefined && ray.view.kind === 'none') this.#show({ kind: 'unknown', reason: '' }, undefined)
    if (host?.session.kind === 'ready') {
      if (this.#watching === undefined) void this.#watch()
      return
    }
    this.#watching?.abort()
    this.#stopWaiting()
    if (host === undefined) this.#show({ kind: 'none' }, undefined)
    else if (ray.view.kind === 'up' || ray.view.kind === 'down') this.#lose('it is not connected')
  }

  async #watch(): Promise<void> {
    const watching = new AbortController()
    this.#watching = watching
    const isOver = (): boolean => this.#isDisposed || watching.signal.aborted
    const reason = await this.#port.watch({
      signal: watching.signal,
      intervalMs: REPORT_EVERY_MS,
      onUsage: (usage, why) => {
        if (!isOver()) this.#take(usage, why)
      },
      onSilent: (why) => {
        if (!isOver()) this.#lose(why)
      },
    })
    if (this.#watching === watching) this.#watching = undefined
    if (this.#isDisposed) return
    // The head came back while the last program was being stopped.
    if (watching.signal.aborted) return this.#follow()
    this.#lose(reason ?? 'its program has ended')
    this.#stopWaiting()
    this.#timer = this.#context.clock.after(RETRY_MS, () => this.#follow())
  }

  #stopWaiting(): void {
    this.#timer?.[Symbol.dispose]()
    this.#timer = undefined
  }

  #take(usage: ClusterUsage | undefined, why: string): void {
    if (usage === undefined || this.#cluster === undefined) this.#show({ kind: 'down', reason: printable(why) }, usage)
    else this.#show(viewOf(usage, this.#cluster), usage)
  }

  #lose(reason: string): void {
    this.#show({ kind: 'unknown', reason: printable(reason) }, undefined)
  }

  #show(view: RayView, usage: ClusterUsage | undefined): void {
    const before = this.#context.state.ray
    const hasNewView = !isDeepStrictEqual(view, before.view)
    if (!hasNewView && isDeepStrictEqual(usage, before.usage)) return
    this.#context.change(() => ({ ray: { view, usage } }))
    const news = hasNewView ? rayNews(before.view, view, this.#cluster?.head ?? '') : undefined
    if (news === undefined) return
    const tone = news.isBad ? 'warning' : 'info'
    this.#context.log('', news.text, tone)
    if (news.isBad) this.#context.notice(news.text, tone)
  }
}
