/** `muster job submit`: from words to jobs on disk; with `--dry-run`, where it would go now, or why not. `edit`: changes jobs that wait or are held. */

import { constants, createReadStream } from 'node:fs'
import { access, stat } from 'node:fs/promises'
import { resolve } from 'node:path'
import { type Command, InvalidArgumentError, Option } from 'commander'
import { accountName } from '../../base/account.ts'
import { defined } from '../../base/defined.ts'
import { fileReason, MusterError } from '../../base/errors.ts'
import { formatBytes } from '../../base/format-bytes.ts'
import { printable, printableLines } from '../../base/printable.ts'
import { shellQuote } from '../../base/shell-quote.ts'
import { clip } from '../../base/text-width.ts'
import { parseMemorySize, sectionOf } from '../../inventory/hosts-yaml-schema.ts'
import { fileTitle, type Inventory, resolveTarget } from '../../inventory/inventory.ts'
import { section as envSection } from '../../ops/env/section.ts'
import { directoryPath } from '../../ops/nfs/shared-directory.ts'
import { findGang } from '../../scheduler/gangs/place-gang.ts'
import { joinReasons, whyNotGang } from '../../scheduler/gangs/why-not.ts'
import { enginePlace, placeTitle } from '../../scheduler/jobs/engine.ts'
import { askedOf } from '../../scheduler/jobs/engine-room.ts'
import type { JobSpec, SilenceSpec } from '../../scheduler/jobs/job.ts'
import { type Metric, parseMetric } from '../../scheduler/jobs/metric.ts'
import { asHandedOver, bundleKey, handLinesOf, isOwnVariable } from '../../scheduler/jobs/orders.ts'
import { gangOf, onRing } from '../../scheduler/jobs/plan-jobs.ts'
import { dijobOf } from '../../scheduler/launch/dijob.ts'
import type { Launcher } from '../../scheduler/launch/launcher.ts'
import { launcherOf } from '../../scheduler/launch/launcher-of.ts'
import { LAUNCHERS } from '../../scheduler/launch/launchers.ts'
import {
  checkRequest,
  gpusAsked,
  milliOf,
  type ResourceRequest,
  type Strategy,
  WHOLE_MILLI,
} from '../../scheduler/model/resources.ts'
import { fitsIdle, neverWords, parseNeeds, withUnknown } from '../../scheduler/plans/needs.ts'
import { offering, repeatable, variable, wholeNumber } from '../command-line/options.ts'
import { stdinOf } from '../command-line/stdin.ts'
import { type CliContext, EXIT, type GlobalOptions, type VerbCode } from '../command-line/verb.ts'
import {
  findLauncher,
  type LaunchOptions,
  launchArray,
  launchPart,
  takenCommand,
  withLaunchOptions,
} from '../launch/launch-options.ts'
import { jsonLine } from '../output/json-lines.ts'
import { notice } from '../output/notices.ts'
import { parseIds, withJobs, withRequest } from './arguments.ts'
import { reportChanges } from './change.ts'
import { ENGINES, type EngineTrial, openEngines, sharedHostsWords } from './engines.ts'
import { inEnvironment, type JobEnvironment, parseJobEnvironment, setUpOf, wordOf } from './environment.ts'
import {
  addressesOf,
  downWords,
  freeBeside,
  linkSpeedsOf,
  noticeChanged,
  noticeScheduler,
  type OpenQueue,
  openQueue,
  unknownWords,
} from './open-queue.ts'
import { ringJson, ringText } from './show.ts'
import { expandVariants } from './variants.ts'
import { missedBy, neverFits, preemptWords, undoneWords } from './why-waiting.ts'

export type SubmitOptions = GlobalOptions &
  LaunchOptions & {
    readonly from?: string
    readonly name?: string
    readonly cpu: number
    readonly memory?: string
    /** `false`: --no-limits. */
    readonly limits?: boolean
    readonly gpu: number
    readonly bundles: number
    readonly strategy: string
    readonly perHost?: number
    readonly on?: string
    readonly array?: string
    readonly grid: readonly string[]
    readonly metric: readonly string[]
    readonly env: Readonly<Record<string, string>>
    readonly dir?: string
    readonly copyDir?: string
    readonly fromEnv?: string
    readonly priority: number
    readonly user?: string
    readonly estimate?: number
    readonly limit?: number
    readonly silent?: SilenceSpec
    readonly retries: number
    readonly after: readonly number[]
    readonly preemptible?: boolean
    readonly hold?: boolean
    readonly as?: string
    readonly strict?: boolean
    readonly engine?: string
    readonly needs?: string
    readonly storage?: string
  }

const STRATEGIES: readonly Strategy[] = ['PACK', 'SPREAD', 'STRICT_PACK', 'STRICT_SPREAD']
const MOST_BUNDLES = 10_000
/** Linux: one argument has no more than 128 KB. */
const MOST_COMMAND_BYTES = 96 * 1024

