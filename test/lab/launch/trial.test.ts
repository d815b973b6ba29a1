import { spawn } from 'node:child_process'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { waitUntil } from '../../support/wait-until.ts'
import { type Lab, startLab } from '../cluster/lab.ts'
import { LAUNCHERS } from '../../../src/scheduler/launch/launchers.ts'
import type { LaunchedBundle } from '../../../src/scheduler/launch/launcher.ts'

let lab: Lab
beforeAll(async () => { lab = await startLab({ count: 3 }) })
afterAll(async () => await lab?.stop())

async function launch(kind: string, command: string, options: Record<string, string> = {}) {
  const launcher = LAUNCHERS.find(({ name }) => name === kind)!
  const request = { cpuMilli: 1000, memoryBytes: 0, gpuCount: 0, gpuMilli: 0 }
  const shape = launcher.shape(options, 3, request)
  const roles = shape.roles.flatMap(({ name, count }) => Array.from({ length: count }, (_, index) => ({ role: name, index })))
  const said: Record<string, string>[] = roles.map(() => ({}))
  const begun: (Promise<{ code: number; stdout: string; stderr: string }> | undefined)[] = roles.map(() => undefined)
  const asked = new Set<string>()
  const steps: string[] = []
  const bundles = (): LaunchedBundle[] => roles.map((one, rank) => ({ ...one, host: lab.hosts[rank]!.name, address: lab.hosts[rank]!.address, devices: [], said: said[rank]!, hasBegun: begun[rank] !== undefined }))
  let refused = ''
  const t0 = Date.now()
  await waitUntil(async () => {
    for (const [rank] of roles.entries()) {
      if (begun[rank]) continue
      const step = launcher.next({ id: '17.1', command, spec: { kind, options, ports: [46000, 46999] }, bundles: bundles() }, rank)
      const host = lab.hosts[rank]!
      const note = (line: string) => { const at = line.indexOf(' '); if (at > 0) said[rank]![line.slice(0, at)] ??= line.slice(at + 1) }
      if (step.kind === 'refuse') { refused = step.reason; return true }
      if (step.kind === 'ask' && !asked.has(`${rank} ${step.name}`)) {
        asked.add(`${rank} ${step.name}`)
        steps.push(`${rank} ${step.name}`)
        const enter = ['--target', String(host.pid), '--net', '--mount', '--uts', '--pid']
        const child = spawn('nsenter', [...enter, 'sh'], { stdio: ['pipe', 'pipe', 'inherit'], env: { PATH: '/usr/bin:/bin:/usr/sbin' } })
        let rest = ''
        child.stdout.on('data', (bytes) => { const lines = (rest + bytes).split('\n'); rest = lines.pop()!; lines.forEach(note) })
        child.stdin.end(step.program)
      }
      if (step.kind === 'start') {
        const vars = Object.entries(step.environment).map(([n, v]) => `export ${n}='${v}'; `).join('')
        steps.push(`${rank} start ${Date.now() - t0}`)
        console.log(host.name, step.command.slice(0, 600), step.environment)
        begun[rank] = host.exec(`mkdir -p d; export MUSTER_DIRECTORY=/root/d MUSTER_SAY=/root/say; rm -f say; mkfifo say; ( while :; do cat say; done >>said ) & w=$!; ${vars}( ${step.command} ); c=$?; kill $w; exit $c`)
      } 
      if (rank === 0 && begun[0]) { /* polled below */ }
    }
    if (begun[0]) for (const line of (await lab.hosts[0]!.exec('cat said 2>/dev/null')).stdout.split('\n')) { const at = line.indexOf(' '); if (at > 0) said[0]![line.slice(0, at)] ??= line.slice(at + 1) }
    return begun.every(Boolean)
  }, 'all begun', 60_000)
  return { refused, steps, said, results: refused ? [] : await Promise.all(begun) }
}

it('mpi', async () => {
  const program = `from mpi4py import MPI
import socket
c=MPI.COMM_WORLD
print("rank",c.rank,"of",c.size,"on",socket.gethostname(),"sum",c.allreduce(c.rank),flush=True)`
  for (const host of lab.hosts) await host.exec(`cat > t.py <<'X'\n${program}\nX`)
  const out = await launch('mpi', 'python3 t.py', { slots: '2' })
  console.log(JSON.stringify(out, null, 1))
  expect(out.results[0]!.stdout).toContain('sum 15')
}, 120_000)
