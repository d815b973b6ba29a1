/**
 * `npm run lab -- up [--count N]` keeps a cluster standing until `npm run lab -- down`; `npm run lab -- AREA` runs the
 * journeys of one area on real hosts and ends with `N passed, N failed`.
 */
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { vitest } from '../support/vitest-run.ts'
import { killOwners, labsDirectory, livingOwners, sweepLabs } from './cluster/directories.ts'
import { startLab } from './cluster/lab.ts'

const USAGE = `usage: npm run lab -- up [--count N]
       npm run lab -- down
       npm run lab -- AREA        one of: ${areas().join(', ')}
`

const [verb = '', ...rest] = process.argv.slice(2)
process.exitCode = await main(verb, rest)

async function main(verb: string, rest: readonly string[]): Promise<number> {
  if (verb === 'up') return await up(rest)
  if (verb === 'down') return down()
  if (!areas().includes(verb)) {
    process.stderr.write(USAGE)
    return 2
  }
  return await vitest(['--project', 'lab', join('test', 'lab', verb), ...rest], { MUSTER_LAB: 'required' })
}

async function up(args: readonly string[]): Promise<number> {
  const { values } = parseArgs({ args: [...args], options: { count: { type: 'string', default: '3' } } })
  const count = Number(values.count)
  if (!Number.isInteger(count) || count < 1 || count > 1000) {
    process.stderr.write('--count is a number from 1 to 1000\n')
    return 2
  }
  const standing = standingLab()
  if (standing !== undefined) {
    process.stderr.write(`a lab stands already in ${standing}; end it first: npm run lab -- down\n`)
    return 1
  }
  const lab = await startLab({ count, isStanding: true })
  writeFileSync(standingFile(), lab.directory)
  const inside = lab.command(['env', '-u', 'XDG_CONFIG_HOME', '-u', 'XDG_STATE_HOME', `HOME=${lab.environment.HOME}`])
  process.stdout.write(`${readFileSync(lab.hostsFile, 'utf8')}
# ${count} hosts stand until: npm run lab -- down
# The console on them:
${inside.join(' ')} ${process.execPath} --import tsx src/main.ts --hosts ${lab.hostsFile}
# A shell where they can be reached (then: ssh m1):
${inside.join(' ')} bash
`)
  lab.detach()
  return 0
}

function down(): number {
  const directory = standingLab()
  if (directory === undefined) {
    process.stderr.write('no lab stands\n')
    return 1
  }
  killOwners(directory)
  rmSync(directory, { recursive: true, force: true })
  rmSync(standingFile(), { force: true })
  return 0
}

/** The directory of the lab that stands; what a dead one left is removed. */
function standingLab(): string | undefined {
  sweepLabs()
  try {
    const directory = readFileSync(standingFile(), 'utf8')
    return livingOwners(directory).length > 0 ? directory : undefined
  } catch {
    return undefined
  }
}

function standingFile(): string {
  return join(labsDirectory(), 'standing')
}

/** The folders of journeys. */
function areas(): string[] {
  const entries = readdirSync(import.meta.dirname, { withFileTypes: true })
  return entries.filter((entry) => entry.isDirectory() && entry.name !== 'cluster').map(({ name }) => name)
}
