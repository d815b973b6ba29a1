/** `HOSTS_FILE PATH`: checks over SSH whether PATH is one directory on all hosts of the file, and prints a finding a line. */

import { inventorySource } from '../../../src/cli/connect/endpoints.ts'
import { openOpsHosts } from '../../../src/cli/connect/ops-hosts.ts'
import { loadInventory } from '../../../src/inventory/load-inventory.ts'
import { resolveEndpoints } from '../../../src/inventory/resolve-endpoints.ts'
import { checkSharedDirectory } from '../../../src/ops/nfs/shared-directory.ts'
import { wantedNfs } from '../../../src/ops/nfs/wanted.ts'

const [file = '', path = ''] = process.argv.slice(2)
const { signal } = new AbortController()
const context = {
  environment: process.env,
  workingDirectory: process.cwd(),
  signal,
  now: Date.now,
  stdin: process.stdin,
  stdout: process.stdout,
  stderr: process.stderr,
}
const options = { hosts: file, connectTimeout: 20 }
const inventory = await loadInventory(inventorySource(options, context))
const endpoints = await resolveEndpoints(inventory, inventory.hosts, { env: process.env, signal })
const declared = { inventory, endpoints: new Map(endpoints.map((endpoint) => [endpoint.host, endpoint])) }
using opened = openOpsHosts(endpoints, options, context)
const names = inventory.hosts.map(({ name }) => name)
const shares = wantedNfs(declared)?.shares ?? []
for (const finding of await checkSharedDirectory(path, names, { hosts: opened.hosts, signal, shares }))
  console.log(`${finding.host}: ${finding.cause}. ${finding.hint}`)
