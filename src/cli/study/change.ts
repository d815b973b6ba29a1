/** `muster study stop` and `more`. */
import { counted } from '../../base/counted.ts'
import { MusterError } from '../../base/errors.ts'
import { printable } from '../../base/printable.ts'
import { didYouMean } from '../../inventory/nearest-word.ts'
import { continueStudy, stopStudy } from '../../scheduler/jobs/study-change.ts'
import type { Study } from '../../scheduler/study/study.ts'
import { wholeNumber } from '../command-line/options.ts'
import { type CliContext, EXIT, type GlobalOptions, type VerbCode } from '../command-line/verb.ts'
import { noticeScheduler, type OpenQueue, openQueue } from '../job/open-queue.ts'
import { jsonLine } from '../output/json-lines.ts'

const MOST_NAMED = 20

/** @throws MusterError 'usage' when there is none. */
export function studyOr({ store }: OpenQueue, name: string): Study {
  const study = store.studies.find(name)
  if (study !== undefined) return study
  const known = store.studies.list(MOST_NAMED).map((one) => one.name)
  throw new MusterError('usage', `there is no study ${printable(name)}${didYouMean(name, known)}`, {
    hint: known.length === 0 ? 'Create one with muster study create.' : `Studies: ${known.join(', ')}.`,
  })
}

export const stop: VerbCode = {
  define: (command) =>
    command
      .argument('<study>', 'name of the study')
      .option('--now', 'also stop the trials that are running, instead of letting them end'),
  help: `
Examples:
  muster study stop wf               start no more trials; running ones continue
  muster study stop wf --now         stop those as well

muster study more wf continues it. Trials that were stopped then start again, as the same trials.
`,
  async run(name: string, options: GlobalOptions & { readonly now?: boolean }, context: CliContext) {
    using queue = await openQueue(options, context)
    const study = studyOr(queue, name)
    const { state } = study
    const { stopped, running } = stopStudy(queue.store, study, { now: options.now === true }, context.now())
    const stops = study.spec.source === undefined ? 'stopped' : 'no longer followed'
    const was = state.kind === 'running' ? stops : `${state.kind} already`
    const said = `${was}${state.kind === 'done' && state.reason !== undefined ? ` (${state.reason})` : ''}`
    if (options.json) context.stdout.write(jsonLine({ type: 'stop', study: name, stopped, running }, context))
    else {
      const trials = counted(stopped, 'trial')
      const also =
        stopped === 0 ? '' : state.kind === 'running' ? `, with ${trials}` : `; ${trials} that ran again stopped`
      const left = running === 0 ? '' : ` ${counted(running, 'trial')} still running: muster study stop ${name} --now`
      context.stdout.write(printable(`${name}: ${said}${also}.${left}`))
      context.stdout.write('\n')
    }
    return EXIT.ok
  },
}

export const more: VerbCode = {
  define: (command) =>
    command.argument('<study>', 'name of the study').option('--trials <n>', 'run N more trials', wholeNumber(1)),
  help: `
Examples:
  muster study more wf --trials 50   run 50 more trials
  muster study more wf               continue a study that was stopped, or that ended after too many failures

Trials that were stopped start again first, as the same trials.
`,
  async run(name: string, options: GlobalOptions & { readonly trials?: number }, context: CliContext) {
    using queue = await openQueue(options, context)
    const study = studyOr(queue, name)
    const { most, again } = continueStudy(queue.store, study, options.trials, context.now())
    if (options.json)
      context.stdout.write(jsonLine({ type: 'more', study: name, again, ...(most && { most }) }, context))
    else {
      const upTo = most === undefined ? '' : `, up to ${counted(most, 'trial')}`
      const first = again === 0 ? '' : `; what was stopped runs first: ${counted(again, 'trial')}`
      const goes = study.spec.source === undefined ? 'continues' : 'is followed again'
      context.stdout.write(`${printable(`${name}: ${goes}${upTo}${first}.`)}\n`)
    }
    noticeScheduler(queue, context)
    return EXIT.ok
  },
}
