/** The program by which a bundle in an engine starts workers of DI-engine, with a ditask that only says how it was called. */
import { spawn } from 'node:child_process'
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { ditaskInGang } from '../../../src/scheduler/launch/ditask-gang.ts'

const request = { cpuMilli: 1000, memoryBytes: 0, gpuCount: 0, gpuMilli: 0 }
const place = mkdtempSync(join(tmpdir(), 'muster-ditask-'))
afterAll(() => rmSync(place, { recursive: true }))

/** Ends as its last arguments say: they are a line for sh. */
const DITASK = join(place, 'ditask')
writeFileSync(
  DITASK,
  `#!/bin/sh
echo "$RANK/$WORLD_SIZE \${DI_RANK-} \${DI_NODES-} $*" | sed 's/ --then.*//'
while [ "$1" != --then ]; do shift; done
eval "$2"
`,
)
chmodSync(DITASK, 0o755)

type Bundle = {
  readonly rank: number
  readonly addresses: readonly string[]
  readonly options?: Readonly<Record<string, string>>
  readonly ending?: string
  readonly environment?: Readonly<Record<string, string>>
  readonly ports?: readonly [number, number]
}

async function run({ rank, addresses, options = {}, ending, environment, ports = [26_000, 26_999] }: Bundle) {
  const why = join(place, 'why')
  rmSync(why, { force: true })
  const line = ditaskInGang({
    command: `--main x.main --then '${ending ?? 'echo "[INFO] x"; echo NNG listen on tcp >&2'}'`,
    spec: { kind: 'ditask', options: { ditask: DITASK, ...options }, ports },
    roles: [
      { name: 'learner', count: 1, request },
      { name: 'collector', count: addresses.length - 1, request },
    ],
  })
  const child = spawn('sh', ['-c', line], {
    env: {
      PATH: process.env.PATH,
      RANK: String(rank),
      WORLD_SIZE: String(addresses.length),
      MUSTER_ADDRESSES: addresses.join(),
      MUSTER_HOSTS: addresses.map((_, index) => `n${index}`).join(),
      MUSTER_WHY: why,
      ...environment,
    },
  })
  const texts = { stdout: '', stderr: '' }
  child.stdout.on('data', (text) => (texts.stdout += String(text)))
  child.stderr.on('data', (text) => (texts.stderr += String(text)))
  const [code] = await new Promise<readonly [number | null]>((resolve) => child.on('close', (end) => resolve([end])))
  let reason = ''
  try {
    reason = readFileSync(why, 'utf8')
  } catch {}
  return { ...texts, code, reason, words: texts.stdout.split('\n').filter((text) => text.includes('--main')) }
}

const HOSTS = ['127.0.0.1', '127.0.0.2', '127.0.0.3']

