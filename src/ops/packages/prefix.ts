/** Directories of software that was installed by hand: whether they are there, and whether they are the same on all hosts. */
import { formatBytes } from '../../base/format-bytes.ts'
import { printable } from '../../base/printable.ts'
import { shellQuote } from '../../base/shell-quote.ts'
import { foldHostSet } from '../../inventory/host-set.ts'
import type { HostExec } from '../kernel/area.ts'
import type { Fact } from '../kernel/fact.ts'
import type { Finding } from '../kernel/finding.ts'
import { reasonOfResult } from '../kernel/host-port.ts'
import { blockedBy, nothing, type Verdict } from '../kernel/operation.ts'
import { formatOutcome } from '../run/outcome.ts'
import { mostCommon } from './most-common.ts'

/** `digest`: of names, types, modes, sizes and targets of links. */
type Part = { readonly files: number; readonly bytes: number; readonly digest: string }

export type PrefixContent =
  /** By the names of what is in it, or under `.` where these are too many or unusual. */
  | { readonly kind: 'directory'; readonly parts: ReadonlyMap<string, Part> }
  | { readonly kind: 'missing' | 'not-a-directory' | 'locked' | 'unsupported' }

/** A fact that may hang has a short answer. */
const MOST_PARTS = 20
const MOST_NAME = 40

export function prefixFact(path: string): Fact<PrefixContent> {
  return {
    mayHang: true,
    script: `p=${shellQuote(path)}
if [ ! -e "$p" ]; then echo missing; return; fi
if [ ! -d "$p" ]; then echo not-a-directory; return; fi
if ! cd "$p"; then echo locked; return; fi
if ! find . -maxdepth 0 -printf '' || ! command -v sha256sum > /dev/null; then echo unsupported; return; fi
if [ -n "$(find . -xdev -type d ! '(' -readable -executable ')' -print -quit)" ]; then echo locked; return; fi
set --
for each in * .[!.]* ..?*; do
  [ -e "$each" ] || [ -L "$each" ] || continue
  set -- "$@" "$each"
done
for each; do
  case $each in *[!A-Za-z0-9._+-]* | -*) set -- .; break;; esac
  if [ $# -gt ${MOST_PARTS} ] || [ \${#each} -gt ${MOST_NAME} ]; then set -- .; break; fi
done
echo directory
for each; do
  listing() { find "./$each" -xdev '(' -type d -printf "$1" -o -type l -printf "$2" -o -printf "$3" ')'; }
  sum=$(listing 'd %m %p\\0' 'l %l %p\\0' '%y %m %s %p\\0' | sort -z | sha256sum) || return
  total=$(listing '' '1 0\\n' '1 %s\\n' | awk '{ files += $1; bytes += $2 } END { printf "%d %.0f", files, bytes }')
  printf '%s %s %.16s\\n' "$each" "$total" "$sum"
done
echo end`,
    parse(text) {
      const [kind, ...lines] = text.split('\n')
      if (kind === 'missing' || kind === 'not-a-directory' || kind === 'locked' || kind === 'unsupported')
        return { kind }
      if (kind !== 'directory' || lines.pop() !== 'end' || lines.length > MOST_PARTS) return undefined
      const parts = lines.map((line) => /^([\w.+-]{1,40}) (\d{1,9}) (\d{1,15}) ([0-9a-f]{16})$/.exec(line))
      if (parts.includes(null)) return undefined
      return {
        kind,
        parts: new Map(
          parts.map((match) => {
            const [, name = '', files, bytes, digest = ''] = match ?? []
            return [name, { files: Number(files), bytes: Number(bytes), digest }]
          }),
        ),
      }
    },
  }
}

const wordOf = (prefix: PrefixContent): string =>
  prefix.kind === 'directory' ? JSON.stringify([...prefix.parts].toSorted()) : prefix.kind

