/** `muster k8s exec` on a terminal: programs in a pod work there, and a kubectl that lies leaves nothing on it. */
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir, userInfo } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { PROGRAM } from '../../../support/console-options.ts'
import { FakeApiServer, sendJson } from '../../../support/fake-api-server.ts'
import { type OpenSshServer, startOpenSshServer } from '../../../support/openssh-server.ts'
import { findProgram, requirement } from '../../../support/requirements.ts'
import { startOnTerminal } from '../../../support/terminal-program.ts'
import type { TerminalModes } from '../../../support/user-terminal.ts'
import { waitUntil } from '../../../support/wait-until.ts'

const AS_BEFORE: TerminalModes = {
  isAlternateScreen: false,
  isBracketedPaste: false,
  mouse: 'none',
  isFocusReporting: false,
  isCursorHidden: false,
}
const SWITCHED_ON = String.raw`\033[?1049h\033[?1002;1006h\033[?1004h\033[?2004h\033[?1h\033=\033[?25l\033[31m`
/** Sets the clipboard and titles, draws an image, asks for a setting, for answerback, and for the title and the size of the window. */
const ACTS = String.raw`\033]52;c;UFdO\007\033]0;PWN\007\033kPWN\033\\\033_GPWN\033\\\033P$qm\033\\\005\033[21t\033[18t\233\067t\033[>4;2m`

