import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { parse, stringify } from 'yaml'
import { packageRoot } from '../../../../src/base/package-root.ts'
import { convertDijob, dijobOf } from '../../../../src/scheduler/launch/dijob.ts'

const fixture = (name: string) => readFileSync(join(packageRoot(), 'test', 'fixtures', 'dijob', `${name}.yaml`), 'utf8')

/** With one task, whose container has these fields. */
const dijob = (container: string, spec = '') => `apiVersion: diengine.opendilab.org/v2alpha1
kind: DIJob
metadata: { name: t }
spec:
  backoffLimit: 0
${spec}  tasks:
  - { name: a, type: none, template: { spec: { containers: [{ name: c, image: i, ${container} }] } } }
`
const line = (text: string) => `command: [sh, -c, ${JSON.stringify(text)}]`
const textsOf = (text: string) => convertDijob(text).notes.map((note) => note.text)
const wordsOf = (text: string) => convertDijob(text).words.join(' ')

describe('a DIJob', () => {
  it('of the older schema is explained field by field, and becomes a job and a DIJob of the current one', () => {
    const { notes, words, dijob: yaml } = convertDijob(fixture('older'))
    expect(notes.map(({ line: at, text }) => `${at}: ${text}`)).toEqual([
      '5: spec is of the older v2alpha1 (before June 2022), which the current one refuses',
      '5: spec.minReplicas was removed: the number of pods no longer changes while the job runs',
      '5: spec has no --topology for ditask, without which the pods do not connect: using star',
      '5: spec has no backoffLimit: the operator would retry 3 times, Muster retries only with --retries',
      '6: spec.maxReplicas is now replicas of a task',
      '8: spec.template is now template of a task: spec.tasks lists name, type, replicas and template',
      '14: spec.template.spec.containers[0].args lacks --platform k8s, without which the pods do not find each other',
    ])
    expect(words.join(' ')).toBe(
      'job submit --engine k8s --from-env image:opendilab/ding:latest --name test --launch ditask --workers 2 --topology star --bundles 3 --cpu 6 --memory 10GiB -- --package my_module --main my_module.main',
    )
    const { spec } = parse(yaml)
    expect(Object.keys(spec)).toEqual(['tasks'])
    expect(spec.tasks).toMatchObject([{ name: 'worker', type: 'none', replicas: 3 }])
    expect(spec.tasks[0].template.spec.containers[0].args).toEqual([
      'ditask --platform k8s --topology star --package my_module --main my_module.main --parallel-workers 2',
    ])
    // Converted again, nothing is left to be said about the schema.
    expect(textsOf(yaml)).toEqual([
      'spec has no backoffLimit: the operator would retry 3 times, Muster retries only with --retries',
    ])
  })

  it('takes topology and workers from engineFields', () => {
    const text = fixture('older')
      .replace(' --parallel-workers 2', '')
      .replace('  template:', '  engineFields: { topology: mesh, parallelWorkers: 4 }\n  template:')
    const { words, dijob: yaml } = convertDijob(text)
    expect(words.join(' ')).toContain('--launch ditask --workers 4 --topology mesh --bundles 3')
    expect(yaml).toContain('ditask --platform k8s --topology mesh --parallel-workers 4 --package')
  })

  it('of the current schema keeps its tasks as roles with labels and requests', () => {
    const { notes, words, dijob: yaml } = convertDijob(fixture('current'))
    expect(notes.map(({ text }) => text)).toEqual([
      'spec.cleanPodPolicy has no counterpart in a Muster job',
      'spec.tasks ask for different amounts, but all pods of a Muster job get the same: using the largest',
    ])
    expect(words.join(' ')).toContain(
      '--topology star --role learner=1 --role collector=2 --cpu 1 --gpu 1 -- --package my_module',
    )
    expect(parse(yaml)).toEqual(parse(fixture('current')))
  })

  it('makes one role of tasks whose names differ in numbers only', () => {
    const text = fixture('current').replaceAll('learner', 'collector').replace('name: collector,', 'name: collector-0,')
    expect(wordsOf(text)).toContain('--role collector=3 ')
    expect(textsOf(text)).toContain(
      'spec.tasks have the label collector-0: role names have only letters, so the role is collector',
    )
  })

  it('keeps variables, directory and retries, and names what it leaves out', () => {
    const container = `${line('pip install x\nditask --main m.main --ports 1,2 --platform k8s --topology mesh --seed "$SEED"')}, workingDir: /srv, stdin: true,
      env: [{ name: SEED, value: "7" }, { name: KEY, valueFrom: { secretKeyRef: { name: s, key: k } } }],
      resources: { limits: { cpu: 500m, memory: 1e9, nvidia.com/gpu: 2, x/rdma: 1 } }`
    const text = dijob(container).replace('backoffLimit: 0', 'backoffLimit: 2\n  priority: high')
    expect(wordsOf(text)).toBe(
      'job submit --engine k8s --from-env image:i --name t --launch ditask --topology mesh --bundles 1 --cpu 0.5 --memory 954MiB --gpu 2 --env SEED=7 --dir /srv --priority 1 --retries 2 -- --main m.main --seed "$SEED"',
    )
    expect(textsOf(text)).toEqual([
      'spec asks for x/rdma in task a, which has no counterpart in a Muster job',
      expect.stringMatching(/containers\[0\]\.stdin has no counterpart in a Muster job$/),
      expect.stringMatching(/command also runs pip install x: put that into the image or a script$/),
      expect.stringMatching(/command has the option --seed, which ditask of DI-engine 0\.5 does not have$/),
      expect.stringMatching(/command has --ports: left out, because Muster sets the addresses of workers$/),
      expect.stringMatching(/containers\[0\]\.env has KEY, which is not plain text: left out$/),
    ])
  })

  it('reads a ditask that is called without a shell', () => {
    const { words, dijob: yaml } = convertDijob(dijob('command: [/usr/bin/ditask], args: ["--main", "m n.main"]'))
    expect(words.at(-1)).toBe("--main 'm n.main'")
    expect(parse(yaml).spec.tasks[0].template.spec.containers[0]).toMatchObject({
      command: ['/usr/bin/ditask', '--platform', 'k8s', '--topology', 'star', '--parallel-workers', '1'],
      args: ['--main', 'm n.main'],
    })
  })

  it.each([
    '',
    '--redis-host r',
    '--redis-port 6379',
    '--redis-host "$REDIS" --redis-port 6379',
  ])('names no Redis server that Muster can read: %s', (redis) => {
    const text = dijob(line(`ditask -m a --platform k8s --topology mesh --mq-type redis ${redis}`))
    expect(wordsOf(text)).toMatch(/--launch ditask --topology mesh --bundles 1 /)
    expect(textsOf(text)).toEqual([
      'spec.tasks[0].template.spec.containers[0] has --mq-type redis without a --redis-host and --redis-port that Muster can read: left out, so the workers connect to each other. To use a server, add --redis HOST:PORT in place of --topology',
    ])
  })

  it('names its Redis server', () => {
    const text = dijob(
      line('ditask -m a --platform k8s --topology star --mq-type redis --redis-host r --redis-port 6379'),
    )
    expect(wordsOf(text)).toContain('--launch ditask --redis r:6379 --bundles 1 ')
    expect(textsOf(text)).toEqual([])
  })

  it('takes none for a type that the current operator does not know', () => {
    const text = fixture('current').replace('type: learner', 'type: boss')
    expect(textsOf(text)).toContain('spec.tasks[0].type must be learner, collector, evaluator, none: using none')
    expect(parse(convertDijob(text).dijob).spec.tasks[0].type).toBe('none')
  })

  it.each([
    ['kind: Pod', 'it is not a DIJob: kind is Pod'],
    ['[1, 2]', 'it is not a DIJob: kind is missing'],
    ['kind: DIJob\napiVersion: diengine.opendilab.org/v1alpha2', /only DIJobs of .*v2alpha1 can be converted, not /],
    ['a: [', /^line 1: /],
    ['a: 1\n---\nb: 2', /^line \d: /],
    [dijob(line('python train.py')), 'no container of task a runs ditask'],
    [dijob(line('ditask --main a; ditask --main b')), 'must call ditask once'],
    [
      dijob(line('ditask --main a'), '').replace('name: a,', 'name: "a\\u001b[2J",'),
      /lower-case letters, digits and hyphens, not a/,
    ],
    [dijob(line('ditask --main a')).replace('type: none', 'type: none, replicas: 99999'), /number from 1 to 10000/],
    [dijob(line('ditask --topology ring')), 'the topology must be star, mesh, alone, not ring'],
    [dijob(line('ditask --parallel-workers 0')), '--parallel-workers must be a number from 1 to 999'],
    [dijob(`${line('ditask -m a')}, resources: { limits: { cpu: lots } }`), 'cpu of task a is not an amount: lots'],
    [dijob(line('ditask -m "a\u001b[2J"')), 'it has control characters'],
    [
      `a: &a [x, x]\nb: &b [${Array(50).fill('*a').join()}]\nc: [${Array(99).fill('*b').join()}]\nkind: DIJob`,
      /[Ee]xcessive alias count/,
    ],
  ])('is refused with the reason: %s', (text, reason) => {
    expect(() => convertDijob(text)).toThrow(reason)
  })

  it('acts on no terminal and on nothing of JavaScript', () => {
    const { notes } = convertDijob(dijob(line('ditask -m a'), '  "x\\u001b[2J": 1\n  __proto__: { tasks: [] }\n'))
    expect(notes.map(({ text }) => text).join()).not.toMatch(/[\u0000-\u001f\u007f-\u009f]/)
  })
})