/** `all`: of every host that answered. */
export function planPrefix(
  host: string,
  path: string,
  own: PrefixContent,
  all: ReadonlyMap<string, PrefixContent>,
): Verdict {
  const block = (id: string, cause: string, more: Pick<Finding, 'detail' | 'hint'> = {}) =>
    blockedBy({ host, gravity: 'blocker', id, cause, ...more })
  const directories = [...all].filter(([, { kind }]) => kind === 'directory')
  const usual = mostCommon(directories.map(([, prefix]) => wordOf(prefix)))
  const models = directories.filter(([, prefix]) => wordOf(prefix) === usual)
  const [model] = models
  const on = foldHostSet(models.map(([name]) => name))
  switch (own.kind) {
    case 'missing':
    case 'not-a-directory': {
      const hint =
        model === undefined
          ? 'Install the software there: Muster only compares prefixes.'
          : `Muster only compares prefixes: copy it from ${model[0]}, or build it here in the same way.`
      return block('no-prefix', `${path} ${own.kind === 'missing' ? 'is missing' : 'is not a directory'}`, { hint })
    }
    case 'locked':
      return block('prefix-locked', `this login may not read all of ${path}`, {
        hint: `Make its directories readable: chmod -R go+rX ${shellQuote(path)}`,
      })
    case 'unsupported':
      return block('no-find', `cannot compare ${path}: this host needs find of GNU and sha256sum`)
    case 'directory': {
      if (wordOf(own) === usual || model?.[1].kind !== 'directory') {
        return nothing(models.length > 1 ? `${path} is the same on ${on}` : `${path} is there`)
      }
      const hint = `Muster does not change it. Copy it from ${model[0]}, or install it here in the same way.`
      const detail = differences(own.parts, model[1].parts, model[0])
      return block('prefix-differs', `${path} differs from that on ${on}`, { detail, hint })
    }
  }
}

function differences(own: ReadonlyMap<string, Part>, others: ReadonlyMap<string, Part>, model: string): string {
  const sizeOf = (part: Part | undefined) =>
    part === undefined
      ? 'missing'
      : `${part.files === 1 ? '1 file' : `${part.files} files`}, ${formatBytes(part.bytes)}`
  const names = [...new Set([...own.keys(), ...others.keys()])].filter(
    (name) => own.get(name)?.digest !== others.get(name)?.digest,
  )
  const shown = names.slice(0, 3).map((name) => {
    const [here, there] = [sizeOf(own.get(name)), sizeOf(others.get(name))]
    const what = name === '.' ? 'all' : name
    return here === there
      ? `${what}: other names, sizes or modes of files, as many and as large`
      : `${what}: ${here} here, ${there} on ${model}`
  })
  return [...shown, ...(names.length > 3 ? [`${names.length - 3} more differ`] : [])].join('; ')
}

const CONTENT_LIMIT_MS = 120_000
/** Beyond these, files are compared together. */
const MOST_FILES = 6000

/** Reads all files: those that have the same names and sizes may still be different. */
export async function compareContents(
  path: string,
  hosts: readonly string[],
  hostExec: HostExec,
): Promise<readonly Finding[]> {
  if (hosts.length < 2) return []
  const script = `cd ${shellQuote(path)} && find . -xdev -type f -print0 | LC_ALL=C sort -z | xargs -0 -r sha256sum |
  awk 'NR <= ${MOST_FILES} { print substr($0, 1, 16) " " substr($0, 67); next } { print | "sha256sum" }'`
  const answers = await Promise.all(
    hosts.map(async (host) => {
      const result = await hostExec.exec(host, script, { timeoutMs: CONTENT_LIMIT_MS })
      return { host, result, text: Buffer.from(result.stdout).toString() }
    }),
  )
  const isDone = ({ result }: (typeof answers)[number]) => result.outcome.kind === 'exit' && result.outcome.code === 0
  const usual = mostCommon(answers.filter(isDone).map(({ text }) => text))
  const on = foldHostSet(answers.filter((each) => isDone(each) && each.text === usual).map(({ host }) => host))
  const lines = new Set(usual?.split('\n'))
  return answers.flatMap((answer): Finding[] => {
    const { host, result, text } = answer
    if (!isDone(answer)) {
      const detail = printable(reasonOfResult(result, formatOutcome))
      return [{ host, gravity: 'risk', id: 'contents-unknown', cause: `cannot compare the files in ${path}`, detail }]
    }
    if (text === usual) return []
    const differing = text.split('\n').filter((line) => !lines.has(line))
    const names = differing.slice(0, 3).map((line) => line.slice(line.indexOf('./') + 2))
    const more = differing.length > names.length ? `, and ${differing.length - names.length} more` : ''
    const cause = `files in ${path} have another content than on ${on}`
    return [{ host, gravity: 'blocker', id: 'contents-differ', cause, detail: `${names.join(', ')}${more}` }]
  })
}