describe.skipIf(!requirement('sshd', 'ssh', 'ssh-keygen'))('muster k8s exec on a terminal', () => {
  let directory: string
  let api: FakeApiServer
  let sshd: OpenSshServer
  let closing: (() => unknown)[] = []

  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), 'muster-exec-'))
    const bin = join(directory, 'bin')
    mkdirSync(bin)
    api = await FakeApiServer.start((_, response) => sendJson(response, { status: { allowed: true } }))
    const kubectl = `#!/bin/sh
case " $* " in
  *' proxy '*) echo 'Starting to serve on ${api.path}'; exec tail -f /dev/null;;
  *' exec -it '*) . ${join(directory, 'pod')};;
esac
`
    writeFileSync(join(bin, 'kubectl'), kubectl)
    chmodSync(join(bin, 'kubectl'), 0o755)
    sshd = await startOpenSshServer({ config: [`SetEnv PATH=${bin}:${process.env.PATH} HOME=${directory}`] })
    // Without -F, ssh would read the configuration of the account, even if HOME is another directory.
    writeFileSync(join(directory, 'ssh_config'), `UserKnownHostsFile ${sshd.knownHosts}\n`)
    const ssh = `#!/bin/sh\nexec ${findProgram('ssh')} -F ${join(directory, 'ssh_config')} "$@"\n`
    writeFileSync(join(bin, 'ssh'), ssh, { mode: 0o755 })
  })
  afterEach(() => {
    for (const close of closing) close()
    closing = []
  })
  afterAll(async () => {
    api?.[Symbol.dispose]()
    await sshd?.stop()
    rmSync(directory, { recursive: true, force: true, maxRetries: 50, retryDelay: 100 })
  })

  /** `pod`: what kubectl does. `after`: what the user's shell does then. */
  function start(section: string, pod: string, after = '') {
    writeFileSync(join(directory, 'pod'), pod)
    const host = `{ address: 127.0.0.1, port: ${sshd.port}, user: ${userInfo().username}, identity_file: ${sshd.keyFile} }`
    const file = join(directory, 'hosts.yaml')
    writeFileSync(file, `hosts: { m1: ${host} }\nk8s: ${section}\n`)
    const words = [...PROGRAM, '--hosts', file, 'k8s', 'exec', '-n', 'team', 'shell']
    const started = startOnTerminal(after === '' ? words : ['sh', '-c', `"$@"; ${after}`, 'sh', ...words], {
      PATH: `${join(directory, 'bin')}:${process.env.PATH}`,
      HOME: directory,
      LANG: 'C.UTF-8',
      TERM: 'xterm-256color',
    })
    started.screen.onReply = (text) => started.type(text)
    closing.push(started.close)
    return started
  }

  const places = [
    ['kubectl on this machine', '{}'],
    ['kubectl on a host', '{ via: m1 }'],
  ] as const

  describe.each(places)('with %s', (_, section) => {
    it('passes nothing that acts on the terminal, switches off what is on at the end, and keeps the exit code', async () => {
      const terminal = start(section, `printf '${SWITCHED_ON}${ACTS}drawn 漢'; exit 7`)
      await terminal.ended()
      expect(terminal.code()).toBe(7)
      expect(terminal.text()).toContain('drawn 漢')
      expect(terminal.text()).not.toMatch(/PWN|UFdO|\x1b[\]P_k^X]|\x05|\d\dt|>4;2m/)
      expect(terminal.text()).toMatch(/\x1b\[\?1002;1006h/)
      await terminal.draws(/^/)
      expect(terminal.screen.modes).toEqual(AS_BEFORE)
      const [, restored] = terminal.text().split('drawn 漢')
      for (const undo of ['\x1b[?1l', '\x1b>', '\x1b[0m', '\x1b[?1006l']) expect(restored).toContain(undo)
    })

    it('lets a program read keys, the position of the cursor and the size of the terminal', async () => {
      const terminal = start(
        section,
        `stty raw -echo; stty size; printf '\\033[?1049h\\033[?2004h\\033[2;5H\\033[6n'
echo "answer $(head -c 6 | tail -c 5)."; printf 'keys %s.' "$(head -c 3 | od -An -tx1)"
until stty size | grep '20 100'; do head -c 1; done; stty sane; echo bye`,
      )
      await terminal.draws(/answer \[2;5R\./)
      expect(terminal.text()).toContain('30 120')
      expect(terminal.screen.modes).toMatchObject({ isAlternateScreen: true, isBracketedPaste: true })
      terminal.type('\x03\x1aq')
      await terminal.shows(/keys {2}03 1a 71\./)
      terminal.resize(100, 20)
      // Keys may arrive before the new size.
      await waitUntil(() => {
        terminal.type('x')
        return terminal.text().includes('20 100')
      }, 'the new size')
      await terminal.ended()
      expect(terminal.text()).toContain('bye')
      expect(terminal.code()).toBe(0)
    })

    it('leaves no answer of the terminal to the shell of the user', async () => {
      const after = 'stty -icanon min 0 time 0; echo "left $(head -c 100 | od -An -c)."'
      const terminal = start(section, `stty raw -echo; printf '\\033[6n\\033[c\\033[5n\\033[6n'`, after)
      await terminal.ended()
      expect(terminal.text()).toContain('left .')
    })

    it('switches everything off when Muster is stopped', async () => {
      const terminal = start(section, `printf '${SWITCHED_ON}'; echo ready; read -r line`)
      await terminal.shows(/ready/)
      process.kill(terminal.pid, 'SIGTERM')
      await terminal.ended()
      await terminal.draws(/muster: stopped/)
      expect(terminal.screen.modes).toEqual(AS_BEFORE)
    })
  })

  it('switches everything off when kubectl on this machine is killed, and names the signal', async () => {
    const terminal = start('{}', `printf '${SWITCHED_ON}'; kill -KILL $$`)
    await terminal.ended()
    await terminal.draws(/muster: it was ended by SIGKILL/)
    expect([terminal.code(), terminal.screen.modes]).toEqual([1, AS_BEFORE])
  })

  it('switches everything off when the connection is lost', async () => {
    const terminal = start('{ via: m1 }', `printf '${SWITCHED_ON}'; echo ready; read -r line`)
    await terminal.shows(/ready/)
    await sshd.killChildren()
    await terminal.ended()
    await terminal.draws(/muster: /)
    expect([terminal.code(), terminal.screen.modes]).toEqual([4, AS_BEFORE])
  })
})
