/** `muster sweep`: all combinations of some values in one line, as a study whose method is grid. */

import { isPlainDecimal } from '../../base/decimals.ts'
import { MusterError } from '../../base/errors.ts'
import { printable } from '../../base/printable.ts'
import { repeatable, wholeNumber } from '../command-line/options.ts'
import { type CliContext, EXIT, type VerbCode } from '../command-line/verb.ts'
import { connectHosts } from '../job/hosts.ts'
import { type OpenQueue, openQueue } from '../job/open-queue.ts'
import { COMMAND_WORDS } from '../job/submit.ts'
import { drive } from '../launch/launch.ts'
import { followStudy } from './follow.ts'
import {
  AT_ONCE,
  MOST_REPEATS,
  type SpaceOptions,
  type StudyOptions,
  storeStudy,
  studySpecOf,
  trialJobOf,
  tryStudy,
  userOf,
  withParameters,
  withTrialOptions,
} from './prepare.ts'

type SweepOptions = SpaceOptions & { readonly wait?: boolean }

/** What only `study create` asks for. A sweep tries all points, whatever fails. */
const GRID = { method: 'grid', seed: 0, failures: 1_000_000, mutate: [], samplerOption: {} } as const

export const sweep: VerbCode = {
  define: (command) =>
    withTrialOptions(
      withParameters(
        command
          .argument('<command...>', `what a trial runs: ${COMMAND_WORDS}; parameters are variables, such as $lr`)
          .optionsGroup('Parameters:')
          .addOption(repeatable('--grid <name=values>', 'a parameter, as in job submit: a,b,c or from:to:step'))
          .option('--repeat <n>', 'try each combination N times', wholeNumber(1, MOST_REPEATS), 1)
          .optionsGroup('How it runs:')
          .option('--wait', 'wait until all trials have ended, and show them; run the scheduler if none is running')
          .option('--at-once <n>', AT_ONCE, wholeNumber(1)),
      ),
      'name of the study (default: that of the program)',
    ),
  help: `
Examples:
  muster sweep --grid lr=0.1:0.3:0.1 --grid size=8,16 --metric loss -- 'python train.py $lr $size'
  muster sweep --wait --grid seed=1:5:1 --metric max:acc -- 'python train.py $seed'

Runs every combination once, like muster job submit --grid, and collects results: a sweep is a study whose method is grid, so
muster study show, results, plot, stop and more work with it. Its name is that of the program unless --name is given.

Exit codes with --wait: 0 all trials are done, 1 a trial failed or was cancelled.
`,
  async run(words: readonly string[], options: SweepOptions, context: CliContext) {
    using queue = await openQueue(options, context)
    const { studies } = queue.store
    if (options.name !== undefined) studies.checkName(options.name)
    const param = [...options.grid.map(parameterOf), ...options.param]
    if (param.length === 0)
      throw new MusterError('usage', 'the sweep has no parameter', {
        hint: 'Add one, such as --grid lr=0.1,0.2 or --grid size=10:100:10.',
      })
    const own: StudyOptions = { ...options, ...GRID, param }
    const spec = studySpecOf(own, queue.inventory)
    const name = options.name ?? freeName(words, queue)
    const job = await trialJobOf(name, words, own, spec, queue, context)
    if (options.dryRun) return tryStudy({ name, spec, job }, queue, options, context)
    const study = { name, spec, job, user: userOf(options), priority: options.priority }
    if (!options.wait) {
      storeStudy(study, queue, options, context)
      return EXIT.ok
    }
    return await runHere(storeStudy(study, queue, options, context, true), name, queue, options, context)
  },
}

/** Until all trials have ended; this command runs the scheduler while no other does. */
async function runHere(
  id: number,
  name: string,
  queue: OpenQueue,
  options: SweepOptions,
  context: CliContext,
): Promise<number> {
  using hosts = await connectHosts(queue.inventory, options, context)
  const over = new AbortController()
  const driving = drive(queue, hosts, { ...context, signal: AbortSignal.any([over.signal, context.signal]) })
  try {
    const { failed } = await Promise.race([
      followStudy(id, queue, options, context, { isFromStart: true }),
      driving.then(() => Promise.withResolvers<never>().promise),
    ])
    return failed > 0 ? EXIT.failed : EXIT.ok
  } finally {
    over.abort()
    await driving
    if (context.signal.aborted) {
      const driver = queue.driver() === undefined ? ` when a scheduler runs: ${queue.command('job work')}` : ''
      const stop = queue.command(`study stop ${name}`)
      context.stderr.write(`muster: ${name} continues${driver}. To stop it: ${stop}\n`)
    }
  }
}

/** `NAME=from:to:step` as `--param` writes it. @throws MusterError 'usage' */
function parameterOf(text: string): string {
  const at = text.indexOf('=')
  const [name, list] = [text.slice(0, at), text.slice(at + 1)]
  if (at < 1 || list === '')
    throw new MusterError('usage', `--grid ${printable(text)}: write it as lr=0.1,0.2 or lr=0.1:1.0:0.1`)
  const parts = list.split(':')
  if (parts.length === 1 || list.includes(',')) return text
  if (parts.length !== 3 || !parts.every(isPlainDecimal))
    throw new MusterError('usage', `--grid ${printable(text)}: from:to:step must be three plain numbers`)
  return `${name}=float:${list}`
}

const INTERPRETER = /^(env|nice|time|exec|(ba|da|k|z)?sh|python[\d.]*|perl|ruby|node|Rscript|julia|torchrun|mpirun)$/
const WORD = /[^\s;&|()<>'"]+/g

/** That of its program, with a number if it is taken: `train`, `train-2`. */
function freeName(words: readonly string[], { store }: OpenQueue): string {
  const all = (words.join(' ').match(WORD) ?? []).filter((word) => !/^[-$]|=/.test(word))
  const program = all.find((word) => !INTERPRETER.test(word.replace(/^.*\//, '')))
  const base =
    (program ?? '')
      .replace(/^.*\//, '')
      .replace(/\.[A-Za-z]{1,3}$/, '')
      .replaceAll(/[^A-Za-z0-9_-]/g, '')
      .replace(/^[^A-Za-z0-9]+/, '')
      .slice(0, 40) || 'sweep'
  for (let number = 1; ; number++) {
    const name = number === 1 ? base : `${base}-${number}`
    if (store.studies.find(name) === undefined) return name
  }
}
