import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { isExampleFile } from '../../../src/inventory/example-file.ts'
import { expandAddress, InventoryError } from '../../../src/inventory/hosts-yaml.ts'
import { type Inventory, resolveTarget } from '../../../src/inventory/inventory.ts'
import { readInventory } from '../../support/hosts-yaml.ts'

const parse = (text: string): Inventory => readInventory(text)

function problemsOf(text: string): string[] {
  try {
    parse(text)
  } catch (error) {
    if (error instanceof InventoryError) return error.message.split('\n')
    throw error
  }
  return []
}

const readExample = (path: string): Inventory =>
  parse(readFileSync(new URL(`../../../${path}`, import.meta.url), 'utf8'))

describe('the example in the docs', () => {
  const lab = readExample('docs/examples/lab.yaml')

  test('has its hosts in order, numbered, with defaults', () => {
    expect(lab.hosts.map(({ name, number }) => `${number} ${name}`)).toEqual(
      ['m10', 'm8', 'm9', 'gpu01', 'gpu02', 'gpu03', 'gpu04'].map((name, index) => `${index + 1} ${name}`),
    )
    expect(lab.hosts[1]).toEqual({
      name: 'm8',
      number: 2,
      address: '192.168.1.80',
      port: 1822,
      user: 'root',
      resources: { cpu: 16 },
    })
  })

  test('gives each host of a set its own address, the shared jump host and memory in bytes', () => {
    expect(lab.hosts[6]).toEqual({
      name: 'gpu04',
      number: 7,
      address: '10.0.0.4',
      port: 22,
      user: 'root',
      jump: ['m10'],
      resources: { cpu: 64, gpu: 8, memoryBytes: 512 * 2 ** 30 },
    })
  })

  test('has groups, trust, packages, environment, nfs and ray', () => {
    const everyone = lab.hosts.map(({ name }) => name)
    expect(lab.cluster).toBe('lab')
    expect(Object.fromEntries(lab.groups)).toEqual({
      workers: ['m8', 'm9'],
      gpus: ['gpu01', 'gpu02', 'gpu03', 'gpu04'],
    })
    expect(lab.sections?.get('trust')).toEqual(everyone)
    expect(lab.sections?.get('packages')).toEqual({
      packages: [{ name: 'openmpi-bin', hosts: everyone }],
      prefixes: [],
    })
    const environment = { kind: 'conda', name: 'myenv', file: 'environment.yml', hosts: everyone, from: 'm10' }
    expect(lab.sections?.get('environment')).toEqual(environment)
    expect(lab.sections?.get('nfs')).toEqual([
      {
        server: 'm10',
        path: '/nfsroot',
        options: 'rw,sync,no_root_squash,no_subtree_check',
        clients: ['m8', 'm9'],
        mount: '/nfsroot',
        mountOptions: 'nolock',
      },
    ])
    expect(lab.sections?.get('ray')).toEqual({
      head: 'm10',
      workers: ['m8', 'm9'],
      port: 6333,
      dashboardHost: '127.0.0.1',
      dashboardPort: 8265,
      hasToken: false,
      labels: [],
      isSupervised: false,
      ports: {},
      nodeIps: {},
      variables: {},
    })
  })
})

test("the repository's hosts.yaml lists only this machine, and is known as the example", () => {
  expect(isExampleFile(fileURLToPath(new URL('../../../hosts.yaml', import.meta.url)))).toBe(true)
  const { hosts } = readExample('hosts.yaml')
  expect(hosts.map(({ transport }) => transport)).toEqual(['local', 'local', 'local'])
})

