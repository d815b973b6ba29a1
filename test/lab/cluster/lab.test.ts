import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs'
import { networkInterfaces } from 'node:os'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { requirement } from '../../support/requirements.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { createLabDirectory, sweepLabs, writeOwners } from './directories.ts'
import { type Lab, startLab } from './lab.ts'
import { pidNamespaceOf, processesIn, startTimeOf } from './processes.ts'
import { runOrThrow } from './run.ts'

const canRun = requirement('root', 'namespaces', 'sshd', 'ssh', 'ip', 'tc', 'nsenter')

const mounts = (): string => readFileSync('/proc/self/mountinfo', 'utf8')
const OWNER = [process.execPath, '--import', 'tsx', `${import.meta.dirname}/owner-fixture.ts`]
const ssh = (lab: Lab, host: string, command: string, connectTimeoutS = 60) =>
  lab.run(['ssh', '-o', 'BatchMode=yes', '-o', `ConnectTimeout=${connectTimeoutS}`, host, command])

describe.skipIf(!canRun)('the lab', () => {
  let lab: Lab
  let before: { mounts: string; interfaces: string[] }

  beforeAll(async () => {
    before = { mounts: mounts(), interfaces: Object.keys(networkInterfaces()) }
    lab = await startLab({ count: 4, sshdOptions: { LoginGraceTime: '77' } })
  })

  afterAll(async () => {
    await lab?.stop()
  })

  it('gives each host its own name, home directory and first process', async () => {
    const answers = await Promise.all(lab.names.map((name) => ssh(lab, name, 'hostname; pwd; cat /proc/1/comm')))
    expect(answers.map(({ stdout }) => stdout)).toEqual(lab.names.map((name) => `${name}\n/root\nsh\n`))
  })

  it('is not visible on the machine', () => {
    expect(mounts()).toBe(before.mounts)
    expect(Object.keys(networkInterfaces())).toEqual(before.interfaces)
  })

  it('keeps a host from writing to the files of the machine', async () => {
    const { code, stderr } = await ssh(lab, 'm1', 'touch /etc/muster-was-here')
    expect(code).not.toBe(0)
    expect(stderr).toContain('Read-only file system')
  })

  it('has no IPv6', async () => {
    expect((await ssh(lab, 'm1', 'cat /proc/net/if_inet6')).stdout).toBe('')
  })

  it("has Debian's limits of connections and sessions, and the options of a test", async () => {
    const { stdout } = await lab.host('m1').exec('/usr/sbin/sshd -T -f /run/lab/sshd_config')
    expect(stdout).toMatch(/^maxstartups 10:30:100$/m)
    expect(stdout).toMatch(/^maxsessions 10$/m)
    expect(stdout).toMatch(/^logingracetime 77$/m)
  })

  it('kills sshd with its sessions, and starts it again', async () => {
    const host = lab.host('m2')
    await host.killSshd()
    expect((await ssh(lab, 'm2', 'true')).stderr).toContain('Connection refused')
    await host.startSshd()
    expect((await ssh(lab, 'm2', 'hostname')).stdout).toBe('m2\n')
  })

  it('cuts a link, and restores it', async () => {
    const host = lab.host('m2')
    await host.linkDown()
    expect((await ssh(lab, 'm2', 'true', 1)).code).toBe(255)
    await host.linkUp()
    expect((await ssh(lab, 'm2', 'hostname')).stdout).toBe('m2\n')
  })

  it('freezes a host, whose kernel accepts the connection but does not answer', async () => {
    const host = lab.host('m3')
    await host.freeze()
    expect((await ssh(lab, 'm3', 'true', 1)).stderr).toMatch(/timed out/)
    await host.thaw()
    expect((await ssh(lab, 'm3', 'hostname')).stdout).toBe('m3\n')
  })

  it('crashes a host, and boots it under the same address and key', async () => {
    const host = lab.host('m4')
    const key = await ssh(lab, 'm4', 'cat /run/lab/ssh_host_ed25519_key.pub')
    await host.crash()
    expect(host.processes()).toEqual([])
    expect((await ssh(lab, 'm4', 'true', 1)).code).toBe(255)
    await host.boot()
    expect((await ssh(lab, 'm4', 'cat /run/lab/ssh_host_ed25519_key.pub')).stdout).toBe(key.stdout)
  })

  it('limits the speed of a link', async () => {
    const host = lab.host('m3')
    await host.shape({ bitsPerSecond: 8_000_000, burstBytes: 20_000 })
    const started = performance.now()
    await ssh(lab, 'm3', 'head -c 1000000 /dev/urandom')
    const shapedMs = performance.now() - started
    await host.unshape()
    // A million bytes are eight million bits: a second at least, less the burst.
    expect(shapedMs).toBeGreaterThan(950)
  })

  it('runs beside another lab with the same addresses', async () => {
    await using other = await startLab({ names: ['other'] })
    expect(other.hosts[0]?.address).toBe(lab.hosts[0]?.address)
    expect((await ssh(other, 'other', 'hostname')).stdout).toBe('other\n')
    expect((await ssh(lab, 'm1', 'hostname')).stdout).toBe('m1\n')
  })

  it('leaves no process and no directory when it stops', async () => {
    const short = await startLab({ count: 2 })
    const namespaces = [short.pid, ...short.hosts.map(({ pid }) => pid)].map((pid) => pidNamespaceOf(pid) ?? '')
    await short.stop()
    expect(namespaces.flatMap(processesIn)).toEqual([])
    expect(existsSync(short.directory)).toBe(false)
  })

  it('keeps its own /etc when a file of the machine is replaced', async () => {
    // A mount namespace with a copy of /etc stands for the machine, so that the real one is not touched.
    const machine = 'mount -t tmpfs tmpfs /mnt && cp -a /etc/. /mnt && mount --move /mnt /etc && exec "$@"'
    const owner = spawn('unshare', ['--mount', 'sh', '-c', machine, 'sh', ...OWNER])
    try {
      const [line] = await once(owner.stdout.setEncoding('utf8'), 'data')
      const { pid, hostPids } = JSON.parse(line)
      const inside = (of: number, command: string) =>
        runOrThrow(['nsenter', '--target', String(of), '--mount', 'sh', '-c', command])
      const passwords = () => Promise.all([pid, ...hostPids].map((of) => inside(of, 'cat /etc/passwd')))
      const before = await passwords()
      await inside(owner.pid as number, 'echo replaced > /etc/passwd.new && mv /etc/passwd.new /etc/passwd')
      expect(await inside(owner.pid as number, 'cat /etc/passwd')).toBe('replaced\n')
      expect(await passwords()).toEqual(before)
      const names = before.map((text) => text.split(':')[0])
      expect(names).toEqual(names.map(() => 'root'))
      await expect(inside(hostPids[0], 'touch /etc/muster-was-here')).rejects.toThrow('Read-only file system')
      owner.kill('SIGKILL')
      await waitUntil(() => startTimeOf(pid) === undefined, 'the end of the lab')
    } finally {
      owner.kill('SIGKILL')
    }
  })

  it('ends when its owner is killed', async () => {
    const owner = spawn('env', OWNER)
    const [line] = await once(owner.stdout.setEncoding('utf8'), 'data')
    const { directory, pid } = JSON.parse(line)
    expect(startTimeOf(pid)).toBeDefined()
    owner.kill('SIGKILL')
    await waitUntil(() => startTimeOf(pid) === undefined, 'the end of the lab')
    await waitUntil(() => !existsSync(directory), 'the directory to go')
  })
})

describe.skipIf(!canRun)('labs that were left behind', () => {
  it('are removed only when no owner is alive', async () => {
    const ended = spawn('true')
    const pid = ended.pid ?? 0
    const left = createLabDirectory()
    writeOwners(left, [pid])
    await once(ended, 'exit')
    const used = createLabDirectory()
    writeOwners(used, [process.pid])
    const young = createLabDirectory()
    mkdirSync(`${left}/hosts/m1/home`, { recursive: true })

    expect(sweepLabs()).toContain(left)
    expect([left, used, young].map((path) => existsSync(path))).toEqual([false, true, true])
    for (const path of [used, young]) rmSync(path, { recursive: true })
  })
})
