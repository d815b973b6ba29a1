/** Whether the scheduler of a queue is a service of this machine, and in which state: for `status` and `job list`. */
import { execFile } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { stateDirectory } from '../../../base/user-directories.ts'
import type { Inventory } from '../../../inventory/inventory.ts'
import type { CliContext } from '../../command-line/context.ts'
import { queueName } from '../open-queue.ts'
import { pidFile, unitFile, unitOf } from './texts.ts'

export type ServiceState = {
  /** The unit, or `cron`. */
  readonly name: string
  /** `active`, `failed`, `inactive`, … */
  readonly state: string
}

const ASK_MS = 3_000

/** Undefined: it is not installed. Never rejects. */
export async function serviceState(
  inventory: Inventory,
  { environment }: CliContext,
): Promise<ServiceState | undefined> {
  const isRoot = process.getuid?.() === 0
  const own = { cluster: queueName(inventory), isRoot }
  if (existsSync(unitFile(own).replace(/^~/, environment.HOME ?? '~'))) {
    const args = [isRoot ? '--system' : '--user', 'is-active', unitOf(own)]
    const runtime = environment.XDG_RUNTIME_DIR ?? `/run/user/${process.getuid?.() ?? ''}`
    const asked = promisify(execFile)('systemctl', args, {
      timeout: ASK_MS,
      env: { ...environment, XDG_RUNTIME_DIR: runtime },
    })
    // Its exit code says the same.
    const { stdout = '' } = await asked.catch((error: { readonly stdout?: string }) => error)
    return { name: unitOf(own), state: /^[a-z-]+$/m.exec(stdout)?.[0] ?? 'unknown' }
  }
  const service = { ...own, stateDirectory: stateDirectory(environment), words: [], directory: '', environment: {} }
  if (!existsSync(join(service.stateDirectory, 'jobs', `work-${own.cluster}.sh`))) return undefined
  return { name: 'cron', state: isAlive(pidFile(service)) ? 'active' : 'inactive' }
}

function isAlive(file: string): boolean {
  try {
    const pid = readFileSync(file, 'utf8').trim()
    // 0, as which an empty file counts, would ask about this process's own group.
    return /^[1-9]\d*$/.test(pid) && process.kill(Number(pid), 0)
  } catch {
    return false
  }
}
