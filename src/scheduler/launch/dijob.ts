/**
 * DIJobs of DI-engine's operator for Kubernetes. Reads the current schema and the older one that had the same version name before June
 * 2022, lists the differences, and converts both to a Muster job or a current DIJob; also writes a Muster job as a DIJob. Pure; a
 * file may be hostile.
 */
import { isNode, LineCounter, stringify } from 'yaml'
import { MusterError } from '../../base/errors.ts'
import { printable, printableLines } from '../../base/printable.ts'
import { shellQuote } from '../../base/shell-quote.ts'
import { parseYaml } from '../../inventory/yaml-reader.ts'
import { splitWords } from '../plans/read-command.ts'
import { REDIS } from './ditask.ts'
import { HOST_ROLE, type LaunchSpec, type Role } from './launcher.ts'

const DIJOB_GROUP = 'diengine.opendilab.org'
const VERSION = 'v2alpha1'
const TYPES = ['learner', 'collector', 'evaluator', 'none']
const TOPOLOGIES = ['star', 'mesh', 'alone']
const MOST_TASKS = 100
const MOST_REPLICAS = 10_000
const MOST_SHOWN = 200
const MOST_NAME = 40

type DijobNote = { readonly line: number; readonly text: string }

type ConvertedDijob = {
  readonly notes: readonly DijobNote[]
  /** Words of `muster`. */
  readonly words: readonly string[]
  /** YAML. */
  readonly dijob: string
}

type Tree = Readonly<Record<string, unknown>>
type Path = readonly (string | number)[]

/** @throws Error for what is no DIJob, or cannot be converted */
export function convertDijob(text: string): ConvertedDijob {
  return new Conversion(text).run()
}

type DijobTask = Pick<Task, 'name' | 'type' | 'replicas' | 'template'>

/** Of a job that ditask launches; of its specification only what a DIJob has. */
type DijobWish = {
  readonly name: string
  readonly command: string
  readonly bundles: number
  readonly strategy: string
  readonly maxBundlesPerHost?: number
  readonly retries: number
  readonly priority: number
  readonly launch?: LaunchSpec
  readonly roles?: readonly Pick<Role, 'name' | 'count'>[]
}

/**
 * The DIJob of a job that `--launch ditask` starts. `template`: of pods that run this line for sh.
 * @throws MusterError 'usage' for what a DIJob cannot have
 */
export function dijobOf(wish: DijobWish, template: (line: string) => Tree) {
  const { name, command, bundles, strategy, maxBundlesPerHost, retries, priority, launch } = wish
  if (launch?.kind !== 'ditask') throw new MusterError('usage', '--as dijob can only be used with --launch ditask')
  if (strategy !== 'PACK' || maxBundlesPerHost !== undefined)
    throw new MusterError('usage', 'a DIJob cannot say how its pods are placed: leave out --strategy and --per-host')
  const { topology = 'star', workers = '1', redis = '', ditask: program = 'ditask' } = launch.options
  const [, host = '', port = ''] = REDIS.exec(redis) ?? []
  const words = [
    ...[program, '--platform', 'k8s', '--topology', topology, '--parallel-workers', workers],
    ...(redis === '' ? [] : ['--mq-type', 'redis', '--redis-host', host, '--redis-port', port]),
  ]
  const tasks = (wish.roles ?? [{ name: HOST_ROLE, count: bundles }]).map((role) => {
    const labels = role.name === HOST_ROLE ? [] : ['--labels', role.name]
    const line = `${[...words, ...labels].map(shellQuote).join(' ')} ${command}`
    return {
      name: role.name === HOST_ROLE ? 'worker' : role.name,
      type: TYPES.includes(role.name) ? role.name : 'none',
      replicas: role.count,
      template: template(launch.setUp === undefined ? line : `${launch.setUp}\n${line}`),
    }
  })
  // Its pods are found at names in DNS that begin with it.
  const label = name
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .replace(/^[^a-z]+/, '')
    .slice(0, MOST_NAME)
  return dijobTree(
    { name: label.replace(/-$/, '') || 'ditask' },
    { priority: priority > 0 ? 'high' : 'normal', backoffLimit: retries },
    tasks,
  )
}

