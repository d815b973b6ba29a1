/** `muster job work --install` and `--uninstall`: the scheduler as a service of this machine, as a plan that is asked about. */
import { dirname, resolve } from 'node:path'
import { MusterError } from '../../../base/errors.ts'
import { shellQuote } from '../../../base/shell-quote.ts'
import { homeDirectory, stateDirectory } from '../../../base/user-directories.ts'
import type { Inventory } from '../../../inventory/inventory.ts'
import { loadInventory } from '../../../inventory/load-inventory.ts'
import { resolveEndpoints } from '../../../inventory/resolve-endpoints.ts'
import { type Area, areaOf, type ChangeDirection } from '../../../ops/kernel/area.ts'
import { changedLines, withBlock, withoutBlock } from '../../../ops/kernel/block.ts'
import type { Fact, HostFacts } from '../../../ops/kernel/fact.ts'
import { bytesOf, type FileState, fileFact, removeFile, writeFile } from '../../../ops/kernel/files.ts'
import { blockedBy, operationId, type Step, type Verdict } from '../../../ops/kernel/operation.ts'
import { CTL } from '../../../ops/kernel/services.ts'
import { changeAreas } from '../../bring-up/change.ts'
import { ownCommand } from '../../command-line/own-command.ts'
import type { CliContext, GlobalOptions } from '../../command-line/verb.ts'
import { inventorySource } from '../../connect/endpoints.ts'
import { openOpsHosts } from '../../connect/ops-hosts.ts'
import { TtyDialog } from '../../connect/tty-dialog.ts'
import { queueName } from '../open-queue.ts'
import {
  cronLines,
  LINGER_NOTE,
  logFile,
  pidFile,
  SERVICE_HEAD,
  type Service,
  scriptFile,
  scriptText,
  unitFile,
  unitOf,
  unitText,
} from './service.ts'

export type WorkOptions = GlobalOptions & {
  readonly untilEmpty?: boolean
  readonly preempt?: boolean
  readonly keep?: number
  readonly install?: boolean
  readonly uninstall?: boolean
  readonly onEnd?: string
  readonly onFail?: string
}

/** As the machine is called in the plan. */
const HERE = 'localhost'

/** @throws MusterError */
export async function changeService(
  direction: 'up' | 'down',
  options: WorkOptions,
  context: CliContext,
): Promise<number> {
  const inventory = await loadInventory(inventorySource(options, context))
  const service = serviceOf(inventory, options, context)
  const { environment: env, signal } = context
  const endpoints = await resolveEndpoints(
    { hosts: [], groups: new Map() },
    [{ name: HERE, number: 1, transport: 'local' }],
    { env, signal },
  )
  const dialog = new TtyDialog()
  using opened = openOpsHosts(endpoints, options, context, dialog)
  return await changeAreas(
    direction,
    [serviceArea(service)],
    { hosts: opened.hosts, dialog, fanOut: 1 },
    options,
    context,
  )
}

/** @throws MusterError `usage` */
function serviceOf(inventory: Inventory, options: WorkOptions, context: CliContext): Service {
  const { environment, workingDirectory } = context
  if (options.untilEmpty === true)
    throw new MusterError('usage', '--until-empty cannot be used with --install: a service runs until it is stopped')
  if (inventory.file === undefined || options.hosts === '-')
    throw new MusterError('usage', 'a service needs a hosts file: give it with --hosts FILE')
  const file = resolve(workingDirectory, inventory.file)
  const { connectTimeout, fanOut, persist, preempt, keep, onEnd, onFail } = options
  return {
    cluster: queueName(inventory),
    words: [
      ...ownCommand(),
      ...optionWords({ hosts: file, 'connect-timeout': connectTimeout, 'fan-out': fanOut, persist }),
      ...['job', 'work'],
      ...optionWords({ preempt, keep, 'on-end': onEnd, 'on-fail': onFail }),
    ],
    directory: dirname(file),
    environment: {
      HOME: homeDirectory(environment),
      PATH: environment.PATH || '/usr/local/bin:/usr/bin:/bin',
      ...Object.fromEntries(
        ['XDG_STATE_HOME', 'XDG_CONFIG_HOME', 'XDG_CACHE_HOME'].flatMap((name) =>
          environment[name] ? [[name, environment[name]]] : [],
        ),
      ),
    },
    isRoot: process.getuid?.() === 0,
    stateDirectory: stateDirectory(environment),
  }
}

/** `--name value` for each option that is given; `--name` alone where it is true. */
function optionWords(options: Readonly<Record<string, string | number | boolean | undefined>>): string[] {
  return Object.entries(options).flatMap(([name, value]) => {
    if (value === undefined || value === false) return []
    return value === true ? [`--${name}`] : [`--${name}`, String(value)]
  })
}

const AREA = 'job-service'

type Facts = {
  readonly manager: 'systemd' | 'cron' | 'none'
  readonly unit: FileState
  /** Systemd's words: `active enabled`. */
  readonly state: string
  readonly hasLinger: boolean
  readonly script: FileState
  /** Empty if there is none. */
  readonly crontab: string
  readonly isRunning: boolean
}

