import { expect, it } from 'vitest'
import { createConsoleNetTests } from '../../../../src/cli/console/console-net-tests.ts'
import type { ConsoleConnections } from '../../../../src/cli/console/console-ops.ts'
import { endpointOf } from '../../../support/endpoint.ts'

it('does not install iperf on hosts of several files with one password', async () => {
  const fleet = { endpoint: (host: string) => endpointOf(host, { passwordScope: host.split('/')[0] ?? '' }) }
  const context = { environment: {}, now: () => 0 }
  const connections = { fleet, wires: {}, context, inventory: { hosts: [] } } as unknown as ConsoleConnections
  const port = createConsoleNetTests(connections, (path) => path)
  const order = { hosts: ['lab/m1', 'hpc/m1'], options: port.meshOptions([], ['lab/m1', 'hpc/m1']) }
  const handlers = { onPlan() {}, confirm: async () => false, onEvent() {}, onSay() {} }
  await expect(port.installIperf(order, new AbortController().signal, handlers)).rejects.toThrow(/of several files/)
})
