/** A console that is detached, or whose terminal is lost, and comes back on another terminal; embedded hosts. */
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { PROTOCOL } from '../../../src/cli/sessions/messages.ts'
import { endSession, findSessions } from '../../../src/cli/sessions/session-directory.ts'
import { type EmbeddedHosts, startEmbeddedHosts } from '../../../src/ssh/embedded/start-embedded-hosts.ts'
import { spawnLocalPty } from '../../../src/terminal/local-pty.ts'
import { type ConsoleDriver, openConsole } from '../../support/console-driver.ts'
import { type ConsoleOptions, PROGRAM } from '../../support/console-options.ts'
import { type EmbeddedInventory, writeEmbeddedInventory } from '../../support/embedded-inventory.ts'
import { requirement } from '../../support/requirements.ts'
import { startOnTerminal } from '../../support/terminal-program.ts'
import { waitUntil } from '../../support/wait-until.ts'

/** Writes the terminal's settings before and after, and the exit code, to files. Signals do not end this shell, and it waits for the settings, since another process may restore them. */
const WRAPPER = `
trap '' TERM HUP
stty -a > "$0/before"
(trap - TERM HUP; echo "$(exec sh -c 'echo $PPID')" > "$0/pid"; exec "$@")
echo $? > "$0/code"
until stty -a > "$0/after"; cmp -s "$0/before" "$0/after"; do sleep 0.01; done
echo back
`

const canLoseRights = requirement('root', 'setpriv')

const UNTOUCHED = { isAlternateScreen: false, isBracketedPaste: false, mouse: 'none', isCursorHidden: false }

