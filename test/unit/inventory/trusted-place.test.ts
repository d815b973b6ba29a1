import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { loadInventory, refuseForeignFile } from '../../../src/inventory/load-inventory.ts'

describe('a hosts.yaml that was found', () => {
  const uid = process.geteuid?.() ?? 0
  let directory: string
  let file: string
  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), 'muster-trust-'))
    file = join(directory, 'hosts.yaml')
    writeFileSync(file, 'hosts: { m1: { address: 127.0.0.1 } }\n', { mode: 0o644 })
  })
  afterEach(() => rmSync(directory, { recursive: true }))
  const load = (named?: string) =>
    loadInventory({
      sections: async () => [],
      cwd: directory,
      env: {},
      ...(named === undefined ? {} : { file: named }),
    })

  it('is used if only the user can change it', async () => {
    expect((await load()).hosts).toHaveLength(1)
  })

  it.each([
    ['every user can change it', () => chmodSync(file, 0o666), 'it can be changed by every user'],
    ['its group can change it', () => chmodSync(file, 0o664), 'it can be changed by its group'],
    ['every user can replace it', () => chmodSync(directory, 0o777), 'its directory can be changed by every user'],
    ['its group can replace it', () => chmodSync(directory, 0o770), 'its directory can be changed by its group'],
  ])('is refused if %s, unless it is named', async (_, change, reason) => {
    change()
    await expect(load()).rejects.toMatchObject({
      code: 'configuration',
      message: expect.stringContaining(`hosts.yaml is not used: ${reason}`),
      hint: expect.stringContaining('--hosts ./hosts.yaml'),
    })
    expect((await load('./hosts.yaml')).hosts).toHaveLength(1)
  })

  it('is used in a sticky directory, where other users cannot replace it', async () => {
    chmodSync(directory, 0o1777)
    expect((await load()).hosts).toHaveLength(1)
  })

  it('is refused when it belongs to another user', () => {
    const other = uid + 1
    const reason = uid === 0 ? undefined : `it belongs to user ${uid}, not to you (${other})`
    const check = () => refuseForeignFile(file, 'hosts.yaml', other)
    // What root owns is root's to decide.
    if (reason === undefined) expect(check).not.toThrow()
    else expect(check).toThrow(reason)
  })

  it('is refused when it is a link into a directory that every user can change', async () => {
    const open = join(directory, 'open')
    mkdirSync(open)
    chmodSync(open, 0o777)
    writeFileSync(join(open, 'hosts.yaml'), 'hosts: { m1: {} }\n')
    rmSync(file)
    symlinkSync(join(open, 'hosts.yaml'), file)
    await expect(load()).rejects.toThrow('its directory can be changed by every user')
  })
})