/** Whether a test of the shell succeeds. */
const whether = (test: string): Fact<boolean> => ({
  script: `if ${test}; then echo yes; else echo no; fi`,
  parse: (text) => (text === 'yes' ? true : text === 'no' ? false : undefined),
})

const facts = (service: Service) => ({
  manager: {
    script: `${CTL}if can_supervise; then echo systemd; elif command -v crontab > /dev/null; then echo cron; else echo none; fi`,
    parse: (text: string) => (['systemd', 'cron', 'none'] as const).find((each) => each === text),
  } satisfies Fact<Facts['manager']>,
  unit: fileFact(unitFile(service)),
  state: {
    script: `${CTL}can_supervise || return 0
echo "$(limited systemctl $manager is-active ${shellQuote(unitOf(service))}) $(limited systemctl $manager is-enabled ${shellQuote(unitOf(service))})"`,
    parse: (text: string) => text.trim(),
  } satisfies Fact<string>,
  hasLinger: whether(`[ "$(id -u)" = 0 ] || [ -e "/var/lib/systemd/linger/$(id -un)" ]`),
  script: fileFact(scriptFile(service)),
  crontab: {
    script: 'command -v crontab > /dev/null || return 0; crontab -l',
    parse: (_: string, bytes: Buffer) => bytes.toString('latin1'),
  } satisfies Fact<string>,
  isRunning: whether(isRunning(service)),
})

/** Cron's script runs: the process that it noted is still this script. */
function isRunning(service: Service): string {
  return `{ read -r pid < ${shellQuote(pidFile(service))} && tr '\\000' '\\n' < "/proc/$pid/cmdline" | grep -q -x -F ${shellQuote(scriptFile(service))}; } 2> /dev/null`
}

function serviceArea(service: Service): Area {
  const id = operationId(AREA, 'service', HERE)
  const title = `scheduler of ${service.cluster} as a service`
  return areaOf<Service, Facts>(
    {
      name: AREA,
      hostsOf: () => [HERE],
      factsOf: () => facts(service),
      plan: (direction, _, areaFacts) =>
        [...areaFacts.facts.values()].map((own) => {
          const verdict = verdictOf(direction, service, id, own.facts)
          return { id, area: AREA, host: HERE, title, after: [], verdict }
        }),
    },
    service,
  )
}

function verdictOf(direction: ChangeDirection, service: Service, id: string, own: HostFacts<Facts>['facts']): Verdict {
  const blocked = (cause: string, hint?: string) =>
    blockedBy({ host: HERE, gravity: 'blocker', id: 'service', cause, ...(hint === undefined ? {} : { hint }) })
  const known: Partial<Record<keyof Facts, unknown>> = {}
  for (const [name, fact] of Object.entries(own)) {
    if (fact.kind === 'unknown') return blocked(`cannot determine ${name}: ${fact.because}`)
    known[name as keyof Facts] = fact.value
  }
  const found = known as Facts
  const { unit, script, manager } = found
  for (const [file, state] of [
    [unitFile(service), unit],
    [scriptFile(service), script],
  ] as const) {
    const isOurs = state.kind === 'none' || (state.kind === 'file' && state.text.includes(SERVICE_HEAD))
    if (!isOurs) return blocked(`${file} exists, and Muster did not make it`, 'Move it away.')
  }
  if (direction === 'down') return removal(service, id, found)
  if (manager !== 'none') return { systemd: withSystemd, cron: withCron }[manager](service, id, found)
  return blocked(
    'this machine has neither systemd for this login nor cron',
    'Install cron, or run this when the machine boots: muster job work',
  )
}

function withSystemd(service: Service, id: string, { unit, state, hasLinger }: Facts): Verdict {
  const isNoted = unit.kind === 'file' && unit.text.includes(LINGER_NOTE)
  const text = unitText(service, isNoted || !hasLinger)
  const [old, wanted] = [unit.kind === 'file' ? unit.text : '', Buffer.from(text).toString('latin1')]
  const name = shellQuote(unitOf(service))
  const steps: Omit<Step, 'id'>[] = []
  if (!hasLinger) {
    steps.push({
      title: 'let units of this login run without a session (loginctl enable-linger)',
      changes: ['+ lingering'],
      run: {
        script: `loginctl enable-linger || { echo "as root: loginctl enable-linger $(id -un)" >&2; exit 1; }`,
      },
    })
  }
  if (old !== wanted) {
    const write = writeFile({ path: unitFile(service), was: unit }, { content: [text], mode: '600', copy: 'drop' })
    steps.push({
      title: `write ${unitFile(service)} and enable it`,
      changes: changedLines(old, wanted).map((line) => Buffer.from(line, 'latin1').toString()),
      run: { ...write, script: `${write.script}\n${CTL}ctl daemon-reload && ctl enable --quiet ${name}` },
    })
  }
  if (old !== wanted || state !== 'active enabled') {
    steps.push({
      title: `start ${unitOf(service)}`,
      changes: [`+ ${unitOf(service)} runs, also after a restart of the machine`],
      run: {
        script: `${CTL}ctl enable --quiet ${name} && ctl reset-failed ${name} 2> /dev/null
ctl restart ${name} || exit 1
# A program that cannot start ends within a moment.
for again in 1 2 3 4 5 6; do
  state=$(ctl show --property SubState ${name})
  [ "$state" = SubState=running ] || { echo "it does not stay up ($state): journalctl $manager -u "${name} >&2; exit 1; }
  sleep 0.5
done`,
      },
    })
  }
  const because = `${unitOf(service)} runs, and starts with the machine`
  return verdictWith(id, old === '' ? 'missing' : 'differs', steps, because)
}

