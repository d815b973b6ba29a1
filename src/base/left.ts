/**
 * What Muster may leave on a host, declared beside the code that writes it. It is data and shell text only, so that every room can
 * declare its own; what asks hosts about it and removes it is ops/kernel/left.ts.
 */

/** A kind of thing that may be left. */
export type LeftKind = {
  /** What it is, before its path: `temporary file of a copy`. */
  readonly title: string
  /** What that does, as an order, where it is not `remove the TITLE`. */
  readonly action?: string
  /** Removes "$p"; `rm -rf` unless given. Exit code 0: it is done. */
  readonly remove?: string
  /** It is shown and never removed, with the reason. */
  readonly keep?: string
  /** Muster makes it as root, so that root's is its own, too. */
  readonly isOfRoot?: boolean
  /** Something that has just changed may be in use without a process that shows it. */
  readonly isBrief?: boolean
  /** Its path stands for many, so that it does not show whether it is gone. */
  readonly isSum?: boolean
}

/** Leftovers that are files and directories. */
export type LeftTraces = {
  readonly name: string
  /**
   * POSIX sh that only reads. `left_found KIND PATH [REASON]` tells of one thing (the reason: why it is in use, else processes are
   * looked through), `left_sum KIND PATH COUNT KILOBYTES MTIME [REASON]` of many, `left_each PATTERN FUNCTION` calls the function
   * with every path of that name in the home directory and where temporary files lie.
   */
  readonly find: string
  readonly kinds: Readonly<Record<string, LeftKind>>
}
