/** `up` and `down`: what a change says, what it asks, and how it ends. */
import { counted } from '../../base/counted.ts'
import { MusterError } from '../../base/errors.ts'
import { printable } from '../../base/printable.ts'
import { foldHostSet } from '../../inventory/host-set.ts'
import type { ApplyResult } from '../../ops/kernel/apply.ts'
import type { Area, ChangeDirection } from '../../ops/kernel/area.ts'
import type { AreaFinding } from '../../ops/kernel/bring-up.ts'
import { type ChangeOptions, type Checked, changeHosts, hostsWithSteps } from '../../ops/kernel/change.ts'
import { countPlan, stepsText } from '../../ops/kernel/format-plan.ts'
import { openJournal } from '../../ops/kernel/journal.ts'
import { hasSteps, type Plan } from '../../ops/kernel/plan.ts'
import { type CliContext, EXIT } from '../command-line/verb.ts'
import type { TtyDialog } from '../connect/tty-dialog.ts'
import { jobsAtStake } from './jobs-at-stake.ts'
import { type BringUpOptions, limitFactorOf, newMark, ownerWords, type Prepared, prepareBringUp } from './prepare.ts'
import { BringUpReport } from './report.ts'

/** @throws MusterError */
export async function change(
  direction: ChangeDirection,
  names: readonly string[],
  options: BringUpOptions,
  context: CliContext,
): Promise<number> {
  using prepared = await prepareBringUp(names, options, context)
  const atStake = (plan: Plan) => jobsAtStake(plan, prepared.areas, prepared.inventory, context)
  return await changePrepared(direction, { ...prepared, atStake }, options, context)
}

/** What a change needs of what was prepared. */
type Changed = Omit<Prepared, 'inventory' | 'declared' | typeof Symbol.dispose> & {
  /** Jobs that may use what the plan removes, a sentence each. */
  atStake?(plan: Plan): readonly string[]
  /** A sentence each, said after the plan. */
  notesOf?(plan: Plan): readonly string[]
}

/** Changes areas that hosts.yaml does not declare, on all of their hosts. */
export async function changeAreas(
  direction: ChangeDirection,
  areas: readonly Area[],
  own: Pick<Changed, 'hosts' | 'dialog' | 'fanOut'> & Partial<Pick<Changed, 'mark' | 'limitFactor' | 'notesOf'>>,
  options: BringUpOptions,
  context: CliContext,
): Promise<number> {
  const owner = ownerWords(context.now())
  const usual = { mark: newMark(), limitFactor: limitFactorOf(options), owner, isSelected: () => true }
  return await changePrepared(direction, { ...usual, ...own, areas }, options, context)
}

async function changePrepared(
  direction: ChangeDirection,
  prepared: Changed,
  options: BringUpOptions,
  context: CliContext,
): Promise<number> {
  const report = new BringUpReport(options, context)
  const { signal, now, environment } = context
  const { dryRun: isDryRun = false, yes: isAgreed = false, verbose = false } = options
  let atStake: readonly string[] = []
  const hosts = new Set<string>()
  const end = await changeHosts(
    {
      ...prepared,
      direction,
      signal,
      now,
      isDryRun,
      isAgreed,
      openJournal: () => openJournal({ environment, now }),
    },
    {
      onPlan(plan, isAgain) {
        if (isAgain) report.say('the hosts have changed; the plan is now:')
        report.plan(plan)
        for (const { host } of plan.operations) hosts.add(host)
        atStake = prepared.atStake?.(plan) ?? []
        for (const sentence of [...atStake, ...(prepared.notesOf?.(plan) ?? [])]) report.say(sentence)
      },
      confirm: async (plan) => isAgreed || (await confirm(plan, atStake.length > 0, prepared.dialog, signal)),
      onEvent: (event) => report.apply(event),
      onSay(text, isDetail) {
        if (!isDetail || verbose) report.say(text)
      },
    },
  )
  const finish = (checked: Checked, result?: ApplyResult, findings: readonly AreaFinding[] = []) =>
    finishChange(checked, result, findings, { direction, isDryRun, report, signal, hosts: hosts.size })
  switch (end.kind) {
    case 'unchanged':
      return finish(end)
    case 'declined':
      return EXIT.interrupted
    case 'locked':
      return EXIT.incomplete
    case 'lost':
      if (end.result !== undefined) finish(end, end.result)
      return EXIT.incomplete
    case 'cancelled':
      return end.applied === undefined ? EXIT.interrupted : finish(end.applied, end.applied.result)
    case 'done':
      return finish(end, end.result, end.findings)
  }
}

async function confirm(plan: Plan, isAtStake: boolean, dialog: TtyDialog, signal: AbortSignal): Promise<boolean> {
  const counts = countPlan(plan)
  const waiting = counts.stuckSteps === 0 ? '' : ', the others wait for what is blocked'
  const on = foldHostSet(hostsWithSteps(plan))
  const answer = await dialog.confirm(
    `Apply ${stepsText(counts)} on ${on}${isAtStake ? ', where jobs run' : ''}${waiting}?`,
    signal,
  )
  if (answer === undefined) {
    throw new MusterError('usage', 'cannot ask for confirmation: there is no terminal', {
      hint: 'Add --yes to apply the plan, or --dry-run to only show it.',
    })
  }
  return answer
}

/** `plan`: what is left to do; `hosts`: how many were in the plan before. */
function finishChange(
  { plan, factsByArea }: Checked,
  result: ApplyResult | undefined,
  findings: readonly AreaFinding[],
  {
    direction,
    isDryRun,
    report,
    signal,
    hosts,
  }: Pick<ChangeOptions, 'direction' | 'isDryRun' | 'signal'> & { report: BringUpReport; hosts: number },
): number {
  report.findings(findings)
  const counts = countPlan(plan)
  const ends = [...(result?.ends.values() ?? [])]
  const count = (kind: string) => ends.filter((end) => end.kind === kind).length
  const away = new Set([...factsByArea.values()].flatMap((areaFacts) => [...areaFacts.away.keys()])).size
  const done = count('done')
  const failed = count('failed') + count('skipped')
  const cancelled = count('cancelled')
  const blockers = findings.filter(({ gravity }) => gravity === 'blocker').length
  const words = [
    ...(isDryRun ? [`${stepsText(counts)} would be done`] : []),
    ...(result === undefined && !isDryRun
      ? [
          counts.blocked > away || counts.toDo > 0
            ? 'nothing to apply'
            : `no change: nothing to do${direction === 'up' ? ' (muster status tests whether it works)' : ''}`,
        ]
      : []),
    ...(result === undefined ? [] : [`${done} done`]),
    ...(failed > 0 ? [`${failed} failed or not started`] : []),
    ...(cancelled > 0 ? [`${cancelled} cancelled`] : []),
    ...(counts.blocked > away ? [`${counts.blocked - away} blocked`] : []),
    ...(away > 0 ? [`${away} not reached`] : []),
    ...(blockers > 0 ? [`${blockers} not working`] : []),
  ]
  report.summary(
    { hosts, done, failed, cancelled, blocked: counts.blocked, unreachable: away, findings: findings.length },
    `${counted(hosts, 'host')}: ${printable(words.join(', '))}`,
  )
  if (signal.aborted) return EXIT.interrupted
  if (failed > 0 || blockers > 0 || counts.blocked > away) return EXIT.incomplete
  if (away > 0) return EXIT.unreachable
  return result !== undefined && hasSteps(plan) ? EXIT.incomplete : EXIT.ok
}
