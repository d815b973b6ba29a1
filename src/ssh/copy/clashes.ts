/**
 * Which things to be written would overwrite each other, because their targets are equal or differ only in case. Pure: whether
 * a file system ignores case is found out elsewhere. Directories with the same target are merged, as cp merges them.
 */
import { type BytePath, bytesOf, parentOf, showPath } from './byte-path.ts'

export type Placed = { readonly target: BytePath; readonly source: BytePath; readonly isDirectory: boolean }

export type Clash = {
  readonly first: Placed
  readonly second: Placed
  /** They overwrite each other only if names in this directory are the same when they differ only in case. */
  readonly ifCaseIgnoredIn?: BytePath
}

/** A clash that is certain alone, else one for each directory where case decides. */
export function findClashes(entries: readonly Placed[]): readonly Clash[] {
  const seen = new Map<string, Placed>()
  const byDirectory = new Map<BytePath, Clash>()
  for (const second of entries) {
    const key = withoutCase(second.target)
    const first = seen.get(key)
    if (first === undefined) seen.set(key, second)
    else if (!(first.isDirectory && second.isDirectory)) {
      if (first.target === second.target) return [{ first, second }]
      const directory = sharedDirectory(first.target, second.target)
      byDirectory.set(directory, { first, second, ifCaseIgnoredIn: directory })
    }
  }
  // Names that differ in case hide equal ones behind them: A, a, a.
  const exact = byDirectory.size > 0 ? findEqual(entries) : undefined
  return exact === undefined ? [...byDirectory.values()] : [exact]
}

/** The first clash that is real. `ignoresCase`: in a directory, or where it will be made. */
export async function findRealClash(
  clashes: readonly Clash[],
  ignoresCase: (directory: BytePath) => Promise<boolean>,
): Promise<Clash | undefined> {
  for (const clash of clashes) {
    if (clash.ifCaseIgnoredIn === undefined || (await ignoresCase(clash.ifCaseIgnoredIn))) return clash
  }
  return undefined
}

/** `a/x and b/x would both become x`, without a full stop. */
export function describeClash({ first, second, ifCaseIgnoredIn }: Clash): string {
  const [one, other, target] = [first.source, second.source, first.target].map(showPath)
  if (first.source === second.source) return `${one} is listed twice`
  if (ifCaseIgnoredIn === undefined) return `${one} and ${other} would both become ${target}`
  return `${one} and ${other} would become the same file, because the file system there ignores case in names`
}

function findEqual(entries: readonly Placed[]): Clash | undefined {
  const seen = new Map<BytePath, Placed>()
  for (const second of entries) {
    const first = seen.get(second.target)
    if (first === undefined) seen.set(second.target, second)
    else if (!(first.isDirectory && second.isDirectory)) return { first, second }
  }
  return undefined
}

/** Where the two paths, which differ only in case, part. */
function sharedDirectory(one: BytePath, other: BytePath): BytePath {
  let at = 0
  while (one[at] === other[at]) at += 1
  const part = one.indexOf('/', at)
  return parentOf(part < 0 ? one : one.slice(0, part))
}

function withoutCase(path: BytePath): string {
  const text = bytesOf(path).toString('utf8')
  // Bytes that are no UTF-8 have no case.
  return text.includes('\ufffd')
    ? path.replace(/[A-Z]+/g, (letters) => letters.toLowerCase())
    : text.normalize('NFD').toLowerCase()
}
