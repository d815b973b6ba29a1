/** `muster net mesh` before it asks a host. */
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { runMuster } from '../../../support/run-muster.ts'

let directory: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'muster-mesh-verb-'))
  writeFileSync(join(directory, 'hosts.yaml'), 'hosts: { here: { transport: local }, there: { transport: local } }\n')
  mkdirSync(join(directory, 'results'))
})
afterEach(() => rmSync(directory, { recursive: true }))

it.each([
  ['--csv', 'missing/net.csv', 'there is no directory missing'],
  ['--svg', 'results', 'it is a directory'],
  ['--svg', 'hosts.yaml/net.svg', 'part of its path is not a directory'],
])('refuses %s %s, which it could not write, before it measures', async (option, path, why) => {
  const before = readdirSync(directory)
  expect(await runMuster(['net', 'mesh', option, path], { directory })).toEqual({
    exitCode: 2,
    output: '',
    messages: `muster: cannot write ${path}: ${why}\n`,
  })
  expect(readdirSync(directory)).toEqual(before)
})

it('leaves no file behind with --dry-run', async () => {
  const { exitCode } = await runMuster(['net', 'mesh', '--dry-run', '--csv', 'net.csv'], { directory })
  expect([exitCode, readdirSync(directory)]).toEqual([0, ['hosts.yaml', 'results']])
})