const dijobTree = <T extends Tree>(metadata: T, spec: Tree, tasks: readonly DijobTask[]) => ({
  apiVersion: `${DIJOB_GROUP}/${VERSION}`,
  kind: 'DIJob',
  metadata,
  spec: { ...spec, tasks: tasks.map(({ name, type, replicas, template }) => ({ name, type, replicas, template })) },
})

/** Of the older schema: what became of them. */
const OLD_FIELDS: Readonly<Record<string, string>> = {
  group: 'was removed without a replacement',
  engineFields:
    'was removed: topology and parallelWorkers are the options --topology and --parallel-workers of ditask itself',
  minReplicas: 'was removed: the number of pods no longer changes while the job runs',
  maxReplicas: 'is now replicas of a task',
  template: 'is now template of a task: spec.tasks lists name, type, replicas and template',
}
const FIELDS = ['priority', 'cleanPodPolicy', 'preemptible', 'backoffLimit', 'volumes']
const TASK_FIELDS = ['name', 'type', 'replicas', 'template']
const CONTAINER_FIELDS = ['name', 'image', 'command', 'args', 'resources', 'env', 'workingDir', 'imagePullPolicy']

/** Options of ditask that the addresses of its workers follow from, which Muster writes itself. */
const ADDRESSING = ['ports', 'attach-to', 'address', 'node-ids', 'platform', 'platform-spec', 'protocol']
const OPTIONS = [
  ...ADDRESSING,
  ...['topology', 'parallel-workers', 'labels', 'mq-type', 'redis-host', 'redis-port', 'package', 'main'],
  'startup-interval',
]

type DitaskLine = { readonly options: ReadonlyMap<string, string>; readonly rest: readonly string[] }

type Task = {
  readonly name: string
  readonly type: string
  readonly replicas: number
  readonly template: Tree
  readonly container: Tree
  readonly line: DitaskLine
}

type Amounts = { readonly cpu?: number; readonly memory?: number; readonly gpu?: number }

class Conversion {
  readonly #notes: DijobNote[] = []
  readonly #lines = new LineCounter()
  readonly #document
  readonly #root: Tree
  readonly #spec: Tree

  constructor(text: string) {
    this.#document = parseYaml(text, { lineCounter: this.#lines, prettyErrors: false })
    const [error] = this.#document.errors
    if (error) throw new Error(`line ${this.#lines.linePos(error.pos[0]).line}: ${error.message.split('\n')[0]}`)
    this.#root = treeOf(this.#document.toJS({ maxAliasCount: 100 }))
    this.#spec = treeOf(this.#root.spec)
    const { kind, apiVersion } = this.#root
    if (kind !== 'DIJob') throw new Error(`it is not a DIJob: kind is ${shown(kind)}`)
    if (apiVersion !== `${DIJOB_GROUP}/${VERSION}`)
      throw new Error(`only DIJobs of ${DIJOB_GROUP}/${VERSION} can be converted, not ${shown(apiVersion)}`)
  }

