/** Finds entries that would overwrite each other, as their targets are equal or differ only in case. Pure. */
import { type Calculation, complete, STEP } from '../../base/calculation.ts'
import { type BytePath, bytesOf, parentOf, showPath } from './byte-path.ts'

export type Placed = { readonly target: BytePath; readonly source: BytePath; readonly isDirectory: boolean }

export type Clash = {
  readonly first: Placed
  readonly second: Placed
  /** They overwrite each other only if this directory ignores case. */
  readonly ifCaseIgnoredIn?: BytePath
}

export const findClashes = (entries: readonly Placed[]): readonly Clash[] => complete(clashesAmong(entries))

/** A certain clash alone; otherwise one for each directory where case decides. */
export function* clashesAmong(entries: readonly Placed[]): Calculation<readonly Clash[]> {
  for (const clash of pairs(entries, ({ target }) => target))
    if (clash === undefined) yield
    else return [clash]
  const byDirectory = new Map<BytePath, Clash>()
  for (const clash of pairs(entries, ({ target }) => withoutCase(target))) {
    if (clash === undefined) {
      yield
      continue
    }
    const directory = sharedDirectory(clash.first.target, clash.second.target)
    byDirectory.set(directory, { ...clash, ifCaseIgnoredIn: directory })
  }
  return [...byDirectory.values()]
}

/** Each entry with the first one of the same key, unless both are directories; undefined after some entries. */
function* pairs(entries: readonly Placed[], keyOf: (entry: Placed) => string): Generator<Clash | undefined> {
  const seen = new Map<string, Placed>()
  for (const [index, second] of entries.entries()) {
    if (index % STEP === STEP - 1) yield undefined
    const key = keyOf(second)
    const first = seen.get(key)
    if (first === undefined) seen.set(key, second)
    else if (!(first.isDirectory && second.isDirectory)) yield { first, second }
  }
}

/** The first real clash. `ignoresCase`: tells it of a directory, or of the place where it will be made. */
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

/** The directory in which two paths that differ only in case start to differ. */
function sharedDirectory(one: BytePath, other: BytePath): BytePath {
  let at = 0
  while (one[at] === other[at]) at += 1
  const part = one.indexOf('/', at)
  return parentOf(part < 0 ? one : one.slice(0, part))
}

function withoutCase(path: BytePath): string {
  const text = bytesOf(path).toString('utf8')
  // Without UTF-8 only ASCII letters have case.
  return text.includes('\ufffd')
    ? path.replace(/[A-Z]+/g, (letters) => letters.toLowerCase())
    : text.normalize('NFD').toLowerCase()
}