const account = (text: string): string => {
  if (text.trim() === '')
    throw new MusterError('usage', 'the account of --user is empty', { hint: 'Is a variable not set?' })
  return text
}

/** Options of sbatch and srun, and what to use for them. */
const OF_SLURM: Readonly<Record<string, string>> = {
  '--time': '--limit, in seconds',
  '--mem': '--memory',
  '--nodes': '--bundles',
  '--ntasks': '--bundles',
  '--cpus-per-task': '--cpu',
  '--gres': '--gpu',
  '--gpus-per-node': '--gpu',
  '--nodelist': '--on',
  '--job-name': '--name',
  '--chdir': '--dir',
  '--dependency': '--after',
}

const refusedOptions = Object.entries(OF_SLURM).map(([name, ours]) =>
  new Option(`${name} <x>`, 'of Slurm')
    .argParser(() => {
      throw new MusterError('usage', `${name} is an option of Slurm: use ${ours}`)
    })
    .hideHelp(),
)

/** What a job that starts at once can be given. */
export const withJobOptions = (command: Command): Command =>
  withRequest(command, { cpu: 1, gpu: 0, priority: 0, retries: 0 })
    .option('--no-limits', 'do not enforce --memory')
    .option('--bundles <n>', 'run the command in N bundles, which start together or not at all', wholeNumber(1), 1)
    .addOption(
      offering(
        new Option('--strategy <name>', `place the bundles by ${STRATEGIES.join(', ')}`).default('PACK'),
        STRATEGIES,
      ),
    )
    .option('--per-host <n>', 'place at most N bundles on one host', wholeNumber(1))
    .addOption(
      repeatable(
        '--metric <name[=pattern]>',
        'collect the number that the job prints as NAME=0.1 or NAME: 0.1, or that this pattern (sed -E) finds; max:NAME if higher is better',
      ),
    )
    .addOption(
      new Option('--env <name=value>', 'set a variable for the command; can be given several times')
        .argParser(variable)
        .default({}, 'none'),
    )
    .option('--copy-dir <path>', 'copy this local directory to the hosts now, and run in it')
    .option(
      '--from-env <what>',
      'run inside an environment: declared (the one of hosts.yaml), venv:PATH, conda:NAME or image:NAME',
    )
    .option(
      '--user <name>',
      'charge the job to this account; at equal priority, accounts with less past use start first (default: you)',
      account,
    )
    .option('--storage <path>', 'prove first that this directory is the same one on all hosts of the job')
    .option('--preemptible', 'allow stopping the job for one of higher priority; it is then queued again')
    .option('--dry-run', 'show where the job would run now, or why it would wait; submit nothing')
    .option(
      '--strict',
      'refuse a job that no host can ever hold (default: accept it with a warning); with --engine slurm, ask Slurm first',
    )

export const COMMAND_WORDS = 'one word is a command line for sh; several are a program and its arguments'

/** How its command is started, and by whom. */
export const withStartOptions = (command: Command, launchers: readonly Launcher[] = LAUNCHERS): Command =>
  withLaunchOptions(
    command
      .addOption(
        offering(
          new Option(
            '--engine <name>',
            [
              'use this engine: embedded: Muster places and runs the job',
              ...ENGINES.map(({ name, summary }) => `${name}: ${summary}`),
            ].join('; '),
          ).default('embedded'),
          ['embedded', ...ENGINES.map(({ name }) => name)],
        ),
      )
      .option(
        '--needs <bundles>',
        'with --engine ray: keep the job in the queue until the cluster has room for these bundles, such as "4x{gpu:1,cpu:1} PACK"',
      )
      .addOption(
        new Option(
          '--silent <time>',
          'the job looks stuck if nothing is written for TIME, such as 90s, 10m (default) or 2h; 10m:end stops it if no processor was used either, 10m:end-busy also if one was, as MPI and NCCL do while they wait',
        ).argParser(silenceOf),
      )
      .option(
        '--launch <kind>',
        `let a launcher start the command in all bundles: ${LAUNCHERS.map(({ name }) => name).join(', ')}`,
      ),
    launchers,
  )

