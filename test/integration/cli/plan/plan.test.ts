/** `muster plan`: its picture, exit codes, JSON and wrong input, beside jobs of a queue. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { z } from 'zod'
import { JobStore } from '../../../../src/scheduler/jobs/store.ts'
import { applyEvent } from '../../../support/apply-event.ts'
import { ROOT } from '../../../support/console-options.ts'
import { runMuster } from '../../../support/run-muster.ts'

const schema = z.fromJSONSchema(JSON.parse(readFileSync(join(ROOT, 'docs/schema/plan.schema.json'), 'utf8')))

const NOW = new Date(2026, 10, 23, 13, 30).getTime()

let directory: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'muster-plan-'))
  writeFileSync(
    join(directory, 'hosts.yaml'),
    'cluster: lab\nhosts: { "m[1-3]": { transport: local, resources: { cpu: 16, gpu: 4 } } }\n',
  )
})
afterEach(() => rmSync(directory, { recursive: true }))

const plan = (...args: readonly string[]) => runMuster(['plan', ...args], { directory, now: () => NOW })
const json = async (...args: readonly string[]) => {
  const { exitCode, output, messages } = await plan(...args, '--json')
  expect(messages).toBe('')
  const line = schema.parse(JSON.parse(output)) as Record<string, unknown>
  return { exitCode, line }
}
const openStore = () => new JobStore(join(directory, '.local', 'state', 'muster', 'jobs', 'lab.db'))

/** Job 1 holds four GPUs of m3 for 50 minutes. */
async function submitJob(): Promise<void> {
  const submitted = ['job', 'submit', '--gpu', '4', '--estimate', '3000', '--', 'true']
  await runMuster(submitted, { directory, now: () => NOW })
  using store = openStore()
  applyEvent(store, 1, { kind: 'placed', places: [{ host: 'm3', devices: [0, 1, 2, 3] }] }, NOW)
}

const OPENRLHF = 'openrlhf --actor 1x4 --ref 1x4 --critic 1x2 --reward 1x2 --vllm 2x2 --colocate actor_ref'.split(' ')

test('draws groups on hosts, and says what waits, for which job, and what helps', async () => {
  expect(await plan(...OPENRLHF)).toMatchObject({
    exitCode: 0,
    output: expect.stringMatching(/^reward\t2 × \{GPU 1, CPU 1\}\tPACK\tm3: 2 3$[\s\S]*^It fits now\.$/m),
  })
  await submitJob()
  const { exitCode, output } = await plan(...OPENRLHF)
  expect(exitCode).toBe(6)
  expect(output).toBe(`GROUP\tBUNDLES\tSTRATEGY\tHOST: GPUS
actor+ref\t4 × {GPU 1, CPU 1}\tPACK\tm1: 0 1 2 3
vllm\t4 × {GPU 1, CPU 1}\tPACK\tm2: 0 1 2 3
critic\t2 × {GPU 1, CPU 1}\tPACK\twaits: needs 2 GPUs, 0 free
reward\t2 × {GPU 1, CPU 1}\tPACK\tnot asked for yet
It does not fit now: no place for critic, and the job hangs with 8 GPUs held.
It fits when job 1 ends (it holds m3: 4 GPUs until about 14:20).
Keep it in the queue until then: muster job submit --engine ray --needs '12x{GPU:1,CPU:1} PACK'
It fits now with --train.colocate_all
Rules of openrlhf 0.11.2.
`)
  expect((await plan(...OPENRLHF, '--idle')).exitCode).toBe(0)
  const never = await plan(...OPENRLHF, '--on', 'm[1-2]')
  expect(never.exitCode).toBe(1)
  expect(never.output).toContain('As asked, it never fits these hosts: it needs 12 GPUs, and they have 8.')
})

