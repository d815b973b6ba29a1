/** `n` of the Jobs tab: a job from a line that is typed there. */
import { Writable } from 'node:stream'
import { Command } from 'commander'
import { MusterError } from '../../base/errors.ts'
import { printableLines } from '../../base/printable.ts'
import { splitWords } from '../../scheduler/plans/read-command.ts'
import { valuesOf } from '../command-line/options.ts'
import { readOptions } from '../command-line/read-options.ts'
import type { CliContext } from '../command-line/verb.ts'
import { launcherNames } from '../launch/launch-options.ts'
import { jobsToName } from './jobs-to-name.ts'
import type { OpenQueue } from './open-queue.ts'
import { checkRoom, noteMissed, prepareJob, type SubmitOptions, submit, submitter } from './submit.ts'

/** For sh as it is typed; where all of it is in quotes, as in a shell and in the docs, what is in them. */
function commandIn(text: string): string {
  const command = text.trim()
  const quote = command[0] ?? ''
  if (command.length < 2 || !`'"`.includes(quote) || !command.endsWith(quote)) return command
  const [word = '', ...others] = splitWords(command)
  return others.length === 0 ? word : command
}

/** Options of `muster job submit` that print something, or read a file line by line. */
const OF_SHELLS = { from: '--from', dryRun: '--dry-run', as: '--as', json: '--json' } as const

/** Those that can be typed, and what is known of their values. */
export function typedWords({ store, inventory }: OpenQueue) {
  const command = new Command()
  submit.define?.(command)
  const refused = new Set<string>(Object.values(OF_SHELLS))
  const own = command.options.filter(({ long, hidden }) => long != null && !hidden && !refused.has(long))
  const values = own.flatMap((option) => {
    const words = valuesOf(option)
    return words === undefined ? [] : [[option.long ?? '', words] as const]
  })
  return {
    options: own.map(({ long }) => long ?? ''),
    values: {
      ...Object.fromEntries(values),
      '--launch': launcherNames(inventory),
      '--after': jobsToName(store).map(({ id }) => String(id)),
    },
  }
}

/**
 * `text`: a command line for sh, or options of `muster job submit`, `--` and a command line. Returns the first job and what there is to
 * know, in words. @throws MusterError `usage`, and as `muster job submit` does
 */
export async function submitTyped(text: string, queue: OpenQueue, context: CliContext): Promise<readonly string[]> {
  const line = text.replace(/^\s*muster job submit\s+/, '')
  // Typed from habit: it would run on a host.
  if (/^\s*muster\s/.test(line)) {
    const hint = 'Run other commands of muster in a shell. To run muster as a job, put -- before it.'
    throw new MusterError('usage', 'of the commands of muster, only job submit is read here', { hint })
  }
  const [, before = '', command = line] = /^\s*(|-.*?\s)--\s(.*)$/s.exec(line) ?? []
  const hasOptionsAlone = /^\s*-/.test(command)
  const words = hasOptionsAlone ? splitWords(command.replace(/(^|\s)--\s*$/, '')) : splitWords(before)
  const { options, rest } = readOptions<SubmitOptions>(
    hasOptionsAlone ? words : [...words, '--', commandIn(command)],
    (own) => {
      submit.define?.(own)
      return own
    },
  )
  const refused = Object.entries(OF_SHELLS).find(([name]) => options[name as keyof typeof OF_SHELLS] !== undefined)
  if (refused !== undefined) throw new MusterError('usage', `${refused[1]} is for a shell`)
  // It would ask for passwords there.
  if (options.strict && options.engine !== 'embedded')
    throw new MusterError('usage', '--strict with --engine is for a shell')
  if (hasOptionsAlone) throw new MusterError('usage', 'type the command after the options and --')
  const said: string[] = []
  const stderr = new Writable({
    write(chunk, _, done) {
      said.push(
        ...printableLines(
          String(chunk)
            .replace(/^muster: /gm, '')
            .trimEnd(),
        ).split('\n'),
      )
      done()
    },
  })
  const quiet: CliContext = { ...context, stderr }
  const spec = await prepareJob(rest, options, queue, quiet)
  await checkRoom(spec, queue, options, quiet)
  noteMissed(options, queue, quiet)
  const ids = submitter(options, queue, quiet)([spec]).flat()
  const [first = 0, last = first] = [ids[0], ids.at(-1)]
  return [`submitted ${ids.length === 1 ? `job ${first}` : `jobs ${first}-${last}`}`, ...said]
}
