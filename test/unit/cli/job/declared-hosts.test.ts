import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { watchDeclared } from '../../../../src/cli/job/declared-hosts.ts'
import { loadInventory } from '../../../../src/inventory/load-inventory.ts'
import { waitUntil } from '../../../support/wait-until.ts'

it('says once that hosts.yaml declares other resources than the scheduler started with', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'muster-declared-'))
  const file = join(directory, 'hosts.yaml')
  const write = (cpu: number, rest = '') =>
    writeFileSync(file, `cluster: lab\nhosts: { m1: { resources: { cpu: ${cpu} } } }\n${rest}`)
  write(4)
  const load = async () => await loadInventory({ file, cwd: directory, env: {}, sections: async () => [] })
  const said: string[] = []
  let loads = 0
  const counted = async () => {
    const inventory = await load()
    loads += 1
    return inventory
  }
  using _watch = watchDeclared(await load(), counted, (text) => said.push(text))
  write(4, '# a remark\n')
  await waitUntil(() => loads > 0, 'the file to be read again')
  expect(said).toEqual([])
  write(8)
  await waitUntil(() => said.length > 0, 'the change to be told')
  expect(said).toEqual([`${file} has changed for m1: restart this scheduler to use it`])
  rmSync(directory, { recursive: true })
})
