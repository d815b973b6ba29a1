import { describe, expect, it } from 'vitest'
import { agrees, formatExport, parseActiveExports, parseExports } from '../../../../src/ops/nfs/exports.ts'

const parse = (text: string) => parseExports(text, '/etc/exports')
const said = (text: string) => parse(text).problems.map(({ line, column, message }) => `${line}:${column} ${message}`)

describe('a file of exports', () => {
  it('has an entry for each client, with the line it is in', () => {
    const text = '# data\n/srv/a 10.0.0.0/24(rw,sync) m8(ro)\n\n/srv/b\n'
    expect(parse(text).entries).toMatchObject([
      { path: '/srv/a', client: '10.0.0.0/24', options: ['rw', 'sync'], line: 2 },
      { path: '/srv/a', client: 'm8', options: ['ro'], line: 2 },
      { path: '/srv/b', client: '*', options: [], line: 4 },
    ])
  })

  it('joins lines, takes default options, and knows quoted and escaped paths', () => {
    const text = '"/srv/a b" -rw,sync m8 \\\n  m9(ro)\n/srv/c\\040d *(ro)\n'
    expect(parse(text).entries).toMatchObject([
      { path: '/srv/a b', client: 'm8', options: ['rw', 'sync'], line: 1 },
      { path: '/srv/a b', client: 'm9', options: ['rw', 'sync', 'ro'], line: 2 },
      { path: '/srv/c d', client: '*', options: ['ro'], line: 3 },
    ])
  })

  it('applies options after a space to everyone', () => {
    expect(parse('/srv 10.0.0.0/24 (rw)').entries).toMatchObject([
      { client: '10.0.0.0/24', options: [], isStray: false },
      { client: '*', options: ['rw'], isStray: true },
    ])
    expect(parse('/srv (rw)').entries).toMatchObject([{ client: '*', isStray: false }])
  })

  it('has errors reported with their place', () => {
    expect(said('/srv m8(rw,bogus)')).toEqual(['1:6 unknown keyword "bogus"'])
    expect(said('\n/srv m8(rw')).toEqual(['2:6 the parentheses of m8(rw do not match'])
    expect(said('srv m8(rw)')).toEqual(['1:1 srv is not an absolute path'])
    expect(said('/srv m8(anonuid=me)')).toEqual(['1:6 anonuid=me is not a number'])
    expect(said('/srv m8(rw,fsid=0,sec=krb5p:sys) # all good')).toEqual([])
  })

  it('is read back as it was written', () => {
    const line = formatExport('/srv/a b#c', ['m8', '10.0.0.0/24'], 'rw,sync')
    expect(parse(line)).toMatchObject({
      problems: [],
      entries: [
        { path: '/srv/a b#c', client: 'm8' },
        { path: '/srv/a b#c', client: '10.0.0.0/24', options: ['rw', 'sync'] },
      ],
    })
  })
})

describe('what is exported', () => {
  // As exportfs of nfs-utils 2.6.2 prints it, and as it keeps it.
  const shown = '/nfsroot  *(sync,wdelay,hide,no_subtree_check,sec=sys,rw,secure,no_root_squash,no_all_squash)'
  const kept =
    '/nfsroot\t*(rw,sync,wdelay,hide,nocrossmnt,secure,no_root_squash,no_all_squash,no_subtree_check,secure_locks,acl,no_pnfs,anonuid=65534,anongid=65534,sec=sys,rw,secure,no_root_squash,no_all_squash)'

  it.each([shown, kept])('is compared with what is wanted: %.20s', (text) => {
    const [active] = parseActiveExports(text)
    for (const wrong of ['/srv', '/srv m1', ' /srv m1(ro)', '(ro)', '/srv m1(ro)x', '/srv m1(ro))'])
      expect(parseActiveExports(wrong)).toEqual([])
    expect(parseActiveExports('/a b  <world>(ro)')).toMatchObject([{ path: '/a b', client: '*' }])
    // A host may answer anything: it takes no time out of proportion.
    for (const long of [`a${' '.repeat(1_000_000)}`, `/a${' b'.repeat(500_000)}`, '('.repeat(1_000_000)])
      expect(parseActiveExports(long)).toEqual([])
    expect(active).toMatchObject({ path: '/nfsroot', client: '*' })
    const options = active?.options ?? new Set()
    expect(agrees(options, ['rw', 'sync', 'no_root_squash', 'no_subtree_check'])).toBe(true)
    expect(agrees(options, ['rw', 'sync', 'no_subtree_check'])).toBe(false)
    expect(agrees(options, ['ro', 'sync', 'no_root_squash'])).toBe(false)
    expect(agrees(options, ['rw', 'async', 'no_root_squash'])).toBe(false)
  })
})
