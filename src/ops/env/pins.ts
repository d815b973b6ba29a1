/** The hashes that a file of packages allows, as the user wrote them. Pure. */
import { getOrMake } from '../../base/collections.ts'
import { normalName } from './facts.ts'

/**
 * By package the hashes of its files, as `sha256:…` (or sha384, sha512); empty if it has weak ones only. A package that is not in it is
 * not allowed.
 */
export type Pins = ReadonlyMap<string, ReadonlySet<string>>

/** Whether a file of this name is a lock that tools of Python exchange or that uv writes, rather than a list for pip. */
export function isTomlLock(path: string): boolean {
  return /(^|\/)(uv\.lock|pylock(\.[^/]*)?\.toml)$/.test(path)
}

/** Undefined: a list for pip without any hash, which allows all files. */
export function pinsOf({ path, text }: { readonly path: string; readonly text: string }): Pins | undefined {
  return isTomlLock(path) ? pinsOfLock(text) : pinsOfList(text)
}

/** What pip accepts as an option, and in the fragment of a URL: there also weaker ones, which pin nothing. */
const HASH = /(?<=\s)--hash(?:=|\s+)["']?(sha(?:256|384|512):[0-9a-f]+)/gi
const FRAGMENT_HASH = /[#&](sha256|sha384|sha512)=([0-9a-f]+)/gi
const STRONG = /[#&]sha(256|384|512)=/i
const WEAK = /[#&](md5|sha1|sha224)=/i

function pinsOfList(text: string): Pins | undefined {
  const pins = new Map<string, Set<string>>()
  let isPinned = false
  for (const line of joinedLines(text)) {
    const url = urlIn(line)
    const hashes = [...line.matchAll(HASH), ...url.matchAll(FRAGMENT_HASH)].map(([, ...parts]) => parts.join(':'))
    isPinned ||= /(^--require-hashes\b|\s--hash[=\s])/.test(line) || STRONG.test(url)
    const name = nameIn(line)
    if (name === undefined) continue
    add(pins, name, hashes)
    if (WEAK.test(url)) getOrMake(pins, normalName(name), () => new Set())
  }
  return isPinned ? pins : undefined
}

/** A file beside a list for pip that the list includes. Only the list itself reaches the host that reads it. */
export function includedFile(text: string): string | undefined {
  const files = joinedLines(text).map(
    (line) => /^(?:-[rc]|--(?:requirement|constraint)[=\s])\s*["']?([^\s"']+)/.exec(line)?.[1],
  )
  return files.find((file) => file !== undefined && !/^(\/|~|\$|[a-z]+:)/i.test(file))
}

/** As pip reads them: a backslash at the end continues a line, and a comment ends it. */
function joinedLines(text: string): readonly string[] {
  const lines: string[] = []
  let begun = ''
  for (const line of text.split(/\r\n|\r|\n/)) {
    const isComment = /^\s*#/.test(line)
    if (line.endsWith('\\') && !isComment) begun += line.slice(0, -1)
    else {
      lines.push(`${begun}${isComment ? '' : line}`.replace(/(^|\s)#.*$/, '').trim())
      begun = ''
    }
  }
  return [...lines, begun.trim()]
}

/** The URL of a file, with or without a name before it; else empty. pip checks no hash of a repository. */
function urlIn(line: string): string {
  const url = /^(?:[A-Za-z0-9][\w.-]*\s*(?:\[[^\]]*\]\s*)?@\s*)?(\S*[/\\]\S*)/.exec(line)?.[1] ?? ''
  return /^(-|(git|hg|svn|bzr)\+)/i.test(url) ? '' : url
}

/** `tiny[fast]==1.0`, `tiny @ https://…`, or the path or URL of a file. */
function nameIn(line: string): string | undefined {
  const [word = ''] = line.split(/\s/)
  if (/^[\w.-]+(\[[^\]]*\])?@/.test(word) || !(/[/\\]/.test(word) || /\.whl$/.test(word)))
    return /^[A-Za-z0-9][\w.-]*/.exec(word)?.[0]
  const file = /([^/\\]+?)-\d[^/\\]*$/.exec(word.replace(/[?#].*$/, ''))
  return file?.[1] ?? /[#&]egg=([A-Za-z0-9][\w.-]*)/.exec(word)?.[1]
}

const TABLE = /^\[\[(packages?)\]\]/
const FIELD = /^name\s*=\s*["']([^"']+)["']/
const LOCK_HASHES = [
  /\bhash\s*=\s*["'](sha(?:256|384|512):[0-9a-f]+)["']/g,
  /\b(sha(?:256|384|512))\s*=\s*["']([0-9a-f]+)["']/g,
]

/** All hashes of a package, whichever Python and system they are for. */
function pinsOfLock(text: string): Pins {
  const pins = new Map<string, Set<string>>()
  let name: string | undefined
  let isNamed = true
  for (const line of text.split(/\r\n|\r|\n/).map((each) => each.trim())) {
    if (TABLE.test(line)) [name, isNamed] = [undefined, false]
    // Later names are those of its files, and of what it needs.
    if (!isNamed) name = FIELD.exec(line)?.[1]
    isNamed ||= name !== undefined
    if (name === undefined || line.startsWith('#')) continue
    for (const pattern of LOCK_HASHES)
      add(
        pins,
        name,
        [...line.matchAll(pattern)].map(([, ...parts]) => parts.join(':')),
      )
  }
  return pins
}

function add(pins: Map<string, Set<string>>, name: string, hashes: readonly string[]): void {
  if (hashes.length === 0) return
  const own = getOrMake(pins, normalName(name), () => new Set<string>())
  for (const hash of hashes) own.add(hash.toLowerCase())
}