export const submit: VerbCode = {
  define: (command) =>
    withStartOptions(
      refusedOptions
        .reduce((own, option) => own.addOption(option), withJobOptions(command))
        .argument('[command...]', COMMAND_WORDS)
        .option(
          '--from <file>',
          'submit one job for each line of this file, a command line for sh (-: stdin, as lines come); lines that begin with # are comments',
        )
        .option('--array <from-to>', 'submit one job for each number, and set MUSTER_ARRAY_INDEX to it')
        .addOption(
          repeatable('--grid <name=values>', 'submit one job for each combination of values: a,b,c or from:to:step'),
        )
        .addOption(
          new Option('--after <ids>', 'start when these jobs are done').argParser(parseIds).default([], 'none'),
        )
        .option('--hold', 'hold the job until it is released')
        .addOption(
          new Option(
            '--as <what>',
            "with --engine k8s --launch ditask --dry-run: print the job as a DIJob of DI-engine's operator",
          ).choices(['dijob']),
        ),
    ),
  help: `
Examples:
  muster job submit --gpu 1 --estimate 3600 -- python train.py --seed 7
  muster job submit --gpu 0.5 --array 0-99 -- 'python eval.py $MUSTER_ARRAY_INDEX'
  muster job submit --bundles 4 --gpu 8 --strategy STRICT_SPREAD -- ./train.sh
  muster job submit --grid lr=0.1:0.3:0.1 --grid size=8,16 -- 'python train.py $lr $size'
  muster job submit --grid lr=0.1,0.2 --metric loss --metric max:acc -- 'python train.py $lr'
  muster job submit --from jobs.txt              one job for each line
  muster job submit --engine ray --needs '4x{gpu:1,cpu:1} PACK' --storage /shared/results -- python train.py

A job finds its devices in CUDA_VISIBLE_DEVICES and ROCR_VISIBLE_DEVICES. RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT, MUSTER_JOB,
MUSTER_RANK and MUSTER_HOSTS are set as well.
`,
  async run(words: readonly string[], options: SubmitOptions, context: CliContext) {
    if (options.as !== undefined && (!options.dryRun || options.engine === 'embedded'))
      throw new MusterError('usage', '--as dijob can only be used with --engine k8s --launch ditask --dry-run')
    using queue = await openQueue(options, context)
    const submit = submitter(options, queue, context)
    if (options.from === undefined) {
      const spec = await prepareJob(words, options, queue, context)
      if (options.dryRun && !canFollow(options, queue, context)) return EXIT.failed
      if (options.dryRun && spec.engine !== undefined) return await tryOnEngine(spec, queue, options, context)
      if (options.dryRun) return await tryOut(spec, queue, options, context)
      await checkRoom(spec, queue, options, context)
      noteMissed(options, queue, context)
      for (const ids of submit([spec])) printIds(ids, options, context)
    } else {
      if (words.length > 0 || options.dryRun)
        throw new MusterError('usage', '--from cannot be used with a command or with --dry-run')
      const place = await placeOf(options, queue, context)
      let isChecked = false
      for await (const lines of linesOf(options.from, context)) {
        const specs = lines.map((line) => specOf([line], options, place, queue))
        // All lines ask for the same.
        if (!isChecked && specs[0] !== undefined) {
          await checkRoom(specs[0], queue, options, context)
          noteMissed(options, queue, context)
        }
        isChecked = true
        // Nothing is stored after the first Ctrl-C.
        context.signal.throwIfAborted()
        for (const ids of submit(specs)) printIds(ids, options, context)
      }
    }
    noticeScheduler(queue, context)
    return EXIT.ok
  },
}

/** Says of jobs of --after that they cannot be done any more: the new one is accepted, and then cancelled. */
export function noteMissed({ after }: SubmitOptions, queue: OpenQueue, context: CliContext): void {
  const why = missedBy({ after }, queue).map(({ words }) => words)
  if (why.length > 0) notice(context, `muster: it can never start: ${why.join('; ')}\n`)
}

/**
 * For --dry-run: whether the jobs of --after can still be done; if not, says so.
 * @throws MusterError 'usage' for a job that is not there
 */
function canFollow({ after, json }: SubmitOptions, queue: OpenQueue, context: CliContext): boolean {
  queue.store.requireJobs(after)
  const why = missedBy({ after }, queue).map(({ words }) => words)
  const undone = undoneWords({ after }, queue)
  if (why.length === 0) {
    if (undone !== undefined) notice(context, `muster: ${undone} first\n`)
    return true
  }
  context.stdout.write(
    json ? jsonLine({ type: 'trial', fits: false, why }, context) : `It can never start: ${why.join('; ')}.\n`,
  )
  return false
}

/** From specifications to the numbers of their jobs, which are then on disk. @throws MusterError `usage` */
export function submitter(options: SubmitOptions, { store, inventory }: OpenQueue, { now }: CliContext) {
  const rest = {
    user: options.user ?? accountName(),
    priority: options.priority,
    isHeld: options.hold ?? false,
    after: options.after,
    variants: expandVariants(launchArray(options, inventory), options.grid),
  }
  return (specs: readonly JobSpec[]) =>
    store.submitAll(
      specs.map((spec) => ({ spec, ...rest })),
      now(),
    )
}

function printIds(ids: readonly number[], { json }: SubmitOptions, context: CliContext): void {
  const { stdout } = context
  const [first = 0, last = first] = [ids[0], ids.at(-1)]
  if (json) for (const id of ids) stdout.write(jsonLine({ type: 'submitted', job: id }, context))
  else stdout.write(`${ids.length === 1 ? first : `${first}-${last}`}\n`)
}

