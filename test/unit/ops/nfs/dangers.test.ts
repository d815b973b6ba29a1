import { expect, it } from 'vitest'
import { parseExports } from '../../../../src/ops/nfs/exports.ts'
import { dangersOfForeign, dangersOfShare } from '../../../../src/ops/nfs/verify.ts'
import { wantedNfs } from '../../../../src/ops/nfs/wanted.ts'
import { readInventory } from '../../../support/hosts-yaml.ts'

const hintOf = (findings: readonly { readonly id: string; readonly hint?: string }[]) =>
  findings.find(({ id }) => id === 'export-world')?.hint

it('suggests the addresses of the clients in place of an export to everyone, and no unknown network', () => {
  const inventory = readInventory(
    'hosts: { "m[1-6]": }\nnfs:\n  - { server: m1, path: /srv, clients: "m[2-6]", export_to: "*" }\n',
    'hosts.yaml',
  )
  const endpoints = new Map(
    inventory.hosts.map(({ name }) => [name, { host: name, address: `10.81.0.${name.slice(1)}`, transport: 'ssh2' }]),
  )
  const [share] = wantedNfs({ inventory, endpoints: endpoints as never })?.shares ?? []
  if (share === undefined) throw new Error('nothing is shared')
  expect(hintOf(dangersOfShare('m1', share, undefined))).toBe(
    'Leave out export_to in hosts.yaml: then only the clients may mount it (10.81.0.2, 10.81.0.3, 10.81.0.4 and 2 more).',
  )
})

it("says where the clients belong in a line that is not Muster's", () => {
  const file = parseExports('/data *(rw,sync)\n', '/etc/exports')
  expect(hintOf(dangersOfForeign('m1', file))).toBe(
    'Name the clients in place of *: /data CLIENT(rw,sync), with the address or the network of the clients.',
  )
})
