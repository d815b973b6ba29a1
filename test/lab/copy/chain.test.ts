/** Large files that real hosts with slow links pass on to each other: what comes through, what goes wrong, what stays. */
import { type ChildProcess, spawn } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { PROGRAM, ROOT } from '../../support/console-options.ts'
import { requirement } from '../../support/requirements.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { type Lab, startLab } from '../cluster/lab.ts'

const canRun = requirement('root', 'namespaces', 'sshd', 'ip', 'nsenter', 'tc', 'python3')

/**
 * Sent from here to all hosts it takes 33 s, and links stand or are given up long before, however busy this machine is: there
 * is always something left to pass on.
 */
const SIZE_BYTES = 8 * 1024 * 1024
const NARROW_BITS_PER_SECOND = 10_000_000
/** Of hosts, and from here when the way is known. */
const BITS_PER_SECOND = 40_000_000
const PATIENCE_MS = 100_000

type Event = {
  readonly type: string
  readonly host: string
  readonly outcome?: string
  readonly via?: string
  readonly hosts?: readonly string[]
  readonly sentBytes?: number
  readonly passedOnBytes?: number
  readonly reason?: string
}

describe.skipIf(!canRun)('large files that hosts relay', () => {
  let lab: Lab
  let big: string
  let running: ChildProcess | undefined
  beforeAll(async () => {
    lab = await startLab({ count: 5 })
    for (const host of lab.hosts) await host.shape({ bitsPerSecond: BITS_PER_SECOND })
    big = join(lab.directory, 'home', 'big')
  })
  beforeEach(async () => {
    writeFileSync(big, randomBytes(SIZE_BYTES))
    await lab.shapeUplink({ bitsPerSecond: NARROW_BITS_PER_SECOND })
  })
  afterEach(async () => {
    running?.kill('SIGKILL')
    running = undefined
    for (const host of lab.hosts) if (host.isUp) await host.exec('rm -f big .muster-*')
  })
  afterAll(async () => await lab?.stop())

  const widen = async () => await lab.shapeUplink({ bitsPerSecond: BITS_PER_SECOND })
  /** Copies, and tells what it says while it goes on. */
  const copy = (...options: readonly string[]) => {
    const [file = '', ...args] = lab.command([
      ...PROGRAM,
      ...['--hosts', lab.hostsFile, '--json', 'copy', 'all', ...options, big, 'big'],
    ])
    const child = spawn(file, args, { env: lab.environment, stdio: ['ignore', 'pipe', 'ignore'] })
    running = child
    let text = ''
    child.stdout.setEncoding('utf8').on('data', (chunk) => (text += chunk))
    const events = () =>
      text
        .split('\n')
        .slice(0, -1)
        .map((line) => JSON.parse(line) as Event)
    const path = async (): Promise<Event | undefined> => {
      const find = () => events().find(({ type }) => type === 'path')
      await waitUntil(() => find() !== undefined, 'the path', PATIENCE_MS)
      return find()
    }
    return {
      child,
      events,
      ended: once(child, 'close').then(([code]) => code as number | null),
      results: () => events().filter(({ type }) => type === 'result'),
      path,
      chain: async (): Promise<readonly string[]> => {
        const { via, hosts = [] } = (await path()) ?? {}
        expect(via).toBe('chain')
        return hosts
      },
    }
  }
  const expectCopies = async (names: readonly string[]) => {
    const expected = createHash('sha256').update(readFileSync(big)).digest('hex')
    for (const name of names) {
      const { stdout } = await lab.host(name).exec('sha256sum big; ls -A | grep muster')
      expect([name, stdout]).toEqual([name, `${expected}  big\n`])
    }
  }
  /** Some host has a connection that is not with its SSH server. */
  const isTakingFromAnother = () =>
    lab.hosts.some(({ pid }) => {
      const established = readFileSync(`/proc/${pid}/net/tcp`, 'latin1')
        .split('\n')
        .filter((line) => / 01 /.test(line))
      return established.some((line) => !/:0016 /.test(line))
    })
  /** One that has ended and waits to be reaped counts no more. */
  const helpersOn = (name: string) =>
    lab
      .host(name)
      .processes()
      .filter((each) => each.name.startsWith('python') && each.state !== 'Z')

  it('are relayed if that is measured to be faster, and leave this machine about once', async () => {
    const schema = z.fromJSONSchema(JSON.parse(readFileSync(join(ROOT, 'docs/schema/copy.schema.json'), 'utf8')))
    const copying = copy()
    await copying.chain()
    await widen()
    expect(await copying.ended).toBe(0)
    for (const event of copying.events()) expect([event, schema.safeParse(event).error]).toEqual([event, undefined])
    await expectCopies(lab.names)
    const sent = copying.results().reduce((sum, { sentBytes = 0 }) => sum + sentBytes, 0)
    expect(sent).toBeLessThan(lab.names.length * SIZE_BYTES)
    expect(copying.results().some(({ passedOnBytes = 0 }) => passedOnBytes > 0)).toBe(true)
    for (const name of lab.names) expect(helpersOn(name)).toEqual([])
  })

  it('are relayed also as part of an environment', async () => {
    const file = join(lab.directory, 'env.yaml')
    writeFileSync(file, `${readFileSync(lab.hostsFile, 'utf8')}environment: { conda: { name: lab } }\n`)
    const [first = '', ...others] = lab.names
    const made = await lab
      .host(first)
      .exec(`mkdir -p ~/.conda/envs/lab/conda-meta && cd ~/.conda/envs/lab && head -c ${SIZE_BYTES} /dev/urandom > big
: > conda-meta/history; echo '{}' > conda-meta/big-1.0-0.json`)
    expect(made.code).toBe(0)
    const goingUp = lab.run([...PROGRAM, '--hosts', file, '--json', 'env', 'up', '--yes'], { timeoutMs: PATIENCE_MS })
    await waitUntil(isTakingFromAnother, 'a link between hosts', PATIENCE_MS)
    await widen()
    const up = await goingUp
    expect(up.stdout).toContain('MiB came from another host')
    const [expected, ...sums] = await Promise.all(
      lab.names.map(async (name) => (await lab.host(name).exec('sha256sum ~/.conda/envs/lab/big')).stdout),
    )
    expect(expected).toMatch(/^[0-9a-f]{64} /)
    expect(sums).toEqual(others.map(() => expected))
    for (const name of lab.names) {
      expect(helpersOn(name)).toEqual([])
      await lab.host(name).exec('rm -rf ~/.conda ~/.cache')
    }
  })

  it('do not wait for a slow host', async () => {
    // It alone takes 67 s: the others are done before it, however busy this machine is.
    await lab.host('m2').shape({ bitsPerSecond: BITS_PER_SECOND / 40 })
    const copying = copy('--via', 'chain')
    await copying.chain()
    await widen()
    await waitUntil(() => copying.results().length === 4, 'the others', PATIENCE_MS)
    expect(copying.results().map(({ host }) => host)).not.toContain('m2')
    await lab.host('m2').shape({ bitsPerSecond: BITS_PER_SECOND })
    expect(await copying.ended).toBe(0)
    await expectCopies(lab.names)
  })

  it('come from this machine where a firewall separates the hosts', async () => {
    for (const host of lab.hosts) {
      const others = lab.hosts.filter((other) => other !== host)
      // Frames for a hardware address that nobody has.
      const drop = others.map(
        ({ address }) => `ip neigh replace ${address} lladdr 02:00:00:00:00:99 dev eth0 nud permanent`,
      )
      expect((await host.exec(drop.join(' && '))).code).toBe(0)
    }
    const copying = copy()
    expect(await copying.path()).toMatchObject({
      via: 'direct',
      reason: expect.stringContaining('the hosts cannot reach each other'),
    })
    await widen()
    expect(await copying.ended).toBe(0)
    await expectCopies(lab.names)
    for (const host of lab.hosts) await host.exec('ip neigh flush all nud permanent; ip neigh flush all')
  })

  it('leave no process, listener or key behind when the program is killed', async () => {
    const copying = copy('--via', 'chain')
    await copying.chain()
    copying.child.kill('SIGKILL')
    await copying.ended
    for (const name of lab.names) {
      const host = lab.host(name)
      await waitUntil(() => host.processes().filter((each) => each.name === 'sshd').length === 1, 'its sessions to end')
      expect(helpersOn(name)).toEqual([])
      const listeners = (await host.exec('cat /proc/net/tcp')).stdout.split('\n').filter((line) => / 0A /.test(line))
      expect(listeners).toHaveLength(1)
      const left = (await host.exec('find /root /tmp -type f -newer /root/.hushlogin')).stdout
      expect(left.split('\n').filter((path) => path !== '' && !/^\/root\/\.muster-[0-9a-f]+\./.test(path))).toEqual([])
    }
  })

  it('bypass a host that dies', async () => {
    const copying = copy('--via', 'chain')
    const [, second = ''] = await copying.chain()
    await lab.host(second).crash()
    await widen()
    expect(await copying.ended).toBe(4)
    const others = lab.names.filter((name) => name !== second)
    expect(copying.results().find(({ host }) => host === second)?.outcome).toBe('unreachable')
    await expectCopies(others)
    await lab.host(second).boot()
    await lab.host(second).shape({ bitsPerSecond: BITS_PER_SECOND })
  })

  it('bypass a host whose link dies silently', async () => {
    const copying = copy('--via', 'chain')
    const [, second = ''] = await copying.chain()
    await lab.host(second).linkDown()
    await widen()
    const others = lab.names.filter((name) => name !== second)
    const isTold = (name: string) => copying.results().some(({ host }) => host === name)
    await waitUntil(() => others.every(isTold), 'the others', PATIENCE_MS)
    await expectCopies(others)
    // What is dead without a word is known to be dead later.
    copying.child.kill('SIGINT')
    expect([4, 130]).toContain(await copying.ended)
  })
})
