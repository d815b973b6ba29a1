/** `muster [TARGET…]` up to the point where it needs a terminal. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
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
    expect(await run('jbo', 'list')).toEqual([
      2,
      expect.stringMatching(/^muster: unknown command: jbo; did you mean muster job\?\n/),
    ])
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

describe('a word that nobody declared', () => {
  const NONE = ['--hosts', 'none']

  it.each([
    [['hots']],
    [['runn', 'here', '--', 'uptime']],
    [['runn', 'm1']],
    [[...NONE, 'hots']],
    [['--hosts=none', 'hots', 'm1']],
  ])('suggests the verb that %j is near to, before anything else', async (args) => {
    const [word, verb] = args.includes('hots') ? ['hots', 'hosts'] : ['runn', 'run']
    expect(await run(...args)).toEqual([
      2,
      `muster: unknown command: ${word}; did you mean muster ${verb}?\nA machine of that name is written as user@${word} or ${word}:22.\n`,
    ])
  })

  it('is a host if a file declares it, or if it is written as one, whatever verb it is near to', async () => {
    writeFileSync(join(directory, 'hosts.yaml'), 'hosts: { hots: { transport: local } }\ngroups: { runn: hots }\n')
    for (const args of [['hots'], ['--hosts', 'hosts.yaml', 'hots'], ['root@runn'], ['runn:22'], [...NONE, 'nfs1']])
      expect((await run(...args))[1]).toContain('the console needs a terminal')
    expect(await run('runn')).toEqual([2, expect.stringContaining('there is no host runn; the group is @runn')])
  })

  it('is refused beside a hosts.yaml, and without one is looked up in DNS only after a notice', async () => {
    expect(await run('zzz')).toEqual([
      2,
      expect.stringContaining(
        `there is no host zzz\nA machine outside ${join(directory, 'hosts.yaml')} is written as user@host or host:port`,
      ),
    ])
    const notice = 'muster: not in hosts.yaml or ~/.ssh/config, so looked up in DNS: zzz[8-9]\n'
    expect((await run(...NONE, 'zzz8', 'zzz9'))[1]).toBe(
      `${notice}muster: the console needs a terminal\nStart it without a pipe; scripts use \`muster run\` and \`muster hosts --json\`.\n`,
    )
    expect((await run(...NONE, 'run', '--dry-run', 'zzz[8-9]', '--', 'true'))[1]).toBe(notice)
    expect((await run(...NONE, '--quiet', 'run', '--dry-run', 'zzz[8-9]', '--', 'true'))[1]).toBe('')
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

describe('a cluster of clusterssh', () => {
  const hint = (word: string) =>
    `To open it here, run once: muster import clusterssh -o hosts.yaml. Then run: muster @${word}. A machine of that name is written as user@${word} or ${word}:22.`

  beforeEach(() => {
    rmSync(join(directory, 'hosts.yaml'))
    mkdirSync(join(directory, '.clusterssh'))
    writeFileSync(join(directory, '.clusterssh', 'clusters'), 'web m1 m2\nrack m{1..3}\n')
    writeFileSync(join(directory, '.clusterssh', 'tags'), 'm7 odd\n')
    writeFileSync(join(directory, '.clusterssh', 'config'), 'clusters = old\nold = m1\n')
  })

  it('is what muster alone speaks of where there is no hosts.yaml', async () => {
    const environment = { HOME: directory, XDG_CONFIG_HOME: directory }
    const { messages } = await runMuster([], { directory, environment })
    expect(messages).toContain('For your files of ClusterSSH, run: muster import clusterssh -o hosts.yaml')
  })

  it.each([
    ['web', 'clusters'],
    ['rack', 'clusters'],
    ['odd', 'tags'],
    ['old', 'config'],
  ])('%s is not opened as a host: the error names its file and how to import it', async (word, file) => {
    const [exitCode, messages] = await run(word)
    expect([exitCode, messages]).toEqual([
      2,
      `muster: ${word} is a cluster of clusterssh, in ~/.clusterssh/${file}\n${hint(word)}\n`,
    ])
  })

  it('may have the name of a host here', async () => {
    writeFileSync(join(directory, 'hosts.yaml'), 'hosts: { web: { transport: local } }\n')
    expect(await run('web')).toEqual(NEEDS_TERMINAL)
    expect(await run('root@rack')).toEqual(NEEDS_TERMINAL)
  })
})
