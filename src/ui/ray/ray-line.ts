/** `ray …` in the palette: what it would do, while it is typed, and then doing it. */
import { sentenceOf } from '../../base/errors.ts'
import { foldHostSet } from '../../inventory/host-set.ts'
import type { Console } from '../console/console.ts'
import type { DialogLine } from '../dialogs/dialog.ts'
import { createPromptDialog, type PromptCheck } from '../dialogs/prompt-dialog.ts'
import { type ParsedRay, parseRayLine, type RayRequest } from './parse-ray.ts'
import type { RayOrder } from './ray-port.ts'

const HELP: readonly DialogLine[] = [
  { text: 'submit --cpus 2 python train.py     jobs     logs ID     stop ID', tone: 'muted' },
  { text: 'status     up     down     up on m8     watch', tone: 'muted' },
]

export type RayWork = { readonly verb: 'ray'; readonly order: RayOrder; readonly title: string }

/** Undefined: the line is about something else. */
export function readRayLine(console: Console, text: string): (PromptCheck & { submit(): void }) | undefined {
  const parsed = parseRayLine(text)
  if (parsed === undefined) return undefined
  return { ...checkRay(console, parsed), submit: () => 'error' in parsed || doRay(console, parsed) }
}

export function openRay(console: Console): void {
  const read = (text: string) => readRayLine(console, `ray ${text}`)
  console.dialogs.open(({ onClose, onChange }) =>
    createPromptDialog({
      id: 'ray',
      title: 'Ray',
      label: 'ray',
      submitTitle: 'do it',
      help: HELP,
      check: (text) => read(text) ?? {},
      onSubmit: (text) => read(text)?.submit(),
      onClose,
      onChange,
    }),
  )
}

function checkRay(console: Console, parsed: ParsedRay): PromptCheck {
  if ('error' in parsed) return parsed
  const { cluster } = console.ray
  if (cluster === undefined) return { error: 'hosts.yaml declares no Ray cluster' }
  if (!console.state.hosts.has(cluster.head)) return { error: `its head ${cluster.head} is not on the console` }
  const { busyReason } = console.work
  if (parsed.kind === 'jobs' && busyReason !== undefined) return { error: busyReason }
  try {
    return { preview: previewOf(console, parsed, cluster.head) }
  } catch (error) {
    return { error: sentenceOf(error) }
  }
}

function previewOf(console: Console, request: RayRequest, head: string): readonly DialogLine[] {
  switch (request.kind) {
    case 'watch':
      return [{ text: `what the nodes of ${head} do, on the tab Packing`, tone: 'ok' }]
    case 'area': {
      const hosts = foldHostSet(hostsOf(console, request.target))
      if (request.do === 'status') return [{ text: `asks all hosts, on the tab Bring-up`, tone: 'ok' }]
      return [{ text: `makes the plan for ${hosts}, shows it and asks`, tone: 'ok' }]
    }
    case 'jobs': {
      const { order } = request
      if (order.do !== 'submit') return [{ text: `asks the head on ${head}`, tone: 'ok' }]
      return [
        { text: `begins on ${head}${order.follow ? ', and is followed' : ''}: ${order.job.entrypoint}`, tone: 'ok' },
      ]
    }
  }
}

/** Of the hosts that Ray is declared for. Throws a sentence when they are none. */
function hostsOf({ ray, ports, state }: Console, target: string | undefined): readonly string[] {
  const declared = [...(ray.cluster?.nodes.values() ?? [])]
  return target === undefined ? declared : ports.resolveHosts(target, declared, state.groups)
}

function doRay(console: Console, request: RayRequest): void {
  switch (request.kind) {
    case 'watch':
      return console.pages.packing.showRay()
    case 'area':
      return void console.pages['bring-up'].begin(request.do, 'ray', hostsOf(console, request.target))
    case 'jobs':
      return console.work.begin({ verb: 'ray', order: request.order, title: titleOf(request.order) }, [
        console.ray.cluster?.head ?? '',
      ])
  }
}

function titleOf(order: RayOrder): string {
  switch (order.do) {
    case 'submit':
      return `ray submit ${order.job.entrypoint}`
    case 'list':
      return 'ray jobs'
    case 'logs':
    case 'stop':
      return `ray ${order.do} ${order.id}`
  }
}
