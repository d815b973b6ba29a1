/** Whether wheels that were copied to a host are whole; real scripts in a real shell. */
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { isBrought } from '../../../../src/ops/env/venv-scripts.ts'
import { wheelsOf } from '../../../../src/ops/env/wanted.ts'

const LOCK = ['one', 'two'].map((name) => `${name}==1 --hash=sha256:00 # ${name}-1-py3-none-any.whl\n`).join('')

let home: string
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'muster-wheels-'))
})
afterEach(() => rmSync(home, { recursive: true }))

it('says that a copy which was interrupted after the list is not whole', () => {
  const spec = {
    kind: 'venv',
    hosts: ['m1', 'm2'],
    path: '~/lab',
    python: 'python3',
    wheels: join(home, 'wheels'),
    from: 'm1',
  } as const
  const places = wheelsOf({ spec })
  mkdirSync(places.parcel, { recursive: true })
  writeFileSync(join(places.parcel, 'content-x'), LOCK)
  const check = () => {
    const input = createHash('sha256').update(LOCK).digest('hex')
    return spawnSync('sh', ['-c', isBrought(places, 'content-x')], { input, env: { ...process.env, HOME: home } })
      .status
  }
  expect(check()).toBe(1)
  writeFileSync(join(places.parcel, 'two-1-py3-none-any.whl'), '')
  expect(check()).toBe(1)
  writeFileSync(join(places.parcel, 'one-1-py3-none-any.whl'), '')
  expect(check()).toBe(0)
})
