import { describe, expect, it } from 'vitest'
import { DeclaredHosts, isHostsFile, titlesOf } from '../../../../src/cli/console/declared-hosts.ts'
import { parseHostsYaml } from '../../../../src/inventory/hosts-yaml.ts'
import { expandCommand, expandWord } from '../../../../src/ops/run/command-template.ts'
import { hostStateOf } from '../../../../src/ui/console/fleet-reducer.ts'
import { expandMacro } from '../../../../src/ui/console/macros.ts'

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

  it('gives commands and macros the name that a host has in its own file', async () => {
    const found = await workspace().resolve('@b,a/m1', {})
    expect(found.map((endpoint) => expandCommand('test %h', endpoint))).toEqual(['test m1', 'test m9', 'test m1'])
    expect(found.map((endpoint) => expandWord('/tmp/%h', endpoint))).toEqual(['/tmp/m1', '/tmp/m9', '/tmp/m1'])
    const typed = found.map((endpoint) => expandMacro('%h', hostStateOf(endpoint)))
    expect(typed).toEqual(['m1', 'm9', 'm1'])
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

  it('reaches a host in the same way under another user', async () => {
    const [found] = await workspace().resolve('ann@m2', { isTaken: (name) => name === 'm2' })
    expect(found).toMatchObject({ host: 'ann@m2', alias: 'm2', address: '10.0.0.2', passwordScope: 'a' })
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
    // Its pane may be open.
    expect([...(a?.names ?? [])][0]).toEqual(['m1', 'a/m1'])
    expect((await b?.endpoints())?.map(({ host, address }) => [host, address])).toEqual([['m3', '10.1.0.3']])
  })

  it('gives a name to no other host, and keeps it when another file gets such a host', async () => {
    let [first, second] = ['hosts: { m1: {}, m2: {} }', 'hosts: { m3: {} }']
    const read = () => [partOf('a', first), partOf('b', second)]
    const declared = new DeclaredHosts(read(), RESOLUTION, async () => read())
    const names = async (...yaml: [string, string]) => {
      ;[first, second] = yaml
      await declared.reload()
      return declared.names.hosts
    }
    expect(declared.names.hosts).toEqual(['m1', 'm2', 'm3'])
    expect(await names('hosts: { m1: {}, m2: {} }', 'hosts: { m1: {} }')).toEqual(['m1', 'm2', 'b/m1'])
    expect(await names('hosts: { m1: {} }', 'hosts: { m1: {}, m2: {}, m4: {} }')).toEqual(['m1', 'b/m1', 'b/m2', 'm4'])
    expect(await names('hosts: { m2: {} }', 'hosts: { m3: {} }')).toEqual(['m2', 'm3'])
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

describe('what is compared when hosts.yaml has changed', () => {
  const entry = (name: string, yaml: string) => {
    const { entries } = new DeclaredHosts(parseHostsYaml(yaml, 'hosts.yaml', []), RESOLUTION).names
    return entries?.get(name)
  }
  const before = entry('m2', 'hosts: { m1: { address: 10.0.0.1 }, m2: { jump: m1, resources: { cpu: 2 } } }')

  it('is what concerns the connection', () => {
    expect(
      entry('m2', 'hosts: { m0: {}, m1: { address: 10.0.0.1 }, m2: { jump: m1, resources: { cpu: 4 } } }'),
    ).toEqual(before)
    expect(entry('m2', 'hosts: { m1: { address: 10.0.0.1 }, m2: { jump: m1, user: ann } }')).not.toEqual(before)
  })

  it('includes jump hosts', () => {
    expect(entry('m2', 'hosts: { m1: { address: 10.0.0.2 }, m2: { jump: m1 } }')).not.toEqual(before)
    expect(entry('m2', 'hosts: { m1: { address: 10.0.0.1 }, m2: { jump: bob@m1 } }')).not.toEqual(before)
  })

  it('ends where jump hosts form a loop', () => {
    expect(entry('m2', 'hosts: { m1: { jump: bob@m2 }, m2: { jump: bob@m1 } }')).toBeDefined()
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
