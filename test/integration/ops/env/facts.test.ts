/** The facts of env, read by a real shell out of directories as pip and conda leave them. */
import { execFileSync } from 'node:child_process'
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { dockerFact, runContainer } from '../../../../src/ops/env/docker.ts'
import { type PrefixFacts, prefixFact, systemFact } from '../../../../src/ops/env/facts.ts'
import type { Fact } from '../../../../src/ops/kernel/fact.ts'

let root: string
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'muster-env-'))
})
afterEach(() => rmSync(root, { recursive: true, force: true }))

function write(path: string, text = ''): void {
  const whole = join(root, path)
  mkdirSync(dirname(whole), { recursive: true })
  writeFileSync(whole, text)
}

function program(path: string, script: string): void {
  write(path, `#!/bin/sh\n${script}\n`)
  chmodSync(join(root, path), 0o755)
}

function read<T>(fact: Fact<T>): T | undefined {
  const script = `limited() { "$@"; }; overdue() { [ $1 = 124 ]; }; fact() {\n${fact.script}\n}; fact 2> /dev/null`
  const env = { HOME: root, PATH: `${root}/bin:/usr/bin:/bin` }
  const bytes = execFileSync('sh', ['-c', `${script}; :`], { env })
  return fact.parse(bytes.toString().trimEnd(), bytes)
}

const packagesOf = (facts: PrefixFacts | undefined) =>
  facts !== undefined && 'packages' in facts
    ? [...facts.packages].map(([name, { version }]) => `${name} ${version}`)
    : []

describe('an environment on the disk', () => {
  it('is a venv, with the packages of pip, the running Python and packages without a list of files', () => {
    const site = 'v/lib/python3.11/site-packages'
    write('v/pyvenv.cfg', 'home = /usr/bin\nversion = 3.11.2\n')
    program('v/bin/python', 'echo python 3.11.7')
    write(`${site}/Flask_Cors-4.0.0.dist-info/RECORD`)
    write(`${site}/typing.extensions-4.9.0.dist-info/METADATA`)
    write(`${site}/old_thing-1.0-py3.11.egg-info`)
    write(`${site}/~umpy-1.26.4.dist-info/RECORD`)
    write(`${site}/numpy/__init__.py`)
    const facts = read(prefixFact({ path: join(root, 'v') }))
    expect(facts).toMatchObject({ kind: 'venv', path: `${root}/v`, python: '3.11.7', broken: ['typing-extensions'] })
    expect(packagesOf(facts)).toEqual(['flask-cors 4.0.0', 'old-thing 1.0', 'typing-extensions 4.9.0'])
    expect(facts).not.toHaveProperty('made')
  })

  it('is found by the name of a conda environment, with the packages of conda and pip', () => {
    const prefix = 'miniforge3/envs/lab'
    const site = `${prefix}/lib/python3.11/site-packages`
    for (const stem of ['python-3.11.7-h955ad1f_0', 'numpy-1.26.4-py311h64a7726_0', '_libgcc_mutex-0.1-conda_forge']) {
      write(`${prefix}/conda-meta/${stem}.json`, '{}')
    }
    write(`${prefix}/conda-meta/history`)
    write(`${site}/numpy-1.26.4.dist-info/INSTALLER`, 'conda\n')
    write(`${site}/requests-2.31.0.dist-info/INSTALLER`, 'pip\n')
    write(`${site}/requests-2.31.0.dist-info/RECORD`)
    program(`${prefix}/bin/python`, 'exit 127')
    const facts = read(prefixFact({ condaName: 'lab' }))
    expect(packagesOf(facts)).toEqual(['libgcc-mutex 0.1', 'numpy 1.26.4', 'python 3.11.7', 'requests 2.31.0'])
    expect(facts).toMatchObject({ kind: 'conda' })
    expect(facts).not.toHaveProperty('python')
  })

  it('is found at the path that conda noted', () => {
    write('elsewhere/lab.x/conda-meta/history')
    write('.conda/environments.txt', `${root}/elsewhere/labyx\n${root}/elsewhere/lab.x\n`)
    expect(read(prefixFact({ condaName: 'lab.x' }))).toMatchObject({ kind: 'conda', path: `${root}/elsewhere/lab.x` })
  })

  it('is not there, but something else is where conda would look for it', () => {
    write('micromamba/envs/lab/results.csv')
    write('miniconda3/envs/lab')
    mkdirSync(join(root, 'miniforge3/envs/lab'), { recursive: true })
    write('.conda/environments.txt', `${root}/gone/lab\n`)
    const taken = [`${root}/micromamba/envs/lab`, `${root}/miniconda3/envs/lab`]
    expect(read(prefixFact({ condaName: 'lab' }))).toEqual({ kind: 'none', taken })
  })

  it.each([
    ['is not there', () => {}, { kind: 'none' }],
    ['is an empty directory', () => mkdirSync(join(root, 'v')), { kind: 'none' }],
    ['is a file', () => write('v'), { kind: 'other', because: 'it is not a directory' }],
    ['is a directory of something else', () => write('v/notes'), { kind: 'other', because: 'it holds something else' }],
  ])('%s', (_, make, expected) => {
    make()
    expect(read(prefixFact({ path: join(root, 'v') }))).toEqual(expected)
  })
})

