import { describe, expect, it } from 'vitest'
import { known } from '../../../../src/ops/kernel/fact.ts'
import type { Operation } from '../../../../src/ops/kernel/operation.ts'
import { parseActiveExports, parseExports } from '../../../../src/ops/nfs/exports.ts'
import type { NfsFacts, Point } from '../../../../src/ops/nfs/facts.ts'
import { parseMounts } from '../../../../src/ops/nfs/mounts.ts'
import { planNfs } from '../../../../src/ops/nfs/plan.ts'
import { verifyNfs } from '../../../../src/ops/nfs/verify.ts'
import type { Share } from '../../../../src/ops/nfs/wanted.ts'

const SHARE: Share = {
  server: 'm10',
  serverAddress: '10.0.0.10',
  path: '/srv',
  clients: ['m8'],
  exportTo: ['10.0.0.8'],
  options: ['rw', 'sync'],
  point: '/mnt',
  mountOptions: ['defaults'],
}
const FILE = '# Made by Muster from hosts.yaml: changes here are lost.\n/srv 10.0.0.8(rw,sync)\n'
const ACTIVE = '/srv 10.0.0.8(sync,wdelay,hide,no_subtree_check,sec=sys,rw,secure,root_squash,no_all_squash)'
const EMPTY: Point = { kind: 'directory', isEmpty: true, mode: '755', filesystem: 'ext2/ext3' }
const MOUNTED = '10.0.0.10:/srv /mnt nfs4 rw,vers=4.2,addr=10.0.0.10 0 0'
const FSTAB = `# >>> muster nfs mnt (in a file of its own): changes here are lost >>>
10.0.0.10:/srv /mnt nfs defaults,_netdev,nofail 0 0
# <<< muster nfs mnt <<<
`

type Change = Partial<{ [K in keyof NfsFacts]: NfsFacts[K] }>

const file = (text: string) => ({ kind: 'file', text, mode: '644', sum: '1-1' }) as const
const packages = (...names: readonly string[]) =>
  ({ manager: 'apt', installed: new Map(names.map((name) => [name, '1'])), own: [] }) as const

/** A server and a client that are as declared, but for what is given. */
function world(server: Change = {}, client: Change = {}) {
  const of = (change: Change): { atMs: number; facts: never } => {
    const values: Change = {
      packages: packages('nfs-kernel-server', 'nfs-common'),
      service: { manager: 'sysv', isRunning: true, isEnabled: true },
      ownExports: file(FILE),
      foreignExports: parseExports('', '/etc/exports'),
      active: parseActiveExports(ACTIVE),
      mounts: [],
      fstab: file(FSTAB),
      hasSystemd: false,
      localPoints: new Map(),
      remotePoints: new Map(),
      'unit /mnt': { kind: 'none' },
      ...change,
    }
    const facts = Object.fromEntries(Object.entries(values).map(([name, value]) => [name, known(value)]))
    return { atMs: 0, facts: facts as never }
  }
  const facts = new Map([
    ['m10', of({ localPoints: new Map([['/srv', EMPTY]]), ...server })],
    ['m8', of({ mounts: parseMounts(MOUNTED), remotePoints: new Map([['/mnt', EMPTY]]), ...client })],
  ])
  return { facts, away: new Map<string, string>() }
}

const plan = (server: Change = {}, client: Change = {}, share: Partial<Share> = {}): Operation[] =>
  planNfs('up', { shares: [{ ...SHARE, ...share }], unusable: new Map() }, world(server, client))
/** What would be done, or why not. */
const said = (operations: readonly Operation[]): string[] =>
  operations.flatMap(({ verdict }) => {
    if (verdict.kind === 'steps') return verdict.steps.map(({ title }) => title)
    return verdict.kind === 'blocked' ? verdict.findings.map(({ id, cause }) => `${id}: ${cause}`) : []
  })
const unmounted = (point: Point): Change => ({
  mounts: [],
  fstab: { kind: 'none' },
  localPoints: new Map([['/mnt', point]]),
})

