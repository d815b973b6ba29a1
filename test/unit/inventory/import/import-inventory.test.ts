import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, onTestFinished, test } from 'vitest'
import { defined } from '../../../../src/base/defined.ts'
import { expandAnsiblePattern } from '../../../../src/inventory/import/ansible-files.ts'
import { expandBraces } from '../../../../src/inventory/import/clusterssh.ts'
import { formatNote, IMPORT_KINDS, importInventory } from '../../../../src/inventory/import/import-inventory.ts'
import type { Inventory } from '../../../../src/inventory/inventory.ts'
import { readInventory } from '../../../support/hosts-yaml.ts'
import { randomRuns } from '../../../support/random-runs.ts'

const FIXTURES = new URL('../../../fixtures/inventory/import/', import.meta.url).pathname

type Imported = { readonly inventory: Inventory; readonly notes: readonly string[]; readonly text: string }

async function imported(
  kind: string | undefined,
  options: { file?: string; text?: string; env?: Record<string, string> },
): Promise<Imported> {
  const result = await importInventory({
    ...defined({ kind }),
    cwd: FIXTURES,
    home: '/nonexistent',
    etc: '/nonexistent',
    env: {},
    ...options,
  })
  const notes = result.notes.map((note) => formatNote(note).replaceAll(FIXTURES, ''))
  return { inventory: readInventory(result.text, 'hosts.yaml'), notes, text: result.text }
}

const hostOf = ({ inventory }: Imported, name: string) => {
  const { number: _, ...host } = inventory.hosts.find((candidate) => candidate.name === name) ?? { number: 0 }
  return host
}

