/** Where the user's own command begins: what follows its first word belongs to it, as with ssh. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { readWords } from '../../../../src/cli/command-line/read-words.ts'
import { VerbTree } from '../../../../src/cli/command-line/tree.ts'
import { CONSOLE } from '../../../../src/cli/console/entry.ts'
import { VERBS } from '../../../../src/cli/verbs.ts'
import { runMuster } from '../../../support/run-muster.ts'

const commandOf = async (line: string): Promise<string | undefined> => {
  const streams = { stdout: new PassThrough(), stderr: new PassThrough() }
  const words = line.split(' ')
  const { commandAt } = await readWords(new VerbTree(CONSOLE, VERBS, streams, async () => {}), words)
  return commandAt === undefined ? undefined : words.slice(commandAt).join(' ')
}

describe('the command in a line without --', () => {
  it.each([
    ['run h1 grep -v root', 'grep -v root'],
    ['--hosts run run all uptime -s', 'uptime -s'],
    ['run --diff all cat x', 'cat x'],
    ['run -vy all --fan-out 2 cat x', 'cat x'],
    ['run all --color=never cat x', 'cat x'],
    ['run h1 git log -- x', 'git log -- x'],
    ['run --script fix.py all one --two', 'one --two'],
    ['run h1 run h1', 'run h1'],
    ['job submit --gpu 1 -y python train.py --gpu 2', 'python train.py --gpu 2'],
    ['sweep --grid lr=1,2 train.py --metric x', 'train.py --metric x'],
    ['study create wf --param lr=1,2 train.py --name x', 'train.py --name x'],
    ['launch mpi --slots 2 train.py --slots 3', 'train.py --slots 3'],
    ['launch accelerate --bundles 2 train.py --bundles 3', 'train.py --bundles 3'],
    ['launch --bundles 2 accelerate train.py --bundles 3', 'train.py --bundles 3'],
    ['launch check mpi --slots 2 train.py --json', 'train.py --json'],
    ['ray submit --cpus 2 python -c x', 'python -c x'],
    ['k8s exec -ctrain pod ls -la', 'ls -la'],
  ])('%s', async (line, command) => expect(await commandOf(line)).toBe(command))

  it.each([
    'run all --diff -- cat x',
    'run all',
    'run --retry-failed',
    'copy all a b --json',
    'm8 m9 --keep',
  ])('%s: there is none', async (line) => expect(await commandOf(line)).toBeUndefined())
})

describe('muster', () => {
  let directory: string
  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), 'muster-words-'))
    writeFileSync(join(directory, 'hosts.yaml'), 'hosts: { m8: {} }\n')
  })
  afterEach(() => rmSync(directory, { recursive: true }))
  // With a table of verbs, its output is not checked to be JSON for the --json of the other command.
  const muster = (line: string) => runMuster(line.split(' '), { directory, verbs: VERBS })

  it.each([
    'grep -v root /etc/passwd',
    'echo -y --json --json=host --quiet --dry-run x',
    'python --version',
    'sort --fold --help -h',
    'git log -- x',
  ])('run gives the options of %s to it', async (command) => {
    for (const line of [`run m8 --dry-run ${command}`, `run --dry-run m8 -- ${command}`])
      expect(await muster(line)).toEqual({ exitCode: 0, output: `m8: ${command}\n`, messages: '' })
  })

  it('says so in the help of each verb that takes a command', async () => {
    for (const verb of ['run', 'job submit', 'sweep', 'study create', 'launch mpi', 'launch check', 'k8s exec'])
      expect((await muster(`${verb} --help`)).output.replaceAll(/\s+/g, ' ')).toContain(
        'options after its first word belong to it',
      )
  })

  it('shows help for a verb in front of a command', async () => {
    expect((await muster('help run m8 ls -la')).output).toMatch(/^Usage: muster run /)
    expect((await muster('job help submit ls -la')).output).toMatch(/^Usage: muster job submit /)
  })
})