/** The job that words and options describe; its directory is copied to the hosts. `variables`: names of those that each job gets later. */
export async function prepareJob(
  words: readonly string[],
  options: SubmitOptions,
  queue: OpenQueue,
  context: CliContext,
  variables: readonly string[] = [],
): Promise<JobSpec> {
  return specOf(words, options, await placeOf(options, queue, context), queue, variables)
}

/** Where its jobs may go, and where they begin there. */
type JobPlace = { readonly on: readonly string[] | undefined; readonly directory: string | undefined }

async function placeOf(options: SubmitOptions, queue: OpenQueue, context: CliContext): Promise<JobPlace> {
  const { inventory } = queue
  // Before anything is copied.
  engineOf(options, '', inventory)
  const on =
    options.on === undefined
      ? undefined
      : resolveTarget(inventory, options.on, { isOfInventory: true }).map(({ name }) => name)
  if (options.copyDir === undefined) return { on, directory: options.dir }
  if (options.dir !== undefined) throw new MusterError('usage', '--copy-dir and --dir cannot be used together')
  await checkLocalDirectory(options.copyDir, context)
  if (options.dryRun) return { on, directory: undefined }
  const { copyDirectory } = await import('./hosts.ts')
  const names = on ?? inventory.hosts.map(({ name }) => name)
  const { directory, hosts } = await copyDirectory(options.copyDir, names, queue, options, context)
  return { on: hosts, directory }
}

/** @throws MusterError 'usage' when it cannot be copied from here, so that no host is blamed for it */
async function checkLocalDirectory(path: string, { workingDirectory }: CliContext): Promise<void> {
  const wrong = (why: string) => new MusterError('usage', `--copy-dir ${printable(path)}: ${why}`)
  const place = resolve(workingDirectory, path)
  try {
    if (!(await stat(place)).isDirectory()) throw wrong('it is not a directory')
    await access(place, constants.R_OK | constants.X_OK)
  } catch (error) {
    if (error instanceof MusterError) throw error
    const isMissing = (error as NodeJS.ErrnoException).code === 'ENOENT'
    throw wrong(isMissing ? 'there is no such directory on this machine' : fileReason(error))
  }
}

function specOf(
  words: readonly string[],
  options: SubmitOptions,
  { on, directory }: JobPlace,
  { inventory }: OpenQueue,
  variables: readonly string[] = [],
): JobSpec {
  const strategy = STRATEGIES.find((known) => known === options.strategy.toUpperCase())
  if (strategy === undefined)
    throw new MusterError('usage', `unknown strategy: ${printable(options.strategy)}`, {
      hint: `Strategies: ${STRATEGIES.join(', ')}.`,
    })
  if (options.bundles > MOST_BUNDLES) throw new MusterError('usage', `too many bundles: at most ${MOST_BUNDLES}`)
  if (options.launch !== undefined) findLauncher(options.launch, inventory)
  if (words.length === 0) throw new MusterError('usage', 'the command is missing')
  if (words.every((word) => word.trim() === ''))
    throw new MusterError('usage', 'the command is empty', { hint: 'Is a variable not set?' })
  const own = words.length === 1 ? (words[0] as string) : words.map(shellQuote).join(' ')
  const given = [
    ...Object.keys(options.env).map((name) => ['--env', name] as const),
    ...options.grid.map((text) => ['--grid', text.slice(0, text.indexOf('='))] as const),
  ]
  const taken = given.find(([, name]) => isOwnVariable(name))
  if (taken !== undefined)
    throw new MusterError('usage', `${taken.join(' ')}: Muster sets this variable itself`, {
      hint: 'For another value, set it in the command.',
    })
  const names = [
    ...variables,
    ...given.map(([, name]) => name),
    ...(options.array === undefined ? [] : ['MUSTER_ARRAY_INDEX']),
  ]
  const declared = sectionOf(inventory, envSection)
  const place = options.fromEnv === undefined ? undefined : parseJobEnvironment(options.fromEnv, inventory)
  const image = engineImage(options, place, inventory)
  const inside = image === undefined ? place : undefined
  const setUp = options.launch === undefined || inside === undefined ? undefined : setUpOf(inside)
  const command = inside === undefined || setUp !== undefined ? own : inEnvironment(own, inside, names, options.gpu > 0)
  checkCommand(command)
  const request = requestOf(options, on ?? (options.fromEnv === 'declared' ? declared?.hosts : undefined))
  const metrics = metricsOf(options.metric)
  const engine = engineOf(options, command, inventory)
  const spec: JobSpec = {
    name: options.name ?? clip(words.join(' '), 60),
    command,
    environment: options.env,
    request,
    bundles: options.bundles,
    strategy,
    retries: options.retries,
    isPreemptible: options.preemptible ?? false,
    ...defined({
      isUnlimited: options.limits === false ? true : undefined,
      maxBundlesPerHost: options.perHost,
      directory,
      estimateS: options.estimate,
      limitS: options.limit,
      silence: options.silent,
      metrics: metrics.length === 0 ? undefined : metrics,
      image,
      typed: inside === undefined ? undefined : { command: own, fromEnv: wordOf(inside) },
    }),
    ...launchPart(options, { bundles: options.bundles, request, command, ...engine }, setUp, inventory),
    // Its --needs come before those of its launcher.
    ...engine,
  }
  const whyNot = ENGINES.find(({ name }) => name === spec.engine)?.whyNot?.(spec, inventory)
  if (whyNot !== undefined) throw new MusterError('usage', whyNot)
  return spec
}