function withCron(service: Service, id: string, { script, crontab, isRunning: runs }: Facts): Verdict {
  const text = scriptText(service)
  const [old, wanted] = [script.kind === 'file' ? script.text : '', Buffer.from(text).toString('latin1')]
  const lines = cronLines(service)
  const write = writeFile({ path: scriptFile(service), was: script }, { content: [text], mode: '700', copy: 'drop' })
  const table = withBlock(crontab === '' ? undefined : crontab, blockName(service), lines, 'bottom')
  const steps: Omit<Step, 'id'>[] = []
  if (old !== wanted) {
    steps.push({
      title: `write ${scriptFile(service)}`,
      changes: [`+ ${service.words.join(' ')}`],
      run: { ...write, script: `( umask 077; mkdir -p ${shellQuote(dirname(scriptFile(service)))} )\n${write.script}` },
    })
  }
  if (table !== crontab) {
    steps.push({
      title: 'add a line to the crontab: start at boot',
      changes: lines.map((line) => `+ ${line}`),
      run: { script: 'crontab -', stdin: [bytesOf(table)] },
    })
  }
  if (old !== wanted || !runs) {
    steps.push({
      title: 'start it',
      changes: ['+ muster job work'],
      run: {
        script: `${stopScript(service)}\nsetsid /bin/sh ${shellQuote(scriptFile(service))} < /dev/null > /dev/null 2>&1 &`,
      },
      check: {
        lack: 'it does not run',
        script: `for again in 1 2 3 4 5 6 7 8 9 10; do ${isRunning(service)} && exit 0; sleep 0.2; done
echo "see "${shellQuote(logFile(service))} >&2; exit 1`,
      },
    })
  }
  return verdictWith(id, old === '' ? 'missing' : 'differs', steps, 'it runs, and cron starts it at boot')
}

function removal(service: Service, id: string, { unit, script, crontab, isRunning: runs }: Facts): Verdict {
  const name = shellQuote(unitOf(service))
  const steps: Omit<Step, 'id'>[] = []
  if (unit.kind === 'file') {
    const { script: remove } = removeFile({ path: unitFile(service), was: unit })
    steps.push({
      title: `stop and remove ${unitOf(service)}; running jobs continue`,
      changes: [`- ${unitFile(service)}`],
      run: {
        script: `${CTL}! can_supervise || { ctl disable --quiet ${name}; ctl stop ${name}; }
${remove}rm -f "$units"/*.wants/${name}
! can_supervise || { ctl daemon-reload; ctl reset-failed ${name} 2> /dev/null; }
:`,
      },
    })
    if (unit.text.includes(LINGER_NOTE)) {
      steps.push({
        title: 'end lingering, which Muster enabled, unless another unit of the login needs it',
        changes: ['- lingering'],
        run: {
          script: `for each in "$HOME"/.config/systemd/user/*.wants/*; do [ ! -e "$each" ] || exit 0; done
loginctl disable-linger`,
        },
      })
    }
  }
  const rest = crontab === '' ? crontab : (withoutBlock(crontab, blockName(service)) ?? '')
  if (rest !== crontab) {
    steps.push({
      title: 'remove the line from the crontab',
      changes: cronLines(service).map((line) => `- ${line}`),
      run: rest === '' ? { script: 'crontab -r' } : { script: 'crontab -', stdin: [bytesOf(rest)] },
    })
  }
  if (script.kind === 'file' || runs) {
    const files = [scriptFile(service), pidFile(service), logFile(service), `${logFile(service)}.old`]
    steps.push({
      title: 'stop it and remove its script; running jobs continue',
      changes: [`- ${scriptFile(service)}`],
      run: { script: `${stopScript(service)}\nrm -f ${files.map(shellQuote).join(' ')}` },
    })
  }
  return verdictWith(id, 'differs', steps, 'it is not installed')
}

function stopScript(service: Service): string {
  return `if ${isRunning(service)}; then
  kill "$pid"
  for again in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do ${isRunning(service)} || break; sleep 0.5; done
fi`
}

const blockName = ({ cluster }: Service): string => `job work ${cluster}`

/** `because`: why there is nothing to do, if there are no steps. */
function verdictWith(
  id: string,
  state: 'missing' | 'differs',
  steps: readonly Omit<Step, 'id'>[],
  because: string,
): Verdict {
  if (steps.length === 0) return { kind: 'nothing', because }
  return { kind: 'steps', state, steps: steps.map((step, index) => ({ ...step, id: `${id}/${index + 1}` })) }
}
