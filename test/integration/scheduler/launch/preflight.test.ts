/** What preflight asks a host, run by sh, and what it makes of the answers. */
import { execFileSync, spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import type { LaunchedBundle, LaunchedGang, Said } from '../../../../src/scheduler/launch/launcher.ts'
import { hostFacts, preflightFindings, scriptOf, slowFacts } from '../../../../src/scheduler/launch/preflight.ts'
import { writeProgram } from '../../../support/program.ts'

const bundle = (said: Said, index = 0, gpuCount = 0): LaunchedBundle => ({
  role: 'host',
  index,
  host: `m${index + 1}`,
  address: '127.0.0.1',
  devices: Array.from({ length: gpuCount }, (_, device) => device),
  request: { cpuMilli: 1000, memoryBytes: 0, gpuCount, gpuMilli: 1000 },
  ranks: 2,
  said,
  hasBegun: false,
})

const gang = (...said: readonly Said[]): LaunchedGang => ({
  id: '1.1',
  command: 'train.py',
  environment: {},
  spec: { kind: 'torchrun', options: {}, ports: [46_000, 46_999] },
  bundles: said.map((own, index) => bundle(own, index, 1)),
})

it.each([
  ['train.py --epochs 3', 'train.py'],
  ['python3 -u src/train.py', 'src/train.py'],
  ['/opt/env/bin/python3.11 train.py', 'train.py'],
  ['./run.sh', './run.sh'],
  ['python3 -c "import x.py"', undefined],
  ['cd /x && python3 train.py', undefined],
  ['MODEL --max-model-len 8', undefined],
])('%s runs the script %s', (command, script) => {
  expect(scriptOf(command)).toBe(script)
})

describe('a host', () => {
  const directory = mkdtempSync(join(tmpdir(), 'muster-preflight-'))
  afterAll(() => rmSync(directory, { recursive: true }))
  const path = join(directory, 'bin')
  mkdirSync(path)
  const program = (name: string, text: string) => {
    writeProgram(join(path, name), text)
  }
  const ask = (question: string) =>
    execFileSync('sh', { input: question, cwd: directory, env: { PATH: `${path}:${process.env.PATH}` } })
      .toString()
      .split('\n')

  it('tells the checksum of the script, its card and its shared memory', () => {
    writeFileSync(join(directory, 'train.py'), 'print(1)\n')
    const told = ask(hostFacts({ command: 'train.py' }, bundle({})))
    expect(told).toContain('card lo')
    expect(told).toContain('mtu 65536')
    expect(told.some((line) => /^shm \d+$/.test(line))).toBe(true)
    expect(told.some((line) => /^script \d+ 9$/.test(line))).toBe(true)
  })

  it('refuses a script that is not there, and says nothing more', () => {
    expect(ask(hostFacts({ command: "it's.py" }, bundle({}))).some((line) => line.startsWith('refuse'))).toBe(false)
    const told = ask(hostFacts({ command: 'missing.py' }, bundle({})))
    expect(told.at(-2)).toMatch(/^refuse missing\.py is not in its directory; copy it to all hosts: --copy-dir \(\//)
  })

  it('finds a script in PATH that is called without a path', () => {
    program('in-path.sh', 'true')
    expect(ask(hostFacts({ command: 'in-path.sh' }, bundle({}))).some((line) => /^script \d+ 15$/.test(line))).toBe(
      true,
    )
  })

  it('tells who computes on its devices, and refuses a device that is not there', () => {
    const apps = 'GPU-b, 4711\\nGPU-b, 4712\\nGPU-c, 9\\n'
    program('nvidia-smi', `case $1 in *compute-apps*) printf '${apps}';; *) printf '0, GPU-a\\n1, GPU-b\\n';; esac`)
    expect(ask(hostFacts({ command: 'true' }, bundle({}, 0, 2)))).toContain('busy 4711 4712')
    expect(ask(hostFacts({ command: 'true' }, bundle({}, 0, 3)))).toContain(
      'refuse GPU 2 is not there: nvidia-smi shows 2',
    )
  })

  it('tells the interpreter, what can be imported, and what is left of earlier jobs', () => {
    const told = ask(slowFacts('json', undefined, 'MUSTER_BUNDLE=none-'))
    expect(told.some((line) => /^interpreter 3\.\d+\.\d+ \//.test(line))).toBe(true)
    expect(told.some((line) => line.startsWith('module version '))).toBe(true)
    expect(told).toContain('left')
    expect(
      ask(slowFacts('no_such_module', undefined, 'MUSTER_BUNDLE=none-')).find((line) => line.startsWith('module')),
    ).toBe("module ModuleNotFoundError: No module named 'no_such_module'")
  })

  it('tells the processes of other attempts than those that run there', () => {
    const mark = `MUSTER_BUNDLE=test${process.pid}-`
    const processes = ['48-1-0', '48-2-0', '148-2-1'].map((name) =>
      spawn('sleep', ['60'], { env: { PATH: process.env.PATH ?? '', MUSTER_BUNDLE: `test${process.pid}-${name}` } }),
    )
    try {
      const left = ask(slowFacts(undefined, undefined, mark, ['48-2'])).find((line) => line.startsWith('left '))
      const [first, , last] = processes.map(({ pid }) => pid)
      expect(left?.slice('left '.length).split(',').toSorted()).toEqual(
        ['', `${first} 48-1-0`, `${last} 148-2-1`].toSorted(),
      )
      const [finding] = preflightFindings(gang({ left: left?.slice('left '.length) ?? '' }), undefined)
      expect(finding?.detail?.split(', ').toSorted()).toEqual(
        [`pid ${first} of job 48`, `pid ${last} of job 148`].toSorted(),
      )
    } finally {
      for (const each of processes) each.kill('SIGKILL')
    }
  })
})

describe('findings', () => {
  const idsOf = (...said: readonly Said[]) =>
    preflightFindings(gang(...said), 'torch').map(({ host, gravity, id }) => `${host} ${gravity} ${id}`)

  it('are none where all hosts are alike', () => {
    const said = {
      card: 'eth0',
      mtu: '1500',
      operstate: 'up',
      shm: '8388608',
      script: '1 9',
      module: 'version 2.15',
      busy: '',
    }
    expect(idsOf(said, { ...said, card: 'ens3', own: '10.81.0.2' })).toEqual([])
  })

  it.each([
    [{ script: '2 9' }, 'm1 risk script-differs'],
    [{ mtu: '9000' }, 'm2 risk mtu-differs'],
    [{ module: 'version 2.0' }, 'm1 risk module-differs'],
    [{ module: 'ModuleNotFoundError: no' }, 'm2 blocker no-import'],
    [{ operstate: 'down' }, 'm2 blocker card-down'],
    [{ shm: '65536' }, 'm2 risk shm-small'],
    [{ busy: '4711' }, 'm2 risk gpu-busy'],
    [{ own: '127.0.1.1' }, 'm2 note own-name'],
    [{ left: '12 7-1-0,' }, 'm2 risk left-over'],
    [{ refuse: 'torchrun is not in PATH' }, 'm2 blocker refused'],
  ])('name the host with %j', (odd, expected) => {
    const said = { mtu: '1500', script: '1 9', module: 'version 2.15' }
    expect(idsOf(said, { ...said, ...odd })).toContain(expected)
  })

  it('take nothing from a host that is not of its form', () => {
    expect(idsOf({ shm: '1e3', busy: '$(id)', left: 'x y,3 7-1,4 a-1-0' })).toEqual([])
  })
})