describe('the plan of NFS', () => {
  it('is nothing where all is as declared', () => {
    expect(plan().map(({ verdict }) => verdict.kind)).toEqual(Array(5).fill('nothing'))
  })

  it('goes from nothing to a mount', () => {
    const server: Change = {
      packages: packages(),
      ownExports: { kind: 'none' },
      active: [],
      service: { manager: 'systemd', isRunning: false, isEnabled: false },
      localPoints: new Map([['/srv', { kind: 'absent' }]]),
    }
    expect(said(plan(server, unmounted({ kind: 'absent' })))).toEqual([
      'install nfs-kernel-server and nfs-common with apt',
      'make /srv',
      'write /etc/exports.d/muster-nfs.exports and have it read',
      'switch the NFS server on at boot',
      'start the NFS server',
      'add /mnt to /etc/fstab',
      'mount 10.0.0.10:/srv at /mnt',
    ])
  })

  it.each<[string, Change, Change, Partial<Share>, string[]]>([
    [
      'has an export read again that was written and is not in effect',
      { active: [] },
      {},
      {},
      ['have the exports read again'],
    ],
    [
      'waits for an error in a file of somebody else',
      { foreignExports: parseExports('\n/x m1(rw,bogus)', '/etc/exports') },
      {},
      {},
      ['exports-syntax: /etc/exports:2:4: unknown keyword "bogus"'],
    ],
    [
      'does not fight with a line of somebody else',
      { foreignExports: parseExports('/srv 10.0.0.8(ro)', '/etc/exports') },
      {},
      { options: ['rw', 'async'] },
      ['export-conflict: /etc/exports:1 exports /srv to 10.0.0.8 with other options (ro)'],
    ],
    [
      'asks for an fsid where the file system has no identity',
      { localPoints: new Map([['/srv', { ...EMPTY, filesystem: 'tmpfs' }]]) },
      {},
      {},
      ['fsid: /srv is on tmpfs, which has no identity of its own'],
    ],
    [
      'refuses options that nobody knows',
      {},
      {},
      { options: ['rw', 'sink'] },
      ['export-options: the options of /srv in hosts.yaml: unknown keyword "sink"'],
    ],
    [
      'hides no files below a mount',
      {},
      unmounted({ ...EMPTY, isEmpty: false }),
      {},
      ['files-below: there are files in /mnt, which a mount would hide'],
    ],
    [
      'leaves what is mounted there',
      {},
      { mounts: parseMounts('tmpfs /mnt tmpfs rw 0 0') },
      {},
      ['mount-point-taken: tmpfs (tmpfs) is mounted at /mnt'],
    ],
    [
      'mounts anew what is stale',
      {},
      { remotePoints: new Map([['/mnt', { kind: 'stale' }]]) },
      {},
      ['unmount /mnt: its handle is stale', 'mount 10.0.0.10:/srv at /mnt'],
    ],
    [
      'mounts anew with another version',
      {},
      { fstab: file(FSTAB.replace('defaults', 'vers=3')) },
      { mountOptions: ['vers=3'] },
      ['unmount /mnt: vers=3 is not in effect', 'mount 10.0.0.10:/srv at /mnt'],
    ],
    [
      'writes down a mount that was made by hand, and leaves it mounted',
      {},
      { hasSystemd: true },
      {},
      ['write /etc/systemd/system/mnt.mount and switch it on'],
    ],
  ])('%s', (_, server, client, share, expected) => expect(said(plan(server, client, share))).toEqual(expected))

  it('takes back what is Muster’s and nothing else', () => {
    const down = (client: Change) =>
      said(planNfs('down', { shares: [SHARE], unusable: new Map() }, world({ ownExports: { kind: 'none' } }, client)))
    expect(down({})).toEqual(['unmount /mnt', 'remove /mnt from /etc/fstab'])
    expect(down({ fstab: file('10.0.0.10:/srv /mnt nfs defaults 0 0\n') })).toEqual([])
  })
})

describe('a look at NFS', () => {
  const look = async (server: Change, client: Change = {}, share: Partial<Share> = {}) => {
    const looker = { exec: () => Promise.reject(new Error('a look runs nothing')) }
    const wanted = { shares: [{ ...SHARE, ...share }], unusable: new Map<string, string>() }
    const findings = await verifyNfs(wanted, world(server, client), looker, 'look')
    return findings.map(({ host, gravity, id }) => `${host} ${gravity} ${id}`)
  }

  it('tells of dangers: risks of others, notes where they are declared', async () => {
    const foreign = '/a 10.0.0.0/24 (rw)\n/b *(rw,async,no_root_squash)\n'
    expect(await look({ foreignExports: parseExports(foreign, '/etc/exports') })).toEqual([
      'm10 risk export-space',
      'm10 risk export-world',
      'm10 risk export-root',
      'm10 risk export-async',
    ])
    const options = ['rw', 'sync', 'no_root_squash']
    expect(await look({}, {}, { exportTo: ['*'], options })).toEqual(['m10 note export-world', 'm10 note export-root'])
    const open = { localPoints: new Map([['/srv', { ...EMPTY, mode: '777' }]]) }
    expect(await look(open)).toEqual(['m10 risk export-mode'])
    expect(await look(open, {}, { mode: '0777' })).toEqual(['m10 note export-mode'])
  })

  it('tells of a server that is gone, and of locks that are none', async () => {
    expect(await look({}, { remotePoints: new Map([['/mnt', { kind: 'silent' }]]) })).toEqual([
      'm8 blocker server-silent',
    ])
    const share = { mountOptions: ['nolock'] }
    expect(await look({}, {}, share)).toEqual(['m8 note nolock'])
    const third = { mounts: parseMounts(MOUNTED.replace('vers=4.2', 'vers=3')) }
    expect(await look({}, third, share)).toEqual(['m8 risk nolock'])
  })
})
