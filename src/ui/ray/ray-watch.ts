/**
 * Follows the Ray cluster for as long as its head is connected: one program on the head says a line every few seconds, and
 * what is gone within ten.
 */
import { messageOf } from '../../base/errors.ts'
import { printable } from '../../base/printable.ts'
import type { ClusterUsage } from '../../ops/ray/usage.ts'
import type { Fleet } from '../../ssh/fleet.ts'
import type { PageContext } from '../tabs/page-context.ts'
import type { RayCluster, RayPort } from './ray-port.ts'
import { type RayView, rayNews, viewOf } from './ray-view.ts'

const LOOK_EVERY_MS = 4000
const RETRY_MS = 10_000

export class RayWatch implements Disposable {
  readonly #context: PageContext
  readonly #port: RayPort
  readonly #subscription: Disposable
  #cluster: RayCluster | undefined
  #usage: ClusterUsage | undefined
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

  /** What was seen last, as long as the head answers. */
  get usage(): ClusterUsage | undefined {
    return this.#usage
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
      if (!this.#isDisposed) this.#context.log('', `Ray is not followed: ${messageOf(error)}`, 'warning')
    }
    if (!this.#isDisposed && this.#cluster !== undefined) this.#follow()
  }

  /** Begins or ends as the connection of the head wants it. */
  #follow(): void {
    if (this.#cluster === undefined) return
    const { hosts, ray } = this.#context.state
    const host = hosts.get(this.#cluster.head)
    if (host !== undefined && ray.view.kind === 'none') this.#show({ kind: 'unknown', reason: '' })
    if (host?.session.kind === 'ready') {
      if (this.#watching === undefined) void this.#watch()
      return
    }
    this.#watching?.abort()
    this.#stopWaiting()
    if (host === undefined) this.#show({ kind: 'none' })
    else if (ray.view.kind === 'up' || ray.view.kind === 'down') this.#lose('it is not connected')
  }

  async #watch(): Promise<void> {
    const watching = new AbortController()
    this.#watching = watching
    const isOver = (): boolean => this.#isDisposed || watching.signal.aborted
    const reason = await this.#port.watch({
      signal: watching.signal,
      intervalMs: LOOK_EVERY_MS,
      onUsage: (usage, why) => {
        if (!isOver()) this.#take(usage, why)
      },
      onSilent: (why) => {
        if (!isOver()) this.#lose(why)
      },
    })
    if (this.#watching === watching) this.#watching = undefined
    if (this.#isDisposed) return
    // The head came back while the last look was being ended.
    if (watching.signal.aborted) return this.#follow()
    this.#lose(reason ?? 'the look has ended')
    this.#wait(RETRY_MS, () => this.#follow())
  }

  #wait(ms: number, then: () => void): void {
    this.#stopWaiting()
    this.#timer = this.#context.clock.after(ms, then)
  }

  #stopWaiting(): void {
    this.#timer?.[Symbol.dispose]()
    this.#timer = undefined
  }

  #take(usage: ClusterUsage | undefined, why: string): void {
    const hasChanged = JSON.stringify(shownOf(usage)) !== JSON.stringify(shownOf(this.#usage))
    this.#usage = usage
    if (usage === undefined || this.#cluster === undefined) this.#show({ kind: 'down', reason: printable(why) })
    else this.#show(viewOf(usage, this.#cluster))
    if (hasChanged && this.#context.state.tab === 'packing')
      this.#context.change(({ ray }) => ({ ray: { ...ray, revision: ray.revision + 1 } }))
  }

  #lose(reason: string): void {
    this.#usage = undefined
    this.#show({ kind: 'unknown', reason: printable(reason) })
  }

  #show(view: RayView): void {
    const before = this.#context.state.ray.view
    if (JSON.stringify(view) === JSON.stringify(before)) return
    this.#context.change(({ ray }) => ({ ray: { ...ray, view } }))
    const news = rayNews(before, view, this.#cluster?.head ?? '')
    if (news === undefined) return
    const tone = news.isBad ? 'warning' : 'info'
    this.#context.log('', news.text, tone)
    if (news.isBad) this.#context.notice(news.text, tone)
  }
}

const shownOf = (usage: ClusterUsage | undefined) =>
  usage && {
    ...usage,
    nodes: usage.nodes.map((node) => ({ ...node, logical: [...node.logical] })),
    actors: [...usage.actors],
  }
