/**
 * Slurm with one node, from Debian's packages (slurmctld, slurmd, munge), in a network namespace of its own; that has an address
 * besides the loopback's, as Slurm resolves no names without.
 */
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'
import { endProcesses, withDescendants } from '../support/processes.ts'

const execute = promisify(execFile)
const DEADLINE_MS = 30_000

export interface Slurm extends AsyncDisposable {
  run(program: string, ...args: readonly string[]): Promise<string>
}

/** `lines`: of slurm.conf, besides. */
export async function startSlurm(directory: string, cores: number, lines: readonly string[]): Promise<Slurm> {
  mkdirSync(join(directory, 'spool'), { recursive: true })
  mkdirSync(join(directory, 'state'))
  const file = (name: string) => join(directory, name)
  writeFileSync(file('munge.key'), Buffer.alloc(1024, 7), { mode: 0o600 })
  writeFileSync(
    file('slurm.conf'),
    `ClusterName=bench
SlurmctldHost=here(127.0.0.1)
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=${file('munge.socket')}
StateSaveLocation=${file('state')}
SlurmdSpoolDir=${file('spool')}
SlurmctldPidFile=${file('slurmctld.pid')}
SlurmdPidFile=${file('slurmd.pid')}
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SchedulerType=sched/backfill
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
MaxArraySize=10000
ReturnToService=2
${lines.join('\n')}
NodeName=here NodeAddr=127.0.0.1 CPUs=${cores}
PartitionName=all Nodes=here Default=YES State=UP
`,
  )
  // munged wants everybody to reach its socket, and its directories to be nobody else's to write.
  chmodSync(dirname(directory), 0o711)
  chmodSync(directory, 0o755)
  const environment = { ...process.env, SLURM_CONF: file('slurm.conf') }
  // The first process of a PID namespace: nothing outlives it, nor it this program.
  const first = 'hostname here; ip link set lo up; ip addr add 10.81.0.1/32 dev lo; echo up; exec sleep infinity'
  const apart = ['unshare', '--net', '--uts', '--pid', '--mount', '--mount-proc', '--fork', '--kill-child=KILL']
  const holder = spawn('setpriv', ['--pdeathsig', 'KILL', ...apart, 'sh', '-c', first], {
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  await once(holder.stdout, 'data')
  const target = String(withDescendants(holder.pid as number)[1])
  const inside = (...words: readonly string[]) => [
    '--target',
    target,
    '--net',
    '--uts',
    '--pid',
    '--mount',
    '--wd=/',
    ...words,
  ]
  const start = (...words: readonly string[]) =>
    spawn('nsenter', inside(...words), { env: environment, stdio: 'ignore' })
  const stop = async () => await endProcesses([Number(target), holder.pid as number], 0)
  const run = async (program: string, ...args: readonly string[]) =>
    (await execute('nsenter', inside(program, ...args), { env: environment })).stdout
  try {
    start(
      'munged',
      '--foreground',
      '--force',
      `--socket=${file('munge.socket')}`,
      `--key-file=${file('munge.key')}`,
      `--pid-file=${file('munge.pid')}`,
      `--log-file=${file('munge.log')}`,
      `--seed-file=${file('munge.seed')}`,
    )
    start('slurmctld', '-D', '-L', file('slurmctld.log'))
    start('slurmd', '-D', '-N', 'here', '-L', file('slurmd.log'))
    const untilMs = Date.now() + DEADLINE_MS
    for (let state = ''; !state.includes('idle'); state = await run('sinfo', '-h', '-o', '%T').catch(() => '')) {
      if (Date.now() > untilMs) throw new Error(`Slurm is not up after 30 s: look at ${directory}`)
      await delay(200)
    }
  } catch (error) {
    await stop()
    throw error
  }
  return { run, [Symbol.asyncDispose]: stop }
}
