/** What holds for any machines: a second `up` has nothing to do, a cut is carried on to the same end, `down` takes it all back. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { AreaFacts } from '../../../../src/ops/kernel/area.ts'
import { type HostFacts, known } from '../../../../src/ops/kernel/fact.ts'
import type { FileState } from '../../../../src/ops/kernel/files.ts'
import type { Operation, Step } from '../../../../src/ops/kernel/operation.ts'
import type { Packages } from '../../../../src/ops/kernel/packages.ts'
import type { SystemServiceState } from '../../../../src/ops/kernel/services.ts'
import { parseExports } from '../../../../src/ops/nfs/exports.ts'
import type { MountPoint, NfsFacts } from '../../../../src/ops/nfs/facts.ts'
import { parseMounts } from '../../../../src/ops/nfs/mounts.ts'
import { planNfs } from '../../../../src/ops/nfs/nfs.ts'
import type { NfsWanted, Share } from '../../../../src/ops/nfs/wanted.ts'

/** A machine, as far as NFS changes it. `undefined`: there is no such file, nothing is mounted, no such directory. */
type Machine = {
  readonly installed: readonly string[]
  readonly own: readonly string[]
  readonly service: SystemServiceState
  readonly exports: string | undefined
  /** The text of `foreign` and `exports` that the kernel has. */
  readonly active: string
  readonly foreign: string
  readonly hasSystemd: boolean
  readonly fstab: string | undefined
  readonly unit: string | undefined
  readonly mounted: string | undefined
  readonly isThere: boolean
}
type Machines = { readonly m10: Machine; readonly m8: Machine }

const SERVER = '10.0.0.10'

function factsOf(machine: Machine, share: Share, isServer: boolean): HostFacts<NfsFacts> {
  const file = (text: string | undefined): FileState =>
    text === undefined ? { kind: 'none' } : { kind: 'file', text, mode: '644', sum: '1-1' }
  const point: MountPoint = machine.isThere
    ? { kind: 'directory', isEmpty: true, mode: '755', filesystem: 'ext2/ext3' }
    : { kind: 'absent' }
  const points = new Map([[isServer ? share.path : share.point, point]])
  const packages: Packages = {
    manager: 'apt',
    installed: new Map(machine.installed.map((name) => [name, '1'])),
    own: machine.own,
  }
  const active = parseExports(machine.active, 'etab').entries.map(({ path, client, options }) => ({
    path,
    client,
    options: new Set([...options, ...(options.includes('no_root_squash') ? [] : ['root_squash'])]),
  }))
  const values = {
    packages,
    service: machine.service,
    ownExports: file(machine.exports),
    foreignExports: parseExports(machine.foreign, '/etc/exports'),
    active,
    mounts: parseMounts(machine.mounted ?? ''),
    fstab: file(machine.fstab),
    hasSystemd: machine.hasSystemd,
    localPoints: machine.mounted === undefined ? points : new Map(),
    remotePoints: machine.mounted === undefined ? new Map() : points,
    [`unit ${share.point}`]: file(machine.unit),
  }
  const facts = Object.fromEntries(Object.entries(values).map(([name, value]) => [name, known(value)]))
  return { atMs: 0, facts: facts as HostFacts<NfsFacts>['facts'] }
}

function plan(direction: 'up' | 'down', machines: Machines, share: Share): Operation[] {
  const areaFacts: AreaFacts<NfsFacts> = {
    facts: new Map([
      ['m10', factsOf(machines.m10, share, true)],
      ['m8', factsOf(machines.m8, share, false)],
    ]),
    away: new Map(),
  }
  const wanted: NfsWanted = { shares: [share], unusable: new Map() }
  return planNfs(direction, wanted, areaFacts)
}

const open = (operations: readonly Operation[]) => operations.filter(({ verdict }) => verdict.kind !== 'nothing')
const stepsOf = (operations: readonly Operation[]) =>
  operations.flatMap(({ host, verdict }) =>
    verdict.kind === 'steps' ? verdict.steps.map((step) => [host as keyof Machines, step] as const) : [],
  )

const written = ({ run: { stdin } }: Step): string | undefined =>
  stdin?.map((part) => Buffer.from(part as Uint8Array).toString('latin1')).join('')
const words = ({ changes }: Step, sign: string) =>
  changes.flatMap((line) => (line.startsWith(`${sign} package `) ? [line.slice(`${sign} package `.length)] : []))

