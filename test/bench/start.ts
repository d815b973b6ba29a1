/**
 * `npm run bench -- start`: seconds, packages and disk space of each way to install Muster on a machine that has nothing but Node, and
 * the start of what npm installed there beside pdsh, in turns.
 */
import { copyFileSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { makeRelease } from '../../scripts/dist.ts'
import { run } from '../lab/cluster/run.ts'
import { CLEAN_MACHINE_PARTS, CleanMachine } from '../support/clean-machine.ts'
import { requirement } from '../support/requirements.ts'
import { formatNumber, median } from './support/statistics.ts'

export type StartBenchOptions = {
  readonly rounds: number
  readonly interrupted: Promise<never>
  log(line: string): void
}

/** Measured inside the machine, so that its own start does not count: each command once per round, milliseconds on stdout. */
const TIME = `const { spawnSync } = require('node:child_process')
const [rounds, ...lines] = process.argv.slice(1)
for (let round = -1; round < Number(rounds); round += 1)
  for (const [index, line] of lines.entries()) {
    const [file, ...args] = line.split(' ')
    const start = performance.now()
    const { status } = spawnSync(file, args, { stdio: 'ignore' })
    const ms = performance.now() - start
    if (status !== 0) throw new Error(line + ': exit ' + status)
    if (round >= 0) console.log(index, ms)
  }`

const STARTS = ['node -e 0', 'muster --version', 'pdsh -V', 'muster run m1 -- true', 'pdsh -R exec -w m1 true'] as const

export async function benchStart({ rounds, interrupted, log }: StartBenchOptions): Promise<string> {
  if (!requirement(...CLEAN_MACHINE_PARTS, 'pdsh')) throw new Error('the benchmark needs what is named above')
  const directory = mkdtempSync(join(tmpdir(), 'muster-bench-'))
  try {
    return await Promise.race([measure(directory, rounds, log), interrupted])
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}

async function measure(directory: string, rounds: number, log: (line: string) => void): Promise<string> {
  const { tarball, archive, debian } = await makeRelease(join(directory, 'release'))
  const machine = await CleanMachine.create(join(directory, 'root'), ['pdsh', 'libstdc++6'])
  for (const name of [tarball, archive, debian ?? []].flat())
    copyFileSync(join(directory, 'release', name), join(machine.root, 'tmp', name))
  const mebibytes = async () => {
    const total = (
      await machine.run('du', '--summarize', '--total', '--apparent-size', '--block-size=1024', '/usr', '/opt')
    )
      .split('\n')
      .at(-2)
    return Number(total?.split('\t')[0]) / 1024
  }

  const rows: string[] = []
  const install = async (line: string, undo: string) => {
    const before = await mebibytes()
    const command = machine.commandWithRegistry('sh', '-c', `${line} && rm -rf /root/.npm`)
    const start = performance.now()
    const { code, stdout, stderr } = await run(command)
    const seconds = (performance.now() - start) / 1000
    if (code !== 0) throw new Error(`${line}: exit ${code}\n${stdout}${stderr}`)
    log(`${line}: ${seconds.toFixed(1)} s`)
    const packages = /added (\d+) packages/.exec(stdout)?.[1] ?? '–'
    rows.push(
      `| \`${line}\` | ${formatNumber(seconds)} | ${packages} | ${formatNumber((await mebibytes()) - before)} |`,
    )
    await machine.run('sh', '-c', undo)
  }
  await install(`tar -xzf /tmp/${archive} -C /opt`, 'rm -r /opt/*')
  if (debian !== undefined) await install(`dpkg -i /tmp/${debian}`, 'dpkg -r muster-console')
  await install(`npm install -g /tmp/${tarball}`, 'true')

  await machine.run('sh', '-c', "echo 'hosts: { m1: { transport: local } }' > /root/hosts.yaml")
  const times = STARTS.map((): number[] => [])
  for (const line of (await machine.run('node', '-e', TIME, '--', String(rounds), ...STARTS)).trim().split('\n')) {
    const [index, ms] = line.split(' ').map(Number)
    times[index ?? 0]?.push(ms ?? Number.NaN)
  }
  return [
    '| way | seconds | packages | MiB on disk |',
    '| --- | --- | --- | --- |',
    ...rows,
    '',
    `| command, ${rounds} rounds | minimum, ms | median, ms |`,
    '| --- | --- | --- |',
    ...STARTS.map((line, index) => {
      const ms = times[index] ?? []
      return `| \`${line}\` | ${formatNumber(Math.min(...ms))} | ${formatNumber(median(ms))} |`
    }),
  ].join('\n')
}
