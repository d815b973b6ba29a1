/**
 * What Muster may leave on a host, declared beside the code that writes it. It is data and shell text only, so that every folder can
 * declare its own; ops/kernel/left.ts searches the hosts and removes what it finds.
 */

/** Where jobs have their directories on hosts, as a word for sh. */
export const JOBS_DIRECTORY = `"\${XDG_STATE_HOME:-$HOME/.local/state}/muster/jobs"`

/** A kind of leftover. */
export type LeftKind = {
  /** Shown before its path: `temporary file of a copy`. */
  readonly title: string
  /** What removing it does, as an imperative; `remove the TITLE` unless given. */
  readonly action?: string
  /** Shell that removes "$p"; `rm -rf` unless given. Exit code 0: it is gone. */
  readonly remove?: string
  /** Why it is shown and never removed. */
  readonly keep?: string
  /** Muster creates it as root, so files of root count as Muster's own. */
  readonly isOfRoot?: boolean
  /** If it has just changed, it may be in use although no process shows it. */
  readonly isBrief?: boolean
  /** One path stands for many things, so its absence cannot be checked. */
  readonly isSum?: boolean
}

/** Leftovers that are files and directories. */
export type LeftSearch = {
  readonly name: string
  /**
   * POSIX sh that changes nothing. `left_found KIND PATH [REASON]` reports one thing (REASON: why it is in use; without it, processes
   * are searched), `left_sum KIND PATH COUNT KILOBYTES MTIME [REASON]` reports many, and `left_each PATTERN FUNCTION` calls the
   * function with every matching path in the home directory and the directories for temporary files.
   */
  readonly find: string
  readonly kinds: Readonly<Record<string, LeftKind>>
}
