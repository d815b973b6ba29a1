import { describe, expect, it } from 'vitest'
import { DeclaredHosts, isHostsFile, titlesOf } from '../../../../src/cli/console/declared-hosts.ts'
import { parseHostsYaml } from '../../../../src/inventory/hosts-yaml.ts'

const RESOLUTION = {
  env: {},
  source: {
    ask: async (questions: readonly unknown[]) => questions.map(() => ({ ok: true, values: new Map() }) as const),
  },
}

const partOf = (title: string, yaml: string) => ({ title, inventory: parseHostsYaml(yaml, `${title}.yaml`, []) })

const workspace = () =>
  new DeclaredHosts(
    [
      partOf(
        'a',
        'hosts: { m1: { address: 10.0.0.1 }, m2: { address: 10.0.0.2 } }\ngroups: { fast: m1, both: "m[1-2]" }',
      ),
      partOf('b', 'hosts: { m1: { address: 10.1.0.1, jump: m9 }, m9: {} }\ngroups: { fast: m9, a: m1 }'),
    ],
    RESOLUTION,
  )

it('tells how a host is reached from what it has for jobs', () => {
  const more = 'port: 2222, persist: 60, resources: { cpu: 2 }, labels: { rack: 3 }'
  const { inventory } = partOf('a', `hosts: { m1: { address: 10.0.0.1, ${more} } }`)
  expect([...new DeclaredHosts(inventory, RESOLUTION).names.entries.values()]).toEqual([
    {
      connection: { name: 'm1', address: '10.0.0.1', port: 2222 },
      forJobs: { resources: { cpu: 2 }, labels: { rack: '3' } },
    },
  ])
})

describe('a workspace of several files', () => {
  it('prefixes a host with its file only if two files have it, and makes each file a group', () => {
    const { inventory } = workspace()
    expect(inventory.hosts.map(({ name, number }) => [name, number])).toEqual([
      ['a/m1', 1],
      ['m2', 2],
      ['b/m1', 3],
      ['m9', 4],
    ])
    expect(Object.fromEntries(inventory.groups)).toEqual({
      a: ['a/m1', 'm2'],
      'a/fast': ['a/m1'],
      both: ['a/m1', 'm2'],
      b: ['b/m1', 'm9'],
      'b/fast': ['m9'],
      'b/a': ['b/m1'],
    })
    expect(inventory.file).toBeUndefined()
  })

  it('lets no file take the name that another file has for a group', () => {
    const { groups } = new DeclaredHosts(
      [
        partOf('a', 'hosts: { m1: {} }\ngroups: { fast: m1 }'),
        partOf('b', 'hosts: { m2: {} }\ngroups: { fast: m2, a/fast: m2 }'),
      ],
      RESOLUTION,
    ).inventory
    expect(Object.fromEntries(groups)).toEqual({
      a: ['m1'],
      'a/fast': ['m1'],
      b: ['m2'],
      'b/fast': ['m2'],
      'b/a/fast': ['m2'],
    })
  })

  it('reaches each host as its own file says, under its own name', async () => {
    const endpoints = await workspace()
      .resolve('@b,a/m[1-2],m2', {})
      .catch((error: Error) => error.message)
    expect(endpoints).toContain('a/m2')
    const found = await workspace().resolve('@b,a/m1', {})
    expect(found.map(({ host, alias, address, jump }) => [host, alias, address, jump.map((hop) => hop.host)])).toEqual([
      ['b/m1', 'm1', '10.1.0.1', ['m9']],
      ['m9', undefined, 'm9', []],
      ['a/m1', 'm1', '10.0.0.1', []],
    ])
  })

  it('keeps passwords for hosts of one file from hosts and jump hosts of another', async () => {
    const found = await workspace().resolve('@b,a/m1', {})
    expect(
      found.map(({ host, passwordScope, jump }) => [host, passwordScope, jump.map((hop) => hop.passwordScope)]),
    ).toEqual([
      ['b/m1', 'b', ['b']],
      ['m9', 'b', []],
      ['a/m1', 'a', []],
    ])
  })

  it('knows each file with its own names, also after the files have changed', async () => {
    let second = 'hosts: { m1: { address: 10.1.0.1 } }'
    const read = () => [partOf('a', 'hosts: { m1: {}, m2: {} }\ngroups: { fast: m2 }'), partOf('b', second)]
    const declared = new DeclaredHosts(read(), RESOLUTION, async () => read())
    const [a, b] = declared.files
    expect(declared.files.map(({ title, inventory }) => [title, inventory.file])).toEqual([
      ['a', 'a.yaml'],
      ['b', 'b.yaml'],
    ])
    expect([a?.names, b?.names].map((names) => [...(names ?? [])])).toEqual([
      [
        ['m1', 'a/m1'],
        ['m2', 'm2'],
      ],
      [['m1', 'b/m1']],
    ])
    expect(a?.inventory.groups).toEqual(new Map([['fast', ['m2']]]))
    expect((await b?.endpoints())?.map(({ host, address }) => [host, address])).toEqual([['m1', '10.1.0.1']])
    second = 'hosts: { m3: { address: 10.1.0.3 } }'
    await declared.reload()
    expect([...(a?.names ?? [])][0]).toEqual(['m1', 'm1'])
    expect((await b?.endpoints())?.map(({ host, address }) => [host, address])).toEqual([['m3', '10.1.0.3']])
  })

  it('keeps what it knows when a file cannot be read again', async () => {
    let isBroken = true
    const first = parseHostsYaml('hosts: { m1: {} }', 'hosts.yaml', [])
    const second = parseHostsYaml('hosts: { m1: {}, m2: {} }', 'hosts.yaml', [])
    const declared = new DeclaredHosts(first, RESOLUTION, async () => {
      if (isBroken) throw new Error('broken')
      return second
    })
    expect((await declared.endpoints()).map(({ host }) => host)).toEqual(['m1'])
    await expect(declared.reload()).rejects.toThrow('broken')
    expect(declared.names.hosts).toEqual(['m1'])
    isBroken = false
    await declared.reload()
    expect((await declared.endpoints()).map(({ host }) => host)).toEqual(['m1', 'm2'])
  })
})

describe('a word of the command line', () => {
  it('is a file if it ends as one', () => {
    expect(['a.yaml', 'x/hosts.yml', 'm[1-3/2]', 'root@h1', 'yaml'].map(isHostsFile)).toEqual([
      true,
      true,
      false,
      false,
      false,
    ])
  })

  it('names its group after the file or its directory', () => {
    expect(titlesOf(['/x/lab.yaml', '/x/gpu/hosts.yaml'])).toEqual(['lab', 'gpu'])
    expect(() => titlesOf(['/x/lab.yaml', '/y/lab.yml'])).toThrow('have the same name')
    expect(() => titlesOf(['/x/a b.yaml'])).toThrow('cannot be the name of a group')
  })
})
