/** A problem of a host: how bad it is, its cause and its fix. Data and text only. */
import { printable } from '../../base/printable.ts'

/** `blocker`: the next step fails. `risk`: it may fail, or fails for some work. `note`: good to know. */
export type Gravity = 'blocker' | 'risk' | 'note'

export const GRAVITIES: readonly Gravity[] = ['blocker', 'risk', 'note']

/** The worst first. */
export function sortByGravity<T extends { readonly gravity: Gravity }>(items: readonly T[]): T[] {
  return items.toSorted((one, other) => GRAVITIES.indexOf(one.gravity) - GRAVITIES.indexOf(other.gravity))
}

export type Finding = {
  readonly host: string
  readonly gravity: Gravity
  /** A stable word for scripts: `disk-full`, `clock-off`. */
  readonly id: string
  /** The same text for every host, so that hosts are grouped by it. May contain text of the host: not printable yet. */
  readonly cause: string
  /** What differs by host: a number, a version. */
  readonly detail?: string
  /** The command that fixes it, and where to run it: on the host, or on this machine. */
  readonly fix?: { readonly where: 'host' | 'here'; readonly command: string }
  /** What the user has to know or do; if there is a command, too, this repeats it with its condition. */
  readonly hint?: string
}

/** A finding before its host is known. */
export type Complaint = Omit<Finding, 'host'>

export function complaint(
  gravity: Gravity,
  id: string,
  cause: string,
  more: Pick<Finding, 'detail' | 'fix' | 'hint'> = {},
): Complaint {
  return { gravity, id, cause, ...more }
}

export function onHost(command: string): NonNullable<Finding['fix']> {
  return { where: 'host', command }
}

/** Adds `sudo ` if needed. */
export function asRoot(isRoot: boolean | undefined, command: string): string {
  return isRoot === true ? command : `sudo ${command}`
}

/** One line: cause, detail and fix. Printable. */
export function formatFinding({ cause, detail, fix, hint }: Finding): string {
  const where = fix?.where === 'here' ? 'here' : 'there'
  return printable(
    [
      cause,
      ...(detail === undefined ? [] : [` [${detail}]`]),
      ...(hint === undefined ? [] : [`. ${hint}`]),
      ...(fix === undefined ? [] : [` (${where}: ${fix.command})`]),
    ].join(''),
  )
}
