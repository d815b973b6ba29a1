/** Whether a directory is the same one on several hosts: judged from what each wrote and read. */
import { describe, expect, it } from 'vitest'
import { type DirectoryView, directoryPath, judge, shareOf } from '../../../../src/ops/nfs/shared-directory.ts'

const SHARE = { server: 'm1', serverAddress: '10.0.0.1', path: '/data', point: '/shared', clients: ['m2'] }

const written = (reads: string, sees = reads, isAbove = false): DirectoryView => ({
  kind: 'written',
  isAbove,
  sees: new Set(sees.split(' ')),
  reads: new Set(reads.split(' ')),
})
const lines = (views: Record<string, DirectoryView>, shares = [] as (typeof SHARE)[]) =>
  judge('/shared/results', new Map(Object.entries(views)), shares).map(
    ({ host, cause, hint, isUnsure, gravity }) => `${gravity}${isUnsure ? '?' : ''} ${host}: ${cause}. ${hint}`,
  )

describe('directoryPath', () => {
  it.each([
    ['/shared/results', '/shared/results'],
    ['/shared//results/', '/shared/results'],
    ['/shared/../other', '/other'],
    ["/it's $HOME", "/it's $HOME"],
  ])('takes %s', (text, path) => expect(directoryPath(text)).toBe(path))
  it.each([
    '',
    '/',
    '//',
    '/..',
    'results',
    's3://bucket',
    '~/results',
    '/a\nb',
    `/${'a'.repeat(2000)}`,
  ])('refuses %j', (text) => expect(directoryPath(text)).toBeUndefined())
})

describe('a directory', () => {
  it('is one if each host read what all others wrote', () => {
    expect(lines({ m1: written('m1 m2'), m2: written('m1 m2') })).toEqual([])
    expect(lines({ m1: written('m1') })).toEqual([])
  })

  it('is another one on hosts outside the largest group, or of the group without the server', () => {
    const views = { m1: written('m1'), m2: written('m2 m3'), m3: written('m2 m3') }
    const declare = 'Declare it in nfs: of hosts.yaml, then run: muster up nfs'
    expect(lines(views)).toEqual([`blocker m1: /shared/results is not the directory that m2 has. ${declare}`])
    expect(lines(views, [SHARE])).toEqual([
      'blocker m2: /shared/results is not the directory that m1 has. hosts.yaml declares 10.0.0.1:/data at /shared: run: muster up nfs',
      'blocker m3: /shared/results is not the directory that m1 has. hosts.yaml declares 10.0.0.1:/data at /shared, but not for m3: add it to the clients, then run: muster up nfs',
    ])
  })

  it('is not shared because one host claims to see the files of another', () => {
    expect(lines({ m1: written('m1'), m2: written('m1 m2') })).toEqual([
      expect.stringContaining('m2: /shared/results is not the directory that m1 has'),
    ])
  })

  it('is of no use if files of the others cannot be read', () => {
    expect(lines({ m1: written('m1 m2', 'm1 m2'), m2: written('m2', 'm1 m2') })).toEqual([
      'blocker m2: it cannot read the files of m1 in /shared/results. Use the same user ID on both.',
    ])
    expect(lines({ m1: written('m1', 'm1 m2'), m2: written('m1 m2') })).toEqual([
      'blocker m2: m1 cannot read its files in /shared/results. Use the same user ID on both.',
    ])
  })

  it('is missing, no directory, or not writable: each with its host', () => {
    expect(
      lines({
        m1: written('m1'),
        m2: { kind: 'absent' },
        m3: { kind: 'file' },
        m4: { kind: 'denied', login: 'ann' },
        m5: { kind: 'unsure', because: 'no answer in time' },
      }),
    ).toEqual([
      'blocker m2: /shared/results does not exist, nor the directory above it. Declare it in nfs: of hosts.yaml, then run: muster up nfs',
      'blocker m3: /shared/results is not a directory. Give another path.',
      'blocker m4: ann cannot write to /shared/results. Let ann write there on this host.',
      'blocker? m5: cannot check /shared/results: no answer in time. The check is repeated.',
    ])
  })

  it('belongs to the deepest mount point that contains it', () => {
    const deep = { ...SHARE, point: '/shared/results' }
    expect(shareOf('/shared/results/17', [SHARE, deep])).toBe(deep)
    expect(shareOf('/shared-too', [SHARE])).toBeUndefined()
  })
})
