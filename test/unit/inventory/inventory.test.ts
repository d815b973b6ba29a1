import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { MusterError } from '../../../src/base/errors.ts'
import { groupsByHost, inventoryFromTarget, resolveTarget } from '../../../src/inventory/inventory.ts'
import { findHostsFile, loadInventory, namesForDns, selectHosts } from '../../../src/inventory/load-inventory.ts'
import { readInventory, SECTIONS } from '../../support/hosts-yaml.ts'

const inventory = readInventory(
  `defaults: { user: root }
hosts: { "m[8-10]": { address: "10.0.0.%n" }, gpu01: }
groups: { workers: "m[8-9]", odd: m9 }`,
  'hosts.yaml',
)

const thrownBy = async (action: () => unknown): Promise<MusterError> => {
  try {
    await action()
  } catch (error) {
    if (error instanceof MusterError) return error
    throw error
  }
  throw new Error('nothing was thrown')
}

const namesOf = (target: string | undefined, options = {}): string[] =>
  resolveTarget(inventory, target, options).map(({ name }) => name)

describe('a target of an inventory', () => {
  test('is all hosts when none is given', () => {
    expect(namesOf(undefined)).toEqual(['m8', 'm9', 'm10', 'gpu01'])
  })

  test('leaves out excluded hosts', () => {
    expect(namesOf('@workers,gpu01', { exclude: '@odd' })).toEqual(['m8', 'gpu01'])
  })

  test('reads names from stdin', () => {
    expect(namesOf('-', { stdinNames: ['m10', 'm[8-9]'] })).toEqual(['m10', 'm8', 'm9'])
  })

  test('keeps the numbers of the inventory', () => {
    expect(resolveTarget(inventory, 'm10,m8').map(({ number }) => number)).toEqual([3, 1])
  })

  test('gives a known host another user or port', () => {
    expect(resolveTarget(inventory, 'ann@m8:2222')).toEqual([
      { name: 'm8', number: 1, address: '10.0.0.8', user: 'ann', port: 2222 },
    ])
  })

  test('adds machines given in full, numbered after the others', () => {
    expect(resolveTarget(inventory, 'm8,bob@h1,h2:2222')).toEqual([
      { name: 'm8', number: 1, address: '10.0.0.8', user: 'root' },
      { name: 'h1', number: 5, user: 'bob' },
      { name: 'h2', number: 6, port: 2222 },
    ])
  })

  test('names a machine given in full by its host alone, unless this is taken', () => {
    const names = (target: string) =>
      resolveTarget(inventory, target, { isTaken: (name) => ['m8', 'h1'].includes(name) }).map(({ name }) => name)
    expect(names('m8,bob@h1,h2:2222')).toEqual(['m8', 'bob@h1', 'h2'])
    expect(names('ann@m8')).toEqual(['ann@m8'])
  })

  test('with an unknown name suggests the nearest, and how to name a machine outside the inventory', async () => {
    const error = await thrownBy(() => resolveTarget(inventory, 'm11'))
    expect(error.code).toBe('usage')
    expect(error.message).toContain('there is no host m11; did you mean m10?')
    expect(error.hint).toContain('user@host')
  })

  test('that leaves no host is an error', async () => {
    expect((await thrownBy(() => resolveTarget(inventory, 'm8!m8'))).message).toBe('m8!m8 leaves no host')
    expect((await thrownBy(() => resolveTarget(inventory, 'm8', { exclude: 'm*' }))).message).toBe(
      'm8 without m* leaves no host',
    )
  })

  test('groupsByHost lists the groups of each host', () => {
    expect(Object.fromEntries(groupsByHost(inventory))).toEqual({ m8: ['workers'], m9: ['workers', 'odd'] })
  })
})