describe('a console without its terminal', () => {
  let hosts: EmbeddedHosts
  let inventory: EmbeddedInventory
  let directory: string
  let environment: Record<string, string>
  const open: ConsoleDriver[] = []

  beforeAll(async () => {
    hosts = await startEmbeddedHosts({ count: 2, spawnPty: spawnLocalPty })
    inventory = writeEmbeddedInventory(hosts, [])
  })

  afterAll(async () => {
    inventory?.[Symbol.dispose]()
    await hosts?.[Symbol.asyncDispose]()
  })

  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), 'muster-detach-'))
    environment = {
      ...inventory.environment,
      MUSTER_RUNTIME_DIR: directory,
      XDG_CONFIG_HOME: join(directory, 'config'),
    }
  })

  afterEach(async () => {
    for (const each of await sessions()) await endSession(each, environment)
    for (const each of open.splice(0)) await each.close()
    rmSync(directory, { recursive: true, force: true })
  })

  const start = async (options: ConsoleOptions): Promise<ConsoleDriver> => {
    const console = await openConsole({ environment, ...options })
    open.push(console)
    return console
  }

  const muster = (...args: readonly string[]): string => {
    const [file = '', ...words] = PROGRAM
    return execFileSync(file, [...words, ...args], { env: { ...process.env, ...environment }, encoding: 'utf8' })
  }

  const kept = (name: string): string => readFileSync(join(directory, name), 'utf8')

  const sessions = () => findSessions(environment)

  const isGone = (pid: number) =>
    !existsSync(`/proc/${pid}`) || /^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'))

  it('comes back although the directory of its socket was removed', async () => {
    const first = await start({ args: ['--hosts', inventory.file] })
    await first.expectReady()
    rmSync(join(directory, 'muster'), { recursive: true })
    expect(await first.detach()).toEqual({ code: 0 })
    expect(first.screen().join('\n')).toContain('Detached. `muster attach lab` brings it back')
    const second = await start({ args: ['attach'] })
    await second.expectReady()
  })

  it('comes back on a terminal of another size, with what was on its screens', async () => {
    const first = await start({ args: ['--hosts', inventory.file], size: [120, 40] })
    await first.expectReady()
    await first.type('seq -f "line %g" 60; cd /usr\r')
    await first.expectOnAll(['m1', 'm2'], () => /^line 60$/m)
    await first.expectPrompts()
    expect(await first.detach()).toEqual({ code: 0 })
    expect(first.modes).toMatchObject(UNTOUCHED)
    expect(first.screen().join('\n')).toMatch(/Detached\. `muster attach lab` brings it back until \d\d:\d\d\./)
    const [listed = ''] = muster('sessions', '--json').split('\n')
    expect(JSON.parse(listed)).toMatchObject({
      type: 'session',
      name: 'lab',
      cluster: 'lab',
      hosts: 'm[1-2]',
      shells: 2,
    })

    const second = await start({ args: ['attach'], size: [80, 24] })
    await second.expectOnAll(['m1', 'm2'], () => /^line 60$/m)
    await second.type('pwd\r')
    await second.expectOnAll(['m1', 'm2'], () => /^\/usr$/m)
    await second.leader('[')
    await second.key('g')
    await second.expectOn('m1', /^line 1$/m)
    await second.key('q')
    expect(muster('sessions', '--end', 'lab')).toMatch(/lab\t.*\tended/)
    expect(await second.ended()).toEqual({ code: 0 })
    expect(second.modes).toMatchObject(UNTOUCHED)
    expect(second.screen().join('\n')).toMatch(/This console was ended by `muster sessions --end`\./)
  })

  it('sends nothing of what was typed before it was shown', async () => {
    const first = await start({ args: ['--hosts', inventory.file] })
    await first.expectReady()
    await first.detach()
    const early = startOnTerminal([...PROGRAM, 'attach'], { ...process.env, ...environment, LANG: 'C.UTF-8' })
    try {
      early.type(`touch ${join(directory, 'early')}\rtouch half`)
      await early.draws(/nothing sent: it was typed before the console was shown/)
      await early.draws(/TYPING INTO ALL 2/)
      early.type(`touch ${join(directory, 'late')}\r`)
      await waitUntil(() => existsSync(join(directory, 'late')), 'the line that was typed later')
      expect(existsSync(join(directory, 'early'))).toBe(false)
      expect(early.screen.lines().join('\n')).not.toContain('half')
    } finally {
      early.close()
    }
  })

  it('moves from one terminal to another', async () => {
    const first = await start({ args: ['--hosts', inventory.file] })
    await first.expectReady()
    const second = await start({ args: ['attach', 'lab'], size: [240, 67] })
    expect(await first.ended()).toEqual({ code: 0 })
    expect(first.modes).toMatchObject(UNTOUCHED)
    expect(first.screen().join('\n')).toMatch(/The console has moved to another terminal, \/dev\/pts\/\d+\./)
    await second.type('echo here\r')
    await second.expectOnAll(['m1', 'm2'], () => /^here$/m)
    await second.quit()
  })

  it('detaches when it is attached in one of its own panes', async () => {
    const file = join(directory, 'own.yaml')
    writeFileSync(file, 'cluster: own\nhosts: { here: { transport: local } }\n')
    const program = PROGRAM.map((word) => `'${word}'`).join(' ')
    const first = await start({ args: ['--hosts', file], size: [120, 40] })
    await first.expectReady()
    await first.type(`cd '${process.cwd()}' && ${program} attach\r`)
    expect(await first.ended()).toEqual({ code: 0 })
    expect(first.screen().join(' ')).toMatch(
      /moved to another terminal, \/dev\/pts\/\d+\. `muster attach own` brings it back\./,
    )
    await waitUntil(async () => (await sessions()).some(({ detachedMs }) => detachedMs !== undefined), 'it to detach')
    const second = await start({ args: ['attach', 'own'], size: [120, 40] })
    await second.expectOn('here', /muster: this is here's pane in that console, which is now detached\./)
    await second.type('echo still here\r')
    await second.expectOn('here', /^still here$/m)
    await second.quit()
  })

  it('is offered by muster, which opens a new one on request', async () => {
    const first = await start({ args: ['--hosts', inventory.file] })
    await first.expectReady()
    await first.type('echo first-one\r')
    await first.expectOnAll(['m1', 'm2'], () => /^first-one$/m)
    await first.detach()

    const other = await start({ args: ['--hosts', inventory.file], until: false })
    await waitUntil(() => /\[a\] $/.test(other.screen().join(' ').trimEnd().concat(' ')), 'the question')
    expect(other.screen().join('\n')).toMatch(
      /^The console lab \(2 shells: m\[1-2\]\) was detached at \d\d:\d\d and ends at \d\d:\d\d\./m,
    )
    other.answer('n\r')
    await other.expectReady()
    expect((await sessions()).map(({ name }) => name)).toEqual(['lab', 'lab-2'])
    await other.quit()

    const again = await start({ args: ['--hosts', inventory.file], until: false })
    await waitUntil(() => again.screen().join(' ').includes('[a]'), 'the question')
    again.answer('xyz\r')
    await waitUntil(() => again.screen().join(' ').includes('Answer a, n or q. [a]'), 'the question again')
    again.answer('\r')
    await again.expectOnAll(['m1', 'm2'], () => /^first-one$/m)
    await again.quit()
  })

  it('is offered by muster however its hosts are named, and not for other hosts', async () => {
    const first = await start({ args: ['--hosts', inventory.file] })
    await first.expectReady()
    await first.detach()
    for (const words of [['m[1-2]'], ['m2', 'm1'], ['all']]) {
      const other = await start({ args: ['--hosts', inventory.file, ...words], until: false })
      await waitUntil(() => other.screen().join(' ').includes('[a]'), `the question about ${words.join(' ')}`)
      other.answer('q\r')
      await waitUntil(() => other.ending !== undefined, 'the end of muster')
    }
    const other = await start({ args: ['--hosts', inventory.file, 'm1'] })
    await other.expectReady()
    await other.quit()

    // By the hosts that it has now.
    const changed = await start({ args: ['attach'] })
    await changed.expectReady()
    await changed.receivers('m2')
    await changed.leader('x')
    await changed.expectMode('dialog:close-host')
    await changed.type('y')
    await changed.until((state) => state.hosts.length === 1, 'one host to be closed')
    const left = changed.state?.hosts.map(({ host }) => host) ?? []
    await changed.detach()
    const again = await start({ args: ['--hosts', inventory.file, ...left], until: false })
    await waitUntil(() => again.screen().join(' ').includes('[a]'), 'the question about what is left')
    expect(again.screen().join('\n')).toContain(`The console lab (1 shell: ${left})`)
    again.answer('q\r')
    const both = await start({ args: ['--hosts', inventory.file] })
    await both.expectReady()
    await both.quit()
  })

  it.each(['quit\r', '\x1b'])('is offered by muster, and stays detached after %j', async (answer) => {
    const first = await start({ args: ['--hosts', inventory.file] })
    await first.expectReady()
    await first.detach()

    const other = await start({ args: ['--hosts', inventory.file], until: false })
    await waitUntil(() => other.screen().join(' ').includes('[a]'), 'the question')
    other.answer(answer)
    await waitUntil(() => other.ending !== undefined, 'the end of muster')
    expect(other.ending).toEqual({ code: answer === '\x1b' ? 130 : 0 })
    expect((await sessions()).map(({ terminal }) => terminal)).toEqual([undefined])
  })

  it('follows --keep and --no-keep of the attach', async () => {
    const first = await start({ args: ['--hosts', inventory.file] })
    await first.expectReady()
    const [session] = await sessions()
    await first.detach()

    const second = await start({ args: ['--keep', '--hosts', inventory.file], until: false })
    await waitUntil(() => second.screen().join(' ').includes('[a]'), 'the question')
    second.answer('\r')
    await second.expectScreen(/this console continues, detached, when its terminal is lost/)
    second.signal('SIGKILL')
    await second.ended()
    await waitUntil(async () => (await sessions())[0]?.terminal === undefined, 'the console to be detached')

    const third = await start({ args: ['attach'] })
    await third.expectReady()
    third.signal('SIGKILL')
    await third.ended()
    await waitUntil(async () => (await sessions())[0]?.terminal === undefined, 'the console to be detached again')

    const last = await start({ args: ['attach', '--no-keep'] })
    await last.expectScreen(/this console ends when its terminal is lost/)
    last.signal('SIGKILL')
    await last.ended()
    await waitUntil(() => isGone(session?.pid ?? 0), 'the process of the console to end')
  })

  it('gives new shells the display of its present terminal', async () => {
    const file = join(directory, 'here.yaml')
    writeFileSync(file, 'cluster: here\nhosts:\n  here: { transport: local }\n')
    const display = { DISPLAY: ':1', XAUTHORITY: '/nowhere/first', WAYLAND_DISPLAY: 'wayland-1' }
    const local = { ...environment, SHELL: '/bin/sh', HOME: directory, PS1: '$ ' }
    const ask = async (console: ConsoleDriver, expected: string) => {
      await console.expectReady()
      await console.type('echo "<$DISPLAY,$XAUTHORITY,$WAYLAND_DISPLAY>"\r')
      await console.expectOn('here', new RegExp(`^<${expected}>$`, 'm'))
    }
    const first = await start({ args: ['--hosts', file], environment: { ...local, ...display } })
    await ask(first, ':1,/nowhere/first,wayland-1')
    await first.detach()
    const second = await start({ args: ['attach'], environment: { ...local, DISPLAY: 'localhost:10.0' } })
    await second.expectReady()
    await second.type('exit\r')
    await second.expectOn('here', /opens a new shell/)
    await second.leader('r')
    await ask(second, 'localhost:10.0,,')
    await second.quit()
  })

  it.skipIf(!canLoseRights)('attaches to a terminal of another user, as after su', async () => {
    // Root without the right to open files of others, on a terminal of another user.
    const change =
      'chown 65534 "$(tty)"; chmod 620 "$(tty)"; exec setpriv --bounding-set -dac_override,-dac_read_search "$@"'
    const program = ['sh', '-c', change, 'su', ...PROGRAM]
    const first = await start({ program, args: ['--hosts', inventory.file] })
    await first.expectReady()
    await first.type('echo first-one\r')
    await first.expectOnAll(['m1', 'm2'], () => /^first-one$/m)
    await first.detach()

    const second = await start({ program, args: ['attach', '--keep'], size: [100, 30] })
    await second.expectOnAll(['m1', 'm2'], () => /^first-one$/m)
    const [session] = await sessions()
    expect(session?.terminal).toMatch(/^\/dev\/pts\/\d+$/)
    expect(session?.terminal).not.toBe(readlinkSync(`/proc/${second.pid}/fd/0`))
    await second.resize(90, 28)
    await second.type('stty size\r')
    await second.expectOnAll(['m1', 'm2'], () => /^24 43$/m)
    await second.hangUp()
    await waitUntil(async () => (await sessions())[0]?.terminal === undefined, 'the console to be detached')

    const without = { ...environment, MUSTER_RELAYED: '1' }
    const refused = await start({ program, args: ['attach'], environment: without, until: false })
    expect(await refused.ended()).toEqual({ code: 4 })
    expect(refused.screen().join('\n')).toMatch(
      /cannot open this terminal by its name.*Run: script -q -c "muster attach"/s,
    )

    const third = await start({ program, args: ['attach'] })
    await third.expectOnAll(['m1', 'm2'], () => /^first-one$/m)
    expect(await third.detach()).toEqual({ code: 0 })
    expect(third.modes).toMatchObject(UNTOUCHED)
    expect(third.screen().join('\n')).toMatch(/Detached\. `muster attach lab` brings it back/)
  })

  it.each([
    ['goes on when its terminal is lost, if that was asked for', ['--keep'], true],
    ['ends with its terminal', [], false],
  ])('%s', async (_, options, isKept) => {
    const first = await start({
      program: ['sh', '-c', WRAPPER, directory, ...PROGRAM],
      args: [...options, '--hosts', inventory.file],
    })
    await first.expectReady()
    await first.type('echo still-here\r')
    await first.expectOnAll(['m1', 'm2'], () => /^still-here$/m)
    await first.leader(',')
    await first.expectScreen(new RegExp(` keep +${isKept} `))
    await first.key('Escape')
    const [session] = await sessions()
    process.kill(Number(kept('pid')), 'SIGKILL')
    await first.ended()
    expect(kept('code')).toBe('137\n')
    expect(kept('after')).toBe(kept('before'))
    await waitUntil(() => first.screen().join('\n').includes('back'), 'the earlier screen')
    expect(first.modes).toMatchObject(UNTOUCHED)
    if (!isKept) return await waitUntil(() => isGone(session?.pid ?? 0), 'the process of the console to end')

    await waitUntil(async () => (await sessions())[0]?.terminal === undefined, 'the console to be detached')
    const second = await start({ args: ['attach'] })
    await second.expectOnAll(['m1', 'm2'], () => /^still-here$/m)
    await second.hangUp()
    await waitUntil(async () => (await sessions())[0]?.terminal === undefined, 'the console to be detached again')
    expect(await sessions()).toEqual([expect.objectContaining({ pid: session?.pid, shells: 2 })])
  })

  it('gives the terminal back when its process is killed', async () => {
    const first = await start({
      program: ['sh', '-c', WRAPPER, directory, ...PROGRAM],
      args: ['--hosts', inventory.file],
    })
    await first.expectReady()
    process.kill((await sessions())[0]?.pid ?? 0, 'SIGKILL')
    await first.ended()
    expect(kept('code')).toBe('1\n')
    expect(kept('after')).toBe(kept('before'))
    expect(first.modes).toMatchObject(UNTOUCHED)
    expect(first.screen().join('\n')).toMatch(/muster: the console ended unexpectedly \(killed by SIGKILL\)/)
    expect(await sessions()).toEqual([])
    expect(readdirSync(join(directory, 'muster'))).toEqual(['token'])
  })

  it('is listed while its process is stopped, and says why it cannot be ended', async () => {
    const first = await start({ args: ['--hosts', inventory.file] })
    await first.expectReady()
    const pid = (await sessions())[0]?.pid ?? 0
    process.kill(pid, 'SIGSTOP')
    try {
      expect(muster('sessions')).toMatch(/lab\t.*does not answer/)
      for (const name of ['lab', 'all'])
        expect(() => muster('sessions', '--json', '--end', name)).toThrow(
          /the console lab does not answer: its process is stopped or very busy/,
        )
    } finally {
      process.kill(pid, 'SIGCONT')
    }
    await waitUntil(async () => (await sessions()).length === 1, 'the console to answer again')
  })

  it('stops and continues with its terminal', async () => {
    const first = await start({ args: ['--hosts', inventory.file] })
    await first.expectReady()
    const state = () => /^State:\s+(\S)/m.exec(readFileSync(`/proc/${first.pid}/status`, 'utf8'))?.[1]
    first.signal('SIGTSTP')
    await waitUntil(() => state() === 'T', 'the program to stop')
    await waitUntil(() => !first.modes.isAlternateScreen, 'the earlier screen')
    expect(first.modes).toMatchObject(UNTOUCHED)
    first.signal('SIGCONT')
    await waitUntil(() => first.modes.isAlternateScreen, 'the console to be drawn again')
    await first.type('echo continued\r')
    await first.expectOnAll(['m1', 'm2'], () => /^continued$/m)
    first.signal('SIGTERM')
    expect(await first.ended()).toEqual({ code: 143 })
    expect(first.modes).toMatchObject(UNTOUCHED)
    expect(await sessions()).toEqual([])
  })

  it('belongs to one of several clients that attach while it detaches', async () => {
    const first = await start({ args: ['--hosts', inventory.file] })
    await first.expectReady()
    await first.type('echo first-one\r')
    await first.expectOnAll(['m1', 'm2'], () => /^first-one$/m)
    first.send('\x1dD')
    const rivals = await Promise.all([1, 2, 3].map(() => start({ args: ['attach'], until: false })))
    const isOpen = (rival: ConsoleDriver) => rival.ending === undefined && rival.modes.isAlternateScreen
    const isDecided = () => rivals.filter(isOpen).length === 1 && rivals.filter((each) => each.ending).length === 2
    await waitUntil(isDecided, 'one of them to have the console')
    expect(await first.ended()).toEqual({ code: 0 })
    for (const each of [first, ...rivals]) if (!isOpen(each)) expect(each.modes).toMatchObject(UNTOUCHED)
    const last = rivals.find(isOpen) as ConsoleDriver
    await last.expectOnAll(['m1', 'm2'], () => /^first-one$/m)
    await last.type('echo here\r')
    await last.expectOnAll(['m1', 'm2'], () => /^here$/m)
    await last.quit()
  })

  it('keeps an open dialog when its terminal is lost, and shows it on a smaller one', async () => {
    const first = await start({ args: ['--keep', '--hosts', inventory.file] })
    await first.expectReady()
    await first.leader('/')
    await first.type('m1,unfin')
    await first.expectScreen(/Host set: m1,unfin/)
    await first.hangUp()
    await waitUntil(async () => (await sessions())[0]?.terminal === undefined, 'the console to be detached')
    const second = await start({ args: ['attach'], size: [60, 16], until: 'dialog:host-set' })
    await second.expectScreen(/Host set: m1,unfin/)
    await second.key('Escape')
    await second.type('stty size\r')
    await second.expectOn('m1', /^\d+ \d\d$/m)
    await second.quit()
  })

  it.each(['--keep', '--no-keep'])('says nothing when its terminal is lost, with %s', async (option) => {
    const errors = join(directory, 'errors')
    const program = ['sh', '-c', 'exec 2> "$0"; exec "$@"', errors, ...PROGRAM]
    const first = await start({ program, args: [option, '--hosts', inventory.file] })
    await first.expectReady()
    await first.hangUp()
    await waitUntil(() => isGone(first.pid), 'the client to end')
    expect(readFileSync(errors, 'utf8')).not.toContain('muster')
  })

  it('moves away from a terminal where it was stopped, and leaves that terminal to the shell', async () => {
    const first = await start({
      program: ['bash', '--norc', '-i'],
      until: false,
      environment: { ...environment, PS1: 'outer> ' },
    })
    const shows = (text: string) => waitUntil(() => first.screen().join('\n').includes(text), text)
    await shows('outer>')
    first.answer(`${[...PROGRAM, '--hosts', inventory.file].join(' ')}\r`)
    await waitUntil(() => first.modes.isAlternateScreen && first.state?.mode === 'shells', 'the console')
    const [client = 0] = readFileSync(`/proc/${first.pid}/task/${first.pid}/children`, 'utf8').split(' ').map(Number)
    process.kill(client, 'SIGTSTP')
    await shows('Stopped')
    const second = await start({ args: ['attach'] })
    await second.expectReady()
    await second.type('echo moved\r')
    await second.expectOnAll(['m1', 'm2'], () => /^moved$/m)
    // The shell edits its line itself, as in its own terminal settings.
    first.answer('echo one-\x02\x02two\r')
    await waitUntil(() => first.screen().some((line) => line.trim() === 'ontwoe-'), 'the shell to edit its line')
    first.answer('fg\r')
    await shows('The console has moved to another terminal')
    first.answer('stty -a | grep -ow -- "-*echo"\r')
    await waitUntil(() => first.screen().some((line) => line.trim() === 'echo'), 'the settings of the terminal')
    first.answer('exit\r')
    await first.ended()
    await second.quit()
  })

  it('says that it cannot be detached if its directory is a symbolic link', async () => {
    mkdirSync(join(directory, 'elsewhere'), { mode: 0o700 })
    symlinkSync(join(directory, 'elsewhere'), join(directory, 'muster'))
    const first = await start({ args: ['--hosts', inventory.file] })
    await first.expectReady()
    await first.leader('D')
    await first.expectScreen(/cannot detach: there is no socket for `muster attach`; the Log says why/)
    await first.leader('6')
    await first.expectScreen(/this console cannot be detached: .*muster is not a directory/)
    expect(readdirSync(join(directory, 'elsewhere'))).toEqual([])
    await expect(sessions()).rejects.toThrow('muster is not a directory')
    expect(await first.quit()).toEqual({ code: 0 })
    rmSync(join(directory, 'muster'))
  })

  it('attaches to no other program at its socket', async () => {
    mkdirSync(join(directory, 'muster'), { mode: 0o700 })
    const place = (kind: string) => join(directory, 'muster', `${kind}-${PROTOCOL}-lab`)
    const heard: string[] = []
    const squatter = createServer((socket) => {
      socket.on('error', () => {}).on('data', (bytes) => heard.push(bytes.toString('latin1')))
      socket.end()
    })
    await once(squatter.listen(place('console')), 'listening')
    writeFileSync(place('detached'), '')
    try {
      const first = await start({ args: ['--hosts', inventory.file] })
      await first.expectReady()
      expect((await sessions()).map(({ name }) => name)).toEqual(['lab-2'])
      expect(await first.detach()).toEqual({ code: 0 })
      const second = await start({ args: ['attach'] })
      await second.expectReady()
      await second.quit()
      expect(heard.length).toBeGreaterThan(0)
      expect(heard.join('')).not.toMatch(/proof|attach|describe/)
    } finally {
      squatter.close()
    }
  })

  it('ends after its time', async () => {
    mkdirSync(join(directory, 'config', 'muster'), { recursive: true })
    writeFileSync(join(directory, 'config', 'muster', 'preferences.yaml'), 'keep_for: 0.0001\n')
    const first = await start({ args: ['--hosts', inventory.file] })
    await first.expectReady()
    const [session] = await sessions()
    await first.detach()
    await waitUntil(() => isGone(session?.pid ?? 0), 'the process of the console to end')
  })
})
