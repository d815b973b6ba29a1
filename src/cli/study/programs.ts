/** `muster study ask`, `tell` and `client`: for programs that loop themselves. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { InvalidArgumentError } from 'commander'
import { defined } from '../../base/defined.ts'
import { MusterError } from '../../base/errors.ts'
import { type JsonRecord, record } from '../../base/json-lines.ts'
import { packageRoot } from '../../base/package-root.ts'
import { printable } from '../../base/printable.ts'
import { shellQuote } from '../../base/shell-quote.ts'
import { loadInventory } from '../../inventory/load-inventory.ts'
import { wholeNumber } from '../command-line/options.ts'
import { type CliContext, EXIT, type GlobalOptions, type VerbCode } from '../command-line/verb.ts'
import { inventorySource } from '../connect/endpoints.ts'
import { commandOn, queuePath } from '../job/open-queue.ts'
import { jsonLine } from '../output/json-lines.ts'
import { askScheduler, programSocket } from './program-socket.ts'

export const SOCKET_VARIABLE = 'MUSTER_STUDY_SOCKET'

async function socketOf(options: GlobalOptions, context: CliContext): Promise<string> {
  const named = context.environment[SOCKET_VARIABLE]
  if (named !== undefined && named !== '') return named
  return programSocket(queuePath(await loadInventory(inventorySource(options, context)), context))
}

const UNITS: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3600, d: 86_400 }

function duration(text: string): number {
  const [, count, unit = 's'] = /^(\d{1,6}(?:\.\d+)?)([smhd])?$/.exec(text) ?? []
  const seconds = Number(count) * (UNITS[unit] ?? 1)
  if (!(seconds > 0)) throw new InvalidArgumentError('It must be a time such as 90s, 30m, 12h or 2d.')
  return seconds
}

type AskOptions = GlobalOptions & { readonly expires?: number }

export const ask: VerbCode = {
  define: (command) =>
    command
      .argument('<study>', 'name of the study')
      .option(
        '--expires <time>',
        'give the trial to another program after this time: 30m, 12h (default: never)',
        duration,
      ),
  help: `
Examples:
  eval "$(muster study ask wf)"      sets MUSTER_TRIAL and a variable for each parameter
  muster study tell wf $MUSTER_TRIAL 0.93

  while point=$(muster study ask wf); do
    eval "$point"
    muster study tell wf $MUSTER_TRIAL "$(python train.py "$lr")"
  done

The trial is yours until you tell its value. Waits while other programs have the last points, because those may come back. Exits
with 1 when the study is over.
`,
  async run(name: string, options: AskOptions, context: CliContext) {
    const request = { ask: name, keep: true, ...defined({ expires: options.expires }) }
    const answer = await askScheduler(
      await socketOf(options, context),
      request,
      context,
      commandOn(options, 'job work'),
    )
    if (typeof answer.done === 'string') {
      context.stderr.write(`muster: ${printable(answer.done)}\n`)
      return EXIT.failed
    }
    const { trial, parameters } = trialOf(answer)
    if (options.json) context.stdout.write(jsonLine({ type: 'trial', study: name, trial, parameters }, context))
    else {
      const values = Object.entries(parameters).map(([parameter, value]) => `${parameter}=${shellQuote(String(value))}`)
      context.stdout.write(`${[`MUSTER_TRIAL=${trial}`, ...values].join(' ')}\n`)
    }
    return EXIT.ok
  },
}

/** The words become lines of a shell: a name is one, or the answer is none. */
const NAME = /^[A-Za-z_][A-Za-z0-9_]*$/

function trialOf({ trial, parameters }: JsonRecord): { readonly trial: number; readonly parameters: JsonRecord } {
  const own = record(parameters)
  if (typeof trial !== 'number' || own === undefined || !Object.keys(own).every((name) => NAME.test(name)))
    throw new MusterError(
      'unreachable',
      `the program that answers at the socket is not a scheduler: check ${SOCKET_VARIABLE}`,
    )
  return { trial, parameters: own }
}

type TellOptions = GlobalOptions & { readonly failed?: string | true; readonly again?: boolean }

export const tell: VerbCode = {
  define: (command) =>
    command
      .argument('<study>', 'name of the study')
      .argument('<trial>', 'number of the trial', wholeNumber(0))
      .argument('[values...]', 'value of the metric, or NAME=NUMBER for each of several')
      .option('--failed [why]', 'the trial has no value')
      .option('--again', 'give the trial to the next program that asks'),
  help: `
Examples:
  muster study tell wf 3 0.93
  muster study tell wf 3 acc=0.93 loss=0.2
  muster study tell wf 3 --failed 'out of memory'
  muster study tell wf 3 --again     its program is gone and does not come back

The same value may be told twice, another one may not.
`,
  async run(name: string, trial: number, values: readonly string[], options: TellOptions, context: CliContext) {
    const { failed, again = false } = options
    if (Number(failed !== undefined) + Number(again) + Number(values.length > 0) > 1)
      throw new MusterError('usage', 'a value, --failed and --again cannot be used together')
    const told = again
      ? { again: name, trial }
      : failed === undefined
        ? { tell: name, trial, values: valuesFrom(values) }
        : { tell: name, trial, failed: failed === true ? '' : failed }
    await askScheduler(await socketOf(options, context), told, context, commandOn(options, 'job work'))
    return EXIT.ok
  },
}

function valuesFrom(texts: readonly string[]): Readonly<Record<string, number>> | readonly number[] {
  const pairs = texts.map((text) => {
    const at = text.indexOf('=')
    const number = text.slice(at + 1).trim() === '' ? Number.NaN : Number(text.slice(at + 1))
    if (!Number.isFinite(number))
      throw new MusterError('usage', `not a number: ${printable(text)}`, { hint: 'A trial without a value: --failed.' })
    return [text.slice(0, Math.max(0, at)), number] as const
  })
  return pairs.some(([name]) => name !== '') ? Object.fromEntries(pairs) : pairs.map(([, number]) => number)
}

const DEFAULT_SOCKET = 'os.path.expanduser("~/.local/state/muster/jobs/default.sock")'

export const client: VerbCode = {
  define: (command) => command.option('--socket', 'print the path of the socket instead'),
  help: `
Examples:
  muster study client > muster_study.py
  export ${SOCKET_VARIABLE}=$(muster study client --socket)

Then, in the program: import muster_study as optuna
`,
  async run(options: GlobalOptions & { readonly socket?: boolean }, context: CliContext) {
    const socket = await socketOf(options, context)
    const program = () => readFileSync(join(packageRoot(), 'docs', 'examples', 'muster_study.py'), 'utf8')
    // A text of JSON is one of Python, too.
    context.stdout.write(
      options.socket ? `${socket}\n` : program().replace(DEFAULT_SOCKET, () => JSON.stringify(socket)),
    )
    return EXIT.ok
  },
}