/** Of an engine that runs images itself. @throws MusterError 'usage' for options of docker, which it cannot give it. */
function engineImage(
  { engine }: SubmitOptions,
  place: JobEnvironment | undefined,
  inventory: Inventory,
): string | undefined {
  if (place?.kind !== 'image' || ENGINES.find(({ name }) => name === engine)?.runsImages !== true) return undefined
  if (place.options !== undefined)
    throw new MusterError(
      'usage',
      `--engine ${engine} cannot use the docker options of the environment in ${fileTitle(inventory)}`,
      {
        hint: `Name the image alone: --from-env image:${printable(place.name)}`,
      },
    )
  return place.name
}

const UNIT_S: Readonly<Record<string, number>> = { '': 1, s: 1, m: 60, h: 3600 }

function silenceOf(text: string): SilenceSpec {
  const [, count = '', unit = '', end] = /^(\d{1,6})([smh]?)(:end|:end-busy)?$/.exec(text) ?? []
  const seconds = Number(count) * (UNIT_S[unit] ?? 0)
  if (seconds === 0) throw new InvalidArgumentError('It must be a time such as 90s, 10m or 2h, or 10m:end.')
  return { seconds, ...(end === undefined ? {} : { stop: end === ':end' ? 'idle' : 'always' }) }
}

const MOST_METRICS = 16

/** @throws MusterError 'usage' */
export function metricsOf(texts: readonly string[]): readonly Metric[] {
  const metrics = texts.map((text) => {
    const metric = parseMetric(text)
    if (typeof metric === 'string') throw new MusterError('usage', `--metric ${printable(text)}: ${metric}`)
    return metric
  })
  if (new Set(metrics.map(({ name }) => name)).size < metrics.length) throw new MusterError('usage', 'duplicate metric')
  if (metrics.length > MOST_METRICS) throw new MusterError('usage', `too many metrics: at most ${MOST_METRICS}`)
  return metrics
}

/** @throws MusterError 'usage' */
function checkCommand(command: string): void {
  if (Buffer.byteLength(command) > MOST_COMMAND_BYTES || command.includes('\0'))
    throw new MusterError('usage', 'the command is too long, or contains a NUL', {
      hint: 'Put it into a file on the hosts.',
    })
}

/** @throws MusterError 'usage' for what the engine cannot carry out, 'configuration' when hosts.yaml does not declare it. */
function engineOf(
  {
    engine = 'embedded',
    on,
    perHost,
    preemptible,
    dryRun,
    copyDir,
    fromEnv,
    metric,
    silent,
    strict,
    ...rest
  }: SubmitOptions,
  command: string,
  inventory: Inventory,
): Pick<JobSpec, 'engine' | 'needs' | 'storage'> {
  const forEngines = (['needs', 'storage'] as const)
    .filter((name) => rest[name] !== undefined)
    .map((name) => `--${name}`)
  const checkTakes = (taken: readonly string[] = []) => {
    const wrong = forEngines.find((option) => !taken.includes(option))
    const takers = ENGINES.filter(({ takes }) => wrong !== undefined && takes?.includes(wrong))
    const names = takers.map(({ name }) => `--engine ${name}`).join(' or ')
    const orLaunch = wrong === '--storage' ? ' or --launch' : ''
    if (wrong !== undefined) throw new MusterError('usage', `${wrong} can only be used with ${names}${orLaunch}`)
  }
  const storage = rest.storage === undefined ? undefined : directoryPath(rest.storage)
  if (rest.storage !== undefined && storage === undefined)
    throw new MusterError('usage', `--storage ${printable(rest.storage)}: it must be the absolute path of a directory`)
  if (engine === 'embedded') {
    checkTakes(rest.launch === undefined ? [] : ['--storage'])
    return defined({ storage })
  }
  const kind = ENGINES.find(({ name }) => name === engine)
  const names = ['embedded', ...ENGINES.map(({ name }) => name)].join(', ')
  if (kind === undefined) throw new MusterError('usage', `unknown engine: ${printable(engine)}`, { hint: names })
  const title = placeTitle(enginePlace(engine))
  if (!kind.isDeclared(inventory))
    throw new MusterError('configuration', `${fileTitle(inventory)} declares no ${title} cluster`, {
      hint: `See ${kind.docs}.`,
    })
  const given = Object.entries({
    on,
    'per-host': perHost,
    preemptible,
    'dry-run': dryRun,
    'copy-dir': copyDir,
    'from-env': fromEnv,
    metric: metric.length > 0,
    silent: silent !== undefined,
    strict,
    launch: rest.launch,
  }).flatMap(([name, value]) => (value === undefined || value === false ? [] : [`--${name}`]))
  const refused = given.filter((option) => kind.refuses.includes(option))
  if (refused.length > 0)
    throw new MusterError('usage', `--engine ${engine} cannot be used with ${refused.join(', ')}`, {
      ...(refused.includes('--launch')
        ? { hint: 'Leave --engine out: Muster then places the ranks itself. Or start them in the command.' }
        : {}),
    })
  if (Buffer.byteLength(command) > kind.mostCommandBytes)
    throw new MusterError('usage', `the command is too long for ${title}`, { hint: 'Put it into a file on the hosts.' })
  checkTakes(kind.takes)
  if (rest.needs !== undefined && rest.bundles > 1)
    throw new MusterError('usage', '--needs and --bundles cannot be used together', {
      hint: '--needs is for one program that asks for its bundles itself.',
    })
  return { engine, ...defined({ needs: rest.needs === undefined ? undefined : parseNeeds(rest.needs), storage }) }
}

