/** `muster study create`: a study from words to a row of the queue. */
import { defined } from '../../base/defined.ts'
import { MusterError } from '../../base/errors.ts'
import { printable } from '../../base/printable.ts'
import { type CliContext, EXIT, type VerbCode } from '../command-line/verb.ts'
import { openQueue } from '../job/open-queue.ts'
import { COMMAND_WORDS } from '../job/submit.ts'
import {
  type StudyOptions,
  storeStudy,
  studySpecOf,
  trialJobOf,
  tryStudy,
  userOf,
  withMethod,
  withParameters,
  withTrialOptions,
} from './prepare.ts'

export const create: VerbCode = {
  define: (command) =>
    withTrialOptions(
      withMethod(
        withParameters(
          command
            .argument('<study>', 'name of the study')
            .argument('[command...]', `what a trial runs: ${COMMAND_WORDS}; parameters are variables, such as $lr`)
            .option('--ask', 'run no command: programs ask for points and tell their values'),
        ),
      ),
    ),
  help: `
Examples:
  muster study create wf --param size=int:10:200:10 --param lr=log:1e-5:1e-1 --metric max:acc --trials 50 -- 'python train.py $size $lr'
  muster study create opt --param opt=adam,sgd --if 'opt=sgd momentum=float:0:0.9' --metric loss --trials 40 --gpu 1 -- 'python train.py $opt $momentum'
  muster study create hb --param lr=log:1e-5:1e-1 --metric loss --trials 100 --prune halving:3 -- 'python train.py $lr'
  muster study create wf --param lr=0.1,0.2 --dry-run -- 'python train.py $lr'

Put the command into single quotes: its parameters are variables of the trial, and your own shell must not replace them.
No point is tried twice, and none is lost, however often the scheduler is stopped. A trial whose job fails is tried again as the
same trial, as often as --retries says.

--method pbt trains a population. Each member is a job that loads its checkpoint from the directory $MUSTER_CHECKPOINT when it
starts, saves there from time to time and when it gets TERM, and prints --metric and --time-attr. Save to another name and rename it,
so that a checkpoint is whole at any moment:
  muster study create p --method pbt --population 4 --time-attr step --metric max:acc \\
    --mutate lr=loguniform:1e-4:1e-1 -- 'python train.py --lr $lr --checkpoint $MUSTER_CHECKPOINT'
`,
  async run(name: string, words: readonly string[], options: StudyOptions, context: CliContext) {
    using queue = await openQueue(options, context)
    if (options.ask && words.length > 0)
      throw new MusterError('usage', 'with --ask a study runs no command: programs ask for its points')
    if (!options.ask && words.length === 0)
      throw new MusterError('usage', 'the command is missing', {
        hint: `The first word (${printable(name)}) is the name of the study. Write: muster study create NAME --param … -- 'COMMAND'`,
      })
    queue.store.studies.checkName(name)
    const spec = studySpecOf(options, queue.inventory)
    if (options.ask && spec.pbt !== undefined)
      throw new MusterError('usage', '--ask and --method pbt cannot be used together')
    const job = options.ask ? undefined : await trialJobOf(name, words, options, spec, queue, context)
    const study = { name, spec, ...defined({ job, trials: options.trials }) }
    if (options.dryRun) return tryStudy(study, queue, options, context)
    storeStudy({ ...study, user: userOf(options), priority: options.priority }, queue, options, context)
    return EXIT.ok
  },
}
