/** `ray …` in the palette: a preview while it is typed, then the action. */
import { sentenceOf } from '../../base/errors.ts'
import { foldHostSet } from '../../inventory/host-set.ts'
import type { DialogLine } from '../dialogs/dialog.ts'
import { type LineCheck, type PromptCheck, promptDialog } from '../dialogs/prompt-dialog.ts'
import type { PageContext } from '../tabs/page.ts'
import type { ResolveHosts } from '../work-views/work-questions.ts'
import { type ParsedRay, parseRayLine, type RayRequest } from './parse-ray.ts'
import type { RayCluster, RayCommand } from './ray-port.ts'

const HELP: readonly DialogLine[] = [
  { text: 'submit --cpus 2 python train.py     jobs     logs ID     stop ID', tone: 'muted' },
  { text: 'status     up     down     up on m8     watch', tone: 'muted' },
]

export type RayWork = { readonly verb: 'ray'; readonly order: RayCommand; readonly title: string }

export type RayTarget = {
  readonly ray: { readonly cluster: RayCluster | undefined }
  readonly work: {
    /** Why no job can be submitted or followed. */
    readonly busyReason: string | undefined
    begin(request: RayWork, hosts: readonly string[]): void
  }
  readonly resolveHosts: ResolveHosts
  showNodes(): void
  bringUp(what: 'status' | 'up' | 'down', hosts: readonly string[]): void
}

export class RayLine {
  readonly #context: PageContext
  readonly #target: RayTarget

  constructor(context: PageContext, target: RayTarget) {
    this.#context = context
    this.#target = target
  }

  /** Undefined: not a line for Ray. */
  read(text: string): LineCheck | undefined {
    const parsed = parseRayLine(text)
    if (parsed === undefined) return undefined
    return { ...this.#check(parsed), submit: () => 'error' in parsed || this.#do(parsed) }
  }

  open(): void {
    const read = (text: string) => this.read(`ray ${text}`)
    this.#context.openDialog(
      promptDialog({
        id: 'ray',
        title: 'Ray',
        label: 'ray',
        submitTitle: 'run',
        help: HELP,
        check: (text) => read(text) ?? {},
        onSubmit: (text) => read(text)?.submit(),
      }),
    )
  }

  #check(parsed: ParsedRay): PromptCheck {
    if ('error' in parsed) return parsed
    const { cluster } = this.#target.ray
    if (cluster === undefined) return { error: 'hosts.yaml declares no Ray cluster' }
    if (!this.#context.state.hosts.has(cluster.head))
      return { error: `the head ${cluster.head} is not open in the console` }
    const { busyReason } = this.#target.work
    if (parsed.kind === 'jobs' && busyReason !== undefined) return { error: busyReason }
    try {
      return { preview: [{ text: this.#preview(parsed, cluster.head), tone: 'ok' }] }
    } catch (error) {
      return { error: sentenceOf(error) }
    }
  }

  #preview(request: RayRequest, head: string): string {
    switch (request.kind) {
      case 'watch':
        return `shows the nodes of ${head} on the tab Packing`
      case 'area': {
        const hosts = foldHostSet(this.#hosts(request.target))
        if (request.do === 'status') return 'checks all hosts, on the tab Bring-up'
        return `plans for ${hosts} and shows the plan`
      }
      case 'jobs': {
        const { order } = request
        if (order.do !== 'submit') return `runs on ${head}`
        return `submits to ${head}${order.follow ? ' and follows the log' : ''}: ${order.job.entrypoint}`
      }
    }
  }

  /** Among the hosts that Ray is declared for. @throws MusterError when there are none. */
  #hosts(target: string | undefined): readonly string[] {
    const declared = [...(this.#target.ray.cluster?.nodes.values() ?? [])]
    return target === undefined ? declared : this.#target.resolveHosts(target, declared, this.#context.state.groups)
  }

  #do(request: RayRequest): void {
    const { ray, work } = this.#target
    switch (request.kind) {
      case 'watch':
        return this.#target.showNodes()
      case 'area':
        return this.#target.bringUp(request.do, this.#hosts(request.target))
      case 'jobs':
        return work.begin({ verb: 'ray', order: request.order, title: titleOf(request.order) }, [
          ray.cluster?.head ?? '',
        ])
    }
  }
}

function titleOf(order: RayCommand): string {
  if (order.do === 'list') return 'ray jobs'
  return `ray ${order.do} ${order.do === 'submit' ? order.job.entrypoint : order.id}`
}