/** @throws MusterError 'usage' when it contradicts itself. */
function requestOf(
  { cpu, memory, gpu }: Pick<SubmitOptions, 'cpu' | 'memory' | 'gpu'>,
  on: readonly string[] | undefined,
): ResourceRequest {
  const memoryBytes = memory === undefined ? 0 : parseMemorySize(memory)
  if (memoryBytes === undefined)
    throw new MusterError('usage', `--memory ${printable(memory ?? '')}: write it as 16GiB, or with TiB, MiB, KiB, GB`)
  if (memoryBytes > 0 && /^\d+$/.test(memory ?? ''))
    throw new MusterError('usage', `--memory ${memory} would be ${formatBytes(memoryBytes)}: add a unit, as in 16GiB`)
  const gpus = gpusAsked(gpu)
  if (typeof gpus === 'string') throw new MusterError('usage', `--gpu ${gpu}: ${gpus}`)
  const request: ResourceRequest = {
    cpuMilli: milliOf(cpu, 'up'),
    memoryBytes,
    ...gpus,
    ...(on === undefined ? {} : { selectors: [{ label: 'host', is: 'in', values: on }] }),
  }
  checkRequest(request)
  return request
}

/**
 * A job that no host can ever hold waits for ever, unless hosts.yaml changes. Asks the engine only with --strict.
 * @throws MusterError 'usage' with --strict; 'unreachable' where the engine cannot be asked then.
 */
export async function checkRoom(
  spec: JobSpec,
  queue: OpenQueue,
  options: SubmitOptions,
  context: CliContext,
): Promise<void> {
  const { strict } = options
  if (spec.engine !== undefined) {
    checkEngineRoom(spec, queue, context.now())
    if (strict) await checkOnEngine(spec, queue, options, context)
    return
  }
  if (spec.request.selectors === undefined)
    for (const words of sharedHostsWords(queue.inventory))
      notice(context, `muster: ${words}. To use other hosts: --on HOSTS\n`)
  if (strict) {
    const hint = neverHint(spec, queue)
    if (hint !== undefined) throw new MusterError('usage', 'no host can ever hold this job', { hint })
  } else warnOfNever(spec, queue, context)
}

function warnOfNever(spec: JobSpec, queue: OpenQueue, { stderr }: CliContext): void {
  const hint = neverHint(spec, queue)
  if (hint !== undefined) stderr.write(`muster: warning: no host can ever hold this job. ${hint}\n`)
}

/** Undefined: some host can hold it. */
function neverHint(spec: JobSpec, queue: OpenQueue): string | undefined {
  const why = neverFits(queue, gangOf(spec))
  if (why === undefined) return undefined
  const [, ...reasons] = why
  return `${printable(joinReasons(reasons)).replace(/\.?$/, '.')} Ask for less, or change resources in ${fileTitle(queue.inventory)}.`
}

const FRESH_MS = 60_000

/** By what the engine has just said because another job waits for room, or as hosts.yaml declares it. @throws MusterError 'usage' */
function checkEngineRoom(spec: JobSpec, { inventory, store }: OpenQueue, nowMs: number): void {
  const asked = askedOf(spec)
  const kind = ENGINES.find(({ name }) => name === spec.engine)
  if (asked === undefined || kind === undefined) return
  const { atMs = 0, rooms } = store.report() ?? {}
  const told = Math.abs(nowMs - atMs) < FRESH_MS ? rooms?.[kind.name]?.nodes : undefined
  const nodes = told ?? withUnknown(kind.declaredNodes?.(inventory) ?? [], asked)
  if (nodes.length === 0 || fitsIdle(nodes, asked)) return
  throw new MusterError('usage', neverWords(nodes, asked, placeTitle(enginePlace(kind.name))), {
    hint: 'Ask for less with --needs, --cpu, --gpu or --memory, or add hosts to the cluster.',
  })
}