describe('the system', () => {
  it('is read on this machine', () => {
    expect(read(systemFact)?.architecture).toMatch(/^\w+$/)
  })

  it.each([
    ['NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.129.03  Thu Oct 19 18:56:32 UTC 2023', '535.129.03'],
    ['NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  545.23.08  Release Build  (dvs-builder)', '545.23.08'],
  ])('knows the driver by %s', (line, nvidiaDriver) => {
    const text = `arch x86_64\nlibc glibc 2.36\ndriver ${line}\ncuda { "cuda" : { "name" : "CUDA SDK", "version" : "12.2.1" } }`
    const facts = { architecture: 'x86_64', libc: 'glibc 2.36', nvidiaDriver, cuda: '12.2.1' }
    expect(systemFact.parse(text, Buffer.from(text))).toEqual(facts)
  })

  it('reports nothing that it does not understand', () => {
    expect(systemFact.parse('hello', Buffer.from('hello'))).toBeUndefined()
    expect(systemFact.parse('arch x86_64\nlibc ', Buffer.alloc(0))).toEqual({ architecture: 'x86_64' })
  })
})

describe('a daemon of Docker', () => {
  const ABSENT = 'echo "Error response from daemon: No such $1: $5" >&2; exit 1'
  const image = (id: string, config: object) =>
    JSON.stringify({ id, layers: ['sha256:a', 'sha256:b'], architecture: 'amd64', config })
  const docker = (id: string, config: object) =>
    program('bin/docker', `case $1 in version) echo 20.10;; image) echo '${image(id, config)}';; *) ${ABSENT};; esac`)
  const fact = dockerFact('lab/tool:1', 'muster')

  it('recognises the same image under another ID, and a different one with another command', () => {
    docker('sha256:1', { Cmd: ['a'], Labels: { x: 'y' } })
    const one = read(fact)?.image
    docker('sha256:2', { Cmd: ['a'], Env: null })
    expect(read(fact)?.image?.digest).toBe(one?.digest)
    docker('sha256:2', { Cmd: ['b'] })
    expect(read(fact)?.image?.digest).not.toBe(one?.digest)
    expect(one).toMatchObject({ id: 'sha256:1', layers: ['sha256:a', 'sha256:b'], labels: { x: 'y' } })
  })

  it('runs, but has neither image nor container', () => {
    program('bin/docker', `case $1 in version) echo 20.10;; *) ${ABSENT};; esac`)
    expect(read(fact)).toEqual({ image: undefined })
  })

  it.each([
    ['image', 'echo "context deadline exceeded" >&2; exit 1', 'context deadline exceeded'],
    ['container', 'echo "context deadline exceeded" >&2; exit 1', 'context deadline exceeded'],
    ['container', 'exit 124', 'it does not answer'],
    // The second time it does.
    ['container', 'test -e "$0.asked" || { touch "$0.asked"; exit 1; }', 'it has failed once'],
  ])('does not say that there is no %s where it fails with %j: it could be the user’s', (kind, failing, why) => {
    program('bin/docker', `case $1 in version) echo 20.10;; ${kind}) ${failing};; *) ${ABSENT};; esac`)
    expect(read(fact)).toEqual({ trouble: `docker ${kind} inspect: ${why}`, image: undefined })
  })

  it.each([
    ['<no value>', 'run --detach'],
    ['', 'run --detach'],
    ['0123', 'stop --time\nrm --force\nrun --detach'],
  ])('loses no container with the label %j that only seemed absent', (label, calls) => {
    const log = join(root, 'calls')
    program(
      'bin/docker',
      `case $1 in version) echo 20.10;; container) echo '${label}';; image) ;; *) echo "$1 $2" >> ${log};; esac`,
    )
    const container = { name: 'tool', image: 'lab/tool:1', restart: 'no', options: '', command: [], mark: '4567' }
    execFileSync('sh', ['-c', runContainer(container).script ?? ''], {
      env: { HOME: root, PATH: `${root}/bin:/usr/bin:/bin` },
    })
    expect(readFileSync(log, 'utf8').trim()).toBe(calls)
  })

  it('does not answer', () => {
    program('bin/docker', 'echo Cannot connect to the Docker daemon >&2; exit 1')
    expect(read(fact)).toEqual({ trouble: 'Cannot connect to the Docker daemon', image: undefined })
  })
})
