import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { sectionOf } from '../../../../src/inventory/hosts-yaml-schema.ts'
import type { LaunchedGang } from '../../../../src/scheduler/launch/launcher.ts'
import { launcherOf } from '../../../../src/scheduler/launch/launcher-of.ts'
import { LAUNCHERS } from '../../../../src/scheduler/launch/launchers.ts'
import { section } from '../../../../src/scheduler/launch/rows.ts'
import { readInventory } from '../../../support/hosts-yaml.ts'

const EXAMPLE = new URL('../../../../docs/examples/launchers.yaml', import.meta.url)
const rows = sectionOf(readInventory(readFileSync(EXAMPLE, 'utf8')), section)

const REQUEST = { cpuMilli: 1000, memoryBytes: 0, gpuCount: 2, gpuMilli: 1000 }
const READY = { answered: '1', card: 'eth0', port: '46007', listening: '1', heard: '1', reached: '1' }

function gangOf(kind: string, bundles: number): LaunchedGang {
  const row = rows?.get(kind)
  if (row === undefined) throw new Error(kind)
  return {
    id: '17.1',
    command: 'train.py --epochs 3',
    environment: {},
    spec: { kind, options: {}, ports: [46_000, 46_099], row },
    bundles: Array.from({ length: bundles }, (_, index) => ({
      role: 'host',
      index,
      host: `m${index + 1}`,
      address: `10.81.0.${index + 1}`,
      devices: [0, 1],
      request: REQUEST,
      ranks: 1,
      said: READY,
      hasBegun: false,
    })),
  }
}

function startOf(kind: string, bundle: number, bundles = 2) {
  const gang = gangOf(kind, bundles)
  const step = launcherOf(gang.spec)?.next(gang, bundle)
  if (step?.kind !== 'start') throw new Error(JSON.stringify(step))
  return step
}

describe('a launcher of hosts.yaml', () => {
  it('gets number, address and port of its bundle in its words, and the command last', () => {
    expect(startOf('accelerate', 1).command).toBe(
      'exec accelerate launch --num_machines 2 --machine_rank 1 --num_processes 4 --main_process_ip 10.81.0.1 --main_process_port 46007 train.py --epochs 3',
    )
    expect(startOf('deepspeed', 1).command).toMatch(
      / deepspeed 10\.81\.0\.1,10\.81\.0\.2 2 --no_ssh --node_rank 1 --master_addr 10\.81\.0\.1 --master_port 46007 train\.py --epochs 3$/,
    )
  })

  it('may be variables alone', () => {
    expect(startOf('jax', 1)).toMatchObject({
      command: 'train.py --epochs 3',
      environment: { JAX_COORDINATOR_ADDRESS: '10.81.0.1:46007', NCCL_SOCKET_IFNAME: 'eth0' },
    })
  })

  it('starts the first bundle in its own way, and the command only where it says so', () => {
    expect(startOf('dask', 0).command).toMatch(/ dask 10\.81\.0\.1 46007 train\.py --epochs 3$/)
    expect(startOf('dask', 1).command).toBe('exec dask worker tcp://10.81.0.1:46007')
    expect(startOf('julia', 0).command).toBe('train.py --epochs 3')
    const launcher = launcherOf(gangOf('dask', 3).spec)
    expect(launcher?.shape({}, 3, REQUEST)).toMatchObject({ leaders: [0] })
    expect(launcherOf(gangOf('accelerate', 2).spec)?.shape({}, 2, REQUEST)).toMatchObject({ isOnePerHost: true })
  })

  it('refuses the job where a value is not known', () => {
    const gang = gangOf('accelerate', 2)
    const noPort = { ...READY, port: 'none' }
    const bundles = gang.bundles.map((bundle) => ({ ...bundle, said: noPort }))
    expect(launcherOf(gang.spec)?.next({ ...gang, bundles }, 1)).toEqual({
      kind: 'refuse',
      reason: 'the launcher accelerate uses {port.0}, which is not known',
    })
  })
})

describe('mistakes in launchers', () => {
  it.each([
    ['x: { command: ["{adress}"] }', '4:18: command[1] {adress} has {adress}; known are'],
    ['x: { command: ["a{command}"] }', 'has {command} inside a word; it has to be a word of its own'],
    ['x: { command: ["{port.1}"] }', '4:3: launchers: x uses {port.1}; write ports: 2'],
    ['x: { env: { "A-B": c } }', '4:3: launchers: x sets A-B, which is not the name of a variable'],
    ['X: { command: [a] }', '4:3: launchers: X is not a name of small letters, digits and -'],
    ...[...LAUNCHERS.map(({ name }) => name), 'check'].map((name): [string, string] => [
      `${name}: { command: [a] }`,
      `4:3: launchers: ${name} is a launcher of Muster; give yours another name`,
    ]),
  ])('%s', (row, message) => {
    const text = `hosts:\n  m1:\nlaunchers:\n  ${row}\n`
    expect(() => readInventory(text)).toThrow(message)
  })
})
