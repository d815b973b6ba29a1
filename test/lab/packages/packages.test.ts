/** `packages` with the real apt and dpkg on three hosts: what is installed, refused, waited for, compared and removed. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { shellQuote } from '../../../src/base/shell-quote.ts'
import { PROGRAM } from '../../support/console-options.ts'
import { requirement } from '../../support/requirements.ts'
import { type Lab, startLab } from '../cluster/lab.ts'
import type { RunResult } from '../cluster/run.ts'
import { TinyPackages } from './repository.ts'

const canRun = requirement('root', 'namespaces', 'ssh', 'ip', 'nsenter', 'apt-get', 'dpkg-deb', 'python3')

const HELLO = [1, 2].map((at) => ({ name: 'lab-hello', version: `${at}.0-1`, depends: 'lab-base' }))
const OLD = [
  HELLO[0] ?? { name: '', version: '' },
  { name: 'lab-base', version: '1.0' },
  { name: 'lab-there', version: '1.0' },
  { name: 'lab-user', version: '1.0', depends: 'lab-hello' },
  { name: 'lab-other', version: '1.0', depends: 'lab-lib' },
  { name: 'lab-lib', version: '1.0' },
]
const NEW = [
  ...HELLO,
  ...OLD.slice(1),
  { name: 'lab-there', version: '2.0' },
  { name: 'lab-modern', version: '1.0', depends: 'lab-there (>= 2.0)' },
]
const OURS = `dpkg-query -W -f '\${db:Status-Status} \${Package} \${Version}\\n' 'lab-*' | sed -n 's/^installed //p'`

describe.skipIf(!canRun)('muster packages', { timeout: 400_000 }, () => {
  let lab: Lab
  let tiny: TinyPackages

  const declare = (section: string) => {
    const hosts = lab.hosts.map(({ name, address }) => `  ${name}: { address: ${address} }\n`).join('')
    const text = `cluster: lab\ndefaults: { user: root }\nhosts:\n${hosts}${section === '' ? '' : `packages: ${section}\n`}`
    writeFileSync(join(lab.directory, 'packages.yaml'), text)
  }
  const command = (...args: readonly string[]) => [...PROGRAM, '--hosts', join(lab.directory, 'packages.yaml'), ...args]
  const muster = async (...args: readonly string[]): Promise<RunResult> =>
    await lab.run(command(...args), { timeoutMs: 300_000 })
  const installed = async () => await Promise.all(lab.names.map(async (name) => await tiny.exec(name, OURS)))

  beforeAll(async () => {
    lab = await startLab({ count: 3 })
    tiny = new TinyPackages(lab)
    for (const name of lab.names) await tiny.prepare(name, name === 'm3' ? OLD : NEW)
    await tiny.exec('m2', 'apt-get -q -y install lab-there=1.0')
  }, 200_000)
  afterAll(async () => {
    tiny?.[Symbol.dispose]()
    await lab?.stop()
  })

  it('names a host that would get another version, before anything is installed', async () => {
    declare('{ install: [lab-hello] }')
    const { code, stdout } = await muster('up', '--dry-run')
    expect(stdout).toContain(`packages · distribution packages · m[1-2]
  install lab-hello with apt
    + package lab-hello 2.0-1
    + package lab-base 1.0
`)
    expect(stdout).toContain(
      '! lab-hello 2.0-1 is not available here, but the other hosts have or would get it; apt offers 1.0-1. Read the lists again, or write a version in hosts.yaml that all hosts offer: lab-hello=1.0-1 (there: sudo apt-get update)',
    )
    expect(code).toBe(5)
    expect(await installed()).toEqual(['', 'lab-there 1.0\n', ''])
  })

  it('reports a package that does not exist, and installs nothing', async () => {
    declare('{ install: [lab-hello=1.0-1, lab-helo] }')
    const { code, stdout } = await muster('up', '--yes')
    expect(stdout).toContain('! apt does not know the package lab-helo.')
    expect(code).toBe(5)
    expect(await installed()).toEqual(['', 'lab-there 1.0\n', ''])
  })

  it('installs the declared version with what it needs, and then finds nothing to do', async () => {
    declare('{ install: [lab-hello=1.0-1] }')
    const first = await muster('up', '--yes')
    expect([first.code, first.stdout + first.stderr]).toEqual([0, expect.stringContaining('3 done')])
    expect(first.stdout).toContain('    + package lab-hello 1.0-1\n    + package lab-base 1.0\n')
    const both = 'lab-base 1.0\nlab-hello 1.0-1\n'
    expect(await installed()).toEqual([both, `${both}lab-there 1.0\n`, both])
    const again = await muster('up', '--yes')
    expect([again.code, again.stdout]).toEqual([0, expect.stringContaining('lab-hello 1.0-1 installed')])
    expect((await muster('status')).stdout).toBe('good     packages · m[1-3]\n3 good\n')
  })

  it('changes the version of what it installed, up and down', async () => {
    await tiny.offer('m3', NEW)
    declare('{ install: [lab-hello=2.0-1] }')
    const { code, stdout } = await muster('up', '--yes')
    expect([code, stdout]).toEqual([0, expect.stringContaining('~ package lab-hello 1.0-1 → 2.0-1')])
    await tiny.exec('m3', 'apt-get -q -y --allow-downgrades install lab-hello=1.0-1')
    declare('{ install: [lab-hello] }')
    const status = await muster('status')
    expect([status.code, status.stdout]).toEqual([1, expect.stringMatching(/^differs +packages · m3/m)])
    expect((await muster('up', '--yes')).code).toBe(0)
    const both = 'lab-base 1.0\nlab-hello 2.0-1\n'
    expect(await installed()).toEqual([both, `${both}lab-there 1.0\n`, both])
  })

  it('removes what is taken off the list, with its dependencies, but not what another package needs', async () => {
    declare('{ install: [lab-hello, lab-lib, lab-other], hosts: m3 }')
    expect((await muster('up', '--yes')).code).toBe(0)
    const four = 'lab-base 1.0\nlab-hello 2.0-1\nlab-lib 1.0\nlab-other 1.0\n'
    expect((await installed())[2]).toBe(four)
    declare('{ install: [lab-hello, lab-other], hosts: m3 }')
    const needed = await muster('up', '--yes', '--verbose')
    expect([needed.code, needed.stdout]).toEqual([0, expect.stringContaining('lab-lib stays: needed by lab-other')])
    expect((await installed())[2]).toBe(four)
    expect((await muster('up', '--yes')).stdout).toContain('no change: nothing to do')
    declare('{ install: [lab-hello] }')
    const { code, stdout } = await muster('up', '--yes')
    expect(stdout).toContain(`packages · undeclared packages · m3
  remove packages that hosts.yaml no longer lists, and what only they need
    - package lab-other
`)
    expect(code, stdout).toBe(0)
    expect((await installed())[2]).toBe('lab-base 1.0\nlab-hello 2.0-1\n')
    expect((await muster('up', '--yes')).stdout).toContain('no change: nothing to do')
  })

  it('shows another version of what it did not install, with the fix, and leaves it', async () => {
    await tiny.exec('m1', 'apt-get -q -y install lab-there=2.0')
    await tiny.exec('m3', 'apt-get -q -y install lab-there=2.0')
    declare('{ install: [lab-hello, lab-there] }')
    const { code, stdout } = await muster('up', '--yes')
    expect(stdout).toContain(
      '! lab-there: 2.0 on m[1,3], 1.0 on m2. Muster did not install it, so it does not change its version. (there: sudo apt-get install lab-there=2.0)',
    )
    expect(code).toBe(5)
    expect((await installed())[1]).toContain('lab-there 1.0\n')
  })

  it('refuses to upgrade a package that was there as part of an installation', async () => {
    declare('{ install: [lab-modern], hosts: m2 }')
    const { code, stdout } = await muster('up', '--yes')
    expect(stdout).toContain(
      '! installing lab-modern would change packages that are there [lab-there 1.0 → 2.0]. Muster does not change what it cannot restore.',
    )
    expect(code).toBe(5)
    expect((await installed())[1]).not.toContain('lab-modern')
  })

  it('waits for another user of dpkg, and names it', async () => {
    declare('{ install: [lab-hello, lab-modern], hosts: "m[1,3]" }')
    const holder = `import fcntl, signal
file = open("/var/lib/dpkg/lock-frontend", "w")
fcntl.lockf(file, fcntl.LOCK_EX)
print("held", flush=True)
signal.pause()`
    const pid = await tiny.exec(
      'm3',
      `mkfifo /tmp/held; python3 -c ${shellQuote(holder)} > /tmp/held 2> /dev/null < /dev/null & echo $!; read -r _ < /tmp/held`,
    )
    const [program = '', ...argv] = lab.command(command('up', '--yes', '--verbose'))
    const child = spawn(program, argv, { env: lab.environment, stdio: ['ignore', 'pipe', 'inherit'] })
    let output = ''
    let freed: Promise<string> | undefined
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      output += text
      if (output.includes('waiting: ')) freed ??= tiny.exec('m3', `kill ${pid}`)
    })
    const [code] = await once(child, 'close')
    expect(output).toMatch(/waiting: another process uses the package manager: .*held by process \d+/)
    await freed
    expect(code, output).toBe(0)
    expect((await installed())[2]).toContain('lab-modern 1.0\n')
  })

  it('removes what it installed, but not what another package needs', async () => {
    await tiny.exec('m1', 'apt-get -q -y install lab-user')
    declare('{ install: [lab-hello, lab-modern] }')
    const { code, stdout } = await muster('down', '--yes', '--verbose')
    expect(stdout).toContain('lab-hello stays: needed by lab-user')
    expect(code, stdout).toBe(0)
    expect(await installed()).toEqual([
      'lab-base 1.0\nlab-hello 2.0-1\nlab-there 2.0\nlab-user 1.0\n',
      'lab-there 1.0\n',
      'lab-there 2.0\n',
    ])
    for (const name of lab.names) expect(await tiny.exec(name, 'ls /var/lib/muster 2> /dev/null || :')).toBe('')
    expect((await muster('down', '--yes')).stdout).toContain('no change: nothing to do')
    await tiny.exec('m1', 'apt-get -q -y purge lab-user lab-hello lab-base')
  })

  it('reads the lists of a host that has none, and finds what it left behind when hosts.yaml is empty', async () => {
    await tiny.exec('m1', 'rm -r /var/lib/apt/lists')
    await tiny.exec('m2', 'rm -r /var/lib/apt/lists')
    await tiny.exec('m3', 'rm -r /var/lib/apt/lists')
    declare('{ install: [lab-hello] }')
    const { code, stdout } = await muster('up', '--yes')
    expect([code, stdout]).toEqual([0, expect.stringContaining('read the lists of packages, and install lab-hello')])
    expect((await muster('left', '--area', 'packages')).stdout).toContain('declared')
    declare('')
    const removed = await muster('left', '--area', 'packages', '--remove', '--yes')
    expect(removed.code, removed.stdout).toBe(0)
    expect(await installed()).toEqual(['lab-there 2.0\n', 'lab-there 1.0\n', 'lab-there 2.0\n'])
  })

  it('leaves what a person installs after Ctrl-C, and says so', async () => {
    declare('{ install: [lab-hello], hosts: m2 }')
    const hook = '/etc/apt/apt.conf.d/99hold'
    const words = 'DPkg::Pre-Invoke { "echo > /tmp/at-work; exec sleep 98765"; };'
    await tiny.exec('m2', `apt-get -q update; mkfifo /tmp/at-work; echo ${shellQuote(words)} > ${hook}`)
    const [program = '', ...argv] = lab.command(command('up', '--yes'))
    const child = spawn(program, argv, { env: lab.environment, stdio: 'ignore' })
    const ended = once(child, 'close')
    await tiny.exec('m2', 'read -r _ < /tmp/at-work || :')
    child.kill('SIGINT')
    expect((await ended)[0]).toBe(130)
    await tiny.exec('m2', `rm ${hook} /tmp/at-work; apt-get -q -y install lab-hello`)
    const status = await muster('status')
    expect([status.code, status.stdout]).toEqual([0, expect.stringMatching(/^good +packages · m2/m)])
    expect(status.stdout).toContain(
      "note  packages · m2: an installation was stopped halfway. Muster does not know whether it installed lab-base lab-hello, so down keeps this. To remove it: sudo apt-get purge lab-base lab-hello. To keep it, delete Muster's note (there: sudo rm /var/lib/muster/packages-packages.begun)",
    )
    const down = await muster('down', '--yes')
    expect([down.code, down.stdout]).toEqual([
      0,
      expect.stringContaining('~ package lab-hello stays: Muster does not know whether it installed this'),
    ])
    expect((await installed())[1]).toBe('lab-base 1.0\nlab-hello 2.0-1\nlab-there 1.0\n')
    expect(await tiny.exec('m2', 'ls /var/lib/muster 2> /dev/null || :')).toBe('')
    await tiny.exec('m2', 'apt-get -q -y purge lab-hello lab-base')
  })

  it('compares prefixes: what is missing, what differs, and contents of the same size', async () => {
    declare('{ prefixes: [/opt/lab-mpi] }')
    const make =
      'mkdir -p /opt/lab-mpi/bin /opt/lab-mpi/lib && cd /opt/lab-mpi && echo one > bin/mpirun && echo two > lib/mpi.so'
    await tiny.exec('m1', make)
    await tiny.exec('m2', make)
    const missing = await muster('up', '--yes')
    expect(missing.stdout).toContain(
      '! /opt/lab-mpi is missing. Muster only compares prefixes: copy it from m1, or build it here in the same way.',
    )
    expect(missing.code).toBe(5)
    await tiny.exec('m3', `${make} && echo more > lib/other.so`)
    const differs = await muster('status')
    expect(differs.stdout).toMatch(/^blocked +packages · m3: \/opt\/lab-mpi differs from that on m\[1-2\]/m)
    expect(differs.stdout).toContain('lib: 2 files, 9 B here, 1 file, 4 B on m1')
    await tiny.exec('m3', 'rm /opt/lab-mpi/lib/other.so; echo six > /opt/lab-mpi/lib/mpi.so')
    expect((await muster('status')).code).toBe(0)
    const check = await muster('packages', 'check')
    expect(check.stdout).toContain('files in /opt/lab-mpi have another content than on m[1-2]')
    expect(check.stdout).toContain('lib/mpi.so')
    expect(check.code).toBe(1)
  })
})
