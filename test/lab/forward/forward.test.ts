/** Port forwards over real sshd: to a host, back from it, as a proxy; refused ones; and a connection that is lost. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { openConsole } from '../../support/console-driver.ts'
import { PROGRAM } from '../../support/console-options.ts'
import { requirement } from '../../support/requirements.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { type Lab, startLab } from '../cluster/lab.ts'

const canRun = requirement('root', 'namespaces', 'sshd', 'ip', 'nsenter', 'ssh', 'curl', 'python3')

/** A page with the host's name on the port of the Ray dashboard. */
const SERVE = `mkdir -p /tmp/www && hostname >/tmp/www/index.html && cd /tmp/www && { setsid /usr/bin/python3 -m http.server 8265 --bind 127.0.0.1 >/dev/null 2>&1 & }
until curl -s http://127.0.0.1:8265/ >/dev/null; do :; done`

describe.skipIf(!canRun)('muster forward', () => {
  let lab: Lab
  let muster: Running | undefined

  const start = (...args: readonly string[]): Running => {
    muster = new Running(lab, ['--hosts', lab.hostsFile, 'forward', ...args])
    return muster
  }
  const get = async (url: string, ...options: readonly string[]) =>
    await lab.run(['curl', '--silent', '--show-error', '--noproxy', '', '--max-time', '60', ...options, url])

  beforeAll(async () => {
    lab = await startLab({
      count: 3,
      perHost: (name) => (name === 'm3' ? { sshdOptions: { AllowTcpForwarding: 'no' } } : {}),
    })
    await Promise.all(lab.hosts.map((host) => host.exec(SERVE)))
  })
  afterEach(async () => {
    await muster?.kill()
    muster = undefined
  })
  afterAll(async () => await lab?.stop())

  it('gives each host a port, says why it is another one, and ends with Ctrl-C', async () => {
    const running = start('m[1-2]', 'ray')
    await running.says(/^m1: http:\/\/127\.0\.0\.1:(8265|8266)\/ → localhost:8265 \(Ray dashboard\)/m)
    await running.says(/^m2: http:\/\/127\.0\.0\.1:8266\/ → localhost:8265 \(Ray dashboard\); 8265 is in use here$/m)
    expect((await get('http://127.0.0.1:8265/')).stdout).toBe('m1\n')
    expect((await get('http://127.0.0.1:8266/')).stdout).toBe('m2\n')
    expect((await lab.run(['ss', '-ltnH'])).stdout).not.toMatch(/(0\.0\.0\.0|\*|\[::\]):826/)
    expect(await running.interrupt()).toBe(130)
    expect((await get('http://127.0.0.1:8265/')).code).not.toBe(0)
  })

  it('leads back with -R, and a SOCKS client with -D to names that the host resolves', async () => {
    await lab.host('m1').exec('echo 127.0.0.1 only-there >>/etc/hosts')
    // With --persist the streams have a connection of their own beside the kept one.
    const running = start(
      'm1',
      '--persist',
      '1',
      '-R',
      '9000:127.0.0.1:9001',
      '-D',
      '1080',
      '-L',
      '9001:only-there:8265',
    )
    await running.says(/^m1: localhost:9000 on m1 → 127\.0\.0\.1:9001 here$/m)
    await running.says(/^m1: 127\.0\.0\.1:1080 → SOCKS 5$/m)
    const socks = ['--socks5-hostname', '127.0.0.1:1080']
    expect((await get('http://only-there:8265/', ...socks)).stdout).toBe('m1\n')
    // From the host to this machine, and from here through -L to the host again.
    expect((await lab.host('m1').exec('curl -s http://localhost:9000/')).stdout).toBe('m1\n')
    expect((await get('http://only-there:8266/', ...socks)).stderr).toMatch(/SOCKS/)
    await running.says(/^muster: m1: .*only-there:8266.*refused/m)
  })

  it('does the same over the system ssh', async () => {
    const file = `${lab.directory}/openssh.yaml`
    writeFileSync(
      file,
      `defaults: { user: root, transport: openssh }\nhosts: { m1: { address: ${lab.host('m1').address} } }\n`,
    )
    muster = new Running(lab, ['--hosts', file, 'forward', 'm1', '8265', '-R', '9000:127.0.0.1:8265'])
    await muster.says(/^m1: 127\.0\.0\.1:8265 → localhost:8265$/m)
    await muster.says(/^m1: localhost:9000 on m1 → 127\.0\.0\.1:8265 here$/m)
    expect((await get('http://127.0.0.1:8265/')).stdout).toBe('m1\n')
    expect((await lab.host('m1').exec('curl -s http://localhost:9000/')).stdout).toBe('m1\n')
  })

  it('says what sshd does not allow, and refuses a port in use with -L', async () => {
    const running = start('m3', '9005:8265', '-R', '9000:127.0.0.1:9001')
    await running.says(/^muster: m3: it does not listen on localhost:9000: .*AllowTcpForwarding/m)
    await running.says(/^m3: 127\.0\.0\.1:9005/m)
    expect((await get('http://127.0.0.1:9005/')).code).not.toBe(0)
    await running.says(/^muster: m3: its sshd does not allow a forward to localhost:8265\. Check AllowTcpForwarding/m)
    const second = await lab.run([...PROGRAM, '--hosts', lab.hostsFile, 'forward', 'm1', '-L', '9005:localhost:8265'])
    expect(second.stderr).toMatch(/cannot listen on 127\.0\.0\.1:9005 here: the port is in use/)
    expect(second.code).toBe(2)
  })

  it('is listed in the console with what passes, and stays until the console ends, not until it is detached', async () => {
    await using console = await openConsole({ in: lab, args: ['--hosts', lab.hostsFile, 'm1'] })
    await console.expectPrompts('m1')
    await console.leader('t')
    await console.type('a')
    await console.type('8265\r')
    await console.expectScreen(/m1 {2}127\.0\.0\.1:8265 → localhost:8265 +0 open/)
    expect((await get('http://127.0.0.1:8265/')).stdout).toBe('m1\n')
    await console.expectScreen(/http:\/\/127\.0\.0\.1:8265\/ +1 connection so far/)
    await console.key('Escape')
    await console.detach()
    expect((await get('http://127.0.0.1:8265/')).stdout).toBe('m1\n')
    expect((await lab.run([...PROGRAM, 'sessions', '--end', 'all'])).code).toBe(0)
    expect((await get('http://127.0.0.1:8265/')).code).not.toBe(0)
  })

  it('connects a lost host again, and says so', async () => {
    const running = start('m1', '8265', '--json')
    await running.says(/"type":"forward","host":"m1","kind":"local","listen":\{"address":"127\.0\.0\.1","port":8265\}/)
    await lab.host('m1').killSshd()
    await running.says(/"type":"lost","host":"m1","reason":"connection lost: .*; trying again"/)
    expect((await get('http://127.0.0.1:8265/')).code).not.toBe(0)
    await lab.host('m1').startSshd()
    await running.says(/"type":"connected","host":"m1"/)
    expect((await get('http://127.0.0.1:8265/')).stdout).toBe('m1\n')
  })
})

/** A program that runs until it is told to end. */
class Running {
  readonly #child: ChildProcess
  #output = ''

  constructor(lab: Lab, args: readonly string[]) {
    const [file = '', ...argv] = lab.command([...PROGRAM, ...args])
    this.#child = spawn(file, argv, { env: lab.environment, stdio: ['ignore', 'pipe', 'pipe'] })
    for (const stream of [this.#child.stdout, this.#child.stderr])
      stream?.setEncoding('utf8').on('data', (text: string) => {
        this.#output += text
      })
  }

  async says(pattern: RegExp): Promise<void> {
    const what = () => `${pattern} in:\n${this.#output}`
    await waitUntil(() => {
      if (!pattern.test(this.#output) && this.#child.exitCode !== null) throw new Error(`it ended without ${what()}`)
      return pattern.test(this.#output)
    }, what)
  }

  async interrupt(): Promise<number | null> {
    return await this.#end('SIGINT')
  }

  async kill(): Promise<void> {
    await this.#end('SIGKILL')
  }

  async #end(signal: NodeJS.Signals): Promise<number | null> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return this.#child.exitCode
    const exited = once(this.#child, 'exit')
    this.#child.kill(signal)
    return ((await exited) as [number | null])[0]
  }
}