describe('clusterssh', () => {
  test('makes no groups of clusters without a host, nor members', async () => {
    const { inventory } = await imported('clusterssh', { file: 'x', text: 'all-of-it empty web\nempty\nnothing empty' })
    expect([...inventory.groups.keys()]).toEqual(['all-of-it'])
  })

  test('leaves out a cluster that would be part of itself, and names its line', async () => {
    const text = 'one two m1\ntwo three m2\nthree one m3\n'
    const { inventory, notes } = await imported('clusterssh', { file: 'c', text })
    expect(Object.fromEntries(inventory.groups)).toEqual({
      ...{ one: ['m3', 'm2', 'm1'], two: ['m3', 'm2'], three: ['m3'] },
    })
    expect(notes).toEqual(['c:3: one is left out here: groups would form a loop'])
  })

  test('names the configuration that defines no clusters', async () => {
    const home = mkdtempSync(join(tmpdir(), 'muster-clusterssh-'))
    onTestFinished(() => rmSync(home, { recursive: true }))
    const config = join(home, '.csshrc')
    writeFileSync(config, 'terminal = xterm\n')
    await expect(
      importInventory({ kind: 'clusterssh', cwd: '/', home, etc: '/nonexistent', env: {} }),
    ).rejects.toMatchObject({ message: `no host was found in ${config}` })
  })

  test('reads logins, braces, continued lines and nested clusters, and reports what it skips', async () => {
    const result = await imported('clusterssh', { file: 'clusters' })
    expect(hostOf(result, 'web2.example.org')).toEqual({ name: 'web2.example.org', user: 'root', port: 2222 })
    expect(hostOf(result, 'web4')).toEqual({ name: 'web4' })
    expect(hostOf(result, 'bob-web4')).toEqual({ name: 'bob-web4', sshAlias: 'web4', user: 'bob' })
    expect(Object.fromEntries(result.inventory.groups)).toEqual({
      web: ['web1.example.org', 'web2.example.org', 'web3.example.org', 'web4', 'web5'],
      db: ['bob-web4', 'db01', 'db02'],
      live: ['web1.example.org', 'web2.example.org', 'web3.example.org', 'web4', 'web5', 'bob-web4', 'db01', 'db02'],
    })
    expect(result.text).toContain('live: "@web,@db"')
    expect(result.notes).toEqual([
      'clusters:4: web4 is called bob-web4 here',
      'clusters:6: cluster empty has no hosts',
      'clusters:7: clusters is a setting of ClusterSSH',
      'clusters:8: -oX=1 is left out: it is not [user@]host[:port]',
      'clusters:8: a;b is left out: it is not [user@]host[:port]',
    ])
  })

  test('gives the name to the host without a login, wherever it stands', async () => {
    const text = 'lab h1 bob@h3:2222 amy@h3\ndb h3 h4 bob@h3:2222\nroot root@h5 bob@h5\n'
    const result = await imported('clusterssh', { file: 'clusters', text })
    expect(result.inventory.hosts.map(({ number: _, ...host }) => host)).toEqual([
      { name: 'h1' },
      { name: 'h3' },
      { name: 'h4' },
      { name: 'bob-h3-2222', sshAlias: 'h3', user: 'bob', port: 2222 },
      { name: 'amy-h3', sshAlias: 'h3', user: 'amy' },
      { name: 'h5', user: 'root' },
      { name: 'bob-h5', sshAlias: 'h5', user: 'bob' },
    ])
    expect(Object.fromEntries(result.inventory.groups)).toMatchObject({
      lab: expect.arrayContaining(['h1', 'bob-h3-2222', 'amy-h3']),
      db: expect.arrayContaining(['h3', 'h4', 'bob-h3-2222']),
    })
    expect(result.notes).toEqual([
      'clusters:1: h3 is called bob-h3-2222 here',
      'clusters:1: h3 is called amy-h3 here',
      'clusters:3: h5 is called bob-h5 here',
    ])
  })

  test('reads tags as clusters of their hosts', async () => {
    const result = await imported('clusterssh', { file: 'tags' })
    expect(Object.fromEntries(result.inventory.groups)).toEqual({ odd: ['h1'], first: ['h1'], even: ['h2'] })
    expect(hostOf(result, 'h2')).toEqual({ name: 'h2', user: 'bob', port: 2022 })
  })

  test('uses the last definition of a cluster', async () => {
    const { inventory, notes } = await imported('clusterssh', { file: 'c', text: 'web a\nweb b\n' })
    expect(Object.fromEntries(inventory.groups)).toEqual({ web: ['b'] })
    expect(notes).toEqual(['c:1: cluster web is defined again later'])
  })

  test('names a login whose user cannot begin a name', async () => {
    const { inventory } = await imported('clusterssh', { file: 'c', text: 'web h %x@h %y@h h:1\n' })
    expect(inventory.hosts.map(({ name }) => name).toSorted()).toEqual(['h', 'h-1', 'host-x-h', 'host-y-h'])
  })

  test('reads the usual files, and those that its configuration adds', async () => {
    const { text } = await importInventory({
      kind: 'clusterssh',
      cwd: '/',
      home: `${FIXTURES}home`,
      etc: '/nonexistent',
      env: {},
    })
    expect(readInventory(text, 'hosts.yaml').groups.get('extra')).toEqual(['e1', 'e2'])
  })

  test('reads the clusters of its configurations, and lists the settings that decide how hosts are reached', async () => {
    const home = mkdtempSync(join(tmpdir(), 'muster-clusterssh-'))
    mkdirSync(join(home, '.clusterssh'))
    const config = join(home, '.clusterssh/config')
    writeFileSync(
      config,
      `ssh=/usr/bin/ssh\nrows=-1\nuser=\nssh_args=-A -J gate # by the gate\nclusters = old none new\nold = m{1..2} \\\n  bob@m3\nnew=m9\n`,
    )
    writeFileSync(
      join(home, '.csshrc'),
      'user = admin\nssh_args = -v\nclusters = ancient new\nancient = m8\nnew = m8\n',
    )
    const source = { kind: 'clusterssh', cwd: '/', home, etc: '/nonexistent', env: {} }
    const { text, notes } = await importInventory(source)
    const named = await importInventory({ ...source, file: config })
    const other = await importInventory({ ...source, file: 'x', text: 'web m1\n' })
    rmSync(home, { recursive: true })
    expect(Object.fromEntries(readInventory(text, 'hosts.yaml').groups)).toEqual({
      ancient: ['m8'],
      old: ['m1', 'm2', 'm3'],
      new: ['m9'],
    })
    const leftOut = `${config}:4: ssh_args = -A -J gate is left out: write it to ~/.ssh/config`
    expect(notes.map(formatNote)).toEqual([leftOut, `${home}/.csshrc:5: cluster new is defined again later`])
    expect([...readInventory(named.text, 'hosts.yaml').groups.keys()]).toEqual(['old', 'new'])
    expect(other.notes.map(formatNote)).toEqual([leftOut])
  })

  test.each([
    ['a', ['a']],
    ['h{1..3}', ['h1', 'h2', 'h3']],
    ['h{08..10}', ['h08', 'h09', 'h10']],
    ['{a,b}{1,2}', ['a1', 'a2', 'b1', 'b2']],
    ['h{1,{3..4}}', ['h1', 'h3', 'h4']],
    ['h{x}', ['h{x}']],
    ['h{a..c}', ['ha', 'hb', 'hc']],
    ['h{c..a..2}', ['ha', 'hc']],
    ['h{1..9..4}', ['h1', 'h5', 'h9']],
    ['h{a..3}', ['h{a..3}']],
    ['b{4..6,9,12..14}', ['b12', 'b13', 'b14', 'b4', 'b5', 'b6', 'b9']],
  ])('braces of %s', (word, names) => {
    expect(expandBraces(word).toSorted()).toEqual(names)
  })

  test('skips braces that expand to too many names', async () => {
    expect(() => expandBraces('h{1..99999999}')).toThrow('more than 100000')
    expect(() => expandBraces('{1..999}{1..999}')).toThrow('more than 100000')
    expect(() => expandBraces('h{1..60000,1..60000}')).toThrow('more than 100000')
  })
})

