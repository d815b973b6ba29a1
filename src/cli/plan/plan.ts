/** `muster plan FRAMEWORK`: which placement groups a framework would ask for, where they go now, and what waits. */
import { Option } from 'commander'
import { defined } from '../../base/defined.ts'
import { MusterError } from '../../base/errors.ts'
import { printable } from '../../base/printable.ts'
import { sectionOf } from '../../inventory/hosts-yaml-schema.ts'
import { fileTitle, resolveTarget } from '../../inventory/inventory.ts'
import { section as raySection } from '../../ops/ray/section.ts'
import { isActive } from '../../scheduler/jobs/job.ts'
import { occupy, runningOf } from '../../scheduler/jobs/plan-jobs.ts'
import { expectedEndS } from '../../scheduler/plan/predict.ts'
import type { Framework, GroupsPlan, Values } from '../../scheduler/plans/framework.ts'
import type { FrameworkEntry } from '../../scheduler/plans/frameworks.ts'
import { inThousandths, isUndeclaredModel, type PlanRoom, tryPlan } from '../../scheduler/plans/place-plan.ts'
import { readCommand } from '../../scheduler/plans/read-command.ts'
import { type CliContext, EXIT, type GlobalOptions, type VerbCode } from '../command-line/verb.ts'
import { declaredHosts, type OpenQueue, readQueue, withEnough } from '../job/open-queue.ts'
import { writeEvent } from '../output/json-lines.ts'
import { describePlan, formatPlan } from './report.ts'

type PlanOptions = GlobalOptions & { readonly fromCommand?: string; readonly on?: string; readonly idle?: boolean }

/** The code of `muster plan NAME`, whose options are the framework's. */
export async function planVerb({ name, load }: FrameworkEntry): Promise<VerbCode> {
  const { framework } = await load()
  const flags = framework.flags.map(({ flags: text, about, read }) => ({ option: new Option(text, about), read }))
  return {
    define(command) {
      for (const { option } of flags) command.addOption(option)
      command
        .option('--from-command <line>', 'read the options from this line of a shell or of Python; it is not run')
        .option('--on <target>', 'plan for these hosts (default: all)')
        .option('--idle', 'plan as if no job ran on them')
    },
    help: `
Examples:
  muster plan ${name} --from-command '${framework.example}'

The rules are those of ${framework.source}. Jobs of the queue count as occupied; nothing is started, and no host is asked.
Exit codes: 0 fits now, 6 fits when jobs end or hosts come back, 1 never fits.
`,
    run(options: PlanOptions, context: CliContext) {
      const given = flags.map(({ option, read }): Values => {
        const text = (options as Readonly<Record<string, unknown>>)[option.attributeName()]
        return typeof text === 'string' ? read(text) : {}
      })
      return showPlan(framework, given, options, context)
    },
  }
}

async function showPlan(
  framework: Framework,
  given: readonly Values[],
  options: PlanOptions,
  context: CliContext,
): Promise<number> {
  const line = options.fromCommand
  const read = line === undefined ? undefined : readCommand(line, framework)
  const defaults = Object.fromEntries(Object.entries(framework.words).map(([word, { byDefault }]) => [word, byDefault]))
  const values = [read?.values ?? {}, ...given].reduce(merge, defaults)
  using queue = await readQueue(options, context)
  const { room, notes } = roomOf(queue, options, context)
  const plan = framework.plan(values)
  const outcome = tryPlan(framework, values, room)
  const shown = {
    framework,
    plan,
    outcome,
    room,
    read,
    notes: [...notes, ...modelNotes(plan, room)],
    nowMs: context.now(),
  }
  if (options.json === true) writeEvent(describePlan(shown), context)
  else context.stdout.write(formatPlan(shown, context.stdout))
  return { now: EXIT.ok, later: EXIT.later, never: EXIT.failed }[outcome.fits]
}

function modelNotes({ groups }: GroupsPlan, { cluster }: PlanRoom): readonly string[] {
  const asked = new Set(groups.flatMap(({ bundles }) => bundles.flatMap((bundle) => Object.keys(bundle))))
  return [...asked]
    .filter((name) => isUndeclaredModel(cluster, name))
    .map((name) => `No host declares ${name}: any GPU counts as that model.`)
}

/** Resources of one kind add up: --cpu 4 --gpu 0.5. */
function merge(one: Values, other: Values): Values {
  const both = Object.entries(other).map(([word, value]) => {
    const before = one[word]
    return [word, typeof before === 'object' && typeof value === 'object' ? { ...before, ...value } : value]
  })
  return { ...one, ...Object.fromEntries(both) }
}

/** @throws MusterError 'configuration' if there is no host to plan for. */
function roomOf(queue: OpenQueue, { on, idle, exclude }: PlanOptions, { now }: CliContext) {
  const { inventory, store } = queue
  const names = new Set(
    resolveTarget(inventory, on, { isOfInventory: true, ...defined({ exclude }) }).map(({ name }) => name),
  )
  const known = declaredHosts(queue).filter(({ name }) => names.has(name))
  if (known.length === 0)
    throw new MusterError('configuration', `no host of ${fileTitle(inventory)} to plan for`, {
      hint: 'Declare hosts with resources.',
    })
  const active = idle === true ? [] : store.active()
  const { cluster, placements } = occupy(inThousandths(withEnough(known)), active)
  const report = store.report()
  const down = known.flatMap(({ name }, host) => (report?.down[name] === undefined ? [] : [host]))
  for (const host of down) cluster.close(host, true)
  const nowS = Math.floor(now() / 1000)
  const runTimes = store.accounting.runTimes()
  const tenants = active
    .flatMap((job) => {
      const own = placements.get(job.id) ?? []
      if (own.length === 0) return []
      const running = runningOf(job, own, nowS)
      const endS = expectedEndS(running, nowS, runTimes)
      return [{ id: job.id, endS, isEstimated: running.estimateS !== undefined, placements: own }]
    })
    .sort((first, second) => first.endS - second.endS)
  const head = known.findIndex(({ name }) => name === sectionOf(inventory, raySection)?.head)
  const room: PlanRoom = { cluster, tenants, down, driver: Math.max(0, head) }
  const unknown = known.filter((host) => host.unknown?.includes('cores')).map(({ name }) => name)
  const onRay = active.filter(({ spec, state }) => spec.engine !== undefined && isActive(state)).map(({ id }) => id)
  return {
    room,
    notes: [
      ...down.map((host) => `${known[host]?.name} cannot be used: ${report?.down[known[host]?.name ?? '']}`),
      ...(unknown.length === 0 ? [] : [`The cores of ${unknown.join(', ')} are unknown, and taken as enough.`]),
      ...(onRay.length === 0 ? [] : [`Jobs that an engine placed are not subtracted: ${onRay.join(', ')}.`]),
    ].map((note) => printable(note)),
  }
}