describe('a job of ditask as a DIJob', () => {
  const launch = (options: Record<string, string>) => ({ kind: 'ditask', options, ports: [20_000, 29_999] as const })
  const job = {
    name: 'Train 7: cartpole',
    command: '-p . -m "my module.main"',
    bundles: 2,
    strategy: 'PACK',
    retries: 0,
    priority: 0,
  }
  const template = (text: string) => ({
    spec: { containers: [{ name: 'di-container', image: 'i', command: ['/bin/sh', '-c', text] }] },
  })

  it('is read as the same job', () => {
    const roles = [
      { name: 'learner', count: 1 },
      { name: 'actor', count: 3 },
    ]
    const wish = { ...job, priority: 2, retries: 1, roles, launch: launch({ topology: 'mesh', workers: '2' }) }
    const { notes, words, dijob: yaml } = convertDijob(stringify(dijobOf(wish, template)))
    expect(notes).toEqual([])
    expect(words.join(' ')).toBe(
      "job submit --engine k8s --from-env image:i --name train-7-cartpole --launch ditask --workers 2 --topology mesh --role learner=1 --role actor=3 --priority 1 --retries 1 -- --package . --main 'my module.main'",
    )
    expect(parse(yaml)).toMatchObject({
      spec: {
        priority: 'high',
        backoffLimit: 1,
        tasks: [
          { name: 'learner', type: 'learner', replicas: 1 },
          { name: 'actor', type: 'none', replicas: 3 },
        ],
      },
    })
  })

  it('has one task without roles, and names the program and the Redis server', () => {
    const wish = { ...job, name: '7 -- ', launch: launch({ redis: 'r:6379', ditask: '/opt/my di/ditask' }) }
    const { metadata, spec } = dijobOf(wish, template)
    expect(metadata).toEqual({ name: 'ditask' })
    expect(spec).toEqual({
      priority: 'normal',
      backoffLimit: 0,
      tasks: [
        {
          name: 'worker',
          type: 'none',
          replicas: 2,
          template: template(
            `'/opt/my di/ditask' --platform k8s --topology star --parallel-workers 1 --mq-type redis --redis-host r --redis-port 6379 ${job.command}`,
          ),
        },
      ],
    })
  })

  it.each([
    [{}, '--as dijob can only be used with --launch ditask'],
    [{ launch: { ...launch({}), kind: 'torchrun' } }, '--as dijob can only be used with --launch ditask'],
    [{ launch: launch({}), strategy: 'STRICT_SPREAD' }, 'cannot say how its pods are placed'],
    [{ launch: launch({}), maxBundlesPerHost: 1 }, 'cannot say how its pods are placed'],
  ])('is refused with the reason: %j', (more, reason) => {
    expect(() => dijobOf({ ...job, ...more }, template)).toThrow(reason)
  })
})
