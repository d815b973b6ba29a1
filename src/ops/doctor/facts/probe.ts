/** A fact: shell words that only read, and a pure parser of what they print. */
export type Probe<T> = {
  /** Letters and dashes; the shell function is called after it. */
  readonly name: string
  /**
   * The body of a POSIX shell function. `limited COMMAND` runs a program that may hang under a time limit;
   * `overdue STATUS` tells that it was ended by it, and then that status is to be returned.
   */
  readonly shell: string
  /** Undefined: what was printed says nothing. */
  parse(text: string): T | undefined
}

/** No name or version of a machine is longer; a finding shows them. */
const MAX_CHARACTERS = 200

/** Lines `key=value`; a key with nothing after it counts as not there. */
export function parsePairs(text: string): ReadonlyMap<string, string> {
  const pairs = text.split('\n').flatMap((line): [string, string][] => {
    const at = line.indexOf('=')
    const value = line
      .slice(at + 1)
      .trim()
      .slice(0, MAX_CHARACTERS)
    return at > 0 && value !== '' ? [[line.slice(0, at), value]] : []
  })
  return new Map(pairs)
}

/** A whole number from 0 on; undefined for anything else. */
export function parseCount(text: string | undefined): number | undefined {
  return text !== undefined && /^\d{1,15}$/.test(text) ? Number(text) : undefined
}
