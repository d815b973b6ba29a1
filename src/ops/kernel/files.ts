/**
 * Files of a host changed whole: written beside the old one, synced, renamed, after a copy of what was there is kept as
 * FILE.muster-before. A file that somebody else changed since it was read is left alone; a full disk, or an end at any
 * moment, leaves the old one.
 */
import type { Fact } from './fact.ts'
import { quote } from './finding.ts'
import type { Action, StdinPart } from './operation.ts'

/** A small file as it is on a host; `sum` (cksum(1)) tells whether it is still the same. */
export type FileState =
  | { readonly kind: 'none' }
  /** `text` has a character (U+0000 to U+00FF) for each byte, so that what is written back is what was read. */
  | { readonly kind: 'file'; readonly text: string; readonly mode: string; readonly sum: string }
  /** A directory or a device, too large, not readable, no text. */
  | { readonly kind: 'other'; readonly because: string }

export type FileChange = {
  /** Absolute, or `~/…` for the home directory of the login. */
  readonly path: string
  /** As it was read. */
  readonly was: FileState
  readonly asRoot?: boolean
}

export type NewContent = {
  /** Strings in UTF-8; what comes from `FileState.text` goes through `bytesOf`. */
  readonly content: readonly StdinPart[]
  /** Octal, of a new file; one that is there keeps its mode and owner. */
  readonly mode: string
  /** The copy of what was there: kept, or removed because the file is as it was before Muster. */
  readonly copy?: 'keep' | 'drop'
}

const MAX_FILE_BYTES = 512 * 1024

export function bytesOf(text: string): Uint8Array {
  return Buffer.from(text, 'latin1')
}

/** A path as a word of the shell. */
export function pathWord(path: string): string {
  return path.startsWith('~/') ? `"$HOME"/${quote(path.slice(2))}` : quote(path)
}

export function fileFact(path: string): Fact<FileState> {
  return {
    script: `f=${pathWord(path)}
if [ ! -e "$f" ] && [ ! -L "$f" ]; then echo none; return; fi
if [ ! -f "$f" ]; then echo other it is no file; return; fi
if [ ! -r "$f" ]; then echo other it cannot be read; return; fi
set -- $(cksum < "$f")
if [ "$2" -gt ${MAX_FILE_BYTES} ]; then echo other it is too large; return; fi
# The shell would lose them, and what is written back would be without.
if [ "$(tr -dc '\\000' < "$f" | wc -c)" -ne 0 ]; then echo other it holds zero bytes; return; fi
echo "file $(stat -L -c %a "$f" || echo 600) $1-$2"
cat "$f"`,
    parse(_, bytes) {
      const all = bytes.toString('latin1')
      const [head = ''] = all.split('\n', 1)
      if (head === 'none') return { kind: 'none' }
      if (head.startsWith('other ')) return { kind: 'other', because: head.slice('other '.length) }
      const match = /^file ([0-7]{3,4}) (\d+-\d+)$/.exec(head)
      if (match === null) return undefined
      return { kind: 'file', mode: match[1] ?? '', sum: match[2] ?? '', text: all.slice(head.length + 1) }
    },
  }
}

/** $f: the file itself, behind links; $b: the copy of what was there. Ends when the file is not as it was read. */
function head({ path, was }: FileChange): string {
  return `f=${pathWord(path)}
[ ! -L "$f" ] || f=$(readlink -f "$f") || exit 1
now=none
[ ! -e "$f" ] || { set -- $(cksum < "$f"); now=$1-$2; }
[ "$now" = ${was.kind === 'file' ? was.sum : 'none'} ] || { echo "$f was changed by somebody else meanwhile" >&2; exit 1; }
b=$f.muster-before
`
}

/** Its directory is made where it is missing: mode 0700 below `~`, else 0755. */
export function writeFile(change: FileChange, { content, mode, copy = 'keep' }: NewContent): Action {
  const directoryMode = change.path.startsWith('~/') ? '700' : '755'
  const keep = `[ ! -e "$f" ] || cp -p "$f" "$b" || exit 1\n`
  return {
    // What is written has the old file's mode and owner from the beginning, as it begins as a copy.
    script: `${head(change)}umask 077
d=\${f%/*}
[ -d "$d" ] || mkdir -p -m ${directoryMode} "$d" || exit 1
t=$d/.muster-new-\${f##*/}
trap 'rm -f "$t"' EXIT
trap 'exit 1' HUP INT TERM
rm -f "$t"
${copy === 'keep' ? keep : ''}if [ -e "$f" ]; then cp -p "$f" "$t"; else : > "$t" && chmod ${mode} "$t"; fi || exit 1
dd of="$t" bs=65536 conv=fsync 2> /dev/null || { echo "$t cannot be written: $(df -P "$d" | tail -n 1)" >&2; exit 1; }
mv -f "$t" "$f" || exit 1
sync "$d" 2> /dev/null || :
${copy === 'drop' ? 'rm -f "$b"\n' : ''}`,
    stdin: content,
    ...(change.asRoot === undefined ? {} : { asRoot: change.asRoot }),
  }
}

/** Removes the file, and the copy of it. */
export function removeFile(change: FileChange): Action {
  return {
    script: `${head(change)}rm -f "$f" "$b"\n`,
    ...(change.asRoot === undefined ? {} : { asRoot: change.asRoot }),
  }
}
