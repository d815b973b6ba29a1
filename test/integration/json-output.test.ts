/**
 * What verbs print with --json where this machine is the only host: `runMuster` checks each line against the schema of the verb.
 * Verbs that need other hosts or a cluster are checked in the lab.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ROOT } from '../support/console-options.ts'
import { runMuster } from '../support/run-muster.ts'

const HOSTS = `cluster: json
hosts:
  here: { transport: local, resources: { cpu: 4, memory: 1GiB } }
  gone: { address: 127.0.0.1, port: 1 }
launchers:
  words: { per: bundle, command: [sh, -c, 'echo "$0"; exit 3', '{host}'] }
`
const QUEUE = {
  hosts: [{ name: 'a', cpu: 4, memoryGiB: 8, gpus: 1 }],
  jobs: [{ submitS: 0, runS: 10, user: 'ada', gpuMilli: 500 }],
}
const FIXTURES = join(ROOT, 'test', 'fixtures')
const OPENB = [
  '--nodes',
  join(FIXTURES, 'openb/nodes.csv.gz'),
  '--pods',
  join(FIXTURES, 'openb/pods-multigpu50.csv.gz'),
  '--sequence',
  join(FIXTURES, 'openb/arrivals-multigpu50-42.txt.gz'),
]
const TRIAL = 'echo loss=$lr'

/** In this order, as they use the same queue: the words, and the types of the lines that they must print. */
const CASES: readonly (readonly [words: readonly string[], ...types: readonly string[]])[] = [
  [['doctor', 'here'], 'host', 'summary'],
  [['doctor', 'gone'], 'finding', 'host', 'summary'],
  [['schema'], 'schema'],
  [['hosts'], 'host'],
  [['hosts', '--check'], 'host'],
  [['hosts', 'all', '--fold'], 'host-set'],
  [['run', 'all', '--', 'true'], 'result', 'summary'],
  [['run', 'here', '--dry-run', '--', 'true'], 'would-run'],
  [['copy', 'here', 'queue.json', 'home/'], 'file', 'result', 'summary'],
  [['fetch', 'here', '/etc/hostname', 'fetched'], 'file', 'result', 'summary'],
  [['net', 'watch', 'all', '--count', '1'], 'sample', 'trouble'],
  [['net', 'nfs', 'here', '/tmp', '--time', '1'], 'nfs-directory', 'nfs-block', 'nfs-small-file'],
  [['left', 'here', '--area', 'copy'], 'summary'],
  [['job', 'submit', '--dry-run', '--on', 'here', '--', 'true'], 'trial'],
  [
    ['job', 'submit', '--on', 'here', '--name', 'first', '--metric', 'loss', '--', 'echo loss=0.5; echo x >&2'],
    'submitted',
  ],
  [['job', 'submit', '--on', 'here', '--hold', '--', 'true'], 'submitted'],
  [['job', 'submit', '--on', 'here', '--after', '2', '--', 'true'], 'submitted'],
  [['job', 'list'], 'job'],
  [['job', 'show', '3'], 'job'],
  [['job', 'edit', '2', '--priority', '3'], 'edit'],
  [['job', 'release', '2'], 'release'],
  [['job', 'hold', '2'], 'hold'],
  [['job', 'cancel', '2-4'], 'cancel'],
  [['pack', '--engine', 'embedded'], 'host'],
  [['job', 'work', '--until-empty'], 'job'],
  [['job', 'wait', '1'], 'ended'],
  [['job', 'show', '1'], 'job'],
  [['job', 'logs', '1'], 'output'],
  [['job', 'results', '1'], 'result'],
  [['job', 'retry', '1'], 'retry'],
  [['job', 'requeue', '1'], 'requeue'],
  [['job', 'cancel', '1'], 'cancel'],
  [['launch', 'words', '--dry-run', '--on', 'here', '--', 'true'], 'trial'],
  [['launch', 'words', '--on', 'here', '--', 'true'], 'submitted', 'job', 'output', 'rank', 'ended'],
  [['job', 'ranks', '4'], 'rank'],
  [['job', 'logs', '4', '--failed'], 'failed'],
  [['job', 'logs', '4', '--all'], 'line'],
  [['launch', 'check', 'words', '--on', 'here', '--', 'true'], 'host'],
  [['job', 'clean', '--older-than', '0', '--records', '--dry-run'], 'cleaned', 'forgotten'],
  [['plan', 'tune', '--on', 'here'], 'plan'],
  [['study', 'create', 'wf', '--param', 'lr=0.1,0.2', '--metric', 'loss', '--dry-run', '--', TRIAL], 'study'],
  [['study', 'create', 'wf', '--param', 'lr=0.1,0.2', '--metric', 'loss', '--on', 'here', '--', TRIAL], 'study'],
  [['study', 'stop', 'wf'], 'stop'],
  [['study', 'more', 'wf'], 'more'],
  [['sweep', '--wait', '--grid', 'lr=0.1,0.2', '--metric', 'loss', '--on', 'here', '--', TRIAL], 'study', 'trial'],
  [['study', 'list'], 'study'],
  [['study', 'show', 'wf'], 'study'],
  [['study', 'results', 'wf'], 'trial'],
  [['study', 'export', 'wf'], 'trial'],
  [['study', 'plot', 'wf'], 'best'],
  [['simulate', 'fleet', '--nodes', '10', '--gangs', '20'], 'simulation'],
  [['simulate', 'gangs', join(FIXTURES, 'queue/gangs.json')], 'instance', 'simulation'],
  [['simulate', 'queue', 'queue.json'], 'simulation'],
  [['simulate', 'swf', join(FIXTURES, 'queue/nasa-3000.swf.gz')], 'simulation'],
  [['simulate', 'openb', ...OPENB, '--variant', 'multigpu50', '--policy', 'first-fit'], 'simulation'],
]

describe('the JSON of', () => {
  let directory: string
  beforeAll(() => {
    directory = mkdtempSync(join(tmpdir(), 'muster-json-output-'))
    mkdirSync(join(directory, 'home'))
    writeFileSync(join(directory, 'hosts.yaml'), HOSTS)
    writeFileSync(join(directory, 'queue.json'), JSON.stringify(QUEUE))
  })
  afterAll(() => rmSync(directory, { recursive: true }))

  it.each(CASES.map(([words, ...types]) => ({ words, types, title: words.join(' ') })))('muster $title', async ({
    words,
    types,
  }) => {
    const environment = { ...process.env, HOME: join(directory, 'home'), XDG_STATE_HOME: join(directory, 'state') }
    const { output, messages } = await runMuster(['--json', ...words], { directory, environment })
    const seen = output
      .split('\n')
      .flatMap((line) => (line === '' ? [] : [(JSON.parse(line) as { type: string }).type]))
    expect([...new Set(seen)], messages).toEqual(expect.arrayContaining([...types]))
  })
})