describe('clush', () => {
  test('leaves out a group whose value is no host set', async () => {
    const text = 'roles:\n  adm: h1\n  rack: { x: 1 }\n  list: [h2, [h3]]\n'
    const { inventory, notes } = await imported('clush', { file: 'cl.yaml', text })
    expect(Object.fromEntries(inventory.groups)).toEqual({ adm: ['h1'] })
    expect(notes).toEqual([
      'cl.yaml:3: group rack is left out: it is not a host set',
      'cl.yaml:4: group list is left out: it is not a host set',
    ])
  })

  test('follows groups.conf to the local file and the YAML files, and runs no commands', async () => {
    const { inventory, notes } = await imported('clush', { file: 'clush/groups.conf' })
    const groups = Object.fromEntries([...inventory.groups].map(([name, members]) => [name, members.length]))
    expect(groups).toMatchObject({ compute: 9, storage: 1, io: 2, 'roles:both': 6, 'racks:r1': 4 })
    expect(notes).toEqual([
      'clush/groups.conf:12: source slurm is a command and is not run: sinfo -h -o "%N" -p $GROUP',
      'clush/groups.d/local.cfg:2: group all is called group-all here',
    ])
  })

  test('keeps nested groups of a local file, evaluates set operations, and turns logins into hosts', async () => {
    const result = await imported('clush', { file: 'clush/groups.d/local.cfg' })
    expect(result.text).toContain('io: "@storage,head"')
    expect(result.inventory.groups.get('storage')).toEqual(['node1'])
    expect(hostOf(result, 'm1')).toEqual({ name: 'm1', user: 'bob', port: 22 })
  })

  test('gives a YAML file of one source plain group names', async () => {
    const { inventory } = await imported('clush', {
      file: 'g.yaml',
      text: 'roles: { adm: head, all_nodes: ["@adm", "n[1-2]"] }',
    })
    expect(Object.fromEntries(inventory.groups)).toEqual({ adm: ['head'], all_nodes: ['head', 'n1', 'n2'] })
  })

  test('reports circular groups, and reads the rest', async () => {
    const { inventory, notes } = await imported('clush', { file: 'local.cfg', text: 'a: @b\nb: @a\nc: n1\n' })
    expect([...inventory.groups.keys()]).toEqual(['c'])
    expect(notes).toContain('local.cfg:1: group a: its groups form a loop')
  })
})

