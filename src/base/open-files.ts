/** How many more files this process may open (`ulimit -n`): sockets, pipes and terminals count, too. */
import { readdirSync, readFileSync } from 'node:fs'

export type OpenFiles = { readonly limit: number; readonly used: number }

/** Undefined: unknown or unlimited. */
export function openFiles(): OpenFiles | undefined {
  const limit = fileLimit()
  if (limit === undefined || !Number.isFinite(limit)) return undefined
  try {
    return { limit, used: readdirSync('/dev/fd').length }
  } catch {
    return undefined
  }
}

/** Node has already raised the limit as far as this account may. On Linux only root can raise it further. */
export const raiseFilesCommand = (
  files: number,
  userId = process.getuid?.(),
  platform: string = process.platform,
): string => (platform === 'linux' && userId !== 0 ? `sudo prlimit --pid $$ --nofile=${files}` : `ulimit -n ${files}`)

/** Infinity: unknown or unlimited. */
export function freeFiles(files: OpenFiles | undefined = openFiles()): number {
  return files === undefined ? Number.POSITIVE_INFINITY : files.limit - files.used
}

function fileLimit(): number | undefined {
  if (process.platform === 'linux') {
    try {
      const [, limit] = /^Max open files +(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? []
      return limit === undefined ? undefined : Number(limit)
    } catch {
      // No /proc here.
    }
  }
  const { userLimits } = process.report.getReport() as { userLimits?: { open_files?: { soft?: unknown } } }
  const soft = Number(userLimits?.open_files?.soft)
  return Number.isFinite(soft) ? soft : undefined
}
