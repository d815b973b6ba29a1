/** A process of the benchmark: opens a shell on every host through the compiled program's fleet, says when all prompts stand. */

import { readFileSync } from 'node:fs'
import type * as Wires from '../../../src/cli/connect/transports.ts'
import type * as Inventory from '../../../src/inventory/inventory.ts'
import type * as Endpoints from '../../../src/inventory/resolve-endpoints.ts'

const [build, sshConfigFile = '', count = '0'] = process.argv.slice(2)
const load = async <T>(path: string): Promise<T> => (await import(`${build}/dist/${path}.js`)) as T

const { inventoryFromTarget } = await load<typeof Inventory>('inventory/inventory')
const { resolveEndpoints } = await load<typeof Endpoints>('inventory/resolve-endpoints')
const { createWires, createShellFleet } = await load<typeof Wires>('cli/connect/transports')

/** Milliseconds of CPU, with those of the children that ended (`ssh -G`): proc_pid_stat(5). */
const cpuMs = () => {
  const fields = readFileSync('/proc/self/stat', 'utf8').split(') ').at(-1)!.split(' ').slice(11, 15)
  return fields.reduce((sum, ticks) => sum + Number(ticks) * 10, 0)
}
const cpuBeforeMs = cpuMs()
const inventory = inventoryFromTarget(`m[1-${count}]`)
const endpoints = await resolveEndpoints(inventory, inventory.hosts, { env: process.env, sshConfigFile })
const refuse = () => Promise.reject(new Error('nobody is asked here'))
const wires = createWires({
  dialog: { ask: refuse } as never,
  environment: process.env,
  onWarning: (message) => process.stderr.write(`${message}\n`),
})
const fleet = createShellFleet(wires, 64)
const waiting = new Set(endpoints.map(({ host }) => host))
const prompt = Buffer.from('Ω')
fleet.on((event) => {
  if (event.type === 'session' && 'failure' in event.state) process.stderr.write(`${JSON.stringify(event.state)}\n`)
  if (event.type !== 'data' || !Buffer.from(event.bytes).includes(prompt) || !waiting.delete(event.host)) return
  if (waiting.size > 0) return
  process.stdout.write(`${JSON.stringify({ cpuMs: cpuMs() - cpuBeforeMs })}\n`)
})
for (const endpoint of endpoints) fleet.add(endpoint)
fleet.connect(fleet.hosts)
process.stdin.on('end', () => {
  fleet[Symbol.dispose]()
  wires[Symbol.dispose]()
  setTimeout(() => process.exit(0), 200)
})
process.stdin.resume()
