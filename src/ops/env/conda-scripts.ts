/**
 * The scripts for conda environments: made once with any conda, copied whole to the others, and removed. Each may be interrupted at
 * any moment; the files that are left say how to continue.
 */

import { basename } from 'node:path'
import { shellQuote } from '../../base/shell-quote.ts'
import { pathWord } from '../kernel/files.ts'
import type { Action } from '../kernel/operation.ts'
import { FIND_TOOL, HALF, MARK_FILE, removeParcel } from './facts.ts'

const MOVE_TIMEOUT_MS = 60 * 60_000

/** Suffix of the directory for temporary files while conda and pip make a prefix. */
const SCRATCH = '.muster-tmp'
const REMOVE_HALF = `[ ! -f "$p/${MARK_FILE}" ] || [ -d "$p/conda-meta" ] || : > "$p${HALF}" || exit 1
[ ! -e "$p${HALF}" ] || { rm -rf "$p" "$p${SCRATCH}" && rm -f "$p${HALF}"; } || exit 1`
/** Finishes the removal of "$p" and restores what was there before Muster. */
export const CONDA_FINISH = `${REMOVE_HALF}
[ ! -d "$p" ] || rmdir "$p" || exit 1
[ ! -e "$p.muster-before" ] || mv "$p.muster-before" "$p"`

export type Making = {
  /** Nothing may exist there. */
  readonly prefix: string
  /** An environment.yml, or a list of packages, explicit or not. */
  readonly text: string
  readonly isYaml: boolean
  readonly key: string
}

/** The whole mark of a prefix that was copied from another host. */
export const COPIED = 'conda'
/** Marks a copied prefix as incomplete, so that it is removed. What it replaced stays beside it. */
const DISCARD_COPIED = `[ "$(head -n 1 "$p/${MARK_FILE}" 2> /dev/null)" != ${COPIED} ] || : > "$p${HALF}" || exit 1`

/** The note beside the prefix says that it is incomplete; after the last file it becomes the mark in the prefix. */
export function makeCondaPrefix({ prefix, text, isYaml, key }: Making): Action {
  const file = isYaml ? 'environment.yml' : 'packages.txt'
  const create = isYaml
    ? `case $name in
  micromamba) set -- create -y -q -p "$p" -f "$t/${file}";;
  *) set -- env create -q -p "$p" -f "$t/${file}";;
esac`
    : `case $name in
  micromamba) set -- create -y -q -p "$p" -f "$t/${file}";;
  *) set -- create -y -q -p "$p" --file "$t/${file}";;
esac`
  return {
    script: `umask 022
p=${pathWord(prefix)}
${FIND_TOOL}${DISCARD_COPIED}
${REMOVE_HALF}
[ ! -e "$p" ] || rmdir "$p" || exit 1
mkdir -p "\${p%/*}" && echo ${shellQuote(`conda ${key}`)} > "$p${HALF}" || exit 1
t=$p${SCRATCH}
rm -rf "$t"
mkdir "$t" || exit 1
trap 'rm -rf "$t"' EXIT
trap 'exit 1' HUP INT TERM
TMPDIR=$t
export TMPDIR
cat > "$t/${file}" || exit 1
CONDA_ALWAYS_YES=true MAMBA_ALWAYS_YES=true MAMBA_NO_BANNER=1
export CONDA_ALWAYS_YES MAMBA_ALWAYS_YES MAMBA_NO_BANNER
# conda runs pip for a section \`pip:\`; its packages go into the prefix.
unset PIP_TARGET PIP_PREFIX PIP_ROOT PIP_PYTHON
PIP_USER=0
export PIP_USER
${create}
echo "$tool makes $p"
"$tool" "$@" > "$t/said" 2>&1 < /dev/null && [ -d "$p/conda-meta" ] || { tail -n 20 "$t/said" >&2; rm -rf "$p" "$p${HALF}"; exit 1; }
mv -f "$p${HALF}" "$p/${MARK_FILE}"`,
    stdin: [text],
    timeoutMs: MOVE_TIMEOUT_MS,
  }
}

/** An archive of a prefix, as conda-pack makes it. */
export function isPackedPrefix(path: string): boolean {
  return /\.(tar|tar\.gz|tgz|tar\.bz2|tar\.zst)$/.test(path)
}

/** Unpacks an archive and adapts its paths, as conda-pack asks. `file` is on this machine. */
export function unpackArchive(prefix: string, file: string, parcel: string, key: string): Action {
  const archive = `${parcel}/archive`
  return {
    files: { from: undefined, path: file, kind: 'file', to: archive },
    script: `umask 022
p=${pathWord(prefix)} a=${pathWord(archive)}
${DISCARD_COPIED}
${REMOVE_HALF}
[ ! -e "$p" ] || rmdir "$p" || exit 1
mkdir -p "\${p%/*}" && echo ${shellQuote(`conda ${key}`)} > "$p${HALF}" && mkdir "$p" || exit 1
undo() { rm -rf "$p" "$p${HALF}"; exit 1; }
tar -C "$p" -xf "$a"/${shellQuote(basename(file))} || undo
[ -d "$p/conda-meta" ] || { echo 'it is not an archive of conda-pack' >&2; undo; }
[ ! -f "$p/bin/conda-unpack" ] || "$p/bin/python" "$p/bin/conda-unpack" || undo
mv -f "$p${HALF}" "$p/${MARK_FILE}" || exit 1
${removeParcel(parcel)}`,
    timeoutMs: MOVE_TIMEOUT_MS,
  }
}

