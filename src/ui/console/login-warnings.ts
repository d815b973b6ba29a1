/** Warnings in what a host printed at login, in a few words each. Pure; each pattern reads one line of bounded length. */

const FULL_PERCENT = 90
/** Of one host: the log is for all of them. */
const MOST_WARNINGS = 10

type Finder = (line: string) => string | undefined

const saying =
  (pattern: RegExp, text: string): Finder =>
  (line) =>
    pattern.test(line) ? text : undefined

const FINDERS: readonly Finder[] = [
  saying(
    /(?:system restart|reboot) required|\brestart is required|needs to be (?:restarted|rebooted)/i,
    'reboot required',
  ),
  // Ubuntu's landscape-sysinfo: `Usage of /: 95.3% of 9.51GB`, `/ is using 98.2% of 9.51GB`.
  (line) => {
    const [, path = '', percent = ''] =
      /Usage of (\/\S{0,200}?):?\s+(\d{1,3}(?:\.\d+)?)% of/i.exec(line) ??
      /(\/\S{0,200}) is using (\d{1,3}(?:\.\d+)?)% of/i.exec(line) ??
      []
    return Number(percent) >= FULL_PERCENT ? `${path} is ${Math.floor(Number(percent))}% full` : undefined
  },
  saying(/no space left on device|disk quota exceeded|filesystem full/i, 'disk full'),
  saying(/read-only file system/i, 'read-only file system'),
  (line) => {
    const days = /password will expire in (\d{1,5}) days?/i.exec(line)?.[1]
    return days === undefined ? undefined : `password expires in ${days} days`
  },
  (line) => {
    const count = /(\d{1,9}) failed login attempts? since/i.exec(line)?.[1]
    return count === undefined ? undefined : `failed login attempts: ${count}`
  },
]

export function loginWarnings(lines: readonly string[]): string[] {
  return [...new Set(lines.flatMap((line) => FINDERS.flatMap((find) => find(line) ?? [])))].slice(0, MOST_WARNINGS)
}

/** The address or name that the last login came from. */
export function lastLoginFrom(lines: readonly string[]): string | undefined {
  for (const line of lines) {
    const from = /^\s*Last login: .{0,60}\bfrom (\S{1,100})/.exec(line)?.[1]
    if (from !== undefined) return from
  }
  return undefined
}