describe('ditask in a bundle that an engine starts', () => {
  it('dials the first worker in a star, and all earlier ones in a mesh', async () => {
    const star = await run({ rank: 1, addresses: HOSTS, options: { workers: '2' } })
    expect(star).toMatchObject({ code: 0, reason: '' })
    expect(star.words.toSorted()).toEqual([
      '2/6 1 127.0.0.1,127.0.0.2,127.0.0.3 --parallel-workers 1 --node-ids 2 --topology alone --address 127.0.0.2 --ports 26002 --attach-to tcp://127.0.0.1:26000 --labels collector --main x.main',
      '3/6 1 127.0.0.1,127.0.0.2,127.0.0.3 --parallel-workers 1 --node-ids 3 --topology alone --address 127.0.0.2 --ports 26003 --attach-to tcp://127.0.0.1:26000 --labels collector --main x.main',
    ])
    const mesh = await run({ rank: 2, addresses: HOSTS, options: { topology: 'mesh' } })
    expect(mesh.words[0]).toContain(
      '--address 127.0.0.3 --ports 26002 --attach-to tcp://127.0.0.1:26000,tcp://127.0.0.2:26001 ',
    )
    const first = await run({ rank: 0, addresses: HOSTS })
    expect(first.words[0]).toContain('--node-ids 0 --topology alone --address 127.0.0.1 --ports 26000 --labels learner')
  })

  it('gives jobs that follow each other other ports of the declared range', async () => {
    const portsOf = async (job: number) => {
      const { words } = await run({ rank: 1, addresses: HOSTS, environment: { MASTER_PORT: String(job) } })
      return / --ports (\d+) /.exec(words[0] ?? '')?.[1]
    }
    expect(await portsOf(20_000)).toBe(String(26_000 + ((20_000 * 3) % 998) + 1))
    expect(await portsOf(20_001)).toBe(String(26_000 + ((20_001 * 3) % 998) + 1))
    expect(await run({ rank: 0, addresses: HOSTS, ports: [26_000, 26_001] })).toMatchObject({
      code: 1,
      reason: 'rank 0 on n0: 3 workers need as many ports; ports of launch in hosts.yaml has 2\n',
    })
  })

  it('leaves addresses to ditask in pods, unless they share one', async () => {
    const environment = { JOB_COMPLETION_INDEX: '1' }
    const pods = await run({ rank: 1, addresses: HOSTS, options: { topology: 'mesh', workers: '2' }, environment })
    // Two workers have to listen.
    expect(pods).toMatchObject({ code: 1, reason: expect.stringContaining('ended without listening') })
    expect(pods.words).toEqual([
      '1/3 1 127.0.0.1,127.0.0.2,127.0.0.3 --platform k8s --topology mesh --parallel-workers 2 --ports 26000 --labels collector --main x.main',
    ])
    const shared = await run({ rank: 1, addresses: ['127.0.0.1', '127.0.0.1'], environment })
    expect(shared.words[0]).toContain('--address 127.0.0.1 --ports 26001 --attach-to tcp://127.0.0.1:26000 ')
  })

  it('fails with the reason where ditask itself ends with 0', async () => {
    const deaf = 'echo "pynng.exceptions.TryAgain: no name" >&2; sleep 60'
    expect(await run({ rank: 1, addresses: HOSTS, ending: deaf })).toMatchObject({
      code: 1,
      reason: 'rank 1 on n1: BusError: this worker hears no other one: pynng.exceptions.TryAgain: no name\n',
    })
    expect(await run({ rank: 1, addresses: HOSTS, ending: 'true' })).toMatchObject({
      code: 1,
      reason: 'rank 1 on n1: BusError: this worker ended without listening\n',
    })
    const late = 'echo "pynng.exceptions.ConnectionRefused: x" >&2; echo NNG listen on >&2'
    expect(await run({ rank: 1, addresses: HOSTS, ending: late })).toMatchObject({ code: 0, reason: '' })
  })

  it('keeps the exit code and the last error of a worker, and ends the others', async () => {
    const ending = 'if [ $RANK = 1 ]; then echo "ValueError: \u001b[31mno\u009b1m" >&2; exit 3; else exec sleep 60; fi'
    expect(await run({ rank: 0, addresses: HOSTS, options: { workers: '2' }, ending })).toMatchObject({
      code: 3,
      reason: 'rank 0 on n0: ValueError:  [31mno 1m\n',
    })
    expect(await run({ rank: 0, addresses: HOSTS, ending: 'kill -KILL $$' })).toMatchObject({
      code: 137,
      reason: 'rank 0 on n0: its worker was killed by signal 9\n',
    })
  })

  it('names the address or the port that it cannot use', async () => {
    const server = createServer()
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const { port } = server.address() as { port: number }
    expect(await run({ rank: 0, addresses: ['127.0.0.1'], ports: [port, port] })).toMatchObject({
      code: 1,
      reason: `rank 0 on n0: cannot listen at 127.0.0.1 port ${port}: Address already in use\n`,
    })
    await new Promise((resolve) => server.close(resolve))
    expect(await run({ rank: 0, addresses: ['192.0.2.1', '127.0.0.1'] })).toMatchObject({
      code: 1,
      reason: expect.stringMatching(/^rank 0 on n0: cannot listen at 192\.0\.2\.1 port 26000: Cannot assign/),
    })
  })

  it('sends messages through Redis without addresses', async () => {
    const { words, code } = await run({ rank: 1, addresses: ['x.invalid', 'y.invalid'], options: { redis: 'r:6379' } })
    expect([code, words[0]]).toEqual([
      0,
      '1/2   --parallel-workers 1 --node-ids 1 --mq-type redis --redis-host r --redis-port 6379 --labels collector --main x.main',
    ])
  })
})
