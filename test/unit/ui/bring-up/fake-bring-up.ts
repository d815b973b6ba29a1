/** Bring-up without hosts: the test says what the hosts answer, and when. */
import type { ApplyEvent } from '../../../../src/ops/kernel/apply.ts'
import type { HostStatus } from '../../../../src/ops/kernel/bring-up.ts'
import type { ChangeHandlers } from '../../../../src/ops/kernel/change.ts'
import type { Operation, Step } from '../../../../src/ops/kernel/operation.ts'
import type { Plan } from '../../../../src/ops/kernel/plan.ts'
import type { AreaColumn, BringUpPort, ChangeOrder, ChangeResult } from '../../../../src/ui/bring-up/bring-up-view.ts'

export const stepOf = (host: string, word = 'make'): Step => ({
  id: `trust/key@${host}/${word}`,
  title: `${word} a key`,
  changes: ['+ ~/.ssh/id_muster'],
  run: { script: 'true' },
})

export const operationOf = (host: string): Operation => ({
  id: `trust/key@${host}`,
  area: 'trust',
  host,
  title: 'SSH key',
  after: [],
  verdict: { kind: 'steps', state: 'missing', steps: [stepOf(host), stepOf(host, 'spread')] },
})

export const planOf = (...hosts: readonly string[]): Plan => ({ direction: 'up', operations: hosts.map(operationOf) })

export const statusOf = (host: string, status: HostStatus['status'], atMs?: number): HostStatus => ({
  area: 'trust',
  host,
  status,
  because: [`it is ${status}`],
  findings: [],
  ...(atMs === undefined ? {} : { atMs }),
})

type Change = {
  readonly order: ChangeOrder
  readonly handlers: ChangeHandlers
  readonly ended: PromiseWithResolvers<ChangeResult>
}

export class FakeBringUp implements BringUpPort {
  file = 'hosts.yaml'
  columns: readonly AreaColumn[] = [
    { name: 'trust', hosts: ['m1', 'm2', 'm3'] },
    { name: 'nfs', hosts: undefined },
  ]
  statuses: readonly HostStatus[] = []
  checks = 0
  /** Looks answer when they are released, also those that were stopped. */
  holdsLooks = false
  releaseLooks: () => void = () => {}
  changes: Change[] = []

  areas = async () => this.columns
  journal = async () => []

  async check(_: AbortSignal, onHost: (host: string) => void): Promise<readonly HostStatus[]> {
    this.checks += 1
    if (this.holdsLooks)
      await new Promise<void>((resolve) => {
        this.releaseLooks = resolve
      })
    for (const { host } of this.statuses) onHost(host)
    return this.statuses
  }

  change(order: ChangeOrder, handlers: ChangeHandlers): Promise<ChangeResult> {
    const ended = Promise.withResolvers<ChangeResult>()
    this.changes.push({ order, handlers, ended })
    return ended.promise
  }

  /** The change that was begun last. */
  get last(): Change {
    const last = this.changes.at(-1)
    if (last === undefined) throw new Error('no change was begun')
    return last
  }

  tell(event: Omit<Extract<ApplyEvent, { type: 'begin' }>, 'operation'> & { readonly host: string }): void
  tell(event: Omit<Extract<ApplyEvent, { type: 'output' }>, 'operation'> & { readonly host: string }): void
  tell(event: Omit<Extract<ApplyEvent, { type: 'end' }>, 'operation'> & { readonly host: string }): void
  tell({ host, ...event }: { readonly host: string; readonly type: string; readonly step: Step }): void {
    this.last.handlers.onEvent({ ...event, operation: operationOf(host) } as ApplyEvent)
  }
}
