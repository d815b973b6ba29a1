import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { createLibrarySource } from '../../../../src/inventory/ssh-config/library-source.ts'

it('refuses a ~/.ssh/config that others may write, also without ssh', async () => {
  const home = mkdtempSync(join(tmpdir(), 'muster-config-'))
  onTestFinished(() => rmSync(home, { recursive: true }))
  mkdirSync(join(home, '.ssh'))
  const config = join(home, '.ssh/config')
  const included = join(home, '.ssh/more')
  writeFileSync(config, 'Include more\nHost m1\n  ProxyCommand sh -c evil\n')
  writeFileSync(included, 'Port 2222\n')
  const localUser = { name: 'ann', uid: process.getuid?.() ?? 0, home, hostName: 'here' }
  const ask = async () => {
    const source = createLibrarySource({ localUser, systemFile: join(home, 'none') })
    return (await source.ask([{ alias: 'm1' }]))[0]
  }
  const refused = (path: string) => ({ ok: false, reason: `bad owner or permissions on ${path}` })
  chmodSync(config, 0o644)
  chmodSync(included, 0o644)
  expect(await ask()).toMatchObject({ ok: true })
  chmodSync(config, 0o664)
  expect(await ask()).toEqual(refused(config))
  chmodSync(config, 0o644)
  chmodSync(included, 0o666)
  expect(await ask()).toEqual(refused(included))
})
