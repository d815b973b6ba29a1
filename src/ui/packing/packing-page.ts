/** The Packing tab: who is placed where. */
import { messageOf } from '../../base/errors.ts'
import type { PaneView, Rect } from '../compositor/scene.ts'
import { createPromptDialog, type PromptCheck } from '../dialogs/prompt-dialog.ts'
import type { JobsPort } from '../jobs/jobs-port.ts'
import type { QueueView } from '../jobs/queue-view.ts'
import type { QueueWatch } from '../jobs/queue-watch.ts'
import { commandOf } from '../keys/key-table.ts'
import type { WatchedHosts } from '../network/watched-hosts.ts'
import type { RayWatch } from '../ray/ray-watch.ts'
import type { Page } from '../tabs/page.ts'
import type { PageContext } from '../tabs/page-context.ts'
import { type Theme, themes } from '../theme/theme.ts'
import { areaOf } from '../work-views/panel.ts'
import { type PackingCommand, packingKeys } from './packing-keys.ts'
import { lastOffset, packingPanes, queueInput, type RealUse } from './packing-panes.ts'
import { rayPicture } from './ray-picture.ts'
import { exampleWhatIf, formatWhatIf, nextSlider, parseWhatIf, slide, type WhatIf, whatIfWords } from './what-if.ts'

/** Besides the queue: what Ray's nodes and the sampled hosts really use. */
export type PackingSources = {
  readonly jobs: JobsPort
  readonly ray: RayWatch
  readonly watched: WatchedHosts
}

export class PackingPage implements Page {
  readonly isIdle = true
  readonly busy = undefined
  readonly #context: PageContext
  readonly #watch: QueueWatch
  readonly #sources: PackingSources
  readonly #numbers = new Map<string, number>()
  /** What was tried last. */
  #lastWhatIf: WhatIf | undefined
  /** What is really used, as it was drawn last. */
  #shownUse = '[]'

  constructor(context: PageContext, watch: QueueWatch, sources: PackingSources) {
    this.#context = context
    this.#watch = watch
    this.#sources = sources
    watch.onRead(() => {
      if (context.state.tab !== 'packing') return
      this.#showUse()
      void this.#tryOut()
    })
  }

  open(): void {
    this.#watch.open()
  }

  panes(rect: Rect, theme: Theme): readonly PaneView[] {
    return packingPanes(this.#input(rect, theme))
  }

  handleKey(label: string): boolean {
    const command = commandOf(packingKeys, label, this.#context.state)
    if (command === undefined) return false
    this.#do(command)
    return true
  }

  /** Ray's picture, for whoever asked for it. */
  showRay(): void {
    this.#context.showTab('packing')
    this.#set({ picture: 'ray', packingOffset: 0 })
  }

  #do(command: PackingCommand): void {
    const { picture, whatIf } = this.#context.state.queue
    switch (command) {
      case 'to-shells':
        return this.#context.showTab('shells')
      case 'up':
      case 'down':
        return this.scrollBy(command === 'up' ? -1 : 1)
      case 'ray':
        if (picture === 'ray') return this.#set({ picture: 'queue', packingOffset: 0 })
        if (this.#sources.ray.usage === undefined) return this.#context.notice('no head of Ray answers', 'warning')
        return this.showRay()
      case 'what-if':
        return this.#askWhatIf()
      case 'end-what-if':
        return this.#set({ whatIf: undefined, trial: undefined })
      case 'strategy':
      case 'policy':
      case 'more':
      case 'fewer':
      case 'left':
      case 'right':
      case 'slider':
        if (whatIf === undefined) return this.#context.notice('nothing is tried: w asks for a gang', 'warning')
        return this.#try(changed(whatIf, command))
    }
  }

  #askWhatIf(): void {
    const { sight } = this.#context.state.queue
    const last = this.#lastWhatIf ?? exampleWhatIf(sight?.hosts ?? [])
    const fallback = formatWhatIf(last)
    const check = (text: string): PromptCheck => {
      const parsed = parseWhatIf(text)
      return typeof parsed === 'string' ? { error: parsed } : { preview: [{ text: whatIfWords(parsed), tone: 'ok' }] }
    }
    this.#context.openDialog(({ onClose, onChange }) =>
      createPromptDialog({
        id: 'what-if',
        title: 'Where would it go?',
        label: 'Asks for:',
        submitTitle: 'show it',
        fallback,
        help: [
          { text: 'Enter alone takes what is there.', tone: 'muted' },
          { text: 'It knows --bundles, --cpu, --gpu, --memory (16GiB) and --strategy.', tone: 'muted' },
        ],
        check,
        onSubmit: (text) => {
          const parsed = parseWhatIf(text)
          if (typeof parsed !== 'string') this.#try(text === fallback ? last : parsed)
        },
        onClose,
        onChange,
      }),
    )
  }

