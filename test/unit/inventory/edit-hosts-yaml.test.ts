import {
  chmodSync,
  lstatSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import {
  addGroup,
  formatScalar,
  withGroup as withGroupIn,
  writeFileAtomically,
} from '../../../src/inventory/edit-hosts-yaml.ts'
import { parseYaml } from '../../../src/inventory/yaml-reader.ts'
import { readInventory, SECTIONS } from '../../support/hosts-yaml.ts'

const lab = readFileSync(new URL('../../../docs/examples/lab.yaml', import.meta.url), 'utf8')

const withGroup = (text: string, name: string, set: string): string =>
  withGroupIn(text, name, set, { file: 'hosts.yaml', sections: SECTIONS })

/** The lines of `after` that are not in `before`, and the other way round. */
function difference(before: string, after: string): { added: string[]; removed: string[] } {
  const old = before.split('\n')
  const fresh = after.split('\n')
  return { added: fresh.filter((line) => !old.includes(line)), removed: old.filter((line) => !fresh.includes(line)) }
}

test('a value that is written for a terminal, too, means the same and acts on none', () => {
  const text = '/keys/\u009b31m\u202e\u2028\ufeff\u0085\u007f\ud800 "\\x9b'
  const written = formatScalar(text)
  expect(written).toMatch(/^[ -~]+$/)
  expect(parseYaml(`key: ${written}`).toJS()).toEqual({ key: text })
})

describe('a new entry', () => {
  test('adds a group inside existing braces', () => {
    expect(difference(lab, withGroup(lab, 'mine', 'm8,gpu[01-02]')).added).toEqual([
      'groups: { workers: "m[8-9]", gpus: "gpu[01-04]", mine: "m8,gpu[01-02]" }',
    ])
  })

  test.each([
    ['no such section', 'hosts:\n  a:\n'],
    ['a block with comments after it', 'hosts:\n  a:\n    user: x # why\n  # tail\n\n# next\ncluster: c\n'],
    ['deep indentation', 'hosts:\n    a:\n        port: 1\ncluster: c'],
    ['braces over several lines', 'hosts: {\n  a: { port: 1 }, # one\n  b: , # two\n}\n'],
    ['empty braces', 'hosts: {a: }\ngroups: {}\n'],
    ['all in braces', '{ hosts: { a: } }'],
    ['a group already in a block', 'hosts: { a: }\ngroups:\n  g: a # mine\n\n# next\ncluster: c\n'],
    ['a null at the end', 'hosts:\n  a:\n  b: ~'],
    ['Windows line ends', 'hosts:\r\n  a: { port: 1 }\r\n  b:\r\n'],
  ])('%s', (_, text) => {
    const edited = withGroup(text, 'saved', 'a')
    const inventory = readInventory(edited)
    expect(inventory.hosts).toEqual(readInventory(text).hosts)
    expect(inventory.groups.get('saved')).toEqual(['a'])
    for (const comment of text.match(/#.*$/gm) ?? []) expect(edited).toContain(comment)
  })

  test('gives a group of the same name the new set', () => {
    const twice = withGroup(withGroup(lab, 'mine', 'm8'), 'mine', 'all!m8')
    expect(twice).toContain('mine: "all!m8"')
    expect(twice).not.toContain('mine: m8')
  })

  test.each([
    ['an alias', 'a: &x "m[1-2]"\n  b: *x', 'a: m3\n  b: &x "m[1-2]"'],
    ['two aliases', 'a: &x m1\n  b: *x\n  c: *x', 'a: m3\n  b: &x m1\n  c: *x'],
    ['an anchor inside', 'a: [&x m1, m2]\n  b: *x', 'a: m3\n  b: &x m1'],
    ['an anchor and one inside', 'a: &y [&x m1, m2]\n  b: *x\n  c: *y', 'a: m3\n  b: &x m1\n  c: &y [&x m1, m2]'],
    ['a tag', 'a: !!str &x m1\n  b: *x', 'a: m3\n  b: !!str &x m1'],
    ['an anchor of the same name later on', 'a: &x m1\n  b: &x m2\n  c: *x', 'a: m3\n  b: &x m2\n  c: *x'],
  ])('leaves groups that refer to a replaced group unchanged: %s', (_, before, after) => {
    const file = (groups: string) => `# mine\nhosts: { "m[1-3]": }\ngroups:\n  ${groups}\n`
    expect(withGroup(file(before), 'a', 'm3')).toBe(file(after))
  })

  test.each([
    'a: &y\n    - &x m1\n    - *x\n  b: *x\n  c: *y',
    'a: &y [&x m1, &z m2, *x]\n  b: *y\n  c: [*z, *x]',
    'a: &y\n    - m1 # one\n    - m2\n  b: *y # two\n  c: *y',
  ])('leaves the other groups unchanged when it replaces a group of several lines', (groups) => {
    const file = `# mine\nhosts: { "m[1-3]": }\ngroups:\n  ${groups}\n`
    const { groups: before } = readInventory(file, 'hosts.yaml')
    const edited = withGroup(file, 'a', 'm3')
    expect(edited).toContain('# mine')
    expect(readInventory(edited, 'hosts.yaml').groups).toEqual(new Map([...before, ['a', ['m3']]]))
  })

  test('refuses what would make the file invalid', () => {
    expect(() => withGroup(lab, 'mine', 'm99')).toThrow('there is no host m99')
    expect(() => withGroup(lab, 'all', 'm8')).toThrow('all is not a group name')
    expect(() => withGroup('hosts: {a: ', 'b', 'a')).toThrow(/hosts\.yaml:1:/)
  })

  test('names the lines of the file as it is', () => {
    const broken = 'groups:\n\n\n  web: m9\nhosts: {a: }\n'
    expect(() => withGroup(broken, 'b', 'a')).toThrow('hosts.yaml:4:8: there is no host m9')
  })
})

describe('the file on disk', () => {
  let directory = ''
  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), 'muster-edit-'))
  })
  afterEach(() => rmSync(directory, { recursive: true }))

  test('keeps its mode, stays a link, and leaves nothing else behind', async () => {
    const real = join(directory, 'real.yaml')
    const link = join(directory, 'hosts.yaml')
    writeFileSync(real, lab)
    chmodSync(real, 0o640)
    symlinkSync(real, link)
    await addGroup(link, 'mine', 'm8', SECTIONS)
    expect(readFileSync(real, 'utf8')).toContain('mine: m8')
    expect(statSync(real).mode & 0o777).toBe(0o640)
    expect(lstatSync(link).isSymbolicLink()).toBe(true)
    expect(readdirSync(directory).toSorted()).toEqual(['hosts.yaml', 'real.yaml'])
  })

  test('is unchanged after a refused change', async () => {
    const path = join(directory, 'hosts.yaml')
    writeFileSync(path, lab)
    await expect(addGroup(path, 'mine', 'm99', SECTIONS)).rejects.toMatchObject({ code: 'configuration' })
    expect(readFileSync(path, 'utf8')).toBe(lab)
  })

  test('is not overwritten unless requested', async () => {
    const path = join(directory, 'out.yaml')
    expect(await writeFileAtomically(path, 'one', { isOverwriting: false })).toBe(true)
    expect(await writeFileAtomically(path, 'two', { isOverwriting: false })).toBe(false)
    expect(readFileSync(path, 'utf8')).toBe('one')
    expect(await writeFileAtomically(path, 'two', { isOverwriting: true })).toBe(true)
    expect(readFileSync(path, 'utf8')).toBe('two')
    expect(readdirSync(directory)).toEqual(['out.yaml'])
  })

  test('needs an existing directory, and names a missing one', async () => {
    const path = join(directory, 'no/out.yaml')
    await expect(writeFileAtomically(path, '', { isOverwriting: true })).rejects.toMatchObject({
      code: 'configuration',
    })
  })
})
