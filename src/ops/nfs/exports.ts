/** The language of /etc/exports (exports(5)) and of what exportfs prints: text to entries with their places, and back. Pure. */

export type ExportEntry = {
  readonly path: string
  /** As it is written; `*` is everybody. */
  readonly client: string
  readonly options: readonly string[]
  readonly file: string
  /** From 1. */
  readonly line: number
  /** The options follow a space, so they apply to everyone instead of the client before it. */
  readonly isStray: boolean
}

export type ExportProblem = {
  readonly file: string
  readonly line: number
  readonly column: number
  readonly message: string
}

export type Exports = { readonly entries: readonly ExportEntry[]; readonly problems: readonly ExportProblem[] }

/** What nfs-utils 2.8 knows; each with `=VALUE` where it takes one. */
const FLAGS = new Set(
  `ro rw sync async secure insecure root_squash no_root_squash all_squash no_all_squash wdelay no_wdelay hide nohide crossmnt
  subtree_check no_subtree_check auth_nlm no_auth_nlm secure_locks insecure_locks acl no_acl pnfs no_pnfs security_label
  nordirplus mountpoint mp`.split(/\s+/),
)
const SETTINGS = new Set('anonuid anongid fsid mountpoint mp sec refer replicas xprtsec nordirplus'.split(' '))

type Word = { readonly text: string; readonly column: number; readonly line: number }

export function parseExports(text: string, file: string): Exports {
  const entries: ExportEntry[] = []
  const problems: ExportProblem[] = []
  for (const words of wordsOf(text)) {
    const [first, ...rest] = words
    if (first === undefined) continue
    const problem = ({ line, column }: Word, message: string) => problems.push({ file, line, column, message })
    if (!first.text.startsWith('/')) {
      problem(first, `${first.text} is not an absolute path`)
      continue
    }
    const path = unescapePath(first.text)
    const clients = rest.filter(({ text: word }) => !word.startsWith('-'))
    let defaults: readonly string[] = []
    const add = (client: string, options: readonly string[], { line }: Word, isStray: boolean) =>
      entries.push({ path, client, options, file, line, isStray })
    for (const word of rest) {
      if (word.text.startsWith('-')) {
        defaults = word.text.slice(1).split(',')
        checkOptions(defaults, (message) => problem(word, message))
        continue
      }
      const match = /^([^()]*)(?:\(([^()]*)\))?$/.exec(word.text)
      if (match === null) {
        problem(word, `the parentheses of ${word.text} do not match`)
        continue
      }
      const own = (match[2] ?? '').split(',').filter((option) => option !== '')
      checkOptions(own, (message) => problem(word, message))
      const isStray = match[1] === '' && word !== clients[0]
      add(match[1] === '' ? '*' : (match[1] ?? ''), [...defaults, ...own], word, isStray)
    }
    if (clients.length === 0) add('*', defaults, first, false)
  }
  return { entries, problems }
}

/** The problem with unknown options, or undefined. */
export function problemOfOptions(options: readonly string[]): string | undefined {
  let found: string | undefined
  checkOptions(options, (message) => {
    found ??= message
  })
  return found
}

function checkOptions(options: readonly string[], onProblem: (message: string) => void): void {
  for (const option of options) {
    const [name = '', value] = option.split('=', 2)
    const isKnown = value === undefined ? FLAGS.has(name) : SETTINGS.has(name)
    if (!isKnown) onProblem(`unknown keyword "${option}"`)
    else if (/^anon[ug]id$/.test(name) && !/^-?\d+$/.test(value ?? '')) onProblem(`${option} is not a number`)
  }
}

/** The words of each line; a backslash at the end joins lines, a quoted part may hold spaces, `#` begins a comment. */
function wordsOf(text: string): Word[][] {
  const lines: Word[][] = []
  let words: Word[] = []
  const all = text.split('\n')
  for (const [index, raw] of all.entries()) {
    const isJoined = raw.endsWith('\\')
    for (const match of (isJoined ? raw.slice(0, -1) : raw).matchAll(/#.*|(?:"[^"]*"?|[^\s"#])+/g)) {
      if (match[0].startsWith('#')) break
      words.push({ text: match[0].replaceAll('"', ''), line: index + 1, column: match.index + 1 })
    }
    if (isJoined) continue
    lines.push(words)
    words = []
  }
  return words.length > 0 ? [...lines, words] : lines
}

/** A line of an exports file. */
export function formatExport(path: string, clients: readonly string[], options: string): string {
  return `${formatPath(path)} ${clients.map((client) => `${client}(${options})`).join(' ')}`
}

function formatPath(path: string): string {
  return /[\s"#\\]/.test(path)
    ? path.replace(/[\s"#\\]/g, (character) => `\\${character.charCodeAt(0).toString(8).padStart(3, '0')}`)
    : path
}

function unescapePath(word: string): string {
  return word.replace(/\\([0-7]{3})/g, (_, octal) => String.fromCharCode(Number.parseInt(octal, 8)))
}

export type ActiveExport = { readonly path: string; readonly client: string; readonly options: ReadonlySet<string> }

/** `exportfs -s` and /var/lib/nfs/etab: a path, white space, `client(options)`. */
export function parseActiveExports(text: string): ActiveExport[] {
  return text.split('\n').flatMap((line) => {
    // No regular expression: a host could make one that finds the parts take hours.
    const open = line.lastIndexOf('(')
    const at = Math.max(line.lastIndexOf(' ', open), line.lastIndexOf('\t', open))
    const [path, word, options] = [
      line.slice(0, Math.max(0, at)).trimEnd(),
      line.slice(at + 1, open),
      line.slice(open + 1, -1),
    ]
    if (open < 0 || !line.endsWith(')') || options.includes(')')) return []
    if (path === '' || path !== path.trimStart() || word === '' || word.includes(')')) return []
    const client = word === '<world>' ? '*' : word
    return [{ path: unescapePath(path), client, options: new Set(options.split(',')) }]
  })
}

/** Options that exportfs always shows, and their defaults. */
const SHOWN: readonly (readonly [string, string])[] = [
  ['ro', 'rw'],
  ['sync', 'async'],
  ['secure', 'insecure'],
  ['root_squash', 'no_root_squash'],
  ['no_all_squash', 'all_squash'],
  ['no_subtree_check', 'subtree_check'],
]

/** Whether an active export has these options; those that exportfs does not show count as set. */
export function agrees(active: ReadonlySet<string>, options: readonly string[]): boolean {
  const wanted = new Set(options)
  return SHOWN.every(([usual, other]) => active.has(other) === (wanted.has(other) && !wanted.has(usual)))
}

/** Whether two lists of options mean the same. */
export function isSameExport(left: readonly string[], right: readonly string[]): boolean {
  const of = (options: readonly string[]) =>
    new Set(SHOWN.flatMap(([, other]) => (options.includes(other) ? [other] : [])))
  const [one, two] = [of(left), of(right)]
  return one.size === two.size && [...one].every((option) => two.has(option))
}
