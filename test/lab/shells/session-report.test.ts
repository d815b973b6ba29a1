/** The session report on real hosts: what was typed and run, which hosts differed, and no password. */
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type ConsoleDriver, openConsole } from '../../support/console-driver.ts'
import { requirement } from '../../support/requirements.ts'
import { type Lab, startLab } from '../cluster/lab.ts'

const canRun = requirement('root', 'namespaces', 'sshd', 'ip', 'tc', 'nsenter')

/** Programs that ask without echo; each must have asked on every host before the password is typed. */
const SECRETS = [
  { program: "read -s -p 'Password: ' x; echo", asks: /Password:$/, secret: 'hunter2-read' },
  {
    program: 'openssl passwd -6 > /dev/null',
    asks: /Password:\s*$/,
    secret: 'hunter2-openssl',
    again: /Verifying.*:\s*$/,
  },
  { program: 'stty -echo; echo ready; read x; stty echo; echo "you typed $x"', asks: /ready$/, secret: 'hunter2-late' },
  {
    program: [
      "stty -echo -icanon; printf 'P\\320\\260ssword: \\033[8m'",
      'while IFS= read -r -n 1 c && [ "$c" ]; do printf %s "$c"; done; printf "\\033[m\\n"; stty sane',
    ].join('; '),
    asks: /P\u0430ssword:$/,
    secret: 'hunter2-concealed',
  },
  {
    // Each key is shown, and erased 4 ms later.
    program: [
      "stty -echo -icanon; printf 'Losung: '",
      'while IFS= read -r -n 1 c && [ "$c" ]; do printf %s "$c"; sleep 0.004; printf "\\b \\b"; done; echo; stty sane',
    ].join('; '),
    asks: /Losung:$/,
    secret: 'hunter2-flicker',
  },
  {
    program: [
      "stty -echo -icanon; t=; printf 'Sesam = '",
      'while IFS= read -r -n 1 c && [ "$c" ]; do t=$t$c; n=$(printf %s "$t" | wc -c); printf "%s\\033[%dD\\033[%dX" "$t" $n $n; done; echo; stty sane',
    ].join('; '),
    asks: /Sesam =$/,
    secret: 'hunter2-erased',
  },
  {
    program: 'ssh -o StrictHostKeyChecking=no -o PubkeyAuthentication=no -o NumberOfPasswordPrompts=1 root@localhost',
    asks: /password:\s*$/,
    secret: 'hunter2-ssh',
  },
]