  run(): ConvertedDijob {
    const tasks = this.#tasks()
    const topology = this.#topology(tasks)
    const dijob = this.#dijob(tasks, topology)
    const words = this.#words(tasks, topology)
    if ([dijob, ...words].some((text) => printableLines(text) !== text)) throw new Error('it has control characters')
    return { words, dijob, notes: this.#notes.toSorted((one, other) => one.line - other.line) }
  }

  /** At the key of a value. */
  #note(path: Path, text: string): void {
    const node = this.#document.getIn(path, true)
    const line = isNode(node) && node.range ? this.#lines.linePos(node.range[0]).line : 0
    const name = path.reduce<string>(
      (all, key) => (typeof key === 'number' ? `${all}[${key}]` : all === '' ? key : `${all}.${key}`),
      '',
    )
    const note = { line, text: `${printable(name).slice(0, MOST_SHOWN)} ${text}` }
    if (!this.#notes.some((one) => one.text === note.text)) this.#notes.push(note)
  }

  #tasks(): readonly Task[] {
    const old = Object.keys(OLD_FIELDS).filter((name) => this.#spec[name] !== undefined)
    if (this.#spec.tasks === undefined && old.length > 0)
      this.#note(['spec'], `is of the older ${VERSION} (before June 2022), which the current one refuses`)
    for (const name of Object.keys(this.#spec))
      if (Object.hasOwn(OLD_FIELDS, name)) this.#note(['spec', name], OLD_FIELDS[name] ?? '')
      else if (name !== 'tasks' && !FIELDS.includes(name)) this.#note(['spec', name], 'is unknown: left out')
    if (this.#spec.tasks === undefined) {
      if (old.length === 0) throw new Error('spec.tasks is missing')
      const { maxReplicas, minReplicas } = this.#spec
      const replicas = this.#count(['spec', 'maxReplicas'], maxReplicas ?? minReplicas)
      return [this.#task({ name: 'worker', type: 'none', replicas, template: this.#spec.template }, ['spec'])]
    }
    const tasks = listOf(this.#spec.tasks)
    if (tasks.length === 0) throw new Error('spec.tasks has no task')
    if (tasks.length > MOST_TASKS) throw new Error(`it has more than ${MOST_TASKS} tasks`)
    const read = tasks.map((task, index) => {
      const path = ['spec', 'tasks', index]
      const { name, type, replicas, template, ...more } = treeOf(task)
      for (const key of Object.keys(more)) this.#note([...path, key], 'is unknown: left out')
      if (!TYPES.includes(String(type)))
        this.#note(type === undefined ? path : [...path, 'type'], `must be ${TYPES.join(', ')}: using none`)
      return this.#task(
        {
          name: typeof name === 'string' && name !== '' ? name : `task-${index}`,
          type: TYPES.includes(String(type)) ? String(type) : 'none',
          replicas: this.#count([...path, 'replicas'], replicas),
          template,
        },
        path,
      )
    })
    const names = read.map(({ name }) => name)
    if (new Set(names).size < names.length) throw new Error('two tasks have the same name')
    return read
  }

  #count(path: Path, value: unknown): number {
    if (value === undefined) return 1
    if (typeof value !== 'number' || !Number.isInteger(value) || value < 1 || value > MOST_REPLICAS)
      throw new Error(`${path.join('.')} must be a number from 1 to ${MOST_REPLICAS}, not ${shown(value)}`)
    return value
  }

  #task(task: Record<(typeof TASK_FIELDS)[number], unknown>, path: Path): Task {
    const { name, type, replicas } = task as Pick<Task, 'name' | 'type' | 'replicas'>
    if (!/^[a-z0-9]([-a-z0-9]{0,40}[a-z0-9])?$/.test(name))
      throw new Error(`the name of a task must have lower-case letters, digits and hyphens, not ${shown(name)}`)
    const template = treeOf(task.template)
    const containers = listOf(treeOf(template.spec).containers).map(treeOf)
    const at = containers.findIndex((one) => commandOf(one).includes('ditask'))
    const container = containers[at]
    if (container === undefined) throw new Error(`no container of task ${name} runs ditask`)
    const place = [...path, 'template', 'spec', 'containers', at]
    if (containers.length > 1) this.#note(place, 'runs ditask; Muster starts no other container')
    for (const key of Object.keys(container))
      if (!CONTAINER_FIELDS.includes(key)) this.#note([...place, key], 'has no counterpart in a Muster job')
    for (const key of Object.keys(treeOf(template.spec)))
      if (!['containers', 'restartPolicy'].includes(key))
        this.#note([...path, 'template', 'spec', key], 'has no counterpart in a Muster job')
    return { name, type, replicas, template, container, line: this.#line(container, place) }
  }

  #line(container: Tree, place: Path): DitaskLine {
    const path = [...place, keyOfDitask(container)]
    const segments = commandOf(container)
      .replaceAll('\\\n', ' ')
      .split(/&&|;|\n/)
      .map((part) => part.trim())
      .filter((part) => part !== '')
    const own = segments.filter((part) => /(^|\/)ditask\s/.test(`${part.replace(/^exec\s+/, '')} `))
    const [line] = own
    if (line === undefined || own.length > 1)
      throw new Error(
        `the command of ${container.name ?? 'a container'} must call ditask once, at the beginning of a line`,
      )
    for (const part of segments)
      if (part !== line) this.#note(path, `also runs ${shown(part)}: put that into the image or a script`)
    if (/[|&<>`]/.test(line))
      this.#note(path, 'redirects ditask or combines it with other programs: that part is left out')
    const options = new Map<string, string>()
    const rest: string[] = []
    const words = splitWords(line).slice(/^exec\s/.test(line) ? 2 : 1)
    for (let index = 0; index < words.length; index += 1) {
      const word = words[index] ?? ''
      const [, name = '', inline] = /^--([a-z-]+)(?:=(.*))?$/s.exec(word) ?? [undefined, SHORT[word]]
      if (!OPTIONS.includes(name)) {
        if (name !== '')
          this.#note(path, `has the option --${name.slice(0, 40)}, which ditask of DI-engine 0.5 does not have`)
        rest.push(word)
        continue
      }
      if (inline === undefined) index += 1
      options.set(name, inline ?? words[index] ?? '')
    }
    for (const name of ADDRESSING)
      if (options.has(name) && name !== 'platform')
        this.#note(path, `has --${name}: left out, because Muster sets the addresses of workers`)
    if (options.get('platform') !== 'k8s')
      this.#note(path, 'lacks --platform k8s, without which the pods do not find each other')
    return { options, rest }
  }

  #topology(tasks: readonly Task[]): string {
    const { topology: declared } = treeOf(this.#spec.engineFields)
    const given = [...new Set(tasks.flatMap(({ line }) => line.options.get('topology') ?? []))]
    if (given.length > 1) throw new Error(`its tasks have different topologies: ${given.map(shown).join(', ')}`)
    const topology = given[0] ?? (declared === undefined ? 'star' : String(declared))
    if (!TOPOLOGIES.includes(topology))
      throw new Error(`the topology must be ${TOPOLOGIES.join(', ')}, not ${shown(topology)}`)
    if (given.length === 0)
      this.#note(['spec'], `has no --topology for ditask, without which the pods do not connect: using ${topology}`)
    return topology
  }

  #workers({ line }: Task): number {
    const { parallelWorkers } = treeOf(this.#spec.engineFields)
    const workers = Number(line.options.get('parallel-workers') ?? parallelWorkers ?? 1)
    if (!Number.isInteger(workers) || workers < 1 || workers > 999)
      throw new Error('--parallel-workers must be a number from 1 to 999')
    return workers
  }

  #words(tasks: readonly Task[], topology: string): readonly string[] {
    const [first] = tasks as [Task]
    const [image = '', ...images] = [...new Set(tasks.map(({ container }) => String(container.image ?? '')))]
    if (images.length > 0) this.#note(['spec', 'tasks'], `have several images: using ${shown(image)}`)
    const workers = Math.max(...tasks.map((task) => this.#workers(task)))
    if (tasks.some((task) => this.#workers(task) !== workers))
      this.#note(['spec', 'tasks'], `have different --parallel-workers: using ${workers} for all`)
    const rest = new Set(tasks.map(({ line }) => restOf(line)))
    if (rest.size > 1) this.#note(['spec', 'tasks'], 'have different commands: using that of the first task')
    const path = this.#spec.tasks === undefined ? ['spec'] : ['spec', 'tasks', 0]
    const place = [...path, 'template', 'spec', 'containers', 0]
    const name = treeOf(this.#root.metadata).name
    const redis = ['redis-host', 'redis-port'].map((option) => first.line.options.get(option)).join(':')
    const wantsRedis = first.line.options.get('mq-type') === 'redis'
    const isRedis = wantsRedis && REDIS.test(redis)
    if (wantsRedis && !isRedis)
      this.#note(
        place,
        `has --mq-type redis without a --redis-host and --redis-port that Muster can read: left out, so the workers connect to each other. To use a server, add --redis HOST:PORT in place of --topology`,
      )
    return [
      ...['job', 'submit', '--engine', 'k8s'],
      ...(image === '' ? [] : ['--from-env', `image:${image}`]),
      ...(typeof name === 'string' ? ['--name', name] : []),
      ...['--launch', 'ditask', ...(workers === 1 ? [] : ['--workers', String(workers)])],
      ...(isRedis ? ['--redis', redis] : ['--topology', topology]),
      ...(tasks.length === 1 ? ['--bundles', String(first.replicas)] : this.#roles(tasks)),
      ...this.#request(tasks),
      ...this.#environment(tasks, place),
      ...(typeof first.container.workingDir === 'string' ? ['--dir', first.container.workingDir] : []),
      ...this.#policies(),
      ...['--', restOf(first.line)],
    ]
  }

  #roles(tasks: readonly Task[]): readonly string[] {
    const counts = new Map<string, number>()
    for (const { name, replicas, line } of tasks) {
      const label = line.options.get('labels') ?? name
      const role = label.replaceAll(/[^a-z]/g, '') || 'worker'
      if (role !== label)
        this.#note(
          ['spec', 'tasks'],
          `have the label ${shown(label)}: role names have only letters, so the role is ${role}`,
        )
      counts.set(role, (counts.get(role) ?? 0) + replicas)
    }
    return [...counts].flatMap(([role, count]) => ['--role', `${role}=${count}`])
  }

  /** As options of a job, for each bundle. */
  #request(tasks: readonly Task[]): readonly string[] {
    const all = tasks.map((task) => this.#amounts(task))
    if (new Set(all.map(({ cpu, memory, gpu }) => `${cpu} ${memory} ${gpu}`)).size > 1)
      this.#note(
        ['spec', 'tasks'],
        'ask for different amounts, but all pods of a Muster job get the same: using the largest',
      )
    const most = (kind: keyof Amounts) => Math.max(...all.flatMap((amounts) => amounts[kind] ?? []))
    const [cpu, memory, gpu] = [most('cpu'), most('memory'), most('gpu')]
    return [
      ...(cpu >= 0 ? ['--cpu', String(Math.ceil(cpu * 1000) / 1000)] : []),
      ...(memory >= 0
        ? ['--memory', memory % 2 ** 30 === 0 ? `${memory / 2 ** 30}GiB` : `${Math.ceil(memory / 2 ** 20)}MiB`]
        : []),
      ...(gpu >= 0 ? ['--gpu', String(gpu)] : []),
    ]
  }

  /** Where requests are missing, limits count. */
  #amounts({ container, name }: Task): Amounts {
    const { requests, limits } = treeOf(container.resources)
    const asked: Tree = { ...treeOf(limits), ...treeOf(requests) }
    const amounts: { -readonly [kind in keyof Amounts]: Amounts[kind] } = {}
    for (const [key, value] of Object.entries(asked)) {
      const amount = quantityOf(value)
      if (amount === undefined)
        throw new Error(`${printable(key).slice(0, 60)} of task ${name} is not an amount: ${shown(value)}`)
      if (key === 'cpu' || key === 'memory') amounts[key] = amount
      else if (/\/gpu$/.test(key)) amounts.gpu = amount
      else this.#note(['spec'], `asks for ${shown(key)} in task ${name}, which has no counterpart in a Muster job`)
    }
    return amounts
  }

  #environment(tasks: readonly Task[], place: Path): readonly string[] {
    const pairs = new Map<string, string>()
    for (const variable of tasks.flatMap(({ container }) => listOf(container.env)).map(treeOf)) {
      const { name, value } = variable
      if (typeof name === 'string' && typeof value === 'string' && /^[A-Za-z_]\w{0,100}$/.test(name))
        pairs.set(name, value)
      else this.#note([...place, 'env'], `has ${shown(name)}, which is not plain text: left out`)
    }
    return [...pairs].flatMap(([name, value]) => ['--env', `${name}=${value}`])
  }

  #policies(): readonly string[] {
    const { priority, backoffLimit, preemptible } = this.#spec
    for (const name of ['cleanPodPolicy', 'volumes'])
      if (this.#spec[name] !== undefined) this.#note(['spec', name], 'has no counterpart in a Muster job')
    if (preemptible === true)
      this.#note(['spec', 'preemptible'], 'has no counterpart: Muster cannot preempt jobs in Kubernetes')
    const retries = typeof backoffLimit === 'number' && Number.isInteger(backoffLimit) && backoffLimit >= 0
    if (backoffLimit === undefined)
      this.#note(['spec'], 'has no backoffLimit: the operator would retry 3 times, Muster retries only with --retries')
    return [
      ...(priority === 'high' ? ['--priority', '1'] : []),
      ...(retries && backoffLimit > 0 ? ['--retries', String(Math.min(backoffLimit, 1000))] : []),
    ]
  }

  #dijob(tasks: readonly Task[], topology: string): string {
    const { name, generateName, namespace, labels, annotations } = treeOf(this.#root.metadata)
    const spec = Object.fromEntries(
      FIELDS.flatMap((key) => (this.#spec[key] === undefined ? [] : [[key, this.#spec[key]]])),
    )
    return stringify(
      dijobTree(
        { name, generateName, namespace, labels, annotations },
        spec,
        tasks.map((task) => ({ ...task, template: this.#template(task, topology) })),
      ),
      { aliasDuplicateObjects: false, lineWidth: 0 },
    )
  }

  /** Adds the options that ditask needs in pods of the current operator. */
  #template(task: Task, topology: string): Tree {
    const { container, template, line } = task
    const workers = line.options.has('parallel-workers') ? [] : ['--parallel-workers', String(this.#workers(task))]
    const added = [
      ...(line.options.get('platform') === 'k8s' ? [] : ['--platform', 'k8s']),
      ...(line.options.has('topology') ? [] : ['--topology', topology]),
      ...workers,
    ]
    const add = (text: string) => text.replace(/(^|\/|\s)ditask(?=\s|$)/, (call) => `${call} ${added.join(' ')}`)
    const key = keyOfDitask(container)
    const words = listOf(container[key]).map(String)
    const at = words.findIndex((word) => /(^|\/)ditask$/.test(word))
    const changed =
      at < 0 ? words.map((word) => (word.includes('ditask') ? add(word) : word)) : words.toSpliced(at + 1, 0, ...added)
    const containers = listOf(treeOf(template.spec).containers).map((one) =>
      commandOf(treeOf(one)) === commandOf(container)
        ? { ...treeOf(one), [key]: added.length === 0 ? words : changed }
        : one,
    )
    return { ...template, spec: { ...treeOf(template.spec), containers } }
  }
}

const SHORT: Readonly<Record<string, string>> = { '-p': 'package', '-m': 'main' }

const isTree = (value: unknown): value is Tree => typeof value === 'object' && value !== null && !Array.isArray(value)
const treeOf = (value: unknown): Tree => (isTree(value) ? value : {})
const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])
const shown = (value: unknown): string =>
  value === undefined
    ? 'missing'
    : printable(typeof value === 'string' ? value : (JSON.stringify(value) ?? '')).slice(0, MOST_SHOWN)

/** Whether the word ditask is in `args` or in `command`. */
const keyOfDitask = ({ args }: Tree): 'args' | 'command' =>
  listOf(args).some((word) => /(^|\/|\s)ditask(\s|$)/.test(String(word))) ? 'args' : 'command'

/** A line for sh: what a shell in the container runs, or its words. */
function commandOf({ command, args }: Tree): string {
  const words = [...listOf(command), ...listOf(args)].map(String)
  const shell = words.findIndex(
    (word, index) => /^-[a-z]*c$/.test(word) && /(^|\/)(ba|da|z)?sh$/.test(words[index - 1] ?? ''),
  )
  return shell < 0 ? words.map(shellQuote).join(' ') : (words[shell + 1] ?? '')
}

/** What Muster does not write itself. Variables are expanded in the container, as they were. */
function restOf({ options, rest }: DitaskLine): string {
  const own = ['package', 'main', 'startup-interval'].flatMap((name) => {
    const value = options.get(name)
    return value === undefined ? [] : [`--${name}`, value]
  })
  const quoted = (word: string) => (word.includes('$') ? `"${word.replaceAll(/["\\`]/g, '\\$&')}"` : shellQuote(word))
  return [...own, ...rest].map(quoted).join(' ')
}

const UNITS: Readonly<Record<string, number>> = {
  ...{ '': 1, m: 1e-3, k: 1e3, M: 1e6, G: 1e9, T: 1e12, P: 1e15 },
  ...{ Ki: 2 ** 10, Mi: 2 ** 20, Gi: 2 ** 30, Ti: 2 ** 40, Pi: 2 ** 50 },
}

/** As Kubernetes writes amounts: `6`, `500m`, `10Gi`, `1e9`. */
function quantityOf(value: unknown): number | undefined {
  if (typeof value !== 'number' && typeof value !== 'string') return undefined
  const [, digits, unit = ''] = /^(\d{1,18}(?:\.\d{1,9})?(?:e\d{1,2})?)([A-Za-z]{0,2})$/.exec(String(value)) ?? []
  const factor = UNITS[unit]
  return digits === undefined || factor === undefined ? undefined : Number(digits) * factor
}