/** @throws MusterError 'usage' for a job that its engine refuses, 'unreachable' where it cannot be asked */
async function checkOnEngine(
  spec: JobSpec,
  queue: OpenQueue,
  options: SubmitOptions,
  context: CliContext,
): Promise<void> {
  const { words = '', isNever, trouble } = await engineTrial(spec, queue, options, context, '--strict')
  if (trouble !== undefined)
    throw new MusterError('unreachable', cannotAsk(spec, trouble), {
      hint: 'Nothing was submitted. To submit without asking, leave --strict out.',
    })
  if (isNever) throw new MusterError('usage', printable(words))
}

const cannotAsk = ({ engine = '' }: JobSpec, trouble: string): string =>
  `cannot ask ${placeTitle(enginePlace(engine))}: ${trouble}`

/** Where a job would go now, or why it would wait. Asks no host. */
export function placeNow(spec: JobSpec, queue: OpenQueue, context: CliContext, priority = 0) {
  if (spec.engine !== undefined)
    return { places: [{ host: enginePlace(spec.engine), devices: [] }], ring: undefined, why: [] }
  const cluster = freeBeside(queue, queue.store.active())
  const gang = gangOf(spec)
  const found = findGang(cluster.copy(), gang)?.map(({ host, devices }) => ({
    host: cluster.hosts[host]?.name ?? '',
    devices,
  }))
  const { places, ring } =
    found === undefined ? { places: found } : onRing(spec, found, linkSpeedsOf(queue.inventory, context))
  return {
    places,
    ring,
    why:
      places === undefined
        ? [...downWords(queue), ...(whyNotGang(cluster, gang)?.lines ?? []), ...preemptWords({ spec, priority }, queue)]
        : [],
  }
}

export async function tryOut(
  spec: JobSpec,
  queue: OpenQueue,
  options: GlobalOptions & { readonly priority?: number },
  context: CliContext,
): Promise<number> {
  const { stdout } = context
  noticeChanged(queue, context)
  const { places, ring, why } = placeNow(spec, queue, context, options.priority)
  const addresses = await addressesOf(queue, places ?? [], options, context)
  const byHand = places === undefined ? [] : handLinesOf({ id: 0, attempt: 1, spec, places }, addresses)
  if (options.json)
    stdout.write(
      jsonLine(
        {
          type: 'trial',
          fits: places !== undefined,
          places,
          ...(ring && { ring: ringJson(ring) }),
          why,
          ...(byHand.length > 0 && { byHand }),
        },
        context,
      ),
    )
  else if (places === undefined)
    stdout.write(`It does not fit right now.\n${why.map((line) => `${printable(line)}\n`).join('')}`)
  else {
    places.forEach(({ host, devices }, rank) => {
      stdout.write(`bundle ${rank}: ${host}${devices.length > 0 ? `, GPU ${devices.join(',')}` : ''}\n`)
    })
    if (ring !== undefined) stdout.write(`ring: ${ringText(ring)}\n`)
    const unknown = unknownWords(queue, spec.request, places)
    if (unknown !== undefined) notice(context, `muster: ${unknown}, and count as enough\n`)
    for (const { host, command } of byHand) stdout.write(`by hand on ${host}: ${printableLines(command)}\n`)
  }
  return places === undefined ? EXIT.failed : EXIT.ok
}

/** What its engine, or that one's operator of DIJobs, says to it. @throws MusterError 'usage' for an engine that has no such test */
async function engineTrial(
  spec: JobSpec,
  { inventory, store }: OpenQueue,
  options: SubmitOptions,
  context: CliContext,
  asked: string,
): Promise<EngineTrial> {
  const { signal } = context
  const { priority } = options
  const { connectHosts } = await import('./hosts.ts')
  using engines = await openEngines(inventory, context)
  const engine = engines.get(spec.engine ?? '')
  using hosts = await connectHosts(inventory, options, context)
  const start = {
    key: bundleKey(store.id, { id: 0, attempt: 1 }, 0),
    spec: asHandedOver(spec),
    priority,
    environment: { ...spec.launch?.environment, ...spec.environment },
  }
  const trial =
    options.as === undefined
      ? await engine?.tryOut?.(start, hosts.ops, signal)
      : await engine?.tryDijob?.(start, (template) => dijobOf({ ...spec, priority }, template), hosts.ops, signal)
  if (trial === undefined) throw new MusterError('usage', `--engine ${spec.engine} cannot be used with ${asked}`)
  return trial
}

