import { describe, expect, it } from 'vitest'
import type { RemoteFiles } from '../../../../src/ssh/copy/remote-files.ts'
import { SharedTargets } from '../../../../src/ssh/copy/shared-targets.ts'
import { ManualClock } from '../manual-clock.ts'

/** Sees every proof file: all such hosts have one disk. Each names its own path to it. */
function hostOn(disk: Set<string>, host: string): RemoteFiles {
  const call = async (order: string, path: string, ...names: readonly string[]): Promise<string> => {
    if (order === 'H') {
      disk.add(names[0] ?? '')
      return `${path.length} ${host}.4711 /of-${host}`
    }
    if (order === 'J') return names.flatMap((name) => (disk.has(name) ? `${name} ${path.length}\n` : [])).join('')
    return ''
  }
  return { call, orLost: <T>(work: Promise<T>) => work } as unknown as RemoteFiles
}

describe('hosts that share a destination', () => {
  it('are told to check the one that writes first, which need not be the one that looked first', async () => {
    const shared: string[] = []
    const targets = new SharedTargets({
      hosts: ['m1', 'm2', 'm3', 'm4'],
      clock: new ManualClock(),
      onShared: (host, writer) => shared.push(`${host} ${writer.host} ${writer.directory}`),
    })
    const disk = new Set<string>()
    const join = async (host: string, of: Set<string>) => {
      const remote = hostOn(of, host)
      const place = await targets.join(remote, 'data', 'directory')
      return { ...place, host, remote, claim: () => Promise.resolve(0) }
    }
    const first = await join('m1', disk)
    const others = [await join('m2', disk), await join('m3', disk)]
    const alone = await join('m4', new Set())
    const wrote: (readonly [string, boolean])[] = []
    const write = (member: typeof first) =>
      member.target.write(member, (isFirst) => {
        wrote.push([member.host, isFirst])
        return Promise.resolve()
      })
    await Promise.all([...others, first, alone].map(write))
    expect(wrote).toEqual(
      expect.arrayContaining([
        ['m2', true],
        ['m3', false],
        ['m1', false],
        ['m4', true],
      ]),
    )
    expect(shared).toEqual(['m3 m2 /of-m2', 'm1 m2 /of-m2'])
    await targets.everyone
  })
})