  /** What was found before stays until there is an answer: the picture does not flicker. */
  #try(whatIf: WhatIf): void {
    this.#lastWhatIf = whatIf
    this.#set({ whatIf, picture: 'queue' })
    void this.#tryOut()
  }

  /** Again with each look at the queue. */
  async #tryOut(): Promise<void> {
    const { whatIf } = this.#context.state.queue
    if (whatIf === undefined) return
    try {
      const trial = await this.#sources.jobs.tryOut(whatIf)
      const { queue } = this.#context.state
      if (queue.whatIf === whatIf && JSON.stringify(trial) !== JSON.stringify(queue.trial)) this.#set({ trial })
    } catch (error) {
      this.#context.notice(messageOf(error), 'error')
    }
  }

  #set(view: Partial<QueueView>): void {
    this.#context.change(({ queue }) => ({ queue: { ...queue, ...view } }))
  }

  scrollBy(rows: number): void {
    const { state } = this.#context
    const last = lastOffset(this.#input(areaOf(state), themes[state.themeName]))
    const offset = Math.max(0, Math.min(last, Math.min(last, state.queue.packingOffset) + Math.sign(rows)))
    this.#context.change(({ queue }) => ({ queue: { ...queue, packingOffset: offset } }))
  }

  [Symbol.dispose](): void {}

  #input(rect: Rect, theme: Theme) {
    const { queue } = this.#context.state
    const { usage, cluster } = this.#sources.ray
    const ray =
      queue.picture === 'ray' && usage !== undefined && cluster !== undefined
        ? rayPicture(usage, cluster.nodes, (group) => this.#numberOf(group))
        : undefined
    return { ...queueInput(queue, rect, theme), ray, used: this.#used() }
  }

  /** Groups keep their letters. */
  #numberOf(group: string): number {
    const known = this.#numbers.get(group)
    if (known !== undefined) return known
    this.#numbers.set(group, this.#numbers.size + 1)
    return this.#numbers.size
  }

  /** Samples come without the queue having changed. */
  #showUse(): void {
    const use = JSON.stringify([...this.#used()])
    if (use === this.#shownUse) return
    this.#shownUse = use
    this.#watch.redraw()
  }

  /** From the samples of the Network tab, else from what Ray's nodes tell. */
  #used(): ReadonlyMap<string, RealUse> {
    const used = new Map<string, RealUse>()
    const { usage, cluster } = this.#sources.ray
    for (const { ip, isAlive, cpuPercent, memory } of usage?.nodes ?? []) {
      const host = cluster?.nodes.get(ip)
      if (host !== undefined && isAlive && cpuPercent !== undefined && memory !== undefined)
        used.set(host, { cpu: cpuPercent / 100, memoryBytes: memory.used })
    }
    for (const { host, samples, trouble, isOwn } of this.#sources.watched.hosts) {
      const last = samples.at(-1)
      if (last === undefined || isOwn || trouble !== undefined) continue
      used.set(host, { cpu: last.cpu, memoryBytes: last.memoryUsedBytes })
    }
    return used
  }
}

type Change = Extract<PackingCommand, 'strategy' | 'policy' | 'more' | 'fewer' | 'left' | 'right' | 'slider'>

function changed(whatIf: WhatIf, command: Change): WhatIf {
  switch (command) {
    case 'slider':
      return nextSlider(whatIf)
    case 'left':
    case 'right':
      return slide(whatIf, whatIf.slider, command === 'right' ? 1 : -1)
    case 'more':
    case 'fewer':
      return slide(whatIf, 'bundles', command === 'more' ? 1 : -1)
    case 'strategy':
    case 'policy':
      return slide(whatIf, command, 1)
  }
}
