/** Launchers of hosts.yaml on two hosts: what they are given, as a program on each host sees it. */
import { appendFileSync } from 'node:fs'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { requirement } from '../../support/requirements.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { type Lab, startLab } from '../cluster/lab.ts'
import { hostsFileOf, type LabQueue, labQueue } from '../jobs/lab-queue.ts'

const canRun = requirement('root', 'namespaces', 'sshd', 'ip', 'nsenter', 'setsid', 'python3', 'mpirun.openmpi')

const ROWS = `launchers:
  words:
    per: host
    command: [/bin/echo, "{node}/{nodes}", "{host}", "{address}", "{address.0}:{port.0}", "{ranks}"]
  serve:
    done: first
    env: { SERVER: "{address.0}:{port.0}" }
    first: [sh, -c, 'python3 -m http.server --bind "$1" "$2" 2>/dev/null & s=$!; shift 2; "$@"; c=$?; kill $s; exit $c', serve, "{address.0}", "{port.0}", "{command}"]
    command: [sleep, "1000"]
  missing: { command: [no-such-launcher] }
`

describe.skipIf(!canRun)('a launcher of hosts.yaml', { timeout: 60_000 }, () => {
  let lab: Lab
  let queue: LabQueue

  beforeAll(async () => {
    lab = await startLab({ count: 2 })
    const file = hostsFileOf(lab, 'rows')
    appendFileSync(file, ROWS)
    queue = labQueue(lab, file)
  })
  afterEach(async () => await queue.stop())
  afterAll(async () => await lab?.stop())

  const run = async (...args: readonly string[]) => {
    const id = await queue.submit('--bundles', '2', ...args)
    expect(await queue.work().ended).toEqual([0, null])
    return id
  }

  it('is given its number, its address and a free port of the first host', async () => {
    const id = await run('--launch', 'words', '--', 'a "b  c"')
    expect(await queue.show(id)).toMatch(/state: +done/)
    const outputs = await Promise.all(
      lab.hosts.map(
        async (host, rank) => (await host.exec(`cat .local/state/muster/jobs/*-${id}-1-${rank}-*/out`)).stdout,
      ),
    )
    expect(outputs[0]).toMatch(/^0\/2 m1 10\.81\.0\.1 10\.81\.0\.1:46\d{3} 2 a b {2}c\n$/)
    expect(outputs[1]).toBe(outputs[0]?.replace('0/2 m1 10.81.0.1', '1/2 m2 10.81.0.2'))
  })

  it.each([
    'answered',
    'listening',
    'reached',
  ])('begins once where its scheduler was killed when %s was asked', async (question) => {
    const id = await queue.submit('--bundles', '2', '--launch', 'words', '--', 'x')
    queue.work()
    const isAsked = async () =>
      (
        await Promise.all(
          lab.hosts.map(
            async (host) => (await host.exec(`ls .local/state/muster/jobs/*-${id}-1-*/asked.${question}`)).code,
          ),
        )
      ).includes(0)
    await waitUntil(isAsked, `the question ${question}`)
    await queue.stop()
    expect(await queue.work().ended).toEqual([0, null])
    expect(await queue.show(id)).toMatch(/state: +done/)
    const lines = await Promise.all(
      lab.hosts.map(async (host) => (await host.exec(`cat .local/state/muster/jobs/*-${id}-1-*/out`)).stdout),
    )
    expect(lines.map((text) => text.trim().split('\n').length)).toEqual([1, 1])
  })

  it('is done when its first bundle is, and then stops the others', async () => {
    const ask =
      'sh -c \'i=0; until curl -sf "http://$SERVER/" >/dev/null || [ $((i+=1)) -gt 50 ]; do sleep 0.1; done; echo $i\''
    const id = await run('--launch', 'serve', '--', ask)
    expect(await queue.show(id)).toMatch(/state: +done/)
    expect(Number((await queue.job('logs', id)).stdout)).toBeLessThan(50)
    expect(lab.hosts.flatMap((host) => host.processes()).filter(({ command }) => /sleep 1000/.test(command))).toEqual(
      [],
    )
  })

  it('fails the job before it begins where its environment cannot be entered', async () => {
    const id = await run('--launch', 'words', '--from-env', 'venv:none', '--', 'x')
    expect(await queue.show(id)).toMatch(/ended: .*, m[12]: the preflight failed: .*none\/bin\/activate/)
  })

  it('runs a line of the shell as it stands', async () => {
    const id = await run('--launch', 'mpi', '--slots', '1', '--', 'exec sh -c "echo rank \\$RANK"')
    expect((await queue.job('logs', id)).stdout).toBe('rank 0\n')
  })

  it('fails the job before it begins where the program is missing', async () => {
    const id = await run('--launch', 'missing', '--', 'true')
    expect(await queue.show(id)).toMatch(/ended: .*, m[12]: no-such-launcher is not in PATH/)
  })
})
