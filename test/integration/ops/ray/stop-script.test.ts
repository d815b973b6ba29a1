/** The end of a cluster, among processes that look like those of Ray: what runs are scripts of Python with its arguments. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { stopScript } from '../../../../src/ops/ray/node-scripts.ts'
import { LIST_RAY, processesFact } from '../../../../src/ops/ray/processes.ts'
import { requirement } from '../../../support/requirements.ts'

const canRun = requirement('python3', 'awk') && process.platform === 'linux'
/** An unused address and unused ports: the real ones would be found on this machine. */
const IP = '127.83.0.1'
const OURS = `--gcs-address=${IP}:46333`
const WAITS = `import signal, subprocess, sys
if "--stubborn" in sys.argv: signal.signal(signal.SIGTERM, signal.SIG_IGN)
if "--parent" in sys.argv: print(subprocess.Popen(["sleep", "600"]).pid, flush=True)
print("ready", flush=True)
signal.pause()
`

describe.skipIf(!canRun)('stopping a cluster', () => {
  let directory: string
  const children: ChildProcess[] = []

  /** Resolves with its id, and that of its own child, when it waits. */
  const start = async (program: string, ...args: readonly string[]): Promise<number[]> => {
    const path = join(directory, program)
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, WAITS)
    const child = spawn('python3', [path, ...args], { stdio: ['ignore', 'pipe', 'inherit'] })
    children.push(child)
    let output = ''
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      output += text
    })
    while (!output.includes('ready')) await once(child.stdout, 'data')
    const own = Number.parseInt(output, 10)
    return [child.pid ?? 0, ...(Number.isNaN(own) ? [] : [own])]
  }
  const isAlive = (pid: number): boolean => {
    const { stdout } = spawnSync('ps', ['-o', 'stat=', '-p', String(pid)], { encoding: 'utf8' })
    return stdout !== '' && !stdout.startsWith('Z')
  }

  beforeAll(() => {
    directory = mkdtempSync(join(tmpdir(), 'muster-ray-'))
  })
  afterAll(() => {
    for (const child of children) child.kill('SIGKILL')
    rmSync(directory, { recursive: true, force: true })
  })

  it('ends its programs and what they started, and nothing that only looks similar', async () => {
    const ours = (
      await Promise.all([
        start('ray/_private/log_monitor.py', OURS),
        start('ray/autoscaler/_private/monitor.py', '--stubborn', OURS),
        start('ray/dashboard/dashboard.py', '--parent', OURS),
        start('ray/core/gcs_server', '--gcs_server_port=46333', `--node-ip-address=${IP}`),
      ])
    ).flat()
    const others = (
      await Promise.all([
        start('ray/_private/log_monitor.py', `${OURS}0`),
        start('ray/core/gcs_server', '--gcs_server_port=46333', '--node-ip-address=127.83.0.2'),
        start('gpu/monitor.py', OURS),
        start('ray/gpu_monitor.py', OURS),
        start('ray/dashboard/dashboard.py', `--note=${OURS}`),
      ])
    ).flat()
    expect(ours).toHaveLength(5)

    const listed = spawnSync('sh', ['-c', `${LIST_RAY}\nlist_ray; echo end`], { encoding: 'utf8' }).stdout.trimEnd()
    const found = processesFact.parse(listed, Buffer.alloc(0)) ?? []
    const cluster = found.filter((each) => each.cluster === `${IP}:46333`)
    expect(cluster.map(({ program }) => program).sort()).toEqual([
      'dashboard.py',
      'gcs_server',
      'log_monitor.py',
      'monitor.py',
    ])

    const file = join(directory, 'ray_current_cluster')
    writeFileSync(file, `${IP}:46333`)
    const script = stopScript({ ip: IP, port: 46_333, tempDirectory: directory })
    const { status, stderr } = spawnSync('sh', ['-c', script], { encoding: 'utf8' })
    expect(stderr).toBe('')
    expect(status).toBe(0)
    expect(ours.filter(isAlive)).toEqual([])
    expect(others.filter(isAlive)).toEqual(others)
    expect(spawnSync('cat', [file]).status).not.toBe(0)
  })
})
