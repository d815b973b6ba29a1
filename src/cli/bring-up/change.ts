/** `up` and `down`: look, plan, show, ask, lock, apply, look again, verify. */
import { MusterError } from '../../base/errors.ts'
import { printable } from '../../base/printable.ts'
import { foldHostSet } from '../../inventory/host-set.ts'
import { type ApplyResult, applyPlan } from '../../ops/kernel/apply.ts'
import type { Direction } from '../../ops/kernel/area.ts'
import { type AreaFinding, lookAtHosts, verifyAreas, type Worlds } from '../../ops/kernel/bring-up.ts'
import { countPlan } from '../../ops/kernel/format-plan.ts'
import { openJournal } from '../../ops/kernel/journal.ts'
import { lockHost } from '../../ops/kernel/lock.ts'
import { hasSteps, makePlan, type Plan } from '../../ops/kernel/plan.ts'
import { type CliContext, EXIT } from '../context.ts'
import { type BringUpOptions, type Prepared, prepareBringUp } from './prepare.ts'
import { BringUpReport } from './report.ts'

/** @throws MusterError */
export async function change(
  direction: Direction,
  names: readonly string[],
  options: BringUpOptions,
  context: CliContext,
): Promise<number> {
  using prepared = await prepareBringUp(names, options, context)
  const report = new BringUpReport(options, context)
  const run = new Change(direction, prepared, report, options, context)
  return await run.run()
}

class Change {
  readonly #direction: Direction
  readonly #prepared: Prepared
  readonly #report: BringUpReport
  readonly #options: BringUpOptions
  readonly #context: CliContext

  constructor(
    direction: Direction,
    prepared: Prepared,
    report: BringUpReport,
    options: BringUpOptions,
    context: CliContext,
  ) {
    this.#direction = direction
    this.#prepared = prepared
    this.#report = report
    this.#options = options
    this.#context = context
  }