describe.skipIf(!canRun)('a session report', () => {
  let lab: Lab
  let state: string
  beforeAll(async () => {
    state = mkdtempSync(join(tmpdir(), 'muster-report-'))
    lab = await startLab({
      count: 3,
      sshdOptions: { PasswordAuthentication: 'yes' },
      perHost: (name) => ({ bashrc: name === 'm2' ? 'role=storage\n' : 'role=worker\n' }),
    })
  })
  afterAll(async () => {
    await lab?.stop()
    rmSync(state, { recursive: true, force: true })
  })

  it('has what was typed and run and which hosts differed, but no text that was typed without echo', async () => {
    const environment = { XDG_STATE_HOME: state }
    await using console = await openConsole({ in: lab, args: ['--hosts', lab.hostsFile], environment, size: [120, 40] })
    await console.expectReady()
    await console.type('echo role $role\r')
    await console.expectOn('m1', /^role worker$/m)
    await console.expectOn('m2', /^role storage$/m)
    await console.expectPrompts()
    for (const { program, asks, secret, again } of SECRETS) {
      await console.type(`clear; ${program}\r`)
      const ask = async (pattern: RegExp) => {
        await console.expectOnAll(lab.names, () => new RegExp(pattern.source, 'm'))
        await console.until(
          () => lab.names.every((host) => pattern.test(console.on(host).join('\n').trimEnd())),
          `${secret} to be asked`,
        )
        await console.type(`${secret}\r`)
      }
      await ask(asks)
      if (again) await ask(again)
      await console.expectPrompts()
    }
    await console.leader('!')
    await console.type('echo run-$role; exit 3')
    await console.key('Enter')
    await console.expectScreen(/m\[1-3\] \(3\) +exit 3/)
    await console.leader('e')
    await console.expectScreen(/report copied, and written: /)

    const folder = join(state, 'muster/reports')
    const files = readdirSync(folder).map((name) => join(folder, name))
    expect(files.map((file) => [file.slice(-3), statSync(file).mode & 0o777]).sort()).toEqual([
      ['.md', 0o600],
      ['tml', 0o600],
    ])
    const texts = files.map((file) => readFileSync(file, 'utf8'))
    const copied = /\x1b\]52;c;([A-Za-z0-9+/=]+)/.exec(console.output().toString('latin1'))?.[1] ?? ''
    texts.push(Buffer.from(copied, 'base64').toString('utf8'))
    for (const text of texts) {
      expect(text).toContain('echo role $role')
      expect(text).toMatch(/role worker/)
      expect(text).toMatch(/role storage/)
      expect(text).toContain('typed without echo')
      expect(text).toContain('echo run-$role; exit 3')
      expect(text).toContain('exit 3')
      expect(text).toContain('you typed [not shown')
      expect(text).not.toContain('hunter2')
    }
  })

  /** Writes it, and returns its text in each format. */
  const reportsOf = async (console: ConsoleDriver, folder: string): Promise<readonly string[]> => {
    await console.leader('e')
    await console.expectScreen(/report copied, and written: /)
    const reports = join(folder, 'muster/reports')
    return readdirSync(reports).map((name) => readFileSync(join(reports, name), 'utf8'))
  }

  it('has the lines that are typed after panes have changed their sizes, but no password', async () => {
    const folder = mkdtempSync(join(state, 'sizes-'))
    const environment = { XDG_STATE_HOME: folder }
    await using console = await openConsole({ in: lab, args: ['--hosts', lab.hostsFile], environment, size: [120, 40] })
    await console.expectReady()
    await console.type('seq 200; echo long{1..60}\r')
    // Beside half a row of output, what is typed without an echo may answer a question.
    await console.expectOnAll(lab.names, () => /ng60$/m)
    await console.expectPrompts()
    const changes: readonly (() => Promise<unknown>)[] = [
      () => console.leader('z'),
      () => console.leader('z'),
      () => console.resize(240, 67),
      () => console.resize(80, 24),
      () => console.resize(120, 40),
      () => console.resize(100, 30),
    ]
    for (const [index, change] of changes.entries()) {
      // Half of a line and half of a password are typed before the change.
      await console.type(`echo half${index}`)
      await console.expectOn('m1', new RegExp(`half${index}$`, 'm'))
      await change()
      await console.type('-done; uname -n\r')
      await console.expectOn('m1', new RegExp(`^half${index}-done\\s+m1$`, 'm'))
      await console.expectPrompts()
      await console.type(`read -s -p 'Give ${index}: ' x; echo\r`)
      await console.expectOn('m1', new RegExp(`^Give ${index}:\\s*$`, 'm'))
      await console.type('hunter2-')
      await change()
      await console.type('again\r')
      await console.expectPrompts()
    }
    await console.type('date +%Y\r')
    await console.expectOn('m1', /^20\d\d$/m)
    await console.expectPrompts()
    for (const text of await reportsOf(console, folder)) {
      for (const index of changes.keys()) expect(text).toContain(`echo half${index}-done; uname -n`)
      expect(text).toContain('date +%Y')
      expect(text).not.toContain('hunter2')
    }
  })

  it('has a paste that is taller than its pane, with and without a change of size before Enter', async () => {
    const folder = mkdtempSync(join(state, 'paste-'))
    const environment = { XDG_STATE_HOME: folder }
    await using console = await openConsole({ in: lab, args: ['--hosts', lab.hostsFile], environment, size: [80, 24] })
    await console.expectReady()
    const server = (port: number) => ['server {', ...Array(12).fill('  index service;'), `  listen ${port};`, '}']
    const lines = ['cat > /dev/null <<EOF', ...server(80), ...server(81), 'EOF', 'true restart']
    await console.type('echo the service is nginx\r')
    await console.expectPrompts()
    for (const keys of [[], ['z', 'z']]) {
      const last = `echo finished the service${keys.length}`
      await console.paste([...lines, last].join('\n'))
      await console.expectScreen(/Ctrl-S/i)
      await console.type('\x13')
      await console.expectOn('m1', new RegExp(`${last}$`, 'm'))
      for (const key of keys) {
        await console.leader(key)
        await console.expectOn('m1', new RegExp(`${last}$`, 'm'))
      }
      await console.type('\r')
      await console.expectOnAll(lab.names, () => new RegExp(`^finished the service${keys.length}$`, 'm'))
      await console.expectPrompts()
    }
    await console.type("read -e -s -p 'pw> ' x; echo $x\r")
    await console.expectOnAll(lab.names, () => /^pw>$/m)
    await console.paste('hunter2-one\nhunter2-two')
    await console.expectScreen(/Ctrl-S/i)
    await console.type('\x13')
    await console.type('\r')
    await console.expectPrompts()
    for (const text of await reportsOf(console, folder)) {
      expect(text).not.toContain('hunter2')
      // The passwords, and what was read of them.
      expect(text.match(/typed without echo/g)).toHaveLength(2)
      expect(text).not.toMatch(/not echoed|output not shown/)
      expect(text).toContain('echo the service is nginx')
      for (const count of [0, 2]) expect(text).toContain(`true restart\necho finished the service${count}`)
    }
  })

  it('has lines that are sent at once with indentation, after any prompt that continues a command', async () => {
    const folder = mkdtempSync(join(state, 'continued-'))
    const environment = { XDG_STATE_HOME: folder }
    await using console = await openConsole({ in: lab, args: ['--hosts', lab.hostsFile], environment, size: [120, 40] })
    await console.expectReady()
    await console.type("bind 'set enable-bracketed-paste off'\r")
    await console.expectPrompts()
    const prompts = ['... ', '  -> ', '> ']
    for (const [index, prompt] of prompts.entries()) {
      await console.type(`PS2='${prompt}'; echo all done${index}\r`)
      await console.expectOnAll(lab.names, () => new RegExp(`^all done${index}$`, 'm'))
      await console.expectPrompts()
      await console.paste(`for i in 1\ndo\n  echo loop${index}\n\ndone\n`)
      await console.expectScreen(/Ctrl-S/i)
      await console.type('\x13')
      await console.expectOnAll(lab.names, () => new RegExp(`^loop${index}$`, 'm'))
      await console.expectPrompts()
    }
    for (const text of await reportsOf(console, folder)) {
      expect(text).not.toContain('not shown')
      for (const index of prompts.keys())
        expect(text).toContain(`for i in 1\ndo\n  echo loop${index}\n\ndone\n`.trimEnd())
    }
  })
})