/** What a step does to its machine, by the last word of its id. */
function after(machine: Machine, step: Step, share: Share): Machine {
  const [operation = '', where = ''] = step.id.split('@')
  const [, word = ''] = where.split(/[/ ]/)
  const read = (exports: string | undefined): Machine => ({
    ...machine,
    exports,
    active: `${machine.foreign}${exports ?? ''}`,
  })
  const service = (change: Partial<SystemServiceState>): Machine => ({
    ...machine,
    service: { ...machine.service, ...change },
  })
  switch (word) {
    case 'install': {
      const names = words(step, '+')
      return { ...machine, installed: [...machine.installed, ...names], own: [...machine.own, ...names] }
    }
    case 'directory':
      return { ...machine, isThere: true }
    case 'apply':
      return read(written(step) ?? machine.exports)
    case 'enable':
      return service({ isEnabled: true })
    case 'disable':
      return service({ isEnabled: false })
    case 'start':
      return service({ isRunning: true })
    case 'stop':
      return service({ isRunning: false })
    case 'declare':
      return { ...machine, [machine.hasSystemd ? 'unit' : 'fstab']: written(step) }
    case 'unmount':
      return { ...machine, mounted: undefined }
    case 'mount': {
      const options = share.mountOptions.includes('vers=3') ? share.mountOptions : ['vers=4.2', ...share.mountOptions]
      const point = share.point.replaceAll(' ', '\\040')
      const mounted = `${SERVER}:${share.path} ${point} nfs4 ${options.join(',')},addr=${SERVER} 0 0`
      return { ...machine, mounted, isThere: true }
    }
    case 'forget': {
      const isMade = step.run.script.startsWith('rmdir ')
      return { ...machine, [machine.hasSystemd ? 'unit' : 'fstab']: written(step), isThere: !isMade && machine.isThere }
    }
    case 'remove':
      if (operation !== 'nfs/packages') return read(undefined)
      return { ...machine, installed: machine.installed.filter((name) => !machine.own.includes(name)), own: [] }
    default:
      throw new Error(`no such step: ${step.id}`)
  }
}

function applied(machines: Machines, steps: ReturnType<typeof stepsOf>, share: Share): Machines {
  const now = { ...machines }
  for (const [host, step] of steps) now[host] = after(now[host], step, share)
  return now
}

const share: fc.Arbitrary<Share> = fc.record({
  server: fc.constant('m10'),
  serverAddress: fc.constant(SERVER),
  path: fc.constant('/srv'),
  clients: fc.constant(['m8']),
  clientAddresses: fc.constant(['10.0.0.8']),
  exportTo: fc.constantFrom(['10.0.0.8'], ['*'], ['10.0.0.0/24', 'm8']),
  options: fc.constantFrom(['rw', 'sync'], ['ro', 'sync'], ['rw', 'sync', 'no_root_squash']),
  point: fc.constantFrom('/mnt', '/mnt/of mine', '/a-b'),
  mountOptions: fc.constantFrom(['defaults'], ['vers=3', 'nolock'], ['ro'], ['soft', 'timeo=50']),
})
const lines = fc.option(
  fc
    .array(fc.constantFrom('', '# a comment', 'none /var/tmp tmpfs noauto 0 0', 'x\r', '\u00e9'), { maxLength: 4 })
    .map((all) => all.join('\n')),
  { nil: undefined },
)
const service: fc.Arbitrary<SystemServiceState> = fc.oneof(
  fc.record({
    manager: fc.constantFrom('systemd' as const, 'openrc' as const, 'sysv' as const),
    isRunning: fc.boolean(),
    isEnabled: fc.boolean(),
  }),
  fc.record({ manager: fc.constant('by-hand' as const), isRunning: fc.boolean(), isEnabled: fc.constant(undefined) }),
)
const machine: fc.Arbitrary<Machine> = fc
  .record({
    installed: fc.subarray(['nfs-kernel-server', 'nfs-common']),
    service,
    foreign: fc.constantFrom('', '/home 10.0.0.9(rw,sync)\n'),
    hasSystemd: fc.boolean(),
    fstab: lines,
    isThere: fc.boolean(),
  })
  .map((of) => ({ ...of, own: [], exports: undefined, active: of.foreign, unit: undefined, mounted: undefined }))
const fresh: fc.Arbitrary<Machines> = fc.record({ m10: machine, m8: machine })

describe('with any server, client and share', () => {
  const up = (machines: Machines, wanted: Share) => applied(machines, stepsOf(plan('up', machines, wanted)), wanted)

  it('up has nothing to do a second time, also after another share was declared before', () => {
    fc.assert(
      fc.property(fresh, share, share, (machines, before, wanted) => {
        const once = up(machines, wanted)
        expect(open(plan('up', once, wanted))).toEqual([])
        const other = { ...before, point: wanted.point }
        const then = up(up(machines, other), wanted)
        expect(open(plan('up', then, wanted))).toEqual([])
      }),
    )
  })

  it('up and down complete a run that was interrupted after any step', () => {
    fc.assert(
      fc.property(fresh, share, fc.nat(), (machines, wanted, cut) => {
        const steps = stepsOf(plan('up', machines, wanted))
        const half = applied(machines, steps.slice(0, cut % (steps.length + 1)), wanted)
        expect(up(half, wanted)).toEqual(applied(machines, steps, wanted))
      }),
    )
  })

  it('down restores everything except the shared directory, and then has nothing to do', () => {
    fc.assert(
      fc.property(fresh, share, (machines, wanted) => {
        const there = up(machines, wanted)
        const gone = applied(there, stepsOf(plan('down', there, wanted)), wanted)
        expect(open(plan('down', gone, wanted))).toEqual([])
        // A server that others use by then goes on.
        const m10 = {
          ...machines.m10,
          isThere: true,
          ...(machines.m10.foreign === '' ? {} : { service: gone.m10.service }),
        }
        expect(gone).toEqual({ m8: machines.m8, m10 })
      }),
    )
  })
})