describe('a target without any file', () => {
  test('describes its hosts', () => {
    expect(inventoryFromTarget('root@h[1-2],[::1]:2222,m8').hosts).toEqual([
      { name: 'h1', number: 1, user: 'root' },
      { name: 'h2', number: 2, user: 'root' },
      { name: '::1', number: 3, port: 2222 },
      { name: 'm8', number: 4 },
    ])
  })

  test('names hosts in full if the short name is ambiguous', () => {
    expect(inventoryFromTarget('127.0.0.1:2201,127.0.0.1:2202,a@h,b@h').hosts.map(({ name }) => name)).toEqual([
      '127.0.0.1:2201',
      '127.0.0.1:2202',
      'a@h',
      'b@h',
    ])
  })

  test('with an impossible port says so', async () => {
    for (const target of ['h:99999', 'h:0', 'root@h:123456'])
      expect((await thrownBy(() => inventoryFromTarget(target))).message).toContain(': a port is from 1 to 65535')
  })

  test.each([
    'all',
    '@workers',
    'm*',
    'h:99999',
    '"-oProxyCommand=x"',
    '"a;b"',
    'u@"x"',
    '-l@h',
  ])('%s is refused', async (target) => {
    expect((await thrownBy(() => inventoryFromTarget(target))).code).toBe('usage')
  })
})

