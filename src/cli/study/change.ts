/** `muster study stop` and `more`. */
import { MusterError } from '../../base/errors.ts'
import { printable } from '../../base/printable.ts'
import { isFinal } from '../../scheduler/jobs/job.ts'
import type { Study } from '../../scheduler/study/study.ts'
import { wholeNumber } from '../command-line/options.ts'
import { type CliContext, EXIT, type GlobalOptions, type VerbCode } from '../command-line/verb.ts'
import { type OpenQueue, openQueue } from '../job/open-queue.ts'

/** @throws MusterError 'usage' when there is none. */
export function studyOr({ store }: OpenQueue, name: string): Study {
  const study = store.studies.find(name)
  if (study !== undefined) return study
  const known = store.studies.list(20).map((one) => one.name)
  throw new MusterError('usage', `there is no study ${printable(name)}`, {
    hint: known.length === 0 ? 'Make one with muster study create.' : `Studies: ${known.join(', ')}.`,
  })
}

export const stop: VerbCode = {
  define: (command) =>
    command
      .argument('<study>', 'name of the study')
      .option('--now', 'also stop trials that run, instead of letting them end'),
  help: `
Examples:
  muster study stop wf               start no more trials; those that run go on
  muster study stop wf --now         stop those as well

muster study more goes on with it.
`,
  async run(name: string, options: GlobalOptions & { readonly now?: boolean }, context: CliContext) {
    using queue = await openQueue(options, context)
    const { store } = queue
    const nowMs = context.now()
    store.together(() => {
      const { id, state } = studyOr(queue, name)
      if (state.kind === 'running')
        store.studies.setState(id, { ...state, kind: 'stopped', reason: 'stopped by its user', endedMs: nowMs })
      const jobs = store.studies.open(id).flatMap(({ job }) => (job === undefined ? [] : [job]))
      const stopped = jobs.filter(({ state: { kind } }) => kind === 'queued' || kind === 'held' || options.now === true)
      store.applyAll(
        stopped.map((job) => ({ id: job.id, event: { kind: 'stop', reason: 'cancelled' } })),
        nowMs,
      )
    })
    return EXIT.ok
  },
}

export const more: VerbCode = {
  define: (command) =>
    command.argument('<study>', 'name of the study').option('--trials <n>', 'run N trials more', wholeNumber(1)),
  help: `
Examples:
  muster study more wf --trials 50   run 50 trials more
  muster study more wf               go on with a study that was stopped

Trials that were stopped begin again first, as the same trials.
`,
  async run(name: string, options: GlobalOptions & { readonly trials?: number }, context: CliContext) {
    using queue = await openQueue(options, context)
    const { store } = queue
    store.together(() => {
      const { id, state } = studyOr(queue, name)
      const { reason: _, endedMs: __, ...rest } = state
      const trials =
        options.trials === undefined ? state.trials : (state.trials ?? store.studies.nextNumber(id)) + options.trials
      store.studies.setState(id, { ...rest, kind: 'running', ...(trials === undefined ? {} : { trials }) })
      const again = store.studies.trials(id).flatMap(({ job, end }) => {
        const own = job === undefined || end?.kind !== 'failed' ? undefined : store.get(job)
        return own !== undefined && isFinal(own.state) && own.state.kind === 'cancelled' ? [own.id] : []
      })
      store.applyAll(
        again.map((job) => ({ id: job, event: { kind: 'retry' } })),
        context.now(),
      )
    })
    return EXIT.ok
  },
}
