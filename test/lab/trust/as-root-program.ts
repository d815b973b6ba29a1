/** Runs `id -u` as root on each host of a target, with the password of stdin's first line for sudo; one JSON line a host. */
import { text } from 'node:stream/consumers'
import { Secret } from '../../../src/base/secret.ts'
import { createOpsHosts } from '../../../src/cli/connect/ops-hosts.ts'
import { createWires } from '../../../src/cli/connect/transports.ts'
import { inventoryFromTarget } from '../../../src/inventory/inventory.ts'
import { resolveEndpoints } from '../../../src/inventory/resolve-endpoints.ts'

const [target = ''] = process.argv.slice(2)
const password = (await text(process.stdin)).split('\n')[0] ?? ''
const inventory = inventoryFromTarget(target)
const endpoints = await resolveEndpoints(inventory, inventory.hosts, { env: process.env })
const nobody = { ask: async () => undefined }
const signal = new AbortController().signal
using wires = createWires({ dialog: nobody, environment: process.env, onWarning() {} })
using hosts = createOpsHosts(endpoints, {
  ...wires,
  fanOut: 8,
  signal,
  sudoPassword: async () => (password === '' ? undefined : new Secret(password)),
})
await Promise.all(
  endpoints.map(async ({ host, user }) => {
    const options = { asRoot: true, timeoutMs: 60_000, signal, stdin: Buffer.from('what it reads\n') }
    const { outcome, stdout, stderr } = await hosts.exec(host, 'id -u; cat', options)
    const said = { stdout: Buffer.from(stdout).toString(), stderr: Buffer.from(stderr).toString() }
    process.stdout.write(`${JSON.stringify({ user, ...outcome, ...said })}\n`)
  }),
)