  async run(): Promise<number> {
    const { signal } = this.#context
    let { worlds, plan } = await this.#look()
    if (signal.aborted) return EXIT.interrupted
    this.#report.plan(plan)
    // Where nothing is to be done nothing is tried either: that takes long (a login along every pair), and status does it.
    if (this.#options.dryRun === true || !hasSteps(plan)) return this.#finish(plan, worlds, undefined, [])
    if (!(await this.#confirm(plan))) return EXIT.interrupted
    using locks = new AbortOnDispose(signal)
    if (!(await this.#lock(hostsWithSteps(plan), locks.signal))) return EXIT.incomplete
    // A person takes time to read, and another Muster may have been here: what is applied is what is so now.
    const shown = plan
    ;({ worlds, plan } = await this.#look())
    if (signal.aborted) return EXIT.interrupted
    if (JSON.stringify(plan) !== JSON.stringify(shown)) {
      this.#report.say('the hosts have changed meanwhile; this is the plan now:')
      this.#report.plan(plan)
      if (hasSteps(plan) && !(await this.#confirm(plan))) return EXIT.interrupted
      const others = hostsWithSteps(plan).filter((host) => !hostsWithSteps(shown).includes(host))
      if (!(await this.#lock(others, locks.signal))) return EXIT.incomplete
    }
    const journal = openJournal({ environment: this.#context.environment, now: this.#context.now })
    const result = await applyPlan(plan, {
      hosts: this.#prepared.hosts,
      signal,
      fanOut: this.#prepared.fanOut,
      now: this.#context.now,
      onEvent: (event) => {
        journal.write(event)
        this.#report.apply(event)
      },
    })
    if (signal.aborted) return this.#finish(plan, worlds, result, [])
    const after = await this.#look()
    return this.#finish(after.plan, after.worlds, result, await this.#verify(after.plan, after.worlds))
  }

  async #look(): Promise<{ worlds: Worlds; plan: Plan }> {
    const { areas, hosts, mark, isSelected, limitFactor } = this.#prepared
    const { signal, now } = this.#context
    const worlds = await lookAtHosts(areas, { hosts, signal, mark, now, limitFactor })
    return { worlds, plan: makePlan(this.#direction, areas, worlds, { isSelected }) }
  }

  async #confirm(plan: Plan): Promise<boolean> {
    if (this.#options.yes === true) return true
    const { steps } = countPlan(plan)
    const on = foldHostSet(hostsWithSteps(plan))
    const answer = await this.#prepared.dialog.confirm(
      `Do ${steps === 1 ? 'this step' : `these ${steps} steps`} on ${on}?`,
      this.#context.signal,
    )
    if (answer === undefined) {
      throw new MusterError('usage', 'there is no terminal to ask on whether this is to be done', {
        hint: 'Add --yes to do it, or --dry-run to see it only.',
      })
    }
    return answer
  }

  async #lock(names: readonly string[], signal: AbortSignal): Promise<boolean> {
    const { hosts, owner } = this.#prepared
    const taken = await Promise.all(
      names.map(async (host) => ({ host, lock: await lockHost(hosts, host, owner, signal) })),
    )
    for (const { host, lock } of taken) {
      if (lock.kind === 'busy') this.#report.say(`${host} is being changed by another Muster (${lock.owner})`)
      if (lock.kind === 'failed') this.#report.say(`${host} cannot be locked: ${lock.reason}`)
      if (lock.kind === 'held' && !lock.isReal && this.#options.verbose === true) {
        this.#report.say(`${host} has no flock: nobody keeps another Muster out`)
      }
    }
    return taken.every(({ lock }) => lock.kind === 'held')
  }

  async #verify(plan: Plan, worlds: Worlds): Promise<readonly AreaFinding[]> {
    if (this.#direction === 'down') return []
    const { areas, hosts } = this.#prepared
    return await verifyAreas(areas, worlds, plan, { hosts, signal: this.#context.signal }, 'proof')
  }

  /** `plan`: what is left to do. */
  #finish(plan: Plan, worlds: Worlds, result: ApplyResult | undefined, findings: readonly AreaFinding[]): number {
    this.#report.findings(findings)
    const { signal } = this.#context
    const counts = countPlan(plan)
    const ends = [...(result?.ends.values() ?? [])]
    const count = (kind: string) => ends.filter((end) => end.kind === kind).length
    const away = new Set([...worlds.values()].flatMap((world) => [...world.away.keys()])).size
    const done = count('done')
    const failed = count('failed') + count('skipped')
    const blockers = findings.filter(({ gravity }) => gravity === 'blocker').length
    const words = [
      ...(this.#options.dryRun === true ? [`${counts.steps} steps would be done`] : []),
      ...(result === undefined && this.#options.dryRun !== true ? ['no change: it is as wanted'] : []),
      ...(result === undefined ? [] : [`${done} done`]),
      ...(failed > 0 ? [`${failed} failed or not begun`] : []),
      ...(counts.blocked > away ? [`${counts.blocked - away} blocked`] : []),
      ...(away > 0 ? [`${away} not reached`] : []),
      ...(blockers > 0 ? [`${blockers} do not work`] : []),
    ]
    const hosts = new Set(plan.operations.map(({ host }) => host)).size
    this.#report.summary(
      { hosts, done, failed, blocked: counts.blocked, unreachable: away, findings: findings.length },
      `${hosts} ${hosts === 1 ? 'host' : 'hosts'}: ${printable(words.join(', '))}`,
    )
    if (signal.aborted) return EXIT.interrupted
    if (failed > 0 || blockers > 0 || counts.blocked > away) return EXIT.incomplete
    if (away > 0) return EXIT.unreachable
    return result !== undefined && hasSteps(plan) ? EXIT.incomplete : EXIT.ok
  }
}

function hostsWithSteps({ operations }: Plan): string[] {
  return [...new Set(operations.flatMap(({ host, verdict }) => (verdict.kind === 'steps' ? [host] : [])))]
}

/** Aborted with its parent, or when its owner is done. */
class AbortOnDispose implements Disposable {
  readonly #own = new AbortController()
  readonly signal: AbortSignal

  constructor(parent: AbortSignal) {
    this.signal = AbortSignal.any([parent, this.#own.signal])
  }

  [Symbol.dispose](): void {
    this.#own.abort()
  }
}