describe('the source of the inventory', () => {
  let root = ''
  beforeEach(() => {
    root = mkdtempSync(join(tmpdir(), 'muster-inventory-'))
    mkdirSync(join(root, 'work'))
    mkdirSync(join(root, 'config/muster'), { recursive: true })
  })
  afterEach(() => rmSync(root, { recursive: true }))
  const source = (file?: string) => ({
    sections: async () => SECTIONS,
    cwd: join(root, 'work'),
    env: { XDG_CONFIG_HOME: join(root, 'config') },
    nameFiles: {
      sshConfigs: [[join(root, 'config/ssh'), join(root, 'config')] as const],
      hosts: join(root, 'config/hosts'),
    },
    ...(file === undefined ? {} : { file }),
  })
  const write = (path: string, host: string): void => writeFileSync(join(root, path), `hosts: { ${host}: }`)

  test('is --hosts, else the working directory, else the configuration directory', async () => {
    write('config/muster/hosts.yaml', 'fromconfig')
    expect((await loadInventory(source())).hosts[0]?.name).toBe('fromconfig')
    write('work/hosts.yaml', 'fromcwd')
    expect((await loadInventory(source())).hosts[0]?.name).toBe('fromcwd')
    write('work/other.yaml', 'fromoption')
    expect((await loadInventory(source('other.yaml'))).hosts[0]?.name).toBe('fromoption')
  })

  test('is parsed once, until its text changes', async () => {
    const same = source()
    write('work/hosts.yaml', 'm1')
    const first = await loadInventory(same)
    expect((await loadInventory(same)).hosts).toBe(first.hosts)
    write('work/hosts.yaml', 'm2')
    expect((await loadInventory(same)).hosts[0]?.name).toBe('m2')
  })

  test('names every place that was tried if there is none', async () => {
    const error = await thrownBy(() => loadInventory(source()))
    expect(error.code).toBe('configuration')
    expect(error.message).toBe(`there is no ./hosts.yaml and no ${root}/config/muster/hosts.yaml`)
    expect(error.hint).toContain('--hosts')
  })

  test('names --hosts none as the reason why there is no hosts.yaml', async () => {
    write('work/hosts.yaml', 'm1')
    expect((await thrownBy(() => loadInventory(source('none')))).message).toBe(
      'this needs a hosts.yaml, but --hosts is none',
    )
  })

  test('reports a missing file, or a directory', async () => {
    expect((await thrownBy(() => loadInventory(source('no.yaml')))).message).toBe(
      'no.yaml cannot be read: no such file',
    )
    expect((await thrownBy(() => loadInventory(source('.')))).message).toContain('it is a directory')
  })

  test('reports a file of another encoding instead of reading wrong names from it', async () => {
    writeFileSync(join(root, 'work/hosts.yaml'), Buffer.from('hosts: { m8: { user: j\xf6rg } }', 'latin1'))
    expect((await thrownBy(() => loadInventory(source()))).message).toBe(
      'hosts.yaml cannot be read: it is not UTF-8 text',
    )
  })

  test('reports problems with the file name that the user gave', async () => {
    writeFileSync(join(root, 'work/hosts.yaml'), 'hosts: { a: { prot: 1 } }')
    expect((await thrownBy(() => loadInventory(source()))).message).toBe(
      'hosts.yaml:1:15: unknown key prot in a; did you mean port?',
    )
  })

  test('needs no file for a target, and reads none with --hosts none', async () => {
    expect((await selectHosts(source(), 'm[8-9]')).hosts.map(({ name }) => name)).toEqual(['m8', 'm9'])
    write('work/hosts.yaml', 'x')
    expect((await selectHosts(source('none'), 'm8')).hosts.map(({ name }) => name)).toEqual(['m8'])
    expect(findHostsFile(source('none'))).toBeUndefined()
  })

  test('without it, tells which names only DNS can know', async () => {
    writeFileSync(join(root, 'config/ssh'), 'Host m8\nMatch originalhost m9,m10 exec "true"\n')
    const named = async (target: string, login = {}) =>
      namesForDns(await selectHosts(source(), target, { login }), { login }, source())
    expect(await named('m[8-11],zzz,192.0.2.1,::1,root@web,web2:22')).toEqual(['m11', 'zzz'])
    expect(await named('zzz,eve@web', { user: 'root' })).toEqual(['zzz'])
    write('work/hosts.yaml', 'zzz')
    expect(await named('zzz')).toEqual([])
  })

  test('is not needed for a target that is unrelated to the hosts.yaml in the directory', async () => {
    writeFileSync(join(root, 'work/hosts.yaml'), 'hosts: { local1: {}, local2: {} }')
    writeFileSync(join(root, 'config/ssh'), 'Include more\nHost m8\n')
    writeFileSync(join(root, 'config/more'), 'Host *\n  User root\nHost m9 !m7 *.lab\n')
    writeFileSync(join(root, 'config/hosts'), '127.0.0.1 localhost here # not.this\n')
    const outside = async (target: string) => (await selectHosts(source(), target)).hosts.map(({ name }) => name)
    expect(await outside('m[8-9],a.lab,here,192.0.2.1,root@m1')).toEqual([
      'm8',
      'm9',
      'a.lab',
      'here',
      '192.0.2.1',
      'm1',
    ])
    const file = join(root, 'work/hosts.yaml')
    const hint = `A machine outside ${file} is written as user@host or host:port; --hosts none leaves that file out.`
    for (const target of ['m8,m10', 'm10,root@m1'])
      expect(await thrownBy(() => selectHosts(source(), target))).toMatchObject({
        message: `there is no host m10: neither ${file} nor ~/.ssh/config nor /etc/hosts names it`,
        hint,
      })
    expect((await thrownBy(() => selectHosts(source(), 'm10'))).hint).toBe(hint)
    for (const name of ['m7', 'not.this', 'zzz'])
      expect((await thrownBy(() => selectHosts(source(), name))).message).toContain(`there is no host ${name}`)
    expect((await thrownBy(() => selectHosts(source(), 'loca1'))).message).toContain('did you mean local1')
    expect((await thrownBy(() => selectHosts(source(), 'local1,m8'))).message).toContain('there is no host m8')
    expect((await thrownBy(() => selectHosts(source('hosts.yaml'), 'm8'))).message).toContain('there is no host m8')
  })

  test('the example of a checkout refuses no other name, as if there were no file', async () => {
    writeFileSync(join(root, 'work/hosts.yaml'), readFileSync(new URL('../../../hosts.yaml', import.meta.url)))
    const selection = await selectHosts(source(), 'zzz,m8')
    expect(selection.hosts.map(({ name }) => name)).toEqual(['zzz', 'm8'])
    expect(namesForDns(selection, {}, source())).toEqual(['zzz', 'm8'])
    expect((await selectHosts(source(), 'local1')).inventory.isExample).toBe(true)
    expect((await thrownBy(() => selectHosts(source(), 'local4'))).message).toContain('did you mean local')
  })

  test('explains how to write a group when its bare name is given, and does not connect to it', async () => {
    writeFileSync(join(root, 'work/hosts.yaml'), 'hosts: { local1: {}, local2: {} }\ngroups: { web: local1 }')
    const { message } = await thrownBy(() => selectHosts(source(), 'web'))
    expect(message).toContain('there is no host web; the group is @web')
  })
})
