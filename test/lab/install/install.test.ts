/** Each way in README to install Muster, on a machine with nothing but Node: it is installed, used by a newcomer, and removed. */
import { copyFileSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { makeRelease, type Release } from '../../../scripts/dist.ts'
import { SHELLS } from '../../../src/cli/completion/shells.ts'
import { CLEAN_MACHINE_PARTS, CleanMachine } from '../../support/clean-machine.ts'
import { ROOT } from '../../support/console-options.ts'
import { requirement } from '../../support/requirements.ts'
import { startOnTerminal } from '../../support/terminal-program.ts'

const canRun = requirement(...CLEAN_MACHINE_PARTS, 'zsh', 'fish', 'man', 'dpkg')
const ARCHIVE = `muster-${process.platform}-${process.arch}`
const SHELL_STARTS: Readonly<Record<string, string>> = {
  bash: "PS1='> ' exec bash --norc -i",
  zsh: "PS1='> ' exec zsh -i",
  fish: 'exec fish --private --init-command \'function fish_prompt; echo "> "; end\'',
}

/** Where the line of `muster completion --help` writes the script. */
const SCRIPTS: Readonly<Record<string, string>> = {
  bash: '.bash_completion.muster',
  zsh: '.zfunc/_muster',
  fish: '.config/fish/completions/muster.fish',
}

type Way = {
  readonly name: string
  readonly install: (release: Release) => string
  readonly uninstall: string
  /** The shells in which completion works without the line of `muster completion --help`. */
  readonly completesIn?: readonly string[]
}

const WAYS: readonly Way[] = [
  {
    name: 'npm install -g',
    install: ({ tarball }) => `npm install -g /tmp/${tarball}`,
    uninstall: 'npm uninstall -g muster-console',
  },
  {
    name: 'the archive with Node inside',
    // Its directory `bin` is in PATH.
    install: ({ archive }) => `tar -xzf /tmp/${archive} -C /opt && mv /opt/${ARCHIVE} /opt/muster`,
    uninstall: 'rm -r /opt/muster',
  },
  {
    name: 'the package for Debian',
    install: ({ debian }) => `dpkg -i /tmp/${debian}`,
    uninstall: 'dpkg -r muster-console',
    completesIn: ['zsh', 'fish'],
  },
]

describe.skipIf(!canRun)('on a machine with nothing but Node', () => {
  const directory = mkdtempSync(join(tmpdir(), 'muster-install-'))
  const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
  let machine: CleanMachine
  let release: Release
  let closing: (() => unknown)[] = []

  beforeAll(async () => {
    release = await makeRelease(join(directory, 'release'))
    machine = await CleanMachine.create(join(directory, 'root'), ['zsh', 'fish', 'man-db', 'groff-base', 'libstdc++6'])
    const { tarball, archive, debian = '' } = release
    for (const name of [tarball, archive, debian])
      copyFileSync(join(directory, 'release', name), join(machine.root, 'tmp', name))
  })
  afterEach(() => {
    for (const close of closing) close()
    closing = []
  })
  afterAll(() => rmSync(directory, { recursive: true, force: true, maxRetries: 50, retryDelay: 100 }))

  /** A terminal on which a command of the machine runs. */
  const terminal = (command: readonly string[]) => {
    const started = startOnTerminal(command, { PATH: process.env.PATH })
    closing.push(started.close)
    return started
  }

  /** What is in the machine's directories apart from those of the user and of the tests. */
  const files = () =>
    readdirSync(machine.root, { recursive: true, encoding: 'utf8' })
      .filter((path) => !/^(dev|proc|root|tmp|registry|var\/cache\/man|var\/lib\/dpkg|var\/log)(\/|$)/.test(path))
      .sort()
  /** Of the user's directories, what has to do with Muster; fish itself makes completions from all man pages. */
  const ownFiles = () =>
    readdirSync(join(machine.root, 'root'), { recursive: true, encoding: 'utf8' })
      .filter((path) => /(^|\/)[^/]*muster[^/]*$/.test(path) && !/^\.(npm|local\/share\/fish)\//.test(path))
      .sort()

  const showDemo = async (command: readonly string[], before = async (_: ReturnType<typeof terminal>) => {}) => {
    const started = terminal(command)
    await before(started)
    await started.draws(/2\/2 up[\s\S]*root@m1:~#.*root@m2:~#/)
    started.type('echo 6*7=$((6*7))\r')
    await started.draws(/^\S?6\*7=42.*6\*7=42/m)
    started.type('\x1dq')
    await started.ended()
    expect(started.code(), started.text()).toBe(0)
  }

  describe.each(WAYS)('$name', ({ install, uninstall, completesIn = [] }) => {
    let before: readonly string[] = []

    it('installs', async () => {
      rmSync(join(machine.root, 'root'), { recursive: true })
      mkdirSync(join(machine.root, 'root'))
      before = files()
      const command = machine.commandWithRegistry('sh', '-c', install(release))
      const { text, ended, code } = terminal(command)
      await ended()
      expect(code(), text()).toBe(0)
      expect(await machine.run('muster', '--version')).toBe(`${version}\n`)
    })

    it('shows the demo, which takes what is typed', async () => {
      await showDemo(machine.command('muster', 'demo', '--count', '2'))
    })

    it.each(Object.keys(SHELLS))('completes verbs in %s', async (shell) => {
      if (!completesIn.includes(shell)) await machine.run(shell, '-c', SHELLS[shell]?.install ?? '')
      const { draws, type } = terminal(machine.command('sh', '-c', SHELL_STARTS[shell] ?? ''))
      await draws(/> ?$/m)
      if (shell === 'bash') type('. ~/.bashrc\r')
      if (completesIn.includes('zsh') && shell === 'zsh') type('autoload -Uz compinit && compinit\r')
      type('muster hos\t')
      await draws(/muster hosts/)
    })

    it('has man pages', async () => {
      expect(await machine.run('sh', '-c', 'man muster | cat')).toMatch(/^NAME\n +muster/m)
      expect(await machine.run('sh', '-c', 'man muster-run | cat')).toContain(
        'run a command on every host of the target',
      )
    })

    it('leaves what the user made, and nothing else', async () => {
      await machine.run('sh', '-c', uninstall)
      expect(files()).toEqual(before)
      await machine.run('sh', '-c', 'command -v muster && exit 1 || exit 0')
      const added = Object.keys(SHELLS).flatMap((shell) => (completesIn.includes(shell) ? [] : [SCRIPTS[shell]]))
      expect(ownFiles()).toEqual([...added, '.cache/muster'].sort())
    })
  })

  it('shows the demo by npx, which installs nothing', async () => {
    const before = files()
    await showDemo(
      machine.commandWithRegistry('sh', '-c', `cd /tmp && npx ./${release.tarball} demo --count 2`),
      async ({ draws, type }) => {
        await draws(/Ok to proceed\? \(y\)/)
        type('y\r')
      },
    )
    expect(files()).toEqual(before)
  })
})