test('prints JSON as its schema says', async () => {
  await submitJob()
  const { exitCode, line } = await json(...OPENRLHF)
  expect(exitCode).toBe(6)
  expect(line).toMatchObject({
    fits: 'later',
    heldGpuMilli: 8000,
    waitsFor: [{ job: 1, until: new Date(NOW + 3_000_000).toISOString() }],
    change: { options: ['--train.colocate_all'], onIdle: false },
  })
  expect(line.groups).toContainEqual({
    name: 'actor+ref',
    strategy: 'PACK',
    bundles: Array.from({ length: 4 }, () => ({ GPU: 1, CPU: 1 })),
    sharedBy: ['actor', 'ref'],
    places: [{ host: 'm1', bundles: 4, devices: [0, 1, 2, 3], withoutGpu: 0 }],
  })
  const fits = await json(
    'rllib',
    '--from-command',
    'PPOConfig().rollouts(num_rollout_workers=2).resources(num_gpus=1, x=2)',
  )
  expect(fits.line).toMatchObject({
    fits: 'now',
    groups: [{ bundles: [{ CPU: 1, GPU: 1 }, { CPU: 1 }, { CPU: 1 }] }],
    unused: ['x'],
    renamed: [
      { old: '.rollouts()', now: '.env_runners()' },
      { old: 'num_rollout_workers', now: 'num_env_runners' },
      { old: 'num_gpus', now: 'num_gpus_per_learner on the new API stack' },
    ],
  })
  expect(
    (await json('vllm', '--dp', '2', '--dp-local', '5', '--tp', '4', '--dp-backend', 'ray')).line.refusal,
  ).toContain('room for 1 of 5')
})

test('options override those of the line, and resources of a worker add up', async () => {
  const line = 'ScalingConfig(num_workers=2, use_gpu=True, resources_per_worker={"CPU": 4})'
  const { line: out } = await json(
    'train',
    '--from-command',
    line,
    '--workers',
    '1',
    '--gpu',
    '0.5',
    '--resources',
    'memory=0',
  )
  expect(out.groups).toMatchObject([{ bundles: [{ CPU: 4, GPU: 0.5 }] }])
})

test('says that a line has no option that matters', async () => {
  expect((await plan('vllm', '--from-command', 'vllm serve m --port 8000')).output).toMatch(
    /^--from-command has no option that matters for placement: these are the defaults\.\nNot used for placement: --port$/m,
  )
})

test('folds equal trials into rows', async () => {
  const { output } = await plan('tune', '--samples', '20', '--gpu', '1', '--cpu', '2')
  expect(output).toMatch(/^trial ×12\t1 × \{GPU 1, CPU 2\}\tPACK\tm\[1-3\]: 0 1 2 3$/m)
  expect(output).toMatch(/^trial ×8\t.*waits: needs 1 GPU, 0 free$/m)
  expect(output).toContain('It fits now: 12 of 20 at once, the others wait until these end.')
})

test('says which cores are unknown, and which jobs an engine has', async () => {
  writeFileSync(join(directory, 'hosts.yaml'), 'cluster: lab\nhosts: { here: { transport: local } }\n')
  const { exitCode, output } = await plan('train', '--workers', '3')
  expect(exitCode).toBe(0)
  expect(output).toContain('The cores of here are unknown, and taken as enough.')
})

test.each([
  [['train', '--workers', 'two'], '--workers is two: it must be a whole number of 0 or more'],
  [['train', '--workers', '0'], 'num_workers is 0: Ray Train then runs in the process that calls it'],
  [['train', '--resources', 'CPU'], '--resources is CPU: write it as CPU=4,GPU=0.5'],
  [['train', '--cpu', 'two'], '--cpu, CPU is two: it must be a number of 0 or more'],
  [['train', '--strategy', 'NEAR'], 'unknown strategy: NEAR\nStrategies: PACK, SPREAD, STRICT_PACK, STRICT_SPREAD.'],
  [['train', '--workers', '20000'], '20000 bundles are too many: at most 10000'],
  [['openrlhf', '--actor', '4'], '--actor 4: write it as 1x2'],
  [['openrlhf', '--actor', 'none'], '--actor none: write it as 1x2'],
  [['openrlhf', '--colocate', 'actor'], '--colocate actor: it must be actor_ref or critic_reward or all'],
  [['vllm', '--from-command', "vllm serve 'm"], "the line has a ' that is not closed"],
  [['vllm', '--on', 'm9'], 'm9'],
  [['vlm'], 'Did you mean vllm?'],
  [['rllib', '--from-command', 'num_env_runners=\u001b[31m'], 'num_env_runners is \\x1b[31m'],
])('refuses %j', async (args, sentence) => {
  const { exitCode, output, messages } = await plan(...args)
  expect([exitCode, output]).toEqual([2, ''])
  expect(messages).toContain(sentence)
})