describe('ansible', () => {
  test('reads INI with ranges and children; hosts override groups, inner groups override outer ones', async () => {
    const result = await imported('ansible', { file: 'ansible.ini' })
    expect(hostOf(result, 'www02.example.com')).toEqual({
      name: 'www02.example.com',
      user: 'deploy',
      identityFiles: ['~/.ssh/prod key'],
    })
    expect(hostOf(result, 'foo')).toMatchObject({ address: '10.0.0.5', port: 2222, user: 'deploy' })
    expect(hostOf(result, 'db-c')).toMatchObject({ user: 'dba', jump: ['ann@gate:22'] })
    expect(hostOf(result, 'me')).toEqual({ name: 'me', transport: 'local' })
    expect(result.inventory.groups.get('prod')).toHaveLength(7)
    expect(result.text).toContain('prod: "@web,@db"')
    expect(result.notes).toEqual([
      'ansible.ini:3: variable http_port has no counterpart',
      'ansible.ini:4: ansible_password is not copied: secrets have no place in hosts.yaml',
      'ansible.ini:16: w1 is left out: its connection winrm is not SSH',
      'ansible.ini:17: ansible_python_interpreter is a template: {{ x }}',
    ])
  })

  test('writes no secret to the file or the notes', async () => {
    const { text, notes } = await imported('ansible', {
      file: 'i',
      text: '[a]\nh ansible_ssh_pass=hunter2 ansible_become_password="hunter2"\n',
    })
    expect(text + notes.join('\n')).not.toContain('hunter2')
  })

  test('recognises YAML by its first line', async () => {
    const result = await imported('ansible', { file: 'ansible.yaml' })
    expect(hostOf(result, 'mail')).toEqual({ name: 'mail', user: 'ann' })
    expect(hostOf(result, 'www2')).toEqual({ name: 'www2', user: 'web', port: 2222 })
    expect(result.inventory.groups.get('group-rack-1')).toEqual(['www1', 'www2'])
    expect((await imported('ansible', { file: '-', text: 'all:\n  hosts:\n    h1:\n' })).inventory.hosts[0]?.name).toBe(
      'h1',
    )
  })

  test.each([
    ['web[01:03]', ['web01', 'web02', 'web03']],
    ['n[1:9:4]', ['n1', 'n5', 'n9']],
    ['db-[a:c].x', ['db-a.x', 'db-b.x', 'db-c.x']],
    ['r[1:2]n[1:2]', ['r1n1', 'r1n2', 'r2n1', 'r2n2']],
    ['n[:2]', ['n0', 'n1', 'n2']],
    ['n[2:1]', []],
  ])('range %s', (pattern, names) => {
    expect(expandAnsiblePattern(pattern)).toEqual(names)
  })
})

describe('ssh', () => {
  test('reads aliases and included files, skips patterns, and lists other names of one machine once', async () => {
    const { inventory, notes } = await imported('ssh', { file: 'home/.ssh/config' })
    expect(inventory.hosts.map(({ name }) => name).toSorted()).toEqual(['db', 'equals', 'quoted', 'web1', 'web2'])
    expect(notes).toEqual([
      'home/.ssh/config:4: db.example.org: other names of db',
      'home/.ssh/config:9: Match host db exec true names no host',
    ])
  })

  test('reads ~/.ssh/config by default, with Include relative to it', async () => {
    const { hosts, text } = await importInventory({
      kind: 'ssh',
      cwd: '/',
      home: `${FIXTURES}home`,
      etc: '/nonexistent',
      env: {},
    })
    expect(hosts).toBe(6)
    expect(text).toContain('included:')
  })
})

