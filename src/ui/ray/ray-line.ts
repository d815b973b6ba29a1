/** `ray …` in the palette: a preview while it is typed, then the action. */
import { sentenceOf } from '../../base/errors.ts'
import { foldHostSet } from '../../inventory/host-set.ts'
import type { DialogLine } from '../dialogs/dialog.ts'
import { type LineCheck, type PromptCheck, promptDialog } from '../dialogs/prompt-dialog.ts'
import type { PageContext } from '../state/console-state.ts'
import { shownTitle } from '../state/files.ts'
import { OPEN_QUOTE, takeWord } from '../work-views/parse-work.ts'
import type { ResolveHosts } from '../work-views/work-questions.ts'
import type { RayCluster, RayCommand, RayPort } from './ray-view.ts'

const HELP: readonly DialogLine[] = [
  { text: 'submit --cpus 2 python train.py     jobs     logs ID     stop ID', tone: 'muted' },
  { text: 'status     up     down     up on m8     watch', tone: 'muted' },
]

export type RayWork = {
  readonly verb: 'ray'
  readonly order: RayCommand
  readonly title: string
  readonly start: RayPort['start']
}

export type RayTarget = {
  readonly ray: { readonly cluster: RayCluster | undefined }
  readonly start: RayPort['start']
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
        complete: (text) => (/\s/.test(text) ? undefined : { from: 0, word: text, kind: RAY_VERBS }),
        check: (text) => read(text) ?? {},
        onSubmit: (text) => read(text)?.submit(),
      }),
    )
  }

  #check(parsed: ParsedRay): PromptCheck {
    if ('error' in parsed) return parsed
    const { cluster } = this.#target.ray
    if (cluster === undefined)
      return { error: `${shownTitle(this.#context.state) ?? 'hosts.yaml'} declares no Ray cluster` }
    if (!this.#context.state.hosts.has(cluster.head))
      return { error: `the head ${cluster.head} is not open in the console` }
    const { busyReason } = this.#target.work
    if (parsed.kind === 'jobs' && busyReason !== undefined) return { error: busyReason }
    try {
      const title = shownTitle(this.#context.state)
      const text = this.#preview(parsed, cluster.head)
      return { preview: [{ text: title === undefined ? text : `${title}: ${text}`, tone: 'ok' }] }
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
    const { ray, work, start } = this.#target
    switch (request.kind) {
      case 'watch':
        return this.#target.showNodes()
      case 'area':
        return this.#target.bringUp(request.do, this.#hosts(request.target))
      case 'jobs':
        return work.begin({ verb: 'ray', order: request.order, title: titleOf(request.order), start }, [
          ray.cluster?.head ?? '',
        ])
    }
  }
}

/** With what decides where it runs; its environment may hold secrets. */
function titleOf(order: RayCommand): string {
  if (order.do === 'list') return 'ray jobs'
  if (order.do !== 'submit') return `ray ${order.do} ${order.id}`
  const { cpus, gpus, resources = {}, id, entrypoint } = order.job
  const amounts = Object.entries({ cpus, gpus, ...resources }).flatMap(([name, amount]) =>
    amount === undefined
      ? []
      : [name === 'cpus' || name === 'gpus' ? `--${name} ${amount}` : `--resources ${name}=${amount}`],
  )
  return ['ray submit', ...amounts, ...(id === undefined ? [] : [`--id ${id}`]), entrypoint].join(' ')
}

export type RayRequest =
  /** `target`: a host set; undefined: all declared hosts. */
  | { readonly kind: 'area'; readonly do: 'status' | 'up' | 'down'; readonly target: string | undefined }
  | { readonly kind: 'watch' }
  | { readonly kind: 'jobs'; readonly order: RayCommand }

export type ParsedRay = RayRequest | { readonly error: string }

export const RAY_VERBS = ['status', 'up', 'down', 'watch', 'submit', 'jobs', 'logs', 'stop'] as const

/** Undefined: not a line for Ray. */
export function parseRayLine(line: string): ParsedRay | undefined {
  const match = /^\s*:?ray(?<rest>\s.*)?$/s.exec(line)
  return match === null ? undefined : parseRay(match.groups?.rest ?? '')
}

function parseRay(text: string): ParsedRay {
  const first = takeWord(text)
  if (first === undefined || first === 'open') return { error: `ray ${RAY_VERBS.join(', ')}` }
  const verb = RAY_VERBS.find((known) => known === first.word)
  switch (verb) {
    case undefined:
      return { error: `unknown: ray ${first.word}. Use ${RAY_VERBS.join(', ')}` }
    case 'status':
    case 'up':
    case 'down':
      return parseArea(verb, first.rest)
    case 'watch':
    case 'jobs':
      if (first.rest.trim() !== '') return { error: `ray ${verb} takes no arguments` }
      return verb === 'watch' ? { kind: 'watch' } : { kind: 'jobs', order: { do: 'list' } }
    case 'logs':
    case 'stop':
      return parseId(verb, first.rest)
    case 'submit':
      return parseSubmit(first.rest)
  }
}

function parseArea(verb: 'status' | 'up' | 'down', rest: string): ParsedRay {
  const target = /^\s*(?:on\s+(?<target>\S.*))?$/s.exec(rest)
  if (target === null) return { error: `type ray ${verb} or ray ${verb} on HOSTS` }
  return { kind: 'area', do: verb, target: target.groups?.target?.trim() }
}

const JOB_ID = /^[\w.-]{1,200}$/

function parseId(verb: 'logs' | 'stop', rest: string): ParsedRay {
  const id = rest.replace(/^\s*-f\s/, '').trim()
  if (!JOB_ID.test(id)) return { error: `type ray ${verb} ID; ray jobs lists them` }
  return { kind: 'jobs', order: verb === 'stop' ? { do: 'stop', id } : { do: 'logs', id, follow: true } }
}

type Options = {
  id?: string
  cpus?: number
  gpus?: number
  directory?: string
  readonly environment: Record<string, string>
  readonly resources: Record<string, number>
}

/** The options of `muster ray submit`, then the command line of the job, unchanged. */
function parseSubmit(text: string): ParsedRay {
  const options: Options = { environment: {}, resources: {} }
  let rest = text
  let follow = true
  for (;;) {
    const next = takeWord(rest)
    if (next === 'open') return { error: OPEN_QUOTE }
    if (next === undefined || !next.word.startsWith('-')) break
    rest = next.rest
    if (next.word === '--') break
    if (next.word === '--no-wait') {
      follow = false
      continue
    }
    const [, name = '', given] = /^--([a-z-]+)(?:=(.*))?$/s.exec(next.word) ?? []
    const value = given === undefined ? takeWord(rest) : { word: given, rest }
    if (value === 'open') return { error: OPEN_QUOTE }
    if (value === undefined) return { error: `${next.word} needs a value` }
    rest = value.rest
    const wrong = setOption(options, name, value.word)
    if (wrong !== undefined) return { error: wrong }
  }
  const entrypoint = rest.trim()
  if (entrypoint === '') return { error: 'missing command: ray submit python train.py' }
  const { directory, resources, ...job } = options
  const spec = { ...job, entrypoint, ...(Object.keys(resources).length === 0 ? {} : { resources }) }
  return { kind: 'jobs', order: { do: 'submit', job: spec, directory, follow } }
}

/** Returns what is wrong. */
function setOption(options: Options, name: string, value: string): string | undefined {
  const at = value.indexOf('=')
  const [key, part] = [value.slice(0, at), value.slice(at + 1)]
  switch (name) {
    case 'id':
      options.id = value
      return JOB_ID.test(value) ? undefined : '--id may have only letters, digits, _ . and -'
    case 'working-dir':
      options.directory = value
      return undefined
    case 'cpus':
    case 'gpus':
      options[name] = Number(value)
      return isAmount(value) ? undefined : `--${name} must be a number, 0 or more`
    case 'env':
      options.environment[key] = part
      return at > 0 && /^[A-Za-z_]\w*$/.test(key) ? undefined : '--env must be NAME=VALUE'
    case 'resources':
      options.resources[key] = Number(part)
      return at > 0 && isAmount(part) ? undefined : '--resources must be NAME=AMOUNT'
    default:
      return 'options: --env, --cpus, --gpus, --resources, --working-dir, --id and --no-wait'
  }
}

const isAmount = (text: string): boolean => text.trim() !== '' && Number.isFinite(Number(text)) && Number(text) >= 0
