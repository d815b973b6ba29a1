/** `muster [TARGET…]` up to the point where it needs a terminal. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { inventoryFromTarget, resolveTarget } from '../../../../src/inventory/inventory.ts'
import { runMuster } from '../../../support/run-muster.ts'

let directory: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'muster-console-verb-'))
  writeFileSync(join(directory, 'hosts.yaml'), 'hosts: { here: { transport: local }, there: { transport: local } }\n')
})
afterEach(() => rmSync(directory, { recursive: true }))

const run = async (...args: readonly string[]) => {
  const { exitCode, messages } = await runMuster(args, { directory, stdin: ['here\n'] })
  return [exitCode, messages] as const
}
const NEEDS_TERMINAL = [2, expect.stringMatching(/^muster: the console needs a terminal\n/)]

it('does not read host names from stdin, which the console needs for keys', async () => {
  expect(await run('-')).toEqual([2, expect.stringContaining('names cannot be read from stdin here')])
})

it.each([
  '--keep',
  '--no-keep',
])('can be told by %s what a lost terminal means, whatever the preferences say', async (option) => {
  expect(await run(option, 'here')).toEqual(NEEDS_TERMINAL)
})

describe('several targets', () => {
  it('opens the hosts of all of them', async () => {
    expect(await run('here', 'there')).toEqual(NEEDS_TERMINAL)
    expect(await run('there', 'all!there')).toEqual(NEEDS_TERMINAL)
    expect(await run('-l', 'up', 'here', '-p', '2222')).toEqual(NEEDS_TERMINAL)
  })

  it('names the target that is no host', async () => {
    expect(await run('here', 'ther')).toEqual([2, expect.stringContaining('there is no host ther')])
  })

  it('refuses a mistyped verb, a command and a missing file, and says what to do', async () => {
    expect(await run('jbo', 'list')).toEqual([2, 'muster: unknown command: jbo\n(Did you mean muster job?)\n'])
    expect(await run('here', '--', 'uptime')).toEqual([
      2,
      'muster: the console runs no command\nRun: muster run TARGET -- COMMAND\n',
    ])
    expect(await run('a.yaml')).toEqual([
      3,
      'muster: a.yaml cannot be read: no such file\nCheck the path, its permissions, and what it holds.\n',
    ])
    expect(await run('a.yaml', '--hosts', 'b.yaml')).toEqual([
      2,
      'muster: --hosts b.yaml and a.yaml cannot be used together\nName all the files without --hosts.\n',
    ])
  })
})

describe('options of clusterssh', () => {
  it.each([
    ['--fillscreen'],
    ['-g'],
    ['--tile'],
    ['-m'],
    ['-A', '5'],
    ['--username', 'root'],
    ['--port', '22'],
  ])('understands %s %s', async (...option: readonly string[]) => {
    expect(await run(...option, 'here', 'there')).toEqual(NEEDS_TERMINAL)
  })

  it.each([
    [['-G'], '--no-tile', 'Panes are always tiled'],
    [['-a', 'uptime'], '--action', 'muster run TARGET -- COMMAND'],
    [['-c', 'clusters'], '--cluster-file', 'muster import clusterssh FILE -o hosts.yaml'],
    [['-q'], '--autoquit', 'Ctrl-] q'],
    [['-o', '-x'], '--options', '~/.ssh/config'],
  ] as const)('refuses %j with what to use instead', async (option, name, hint) => {
    expect(await run(...option, 'here')).toEqual([
      2,
      expect.stringMatching(new RegExp(`^muster: ${name} is an option of clusterssh that Muster does not have\n`)),
    ])
    expect((await run(...option, 'here'))[1]).toContain(hint)
  })

  it.each([[['-l', 'a;b']], [['-p', '70000']], [['-A', 'soon']], [['--fulscreen']]])('refuses %j', async (option) => {
    expect(await run(...option, 'here')).toEqual([2, expect.stringContaining('Run: muster --help')])
  })
})

it('logs in as the user of -l, except where a host is written with its own', () => {
  const login = { user: 'root', port: 2222 }
  const hosts = inventoryFromTarget('m8,bob@m9,m10:22', { login }).hosts
  expect(hosts.map(({ name, user, port }) => [name, user, port])).toEqual([
    ['m8', 'root', 2222],
    ['m9', 'bob', 2222],
    ['m10', 'root', 22],
  ])
  const inventory = { hosts: [{ name: 'm8', number: 1, user: 'eve' }], groups: new Map() }
  expect(resolveTarget(inventory, 'm8', { login })).toEqual([{ name: 'm8', number: 1, ...login }])
  expect(resolveTarget(inventory, 'bob@m8', { login })[0]).toMatchObject({ user: 'bob', port: 2222 })
})