describe('any source', () => {
  test('says which files it looked for when there is none', async () => {
    for (const kind of IMPORT_KINDS) {
      await expect(
        importInventory({ kind, cwd: '/', home: '/nonexistent', etc: '/nonexistent', env: {} }),
      ).rejects.toThrow(/nothing to import|no host was found|the file is missing/)
    }
  })

  test('gives a host and a group other names that hosts.yaml cannot have, and names their line', async () => {
    const host = await imported('clusterssh', { file: 'c', text: 'web m1\ndb __proto__ m2\n' })
    expect(host.inventory.hosts.map(({ name }) => name)).toEqual(['m1', 'm2', 'host-__proto__'])
    expect(host.notes).toEqual(['c:2: __proto__ is called host-__proto__ here'])
    const group = await imported('clusterssh', { file: 'c', text: 'web m1\n__proto__ m2\n' })
    expect(Object.fromEntries(group.inventory.groups)).toEqual({ web: ['m1'], 'group-__proto__': ['m2'] })
    expect(group.notes).toEqual(['c:2: group __proto__ is called group-__proto__ here'])
    const home = mkdtempSync(join(tmpdir(), 'muster-import-'))
    onTestFinished(() => rmSync(home, { recursive: true }))
    const config = join(home, 'config')
    writeFileSync(config, 'Host m1 __proto__ all\n  User ada\n')
    const fromSsh = await imported('ssh', { file: config })
    expect(fromSsh.notes.map((note) => note.replace(home, ''))).toEqual([
      '/config:1: __proto__ is called host-__proto__ here',
      '/config:1: all is called host-all here',
    ])
    // What ssh_config says about the alias still counts.
    expect(hostOf(fromSsh, 'host-__proto__')).toMatchObject({ sshAlias: '__proto__' })
    expect(hostOf(fromSsh, 'host-all')).toMatchObject({ sshAlias: 'all' })
  })

  test('refuses a file without hosts', async () => {
    await expect(imported('clusterssh', { file: 'clusters', text: '# nothing\n' })).rejects.toMatchObject({
      message: 'no host was found in clusters',
      hint: expect.stringContaining('muster import clusterssh FILE'),
    })
  })

  const fragment = fc.constantFrom(
    ...[
      'web',
      'a1',
      '@a',
      ':',
      ' ',
      '\n',
      '[a]',
      '[a:children]',
      '[a:vars]',
      '{1..3}',
      '{a,b}',
      '[1:3]',
      '[1-3]',
      '=',
      'ansible_host',
      'Host',
      'HostName',
      '"',
      "'",
      '\\',
      '#',
      '- ',
      '  ',
      '*',
      '!',
      'user@h:22',
      '::1',
      'null',
      'true',
      '1e3',
      '\u001b[2J',
      '%h',
      '-x',
      'all',
      '__proto__',
      'slots=2',
      'provider:',
      'cluster_name: c',
      'type: local',
    ],
  )
  test.each([
    ...IMPORT_KINDS.filter((kind) => kind !== 'ssh'),
    undefined,
  ])('%s: any text is a hosts.yaml that loads, or an error of ours', async (kind) => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fragment, { maxLength: 25 }),
        fc.constantFrom('x', 'x.yaml', 'tags'),
        async (fragments, file) => {
          try {
            const { text } = await imported(kind, { file, text: fragments.join('') })
            expect(text).not.toContain('\u001b')
          } catch (error) {
            expect(error).toMatchObject({ code: 'configuration' })
            expect(String(error)).not.toContain('\u001b')
            // What was written must always load.
            expect(String(error)).not.toMatch(/hosts\.yaml:\d+:\d+: (?!groups form a loop)/)
          }
        },
      ),
      { numRuns: randomRuns(600) },
    )
  })
})
