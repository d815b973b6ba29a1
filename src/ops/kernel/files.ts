/**
 * Replaces files of a host as a whole: the new file is written beside the old one, synced and renamed, and the old one is kept as
 * FILE.muster-before. A file that has changed since it was read is left alone; a full disk, or an interruption at any
 * moment, leaves the old file.
 */

import type { LeftSearch } from '../../base/left.ts'
import { shellQuote } from '../../base/shell-quote.ts'
import type { Fact } from './fact.ts'
import type { Action, StdinPart } from './operation.ts'

/** A small file on a host; `sum` (cksum(1)) shows whether it has changed. */
export type FileState =
  | { readonly kind: 'none' }
  /** `text` has a character (U+0000 to U+00FF) for each byte, so that the same bytes can be written back. */
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
  /** Strings in UTF-8; text of a `FileState` goes through `bytesOf`. */
  readonly content: readonly StdinPart[]
  /** Octal, of a new file; an existing one keeps its mode and owner. */
  readonly mode: string
  /** The backup copy: kept, or removed because the file is as it was before Muster. */
  readonly copy?: 'keep' | 'drop'
}

/** The first line of files that are Muster's alone. */
export const MADE_BY_MUSTER = '# Made by Muster from hosts.yaml: changes here are lost.'

const MAX_FILE_BYTES = 512 * 1024

export function bytesOf(text: string): Uint8Array {
  return Buffer.from(text, 'latin1')
}

/** A path as a word of the shell. */
export function pathWord(path: string): string {
  return path.startsWith('~/') ? `"$HOME"/${shellQuote(path.slice(2))}` : shellQuote(path)
}

export function fileFact(path: string): Fact<FileState> {
  return {
    script: `f=${pathWord(path)}
if [ ! -e "$f" ] && [ ! -L "$f" ]; then echo none; return; fi
if [ ! -f "$f" ]; then echo other it is not a file; return; fi
if [ ! -r "$f" ]; then echo other it cannot be read; return; fi
set -- $(stat -L -c '%a %s' "$f" || echo 600 $(wc -c < "$f"))
if [ "$2" -gt ${MAX_FILE_BYTES} ]; then echo other it is too large; return; fi
echo "file $1 $2"
cat "$f"`,
    parse(_, bytes) {
      const end = bytes.indexOf('\n')
      const head = bytes.toString('latin1', 0, end < 0 ? bytes.length : end)
      if (head === 'none') return { kind: 'none' }
      if (head.startsWith('other ')) return { kind: 'other', because: head.slice('other '.length) }
      const [, mode = '', size] = /^file ([0-7]{1,4}) (\d+)$/.exec(head) ?? []
      const content = bytes.subarray(end + 1)
      // It changed meanwhile, or did not arrive whole.
      if (size === undefined || content.length !== Number(size)) return undefined
      // A shell that treats it as text would lose these bytes.
      if (content.includes(0)) return { kind: 'other', because: 'it holds zero bytes' }
      return { kind: 'file', mode, sum: cksum(content), text: content.toString('latin1') }
    },
  }
}

const CRC_TABLE = Uint32Array.from({ length: 256 }, (_, byte) => {
  let crc = byte << 24
  for (let bit = 0; bit < 8; bit += 1) crc = (crc << 1) ^ (crc < 0 ? 0x04c11db7 : 0)
  return crc
})

/** The output of cksum(1), with a dash: POSIX's CRC over the bytes and their number. */
export function cksum(bytes: Uint8Array): string {
  let crc = 0
  const add = (byte: number) => {
    crc = (crc << 8) ^ (CRC_TABLE[(crc >>> 24) ^ byte] ?? 0)
  }
  for (const byte of bytes) add(byte)
  for (let rest = bytes.length; rest > 0; rest = Math.floor(rest / 256)) add(rest % 256)
  return `${~crc >>> 0}-${bytes.length}`
}

/** Sets $f, the file itself behind links, and $b, its backup copy. Exits if the file has changed since it was read. */
function head({ path, was }: FileChange): string {
  return `f=${pathWord(path)}
[ ! -L "$f" ] || f=$(readlink -f "$f") || exit 1
now=none
[ ! -e "$f" ] || { set -- $(cksum < "$f"); now=$1-$2; }
[ "$now" = ${was.kind === 'file' ? was.sum : 'none'} ] || { echo "$f has changed since Muster read it" >&2; exit 1; }
b=$f.muster-before
`
}

/** A missing directory is created: mode 0700 below `~`, otherwise 0755. */
export function writeFile(change: FileChange, { content, mode, copy = 'keep' }: NewContent): Action {
  const directoryMode = change.path.startsWith('~/') ? '700' : '755'
  const keep = `[ ! -e "$f" ] || cp -p "$f" "$b" || exit 1\n`
  return {
    // The new file starts as a copy, so that it has the old mode and owner from the beginning.
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

/** Removes the file and its backup copy. */
export function removeFile(change: FileChange): Action {
  return {
    script: `${head(change)}rm -f "$f" "$b"\n`,
    ...(change.asRoot === undefined ? {} : { asRoot: change.asRoot }),
  }
}

/** What changing files may leave: an unfinished new file, and the backup copy of a file from which Muster's lines are gone. */

export const filesLeft: LeftSearch = {
  name: 'files',
  find: `left_new() { left_found new "$1"; }
left_before() {
  [ -f "$1" ] && [ ! -L "$1" ] || return 0
  left_file=\${1%.muster-before}
  # With lines of Muster in the file the copy belongs to them, and goes with them.
  if [ -e "$left_file" ] && grep -q -e '^# >>> muster ' -e '^# Made by Muster ' "$left_file"; then return 0; fi
  left_found before "$1"
}
for each in /etc /etc/exports.d /etc/slurm /etc/systemd/system; do
  for file in "$each"/.muster-new-*; do [ ! -e "$file" ] || left_new "$file"; done
  for file in "$each"/*.muster-before; do [ ! -e "$file" ] || left_before "$file"; done
done
left_each '.muster-new-*' left_new
left_each '*.muster-before' left_before`,
  kinds: {
    new: { title: 'unfinished file', isOfRoot: true, isBrief: true },
    before: { title: 'copy of a file as it was before', isOfRoot: true },
  },
}
