/** PyTorch's ranks through the queue: most with a fake agent that behaves as torchrun does, some with Debian's torch and gloo. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { packageRoot } from '../../../src/base/package-root.ts'
import { PROGRAM } from '../../support/console-options.ts'
import { requirement } from '../../support/requirements.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { type Lab, startLab } from '../cluster/lab.ts'
import { hostsFileOf, isJob, type LabQueue, labQueue } from '../jobs/lab-queue.ts'

const canRun = requirement('root', 'namespaces', 'sshd', 'ip', 'nsenter', 'setsid')
const hasTorch = canRun && requirement('python torch')

/** Two ranks on each of two hosts. */
const FOUR = ['--launch', 'torchrun', '--bundles', '2', '--procs', '2', '--strategy', 'STRICT_SPREAD'] as const
const FAKE = [...FOUR, '--torchrun', '/srv/fake_torchrun', '--']
const REAL = ['--torchrun', '/srv/torchrun'] as const

describe.skipIf(!canRun)('a job launched by torchrun', { timeout: 240_000 }, () => {
  let lab: Lab
  let queue: LabQueue
  let hostsFile: string

  beforeAll(async () => {
    lab = await startLab({ count: 2, mounts: { '/srv': join(packageRoot(), 'test', 'fixtures', 'launch') } })
    // One job at a time has room.
    hostsFile = hostsFileOf(lab, 'torch', 'cpu: 1, gpu: 0, memory: 1GiB')
    queue = labQueue(lab, hostsFile)
  })
  afterEach(async () => await queue.stop())
  afterAll(async () => await lab?.stop())

  /** In the directory of a bundle, which is its host's own. */
  const inBundle = async (host: string, id: string, rank: number, command: string) =>
    (await lab.host(host).exec(`cd ~/.local/state/muster/jobs/*-${id}-1-${rank}-* && ${command}`)).stdout

  it('names the rank that failed first in 20 of 20 runs, although the agents of all hosts claim their own', async () => {
    const ways = ['raise', 'exit', 'late', 'kill', 'raise'] as const
    const runs = Array.from({ length: 20 }, (_, index) => ({ how: ways[index % 5] ?? 'raise', rank: index % 4 }))
    const ids: string[] = []
    for (const { how, rank } of runs) ids.push(await queue.submit(...FAKE, `/srv/fake_rank.py ${how} ${rank}`))
    expect(await queue.work().ended).toEqual([0, null])
    const reasons = new Map((await queue.list()).map(({ job, reason = '' }) => [String(job), reason]))
    const ends = {
      // Its connections close before its process ends: the rank beside it may fail of that first, and their agent ends it.
      raise: 'exit (1|143 .SIGTERM.)(,.*)?: ValueError: bad batch',
      exit: 'exit 3\\b',
      kill: 'exit 137 .SIGKILL.',
      // Its agent ends it while it lingers, or it ends by itself.
      late: 'exit (134 .SIGABRT.|143 .SIGTERM.).*: ValueError: bad batch',
    }
    for (const [index, { how, rank }] of runs.entries())
      expect(reasons.get(ids[index] ?? '')).toMatch(
        new RegExp(`^rank ${rank} on m${rank < 2 ? 1 : 2} failed first: ${ends[how]}`),
      )
  })

  it.skipIf(!hasTorch)(
    'reduces over gloo with a file for each rank, runs each rank in a line of sh, and needs no launcher for that',
    async () => {
      const id = await queue.submit(...FOUR, ...REAL, '--', '/srv/torch_all_reduce.py')
      const line = await queue.submit(...FOUR, ...REAL, '--', 'echo "$RANK of $WORLD_SIZE" && python3 -c "print(1)"')
      const byHand =
        '/srv/torchrun --nnodes $MUSTER_WORLD_SIZE --node_rank $MUSTER_RANK --nproc_per_node 2 --master_addr $MASTER_ADDR --master_port $MASTER_PORT /srv/torch_all_reduce.py'
      const recipe = ['--bundles', '2', '--strategy', 'STRICT_SPREAD', '--env', 'GLOO_SOCKET_IFNAME=eth0'] as const
      const plain = await queue.submit(...recipe, '--', byHand)
      expect(await queue.work().ended).toEqual([0, null])
      expect(await queue.find(plain)).toMatchObject({ state: 'done' })
      expect(await queue.show(id)).toMatch(/state: +done/)
      expect((await queue.job('logs', id)).stdout).toContain('rank 0/4 local 0 on m1 sum 10.0')
      expect(await inBundle('m1', id, 0, 'cat rank.1')).toContain('rank 1/4 local 1 on m1 sum 10.0')
      expect(await inBundle('m2', id, 1, 'cat rank.2 rank.3')).toMatch(
        /rank 2\/4 local 0 on m2 sum 10\.0[\s\S]*rank 3\/4 local 1/,
      )
      expect(await inBundle('m2', line, 1, 'cat rank.3')).toBe('3 of 4\n1\n')
    },
  )

  it.skipIf(!hasTorch)('starts the same by the lines that it prints for a person', async () => {
    const text = 'x=$FROM; echo "$x $RANK of $WORLD_SIZE" | tr a-z A-Z && exit 0'
    const options = [...FOUR, ...REAL, '--env', 'FROM=job', '--', text]
    const { stdout } = await queue.job('submit', '--dry-run', ...options)
    const lines = [...stdout.matchAll(/^by hand on (m\d): (.*)$/gm)]
    const ran = await Promise.all(lines.map(([, host = '', line = '']) => lab.host(host).exec(line)))
    const ranks = [0, 1, 2, 3].map((rank) => `JOB ${rank} OF 4`)
    expect(ran.flatMap((one) => one.stdout.trim().split('\n')).toSorted()).toEqual(ranks)
    const id = await queue.submit(...options)
    expect(await queue.work().ended).toEqual([0, null])
    for (const [rank, words] of ranks.entries())
      expect((await queue.job('logs', id, '--rank', String(rank))).stdout).toBe(`${words}\n`)
  })

  it.skipIf(!hasTorch)('names the rank that failed first with real torch and gloo', async () => {
    const runs = [
      ['raise', 3, 'rank 3 on m2 failed first: exit 1\\b.*: ValueError: bad batch$'],
      ['exit', 0, 'rank 0 on m1 failed first: exit 3\\b'],
      ['kill', 1, 'rank 1 on m1 failed first: exit 137 .SIGKILL.'],
    ] as const
    const ids: string[] = []
    for (const [how, rank] of runs)
      ids.push(await queue.submit(...FOUR, ...REAL, '--', `/srv/torch_fail.py ${how} ${rank}`))
    expect(await queue.work().ended).toEqual([0, null])
    for (const [index, [, , reason]] of runs.entries())
      expect((await queue.find(ids[index] ?? '')).reason).toMatch(new RegExp(`^${reason}`))
  })

  it.skipIf(!hasTorch)('starts the ranks again with --elastic, where names of hosts resolve to 127.0.1.1', async () => {
    for (const name of lab.names) {
      const mount = `printf "127.0.0.1 localhost\\n127.0.1.1 ${name}\\n" >/tmp/names && mount --bind /tmp/names /etc/hosts && getent hosts ${name}`
      expect((await lab.host(name).exec(mount)).stdout).toMatch(/^127\.0\.1\.1 /)
    }
    const elastic = ['--elastic', '1:2', '--restarts', '1'] as const
    const id = await queue.submit(...FOUR, ...REAL, ...elastic, '--', '/srv/torch_fail.py once 2')
    expect(await queue.work().ended).toEqual([0, null])
    const { state } = JSON.parse((await queue.job('show', id, '--json')).stdout)
    expect(state.kind).toBe('done')
    const ends = state.bundles.flatMap(({ ranks }: { ranks: readonly object[] }) => ranks)
    const restarts = (restart: number, isWell: boolean) =>
      ends.filter((end: { restart: number; code: number }) => end.restart === restart && (end.code === 0) === isWell)
    expect([restarts(0, false).length, restarts(1, true).length]).toEqual([4, 4])
    expect((await queue.job('logs', id)).stdout).toMatch(/rank 0 restart 1 master 10\.81\.0\.[12]\n/)
  })

  it('names both hosts of a rank that two claim with --elastic, wherever it is read', async () => {
    // In place of c10d, m1 gets ranks 0 and 1. On m2, rank 2 pretends that its host has rank 0.
    const agent = `#!/bin/sh
until [ "$1" = --no_python ]; do shift; done; shift
first=0; [ "$(hostname)" = m1 ] || first=2
for l in 0 1; do RANK=$((first + l)) LOCAL_RANK=$l WORLD_SIZE=4 "$@" & done; wait`
    const program = `cd "$MUSTER_DIRECTORY"
[ "$RANK" != 2 ] || echo "0 0 1" >>ranks
until [ -e ~/go ]; do sleep 0.05; done
if [ "$RANK" = 2 ]; then echo lie >>out; else echo "real $RANK"; fi
until [ -e ~/over ]; do sleep 0.05; done`
    for (const host of lab.hosts) await host.exec(`cat >agent <<'EOF'\n${agent}\nEOF\nchmod 755 agent`)
    const args = [...FOUR.slice(1), '--torchrun', '/root/agent', '--elastic', '2:2', '--', program]
    const [file = '', ...words] = lab.command([...PROGRAM, '--hosts', hostsFile, 'launch', ...args])
    const child = spawn(file, words, { env: lab.environment, stdio: ['ignore', 'pipe', 'pipe'] })
    let [output, messages] = ['', '']
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      output += text
    })
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      messages += text
    })
    const ended = once(child, 'close')
    const all = () => output + messages
    try {
      await waitUntil(() => messages.includes('rank 0 is claimed by m[1-2]: its lines begin with the host'), all)
      const id = /job (\d+): running/.exec(messages)?.[1] ?? ''
      for (const host of lab.hosts) await host.exec('touch go')
      await waitUntil(() => output.includes('m1: real 0\n') && output.includes('m2: lie\n'), all)
      const { stdout } = await queue.job('ranks', id, '--json')
      const rows = stdout
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line))
      expect(rows).toMatchObject([
        { rank: 0, host: 'm1', claimedBy: ['m1', 'm2'] },
        { rank: 0, host: 'm2', claimedBy: ['m1', 'm2'] },
        { rank: 1, host: 'm1' },
        { rank: 2, host: 'm2' },
        { rank: 3, host: 'm2' },
      ])
      expect((await queue.job('logs', id)).stdout).toBe(
        '==> rank 0 on m1, claimed by m[1-2] <==\n  real 0\n==> rank 0 on m2, claimed by m[1-2] <==\n  lie\n',
      )
      // Also where one host alone claims it.
      expect((await queue.job('logs', id, '--rank', '3')).stdout).toBe(
        '==> rank 3 on m2, claimed by m2 <==\n  real 3\n',
      )
      expect((await queue.job('logs', id, '--all')).stdout).toMatch(/^> 0@m2 +lie$/m)
      for (const host of lab.hosts) await host.exec('touch over')
      expect(await ended).toEqual([0, null])
    } finally {
      child.kill('SIGKILL')
      for (const host of lab.hosts) await host.exec('touch go over')
    }
  })

  it.skipIf(!hasTorch)('starts again by itself when its port was taken meanwhile, and not for ever', async () => {
    const id = await queue.submit(...FOUR, '--torchrun', '/srv/torchrun_late', '--', '/srv/torch_all_reduce.py')
    expect(await queue.work().ended).toEqual([0, null])
    expect(await queue.find(id)).toMatchObject({ state: 'done', attempt: 2 })
    const busy = await queue.submit(...FAKE, "echo 'OSError: [Errno 98] Address already in use' >&2; exit 1")
    expect(await queue.work().ended).toEqual([0, null])
    expect(await queue.find(busy)).toMatchObject({ state: 'failed', attempt: 4 })
  })

  it.skipIf(!hasTorch)(
    'has an agent for each of the bundles that share a host, and runs modules and programs',
    async () => {
      const shared = ['--launch', 'torchrun', '--bundles', '4', '--cpu', '0.5', ...REAL, '--'] as const
      const id = await queue.submit(...shared, '/srv/torch_all_reduce.py')
      const module = await queue.submit(
        ...shared.slice(0, -1),
        '--env',
        'PYTHONPATH=/srv',
        '--',
        '-m',
        'torch_all_reduce',
      )
      expect(await queue.work().ended).toEqual([0, null])
      expect(await queue.find(id)).toMatchObject({ state: 'done' })
      expect(await inBundle('m1', id, 1, 'cat rank.1')).toContain('rank 1/4 local 0 on m1 sum 10.0')
      expect(await queue.find(module)).toMatchObject({ state: 'done' })
    },
  )

  it.skipIf(!hasTorch)('fails with what torchrun itself said, or with what is missing', async () => {
    const broken = await queue.submit(...FOUR, '--', '/srv/torch_all_reduce.py')
    const missing = await queue.submit(...FOUR, '--torchrun', '/srv/nothing', '--', 'true')
    expect(await queue.work().ended).toEqual([0, null])
    expect((await queue.find(broken)).reason).toMatch(
      /^the torchrun launcher on m[12].* failed .*: AttributeError: 'NoneType' object has no attribute 'get'\. This torchrun .* --torchrun$/,
    )
    expect((await queue.find(missing)).reason).toMatch(/^m[12]: \/srv\/nothing is not in PATH$/)
  })

  describe('of which ranks begin sessions of their own', () => {
    /** Of every process that a rank left: the rank's own, one in a session of its own, and one whose parent ended. */
    const ALONE = '(setsid sleep 3000 &); sleep 3000 & echo ready; wait'
    const sleepers = async () =>
      await Promise.all(
        lab.names.map(async (name) => (await lab.host(name).exec("pgrep -fc '^sleep 3000'")).stdout.trim()),
      )
    const begun = async () => {
      const id = await queue.submit(...FAKE, ALONE)
      const { ended, seen } = queue.work()
      await seen(isJob(id, 'running'))
      await waitUntil(async () => (await sleepers()).join() === '4,4', 'all ranks', 30_000)
      return { id, ended }
    }

    it('leaves nothing behind when it is cancelled', async () => {
      const { id, ended } = await begun()
      await queue.job('cancel', id)
      expect(await ended).toEqual([0, null])
      expect(await sleepers()).toEqual(['0', '0'])
      expect(await queue.show(id)).toMatch(/nothing left on m1 m2/)
    })

    it('leaves nothing behind when an agent is killed, and names that agent', async () => {
      const { id, ended } = await begun()
      await lab.host('m2').exec("pkill -KILL -f '^/usr/bin/python3 /srv/fake'")
      expect(await ended).toEqual([0, null])
      expect(await sleepers()).toEqual(['0', '0'])
      expect((await queue.find(id)).reason).toMatch(/^the torchrun launcher on m2 failed first: exit 137 .SIGKILL./)
      expect(await queue.show(id)).toMatch(/nothing left on m1 m2/)
    })
  })
})
