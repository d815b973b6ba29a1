/** `muster study create`: a study from words to a row of the queue. */
import { randomInt } from 'node:crypto'
import { accountName } from '../../base/account.ts'
import { defined } from '../../base/defined.ts'
import { MusterError } from '../../base/errors.ts'
import { printable } from '../../base/printable.ts'
import { METHODS } from '../../scheduler/study/ask.ts'
import { type Space, sizeOf } from '../../scheduler/study/space.ts'
import { type StudySpec, spaceOf } from '../../scheduler/study/study.ts'
import { numberFrom, repeatable, wholeNumber } from '../command-line/options.ts'
import { type CliContext, EXIT, type VerbCode } from '../command-line/verb.ts'
import { openQueue } from '../job/open-queue.ts'
import { COMMAND_WORDS, checkRoom, metricsOf, prepareJob, type SubmitOptions, withJobOptions } from '../job/submit.ts'
import { ABSENT } from '../launch/launch.ts'
import { jsonLine } from '../output/json-lines.ts'

type CreateOptions = SubmitOptions & {
  readonly param: readonly string[]
  readonly if: readonly string[]
  readonly record: readonly string[]
  readonly method: string
  readonly trials?: number
  readonly atOnce?: number
  readonly repeat: number
  readonly seed?: number
  readonly digits?: number
  readonly time?: number
  readonly failures: number
}

export const create: VerbCode = {
  define: (command) =>
    withJobOptions(command)
      .argument('<study>', 'name of the study')
      .argument('[command...]', `what a trial runs: ${COMMAND_WORDS}; parameters are variables, such as $lr`)
      .addOption(
        repeatable(
          '--param <name=values>',
          'a parameter: int:10:200:10, float:0:1, float:0.1:0.3:0.1, log:1e-5:1e-1 (even in its logarithm), or adam,sgd',
        ),
      )
      .addOption(
        repeatable(
          '--if <condition param>',
          'a parameter that only exists while another one has a value: "opt=sgd momentum=float:0:0.9"',
        ),
      )
      .addOption(repeatable('--record <name[=pattern]>', 'also show this metric, without optimising it'))
      .option('--method <name>', methodHelp(), 'random')
      .option('--trials <n>', 'run at most N trials (default: until all points are tried)', wholeNumber(1))
      .option('--at-once <n>', 'run at most N trials at the same time (default: as many as fit)', wholeNumber(1))
      .option('--repeat <n>', 'try each point N times', wholeNumber(1, 1000), 1)
      .option('--seed <n>', 'choose the same points again (default: a random seed)', wholeNumber(0, 2 ** 31))
      .option('--digits <n>', 'round numbers that may be any to N significant digits', wholeNumber(1, 15), 6)
      .option('--time <s>', 'start no trial later than S seconds after the first', numberFrom(1))
      .option('--failures <n>', 'start no more trials when the last N have failed', wholeNumber(1), 10),
  help: `
Examples:
  muster study create wf --param size=int:10:200:10 --param lr=log:1e-5:1e-1 --metric max:acc --trials 50 -- 'python train.py $size $lr'

No point is tried twice, and none is lost, however often the scheduler is stopped. A trial whose job fails is tried again as the
same trial, as often as --retries says.
`,
  async run(name: string, words: readonly string[], options: CreateOptions, context: CliContext) {
    using queue = await openQueue(options, context)
    const spec = studySpecOf(options)
    const space = spaceOf(spec)
    checkNames(space)
    const trials = options.trials
    if (trials === undefined && !Number.isFinite(sizeOf(space)))
      throw new MusterError('usage', '--trials is missing: some parameters may have any number', {
        hint: 'Say how many trials to run, such as --trials 50.',
      })
    const variables = [...space.parameters.map((one) => one.name), 'MUSTER_STUDY', 'MUSTER_TRIAL']
    const metric = [...options.metric, ...options.record]
    const given = { ...options, ...ABSENT, metric, name: options.name ?? name }
    const job = await prepareJob(words, given, queue, context, variables)
    checkRoom(job, queue, given, context)
    const user = options.user ?? accountName()
    const row = { name, user, priority: options.priority, spec, job, ...defined({ trials }) }
    queue.store.together(() => queue.store.studies.create(row, context.now()))
    const size = sizeOf(space) * spec.repeat
    if (options.json)
      context.stdout.write(jsonLine({ type: 'study', study: name, points: Number.isFinite(size) ? size : null }))
    if (queue.store.lease.owner(context.now()) === undefined)
      context.stderr.write('muster: no scheduler running. Run: muster job work\n')
    return EXIT.ok
  },
}

function methodHelp(): string {
  return `how points are chosen: ${METHODS.map(({ name, summary }) => `${name} (${summary})`).join(', ')}`
}

function studySpecOf(options: CreateOptions): StudySpec {
  const { method, repeat, digits, failures, time, atOnce, seed = randomInt(2 ** 31) } = options
  if (options.param.length === 0) throw new MusterError('usage', 'a study needs a parameter: --param lr=log:1e-5:1e-1')
  if (!METHODS.some(({ name }) => name === method))
    throw new MusterError('usage', `unknown method: ${printable(method)}`, {
      hint: `Methods: ${METHODS.map(({ name }) => name).join(', ')}.`,
    })
  const metrics = metricsOf(options.metric)
  if (metrics.length === 0 && !['grid', 'random', 'brute', 'quasi-random'].includes(method))
    throw new MusterError('usage', '--metric is missing: what should the study optimise?')
  return {
    parameters: [...options.param, ...options.if.map((text) => `if ${text}`)],
    method,
    seed,
    metrics,
    repeat,
    failures,
    ...defined({ digits, atOnce, limitS: time }),
  }
}

/** They would change how the command itself is found and run. */
const RESERVED =
  /^(MUSTER_.*|LD_.*|PATH|HOME|SHELL|USER|LOGNAME|PWD|IFS|ENV|BASH_ENV|TMPDIR|RANK|WORLD_SIZE|MASTER_ADDR|MASTER_PORT)$/

function checkNames({ parameters }: Space): void {
  const wrong = parameters.find(({ name }) => RESERVED.test(name))
  if (wrong !== undefined)
    throw new MusterError('usage', `--param ${wrong.name}: this name is a variable that the job needs itself`, {
      hint: 'Choose another name.',
    })
}