describe('a valid file', () => {
  test('accepts a host that is only a name', () => {
    expect(parse('hosts:\n  m8:\n  m9: {}\n  m10: ~\n').hosts).toEqual([
      { name: 'm8', number: 1 },
      { name: 'm9', number: 2 },
      { name: 'm10', number: 3 },
    ])
  })

  test('takes numbers as names, as they are written', () => {
    expect(parse('hosts: { 1: , 01: , 1e3: }').hosts.map(({ name }) => name)).toEqual(['1', '01', '1e3'])
  })

  test('lets a host override the defaults, and jump: none connect directly', () => {
    const { hosts } = parse(`
defaults: { user: root, jump: [a, "bob@b:2222"], identity_file: ~/.ssh/k, forward_agent: false }
hosts:
  x: { user: ann, identity_file: [~/.ssh/one, ~/.ssh/two], forward_agent: true }
  y: { jump: none }
  z: { jump: "c, d" }
`)
    expect(hosts.map(({ user, jump }) => [user, jump])).toEqual([
      ['ann', ['a', 'bob@b:2222']],
      ['root', []],
      ['root', ['c', 'd']],
    ])
    expect(hosts[0]?.identityFiles).toEqual(['~/.ssh/one', '~/.ssh/two'])
    expect(hosts[0]?.forwardAgent).toBe(true)
  })

  test('keeps connections for all hosts, for one, or not at all', () => {
    const { hosts } = parse('defaults: { persist: 300 }\nhosts: { a: , b: { persist: 0 }, c: { persist: 0.5 } }')
    expect(hosts.map(({ persistMs }) => persistMs)).toEqual([300_000, 0, 500])
  })

  test('reaches a default jump host directly', () => {
    const { hosts } = parse('defaults: { jump: gate }\nhosts: { gate: , m1: }')
    expect(hosts.map(({ jump }) => jump)).toEqual([[], ['gate']])
  })

  test('lets groups use other groups in any order, and lists', () => {
    const { groups } = parse(
      'hosts: { "m[1-4]": }\ngroups: { both: ["@a", "@b"], a: m1, b: "m[2-3]", rest: "all!@both" }',
    )
    expect(Object.fromEntries(groups)).toEqual({ a: ['m1'], b: ['m2', 'm3'], both: ['m1', 'm2', 'm3'], rest: ['m4'] })
  })

  test('accepts anchors and aliases', () => {
    const { hosts } = parse('hosts:\n  m1: &one { user: ann, labels: { rack: 3 } }\n  m2: *one\n')
    expect(hosts[1]).toEqual({ name: 'm2', number: 2, user: 'ann', labels: { rack: '3' } })
  })

  test.each([
    ['512GiB', 512 * 2 ** 30],
    ['1.5TiB', 1.5 * 2 ** 40],
    ['64GB', 64e9],
    ['1024', 1024],
    ['"2 MiB"', 2 ** 21],
  ])('memory %s', (written, bytes) => {
    expect(parse(`hosts: { m: { resources: { memory: ${written} } } }`).hosts[0]?.resources).toEqual({
      memoryBytes: bytes,
    })
  })

  test.each([
    ['10.0.0.%n', 'gpu07', { address: '10.0.0.7' }],
    ['10.%n.0.1', 'rack1n000', { address: '10.0.0.1' }],
    ['%h.example.org', 'm8', { address: 'm8.example.org' }],
    ['fe80::%n%%eth0', 'm8', { address: 'fe80::8%eth0' }],
    ['10.0.0.%n', 'web', { wrong: 'has %n, but the name web has no number' }],
    ['-oProxyCommand=x', 'm8', { wrong: 'is not a DNS name or IP address' }],
  ])('address %s of %s', (template, name, expected) => {
    expect(expandAddress(template, name)).toEqual(expected)
  })
})

test('a file with a Kubernetes cluster needs no hosts', () => {
  for (const text of ['k8s: {}', 'k8s: {}\nhosts: {}']) expect(parse(text).hosts).toEqual([])
  expect(problemsOf('k8s: { via: m1 }')).toEqual(['hosts.yaml:1:13: there is no host m1'])
  expect(() => resolveTarget(parse('k8s: {}'), undefined)).toThrow('hosts.yaml declares no hosts')
  expect(resolveTarget(parse('k8s: {}'), undefined, { mayBeEmpty: true })).toEqual([])
})