/** What an engine would get, or the DIJob, and when it would start it. */
async function tryOnEngine(
  spec: JobSpec,
  queue: OpenQueue,
  options: SubmitOptions,
  context: CliContext,
): Promise<number> {
  const { stdout, stderr } = context
  const asked = options.as === undefined ? '--dry-run' : '--as dijob'
  const trial = await engineTrial(spec, queue, options, context, asked)
  const { script, words, isNever = false, trouble } = trial
  if (options.json)
    stdout.write(jsonLine({ type: 'trial', fits: trouble === undefined && !isNever, ...trial }, context))
  else stdout.write(printableLines(script))
  if (trouble !== undefined) throw new MusterError('unreachable', cannotAsk(spec, trouble))
  // kubectl can read stdout.
  if (!options.json && options.as !== undefined) stderr.write(`muster: ${printable(words ?? '')}\n`)
  else if (!options.json) stdout.write(`${words}\n`)
  return isNever ? EXIT.failed : EXIT.ok
}

/** Of a line whose end has not come yet. */
const MOST_LINE_BYTES = 1024 * 1024

/**
 * The lines of a file (`-`: stdin) that came together, as they come, until the signal; empty ones are skipped.
 * @throws MusterError 'usage' when it cannot be read.
 */
async function* linesOf(file: string, context: CliContext): AsyncGenerator<readonly string[]> {
  const { signal, workingDirectory } = context
  const stream = file === '-' ? stdinOf(context) : createReadStream(resolve(workingDirectory, file), { signal })
  const decoder = new TextDecoder()
  let rest = ''
  try {
    for await (const piece of stream) {
      const parts = (rest + decoder.decode(piece as Uint8Array, { stream: true })).split('\n')
      rest = parts.pop() ?? ''
      if (rest.length > MOST_LINE_BYTES) throw new MusterError('usage', 'a line is longer than 1 MiB')
      const lines = parts.filter(isCommand)
      if (lines.length > 0) yield lines
    }
  } catch (error) {
    signal.throwIfAborted()
    if (error instanceof MusterError) throw error
    throw new MusterError('usage', `cannot read ${printable(file)}: ${fileReason(error)}`)
  }
  if (isCommand(rest)) yield [rest]
}

/** A comment is no command for sh either: a job of it would be done without having run anything. */
const isCommand = (line: string): boolean => /^\s*[^\s#]/.test(line)

/** Those of `withRequest`, and the command. */
type EditOptions = Partial<SubmitOptions> & { readonly command?: string }

const EDITABLE = [
  'name',
  'estimate',
  'limit',
  'retries',
  'dir',
  'command',
  'cpu',
  'memory',
  'gpu',
  'on',
  'priority',
] as const

export const edit: VerbCode = {
  define: (command) => withRequest(withJobs(command)).option('--command <line>', 'command line for sh'),
  help: `
Examples:
  muster job edit 17 --priority 5    while it waits

Options that are not given stay unchanged.
`,
  async run(ids: readonly number[], options: EditOptions, context: CliContext) {
    if (EDITABLE.every((name) => options[name] === undefined))
      throw new MusterError('usage', 'nothing to change: give at least one option', {
        hint: 'Run: muster job edit --help',
      })
    if (options.command !== undefined) checkCommand(options.command)
    using queue = await openQueue(options, context)
    const results = queue.store.editAll(ids, (job) => ({
      spec: editSpec(job.spec, options, queue),
      priority: options.priority ?? job.priority,
    }))
    const { cpu, memory, gpu, on } = options
    const changed = ids.find((_, index) => results[index] === true)
    const spec = changed === undefined ? undefined : queue.store.get(changed)?.spec
    if (spec?.engine === undefined && spec !== undefined && [cpu, memory, gpu, on].some((value) => value !== undefined))
      warnOfNever(spec, queue, context)
    return reportChanges('edit', ids, results, queue, options, context)
  },
}

/** What is not named stays. */
function editSpec(spec: JobSpec, options: EditOptions, { inventory }: OpenQueue): JobSpec {
  const { name, estimate, limit, retries, dir, command, cpu, memory, gpu, on } = options
  const { request: before } = spec
  const hosts =
    on === undefined ? undefined : resolveTarget(inventory, on, { isOfInventory: true }).map((host) => host.name)
  const gpus = before.gpuMilli < WHOLE_MILLI ? before.gpuMilli / WHOLE_MILLI : before.gpuCount
  const asked = { cpu: cpu ?? before.cpuMilli / 1000, gpu: gpu ?? (before.gpuCount === 0 ? 0 : gpus) }
  const after = requestOf(memory === undefined ? asked : { ...asked, memory }, hosts)
  const memoryBytes = memory === undefined ? before.memoryBytes : after.memoryBytes
  const launcher = spec.launch && launcherOf(spec.launch)
  const line = launcher === undefined || command === undefined ? command : takenCommand(launcher, command)
  return {
    ...spec,
    request: { ...before, ...after, memoryBytes },
    ...defined({ name, estimateS: estimate, limitS: limit, retries, directory: dir, command: line }),
  }
}