/** `content`: the file that is written last. */
export function packPrefix(prefix: string, parcel: string, content: string): Action {
  return {
    script: `d=${pathWord(parcel)} p=${pathWord(prefix)}
umask 077
# What another host brought here before goes to no host from here.
rm -rf "$d" && mkdir -p "$d" || exit 1
tar -C "$p" --exclude ./${MARK_FILE} -cf "$d/prefix.tar.part" . || { rm -f "$d/prefix.tar.part"; exit 1; }
printf %s "$p" > "$d/prefix.path" || exit 1
mv -f "$d/prefix.tar.part" "$d/prefix.tar" && echo 'prefix # prefix.tar' > "$d/${content}"`,
    timeoutMs: MOVE_TIMEOUT_MS,
  }
}

/** Names by which Muster tells what is its own: no other host may bring them. */
const OWN_NAMES = [
  '.muster-*',
  ...[HALF, SCRATCH, '.muster-before', '.muster-new', '.muster-old'].map((end) => `*${end}`),
]

/**
 * Sets $aside: where the prefix that is at "$p" goes, empty if there is none; stops if anything else is there. This host looks for
 * itself, because the path may be another host's word.
 */
function lookAside(isReplaced: boolean): string {
  const unknown = `echo "$p: it holds another conda environment. Move it away, or give its prefix in hosts.yaml." >&2; exit 1`
  return `something_else() { echo "$p: it holds something else. Move it away." >&2; exit 1; }
look_aside() {
  aside=
  if [ -d "$p/conda-meta" ]; then
    aside=$p.muster-old
    [ -f "$p/${MARK_FILE}" ] || { ${isReplaced ? 'aside=$p.muster-before' : unknown}; }
  elif [ -L "$p" ] || { [ -e "$p" ] && { [ ! -d "$p" ] || [ -n "$(ls -A "$p")" ]; }; }; then
    something_else
  fi
  [ "$aside" != "$p.muster-before" ] || { [ ! -e "$aside" ] && [ ! -L "$aside" ]; } || { echo "$aside is in the way" >&2; exit 1; }
}`
}

/**
 * Unpacks beside the old prefix, then replaces it; one that is not Muster's is kept as PREFIX.muster-before. `isReplaced`: the plan
 * names the prefix that is there.
 */
export function unpackPrefix(path: string, parcel: string, from: string, isReplaced: boolean): Action {
  return {
    files: { from, path: parcel, kind: 'directory', to: parcel },
    script: `umask 022
d=${pathWord(parcel)} p=${pathWord(path)}
[ "$(head -c 4096 "$d/prefix.path")" = "$p" ] || { echo "it is at another path than $p on ${from}, and conda environments cannot be moved: give its prefix in hosts.yaml" >&2; exit 1; }
${lookAside(isReplaced)}
# A venv of Muster's has its mark, too.
[ -d "$p/conda-meta" ] || ! grep -q -s '^venv ' "$p/${MARK_FILE}" || something_else
${REMOVE_HALF}
look_aside
rm -rf "$p.muster-new" "$p.muster-old" || exit 1
mkdir -p "$p.muster-new" && echo ${COPIED} > "$p.muster-new/${MARK_FILE}" || exit 1
tar -C "$p.muster-new" -xpf "$d/prefix.tar" || { rm -rf "$p.muster-new"; exit 1; }
# The archive may have replaced the mark.
find "$p.muster-new" -mindepth 1 -depth \\( ${OWN_NAMES.map((each) => `-name ${shellQuote(each)}`).join(' -o ')} \\) -exec rm -rf {} + || exit 1
echo ${COPIED} > "$p.muster-new/${MARK_FILE}" || exit 1
look_aside
if [ -n "$aside" ]; then mv "$p" "$aside"; elif [ -e "$p" ]; then rmdir "$p"; fi || exit 1
mv "$p.muster-new" "$p" || exit 1
rm -rf "$p.muster-old"
${removeParcel(parcel)}`,
    timeoutMs: MOVE_TIMEOUT_MS,
  }
}

/** Removes "$p", which Muster made, and restores what was there before. */
export const CONDA_REMOVE = `[ -f "$p/${MARK_FILE}" ] || { echo "$p was not made by Muster" >&2; exit 1; }
: > "$p${HALF}" || exit 1
${CONDA_FINISH}`

export function removePrefix(prefix: string): Action {
  return { script: `p=${pathWord(prefix)}\n${CONDA_REMOVE}`, timeoutMs: MOVE_TIMEOUT_MS }
}

/** Finishes after making or removing it was interrupted. */
export function finishRemoval(prefix: string): Action {
  return { script: `p=${pathWord(prefix)}\n${CONDA_FINISH}`, timeoutMs: MOVE_TIMEOUT_MS }
}