describe('an invalid file', () => {
  test.each<[string, string, string[]]>([
    ['an unknown key', 'host:\n  m1:\n', ['1:1: unknown key host in the file; did you mean hosts?']],
    [
      'an unknown key of a host',
      'hosts:\n  m1: { adress: 10.0.0.1 }\n',
      ['2:9: unknown key adress in m1; did you mean address?'],
    ],
    [
      'a key that is like none',
      'hosts: { m1: { xyzzy: 1 } }',
      [
        '1:16: unknown key xyzzy in m1; known here: address, ssh_alias, user, port, transport, jump, identity_file, forward_agent, persist, shell, resources, labels',
      ],
    ],
    ['a wrong type', 'hosts: { m1: { port: "22" } }', ['1:22: port must be a port from 1 to 65535, not the text 22']],
    [
      'a port out of range',
      'hosts: { m1: { port: 70000 } }',
      ['1:22: port must be a port from 1 to 65535, not the number 70000'],
    ],
    [
      'a number for text',
      'hosts: { m1: { user: 1000 } }',
      ['1:22: user must be a user name (put it in quotes), not the number 1000'],
    ],
    [
      'a flag in words',
      'hosts: { m1: { forward_agent: yes } }',
      ['1:31: forward_agent must be true or false, not the text yes'],
    ],
    [
      'a transport',
      'hosts: { m1: { transport: shh2 } }',
      ['1:27: transport must be ssh2, openssh, local, not shh2; did you mean ssh2?'],
    ],
    ['hosts as a list', 'hosts: [m1]', ['1:8: hosts must be a mapping of `key: value` lines, not a list']],
    [
      'no hosts',
      'cluster: lab',
      ['1:1: there is no host under hosts; write for example hosts: { m8: { address: 192.168.1.80 } }'],
    ],
    [
      'no host',
      'hosts: {}',
      ['1:1: there is no host under hosts; write for example hosts: { m8: { address: 192.168.1.80 } }'],
    ],
    ['a host named twice', 'hosts:\n  m1:\n  m1:\n', ['3:3: m1 is listed twice in hosts; remove one']],
    [
      'overlapping sets',
      'hosts:\n  "m[1-5]":\n  "m[4-9]":\n',
      ['3:4: m[4-5] are listed twice; first as m[1-5] in line 2'],
    ],
    ['a broken set', 'hosts:\n  "m[1-":\n', ['2:5: [ without ] after it; write a range like m[8-10]']],
    [
      'a set that is too large',
      'hosts: { "m[1-9999999999]": }',
      ['1:11: it names 9999999999 hosts; the maximum is 100000'],
    ],
    [
      'an option as a name',
      'hosts: { "-oProxyCommand=x": }',
      ['1:11: -oProxyCommand=x is not a host name: letters, digits, _ . and - only, the first a letter, digit or _'],
    ],
    [
      'a space in a name',
      'hosts: { \'"a b"\': }',
      ['1:11: a b is not a host name: letters, digits, _ . and - only, the first a letter, digit or _'],
    ],
    ['a host called all', 'hosts: { "\\"all\\"": }', ['1:11: a host may not be called all: it means every host']],
    [
      'an unknown token',
      'hosts: { m1: { address: "%x" } }',
      ['1:26: address %x has %x; known are %n, %h and %% (write fe80::1%%eth0 for a zone)'],
    ],
    ['a user that is an option', 'hosts: { m1: { user: "-l" } }', ['1:22: user -l is not a user name']],
    [
      'an unknown member',
      'hosts: { gpu01: }\ngroups: { g: "gpu01,gpu10" }',
      ['2:21: there is no host gpu10; did you mean gpu01?'],
    ],
    [
      'an unknown group',
      'hosts: { m1: }\ngroups: { a: m1, b: "@x" }',
      ['2:22: there is no group @x; did you mean @a?'],
    ],
    ['an empty group', 'hosts: { m1: }\ngroups: { g: m1!m1 }', ['2:11: group g is empty']],
    ['a group without value', 'hosts: { m1: }\ngroups: { g: }', ['2:14: g must be a host set, not nothing']],
    ['an empty host set', 'hosts: { m1: }\ngroups: { g: "" }', ['2:14: g must be a host set, not an empty text']],
    [
      'an alias of nothing',
      'hosts: { m1: *nope }',
      ['1:14: m1 must be a mapping of `key: value` lines, not the alias *nope, which has no anchor'],
    ],
    [
      'groups in a circle',
      'hosts: { m1: }\ngroups: { a: "@b", b: "@c,m1", c: "@a" }',
      ['2:11: groups form a loop: @a → @b → @c → @a'],
    ],
    ['a group of itself', 'hosts: { m1: }\ngroups: { a: "@a" }', ['2:11: groups form a loop: @a → @a']],
    [
      'a group called all',
      'hosts: { m1: }\ngroups: { all: m1 }',
      ['2:11: a group may not be called all: it is every host'],
    ],
    [
      'jumps in a circle',
      'hosts: { a: { jump: b }, b: { jump: a } }',
      ['1:21: jump hosts form a loop: a → b → a', '1:37: jump hosts form a loop: b → a → b'],
    ],
    ['a jump over itself', 'hosts: { a: { jump: a } }', ['1:21: jump hosts form a loop: a → a']],
    [
      'a jump that is an option',
      'hosts: { a: { jump: "-oX=y" } }',
      ['1:21: jump -oX=y is not a jump host; write a host of this file or [user@]host[:port]'],
    ],
    [
      'memory without a unit of bytes',
      'hosts: { a: { resources: { memory: 5 apples } } }',
      ['1:36: memory must be a size such as 512GiB, 64GB or a whole number of bytes, not the text 5 apples'],
    ],
    [
      'two environments',
      'hosts: { a: }\nenvironment: { conda: { name: x }, venv: { path: /v } }',
      ['2:14: environment must have exactly one of conda, docker and venv'],
    ],
    [
      'an environment that follows a host outside of it',
      'hosts: { a: , b: }\nenvironment: { venv: { path: /v, hosts: a, from: b } }',
      ['2:50: b is not one of the hosts of the environment'],
    ],
    [
      'the directory of an environment that is relative, or leaves its parent',
      'hosts: { a: }\nenvironment: { venv: { path: v, wheels: /w/../x } }',
      [
        '2:30: path v must begin with / or ~/ and name a directory below that',
        '2:41: wheels /w/../x may not contain ..',
      ],
    ],
    [
      'a missing key',
      'hosts: { a: }\nnfs: [{ server: a, clients: all }]',
      ['2:7: nfs[1] has no path; write path: /nfsroot'],
    ],
    [
      'a relative path',
      'hosts: { a: }\nnfs: [{ server: a, path: x, clients: all }]',
      ['2:26: path x must begin with /'],
    ],
    [
      'ports and a kind of authentication that there are not',
      'hosts: { m10: }\nray: { head: m10, ports: { workers: 20-10 }, auth: tokens }',
      [
        '2:37: workers must be a range of ports such as 20000-20999, not the text 20-10',
        '2:52: auth must be token, not tokens; did you mean token?',
      ],
    ],
    ['an unknown server', 'hosts: { m10: }\nray: { head: m11 }', ['2:14: there is no host m11; did you mean m10?']],
    [
      'a merge key',
      'hosts:\n  a: &a { port: 1 }\n  b: { <<: *a }\n',
      ['3:8: merge keys (<<) are not supported; put common values under defaults'],
    ],
    ['__proto__', 'hosts: { __proto__: { port: 1 } }', ['1:10: __proto__ is not a key']],
    [
      'toString as a key',
      'toString: 1\nhosts: { a: }',
      [
        '1:1: unknown key toString in the file; known here: cluster, defaults, hosts, groups, trust, packages, nfs, environment, ray, slurm, k8s, launch, launchers',
      ],
    ],
    ['a key that is no text', 'hosts: { [a]: 1 }', ['1:10: a key of hosts must be text']],
    ['an empty file', '', ['1:1: the file must be a mapping of `key: value` lines, not nothing']],
    ['a list', '- a', ['1:1: the file must be a mapping of `key: value` lines, not a list']],
    ['control characters', 'hosts: { a: { shell: "\\e[2J" } }', ['1:22: shell \\x1b[2J has a control character']],
  ])('%s', (_, text, lines) => {
    const expected = lines.map((line) => `hosts.yaml:${line}`.trimEnd())
    const actual = problemsOf(text)
    expect(actual.map((line) => line.trimEnd())).toEqual(expected)
  })

  test('says where a file is not YAML', () => {
    expect(problemsOf('hosts:\n  a: [1, 2\n  b: 3\n')[0]).toMatch(/^hosts\.yaml:\d+:\d+: /)
    expect(problemsOf('hosts: {a: }\n---\nhosts: {b: }')[0]).toMatch(/^hosts\.yaml:2:1: /)
  })

  test('refuses an alias to itself', () => {
    expect(problemsOf('hosts: { m1: &a { labels: *a } }')).not.toEqual([])
  })

  test('reports every problem at once, in the order of the lines', () => {
    const lines = problemsOf(`clustr: x
hosts:
  m1: { prt: 1 }
  m1: {}
  "m[1-2]": { user: 5 }
groups: { g: m9 }
nfs: { }
`)
    expect(lines.map((line) => line.replace(/^hosts\.yaml:(\d+):.*/, '$1'))).toEqual([
      '1',
      '3',
      '4',
      '5',
      '5',
      '6',
      '7',
    ])
  })
})
