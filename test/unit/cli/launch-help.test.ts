/** The help of launchers, and of those that hosts.yaml names. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { runMuster } from '../../support/run-muster.ts'

it('shows the help of `launch row` for the name of a row, and that of all launchers without one', async () => {
  const helpOf = async (...words: readonly string[]) =>
    (await runMuster(['launch', ...words, '--help'], { directory: '/' })).output
  expect(await helpOf('accelerate')).toBe(await helpOf('row', 'accelerate'))
  expect(await helpOf('accelerate')).toContain('Usage: muster launch row [options] [row] [command...]')
  expect(await helpOf()).toContain('Usage: muster launch [options] [command]')
})

it.each([
  ['--bundles 2 torchrun --help', 'torchrun --help'],
  ['--bundles=2 --gpu 1 mpi -h', 'mpi --help'],
  ['--help torchrun', 'torchrun --help'],
  ['--bundles 2 accelerate --help', 'row --help'],
  ['--help accelerate', 'row --help'],
  ['help accelerate', 'row --help'],
  ['--bundles 2 --help', '--help'],
])('shows for `launch %s` the help of `launch %s`', async (given, meant) => {
  const outputOf = (line: string) => runMuster(['launch', ...line.split(' ')], { directory: '/' })
  expect(await outputOf(given)).toEqual(await outputOf(meant))
})

it('takes the options of a launcher before its name', async () => {
  const line = 'launch --bundles 2 torchrun --elastic 1:2 -- train.py'
  const { messages } = await runMuster(line.split(' '), { directory: '/' })
  expect(messages).toContain('there is no ./hosts.yaml')
})

it('refuses help on a misspelt launcher, unless hosts.yaml has a row of that name', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'muster-launch-'))
  try {
    const helpOf = (line: string) => runMuster(['launch', ...line.split(' ')], { directory })
    const unknown = {
      exitCode: 2,
      output: '',
      messages: 'muster: unknown command: torchru\nDid you mean muster launch torchrun?\n',
    }
    expect(await helpOf('torchru --help')).toEqual(unknown)
    expect(await helpOf('--bundles 2 torchru --help')).toEqual(unknown)
    expect(await helpOf('help torchru')).toEqual(unknown)
    writeFileSync(join(directory, 'rows.yaml'), 'hosts: { m1: {} }\nlaunchers: { torchru: {} }\n')
    const { output } = await helpOf('torchru --help --hosts rows.yaml')
    expect(output).toContain('Usage: muster launch row')
  } finally {
    rmSync(directory, { recursive: true })
  }
})
