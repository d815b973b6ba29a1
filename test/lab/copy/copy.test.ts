/** Files to and from real OpenSSH hosts with slow links, full disks and other troubles: each has its own clear line. */
import { createHash, randomBytes } from 'node:crypto'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { PROGRAM } from '../../support/console-options.ts'
import { requirement } from '../../support/requirements.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { type Lab, startLab } from '../cluster/lab.ts'

const canRun = requirement('root', 'namespaces', 'sshd', 'ip', 'nsenter', 'tc')

describe.skipIf(!canRun)('copying in the lab', () => {
  let lab: Lab
  const muster = (...args: readonly string[]) =>
    lab.run([...PROGRAM, '--hosts', lab.hostsFile, '--connect-timeout', '15', ...args])
  const file = (name: string, sizeBytes: number): string => {
    const path = join(lab.directory, 'home', name)
    writeFileSync(path, randomBytes(sizeBytes))
    return path
  }
  const sha256 = (path: string): string => createHash('sha256').update(readFileSync(path)).digest('hex')
  const sha256On = async (name: string, path: string): Promise<string> => {
    const { stdout } = await lab.host(name).exec(`sha256sum ${path}`)
    return stdout.slice(0, 64)
  }
  beforeEach(async () => {
    lab = await startLab({
      count: 8,
      perHost: (name) => (name === 'm8' ? { sshdOptions: { MaxSessions: '1' } } : {}),
    })
  })
  afterEach(async () => {
    await lab?.stop()
  })

  it('copies to every usable host, and reports each other host in one line', async () => {
    const big = file('big', 8_000_000)
    await lab.host('m2').exec('mkdir full && mount -t tmpfs -o size=1m none full && ln -s full target')
    await lab.host('m3').linkDown()
    await lab.host('m4').exec('rm .ssh/authorized_keys')
    await lab.host('m5').exec('mkdir -p target/big')
    await lab.host('m6').exec('mkdir target && mount -t tmpfs -o ro none target')
    await lab.host('m7').exec('touch target')
    const { code, stdout, stderr } = await muster('copy', 'all', big, 'target/')
    expect(stdout).toMatch(/^m1: 1 copied, 7\.6 MiB in/m)
    expect(stderr).toMatch(/^m2: .*target\/big: No space left on device$/m)
    expect(stdout).toMatch(/^m3: unreachable: /m)
    expect(stdout).toMatch(/^m4: refused: /m)
    expect(stderr).toMatch(/^m5: .*target\/big: Is a directory$/m)
    expect(stderr).toMatch(/^m6: .*target\/big: Read-only file system$/m)
    expect(stdout).toMatch(/^m7: failed: target: Not a directory$/m)
    expect(stdout).toMatch(/^m8: 1 copied/m)
    expect(stderr).toContain('2 of 8 hosts ok, 4 failed, 1 not reached, 1 refused')
    expect(code).toBe(4)
    for (const name of ['m1', 'm8']) expect(await sha256On(name, 'target/big')).toBe(sha256(big))
    expect((await lab.host('m2').exec('ls -A full')).stdout).toBe('')
  })

  it('does not wait for a slow host', async () => {
    for (const host of lab.hosts) await host.shape({ bitsPerSecond: host.name === 'm7' ? 5_000_000 : 40_000_000 })
    const big = file('big', 5_000_000)
    const { code, stdout } = await muster('copy', 'all', '--json', big, 'big')
    expect(code).toBe(0)
    const results = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as { type: string; host: string })
      .filter(({ type }) => type === 'result')
    // Told in the order in which they end.
    expect(results.map(({ host }) => host).at(-1)).toBe('m7')
  })

  it('resumes after the link was lost, and fetches the same bytes', async () => {
    const big = file('big', 12_000_000)
    const host = lab.host('m1')
    await host.shape({ bitsPerSecond: 8_000_000 })
    const copying = muster('copy', 'm1', big, 'big')
    const partSize = async () => Number((await host.exec('cat .muster-* 2>/dev/null | wc -c')).stdout)
    await waitUntil(async () => (await partSize()) > 2_000_000, 'a part of the file')
    for (const { pid, name } of host.processes()) if (name === 'sshd' && pid !== host.pid) process.kill(pid, 'SIGKILL')
    const cut = await copying
    expect(cut.code).toBe(4)
    expect(cut.stdout).toMatch(/^m1: unreachable: lost: /m)
    expect((await host.exec('ls big')).code).not.toBe(0)
    await host.unshape()
    await host.startSshd()
    const again = await muster('copy', 'm1', '--json', big, 'big')
    expect(again.stdout).toMatch(/"action":"copied".*"resumedBytes":\d{7}/)
    expect(await sha256On('m1', 'big')).toBe(sha256(big))
    expect((await host.exec('ls -A | grep muster')).stdout).toBe('')
    const out = join(lab.directory, 'home', 'out')
    mkdirSync(out)
    const { code } = await muster('fetch', 'm1', 'big', out)
    expect(code).toBe(0)
    expect(sha256(join(out, 'm1', 'big'))).toBe(sha256(big))
  })

  it('uses warm connections', async () => {
    const big = file('big', 8_000_000)
    for (const name of ['first', 'second']) {
      expect((await muster('copy', '--persist', '30', 'm[1-2]', big, name)).code).toBe(0)
      for (const host of ['m1', 'm2']) expect(await sha256On(host, name)).toBe(sha256(big))
    }
    expect((await muster('hosts', '--stop')).code).toBe(0)
  })
})
