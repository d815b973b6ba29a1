/** What env asks a host: its system, and the contents of an environment, read from files without activating it. */
import { defined } from '../../base/defined.ts'
import { shellQuote } from '../../base/shell-quote.ts'
import type { Fact } from '../kernel/fact.ts'
import { pathWord } from '../kernel/files.ts'
import type { EnvironmentSpec } from './section.ts'
import type { WheelsPlaces } from './wanted.ts'

/** What an environment cannot bring along. Undefined: none, or unknown. */
export type SystemFacts = {
  readonly architecture: string
  /** `glibc 2.36`, `musl 1.2.3`. */
  readonly libc?: string
  readonly nvidiaDriver?: string
  /** Of /usr/local/cuda. */
  readonly cuda?: string
}

const LEFT = ['half', 'before', 'lost'] as const

export type PrefixFacts =
  | {
      readonly kind: 'none'
      /**
       * What is there instead, at this absolute path. `half`, `before`: Muster was interrupted while it made or removed it, or before
       * it restored the previous one. `lost`: it has Muster's mark, but not the file that makes it an environment, so that its
       * interpreter would be the system's.
       */
      readonly left?: { readonly what: (typeof LEFT)[number]; readonly path: string }
      /** Where conda would look for it by its name, but something else is: absolute paths. */
      readonly taken?: readonly string[]
    }
  /** Something else is in its place. */
  | { readonly kind: 'other'; readonly because: string }
  | {
      readonly kind: 'venv' | 'conda'
      /** Absolute. */
      readonly path: string
      /** `3.11.7`; undefined: its interpreter is missing or does not run. */
      readonly python?: string
      /** By normalised name. */
      readonly packages: ReadonlyMap<string, Package>
      /** Names of packages whose list of files is missing. */
      readonly broken: readonly string[]
      /** Muster's note about how it was made; undefined: Muster did not make it. */
      readonly made?: string
    }

/** The file in the prefix that marks it as Muster's; its line says what it was made from. */
export const MARK_FILE = '.muster-made'
/** Suffix of the file beside a prefix that is there while the prefix is half made or half removed. */
export const HALF = '.muster-half'

export const systemFact: Fact<SystemFacts> = {
  script: `echo "arch $(uname -m)"
echo "libc $(getconf GNU_LIBC_VERSION || ldd --version 2>&1 | sed -n 's/^musl.*/musl/p; s/^Version //p' | tr '\\n' ' ')"
[ ! -r /proc/driver/nvidia/version ] || echo "driver $(sed -n 1p /proc/driver/nvidia/version)"
for f in /usr/local/cuda/version.json /usr/local/cuda/version.txt; do
  [ ! -r $f ] || { echo "cuda $(head -c 2000 $f | tr '\\n' ' ')"; break; }
done`,
  parse(text) {
    const said = new Map(text.split('\n').map((line) => splitOnce(line)))
    const architecture = said.get('arch')
    if (architecture === undefined || !/^\w+$/.test(architecture)) return undefined
    const libc = /^(glibc|musl) (\d+(?:\.\d+)+)/.exec(said.get('libc')?.trim() ?? '')
    const driver = / (\d{2,}\.\d+(?:\.\d+)?) /.exec(`${said.get('driver') ?? ''} `)?.[1]
    const cuda = cudaOf((said.get('cuda') ?? '').slice(0, 2000))
    return {
      architecture,
      ...(libc === null ? {} : { libc: `${libc[1]} ${libc[2]}` }),
      ...defined({ nvidiaDriver: driver, cuda }),
    }
  },
}

/** version.json of CUDA 11 on, version.txt before that. */
function cudaOf(text: string): string | undefined {
  const json = /"cuda"\s*:\s*\{[^}]*"version"\s*:\s*"(\d+(?:\.\d+)+)"/.exec(text)
  return (json ?? /CUDA Version (\d+(?:\.\d+)+)/.exec(text))?.[1]
}

/** The directory of an environment: by its path, or by the name of a conda environment, which is searched for where conda keeps them. */
type PrefixName = { readonly path: string } | { readonly condaName: string }

export function prefixOf(spec: Exclude<EnvironmentSpec, { kind: 'docker' }>): PrefixName {
  if (spec.kind === 'venv') return { path: spec.path }
  return spec.prefix === undefined ? { condaName: spec.name } : { path: spec.prefix }
}

/** Words of the shell. */
const CONDA_ROOTS = `"$MAMBA_ROOT_PREFIX" "$CONDA_ROOT" ~/micromamba ~/.local/share/mamba ~/miniforge3 ~/mambaforge ~/miniconda3 ~/anaconda3 ~/.conda \\
  /opt/conda /opt/miniforge3 /opt/mambaforge /opt/miniconda3 /opt/anaconda3 /opt/micromamba`

/** Sets $p, empty if there is none. Searches the usual directories of conda, and its list of environments elsewhere. */
export function findPrefix(name: PrefixName): string {
  if ('path' in name) return `p=${pathWord(name.path)}`
  const { condaName } = name
  return `p=
for root in ${CONDA_ROOTS}; do
  [ -z "$root" ] || [ ! -d "$root/envs/${condaName}/conda-meta" ] || { p=$root/envs/${condaName}; break; }
done
[ -n "$p" ] || p=$(grep '/${condaName.replaceAll('.', '\\.').replaceAll('+', '[+]')}$' ~/.conda/environments.txt | head -n 1)`
}

/** The same for the remains of an interrupted one. */
function findLeft(condaName: string): string {
  return `for root in ${CONDA_ROOTS}; do
  e=$root/envs/${condaName}
  [ -z "$p" ] && [ -n "$root" ] || continue
  [ ! -f "$e${HALF}" ] && [ ! -f "$e/${MARK_FILE}" ] && [ ! -d "$e.muster-before/conda-meta" ] || p=$e
done
`
}

/** Prints the places of that name that hold something else. */
function tellTaken(condaName: string): string {
  return `for root in ${CONDA_ROOTS}; do
  e=$root/envs/${condaName}
  [ -n "$root" ] && { [ -e "$e" ] || [ -L "$e" ]; } && [ ! -e "$e${HALF}" ] && [ ! -f "$e/${MARK_FILE}" ] || continue
  [ -d "$e" ] && [ ! -L "$e" ] && [ -z "$(ls -A "$e")" ] || echo "taken $e"
done`
}

/** Only names and versions, which come from file names. */
export function prefixFact(name: PrefixName): Fact<PrefixFacts> {
  return {
    script: `none() {
echo "none$1"
${'condaName' in name ? tellTaken(name.condaName) : ''}
}
${findPrefix(name)}
${'condaName' in name ? findLeft(name.condaName) : ''}[ -n "$p" ] || { none; return; }
limited ls -d "$p" > /dev/null; status=$?
! overdue $status || return 124
[ ! -e "$p${HALF}" ] || { none " half $p"; return; }
[ -e "$p" ] && [ -n "$(ls -A "$p")" ] || [ ! -d "$p.muster-before" ] || { none " before $p"; return; }
[ $status -eq 0 ] || [ -L "$p" ] || { none; return; }
[ -d "$p" ] || { echo 'other it is not a directory'; return; }
if [ -d "$p/conda-meta" ]; then echo "conda $p"
elif grep -q -i '^[[:blank:]]*home[[:blank:]]*=' "$p/pyvenv.cfg"; then echo "venv $p"
elif [ -z "$(ls -A "$p")" ]; then none; return
elif [ -f "$p/${MARK_FILE}" ]; then none " lost $p"; return
else echo 'other it holds something else'; return
fi
[ ! -f "$p/${MARK_FILE}" ] || echo "made $(head -c 300 "$p/${MARK_FILE}" | head -n 1)"
python=$(limited "$p/bin/python" -I -S -c 'import sys; print("python %d.%d.%d" % sys.version_info[:3])') && echo "$python"
{
  [ ! -d "$p/conda-meta" ] || ls "$p/conda-meta" | sed -n 's/^\\(.*\\)\\.json$/conda-meta \\1/p'
  for s in "$p"/lib/python[0-9]*/site-packages; do
    cd "$s" || continue
    ls -d ./*.dist-info ./*.egg-info | sed 's/^\\.\\//dist /'
    for d in ./*.dist-info; do [ -e "$d/RECORD" ] || echo "broken \${d#./}"; done
    grep -l -x conda ./*.dist-info/INSTALLER | sed 's/^\\.\\/\\(.*\\)\\/INSTALLER$/by-conda \\1/'
  done
} | head -n 20000 | head -c 300000`,
    parse: parsePrefix,
  }
}

function parsePrefix(text: string): PrefixFacts | undefined {
  const lines = text.split('\n').map(splitOnce)
  const valuesOf = (wanted: string) => lines.flatMap(([key, value]) => (key === wanted ? [value] : []))
  const [kind, path = ''] = lines[0] ?? []
  if (kind === 'none') {
    const paths = valuesOf('taken').filter((each) => each.startsWith('/'))
    const taken = paths.length === 0 ? {} : { taken: paths }
    if (path === '') return { kind, ...taken }
    const [word, at] = splitOnce(path)
    const what = LEFT.find((each) => each === word)
    return what !== undefined && at.startsWith('/') ? { kind, left: { what, path: at }, ...taken } : undefined
  }
  if (kind === 'other') return { kind, because: path }
  if ((kind !== 'venv' && kind !== 'conda') || !path.startsWith('/')) return undefined
  const packages = new Map<string, Package>()
  const byConda = new Set(valuesOf('by-conda'))
  for (const file of valuesOf('conda-meta')) {
    const found = packageOfCondaFile(file)
    if (found !== undefined) packages.set(normalName(found.name), found)
  }
  for (const dist of valuesOf('dist')) {
    const found = byConda.has(dist) ? undefined : packageOfDist(dist)
    if (found === undefined) continue
    const name = normalName(found.name)
    // A package that pip installed over conda's is the one that Python imports.
    if (packages.get(name)?.version !== found.version) packages.set(name, found)
  }
  const python = valuesOf('python').find(isVersion)
  const made = valuesOf('made')[0]
  const broken = valuesOf('broken').flatMap((dist) => packageOfDist(dist)?.name ?? [])
  return {
    kind,
    path,
    packages,
    broken: broken.map(normalName).filter(isName),
    ...defined({ python, made }),
  }
}

function splitOnce(line: string): [string, string] {
  const at = line.indexOf(' ')
  return at < 0 ? [line, ''] : [line.slice(0, at), line.slice(at + 1)]
}

/** Whether an environment, and what is brought for it, lie in the home directory and not on another file system below it. */
export type InHome = { readonly environment: boolean; readonly parcel: boolean }

/** `find`: lines that set $p to the environment's path, or leave it empty where that is `otherwise`. */
export function inHomeFact(find: string, otherwise: string, parcel: string): Fact<InHome> {
  return {
    script: `below() {
  d=$1
  while [ ! -d "$d" ] && [ -n "$d" ]; do d=\${d%/*}; done
  d=$(cd -P "\${d:-/}" && pwd -P) && h=$(cd -P "$HOME" && pwd -P) || return
  case $d/ in "$h"/*) ;; *) return 1;; esac
  [ "$(mounted "$d")" = "$(mounted "$h")" ]
}
mounted() { limited df -P "$1" | sed -n '$s/^.*% //p'; }
${find}
below "\${p:-${otherwise}}" && echo environment
below ${pathWord(parcel)} && echo parcel
echo end`,
    parse(text) {
      const lines = text.split('\n')
      if (lines.at(-1) !== 'end') return undefined
      return { environment: lines.includes('environment'), parcel: lines.includes('parcel') }
    },
  }
}

export const NO_CONDA = 'there is no micromamba, mamba or conda'

/** Sets $tool, or fails and says so. The usual places, because they are rarely in the PATH of a login without a terminal. */
export const FIND_TOOL = `tool=
for name in micromamba mamba conda; do
  for each in "$(command -v $name)" "$MAMBA_EXE" "$CONDA_EXE" ~/.local/bin/$name ~/bin/$name ~/miniforge3/bin/$name ~/mambaforge/bin/$name \\
    ~/miniconda3/bin/$name ~/anaconda3/bin/$name /opt/conda/bin/$name /opt/miniforge3/bin/$name /opt/mambaforge/bin/$name \\
    /opt/miniconda3/bin/$name /opt/anaconda3/bin/$name; do
    [ "\${each##*/}" != $name ] || [ ! -x "$each" ] || { tool=$each; break 2; }
  done
done
[ -n "$tool" ] || { echo '${NO_CONDA}' >&2; exit 1; }
`

/** Whether the host can make a conda environment. */
export const condaToolFact: Fact<boolean> = {
  script: `(${FIND_TOOL}) 2> /dev/null && echo yes || echo no`,
  parse: (text) => (text === 'yes' ? true : text === 'no' ? false : undefined),
}

/** Packages of an environment by the names of their files. Pure. */

export type Package = {
  readonly name: string
  readonly version: string
  readonly by: 'pip' | 'conda'
  /** conda's build string. */
  readonly build?: string
}

/** Names as PEP 503 compares them. */
export function normalName(name: string): string {
  return name
    .toLowerCase()
    .replace(/[-_.]+/g, '-')
    .replace(/^-/, '')
}

export function isName(text: string): boolean {
  return /^[A-Za-z0-9]([\w.-]*[A-Za-z0-9])?$/.test(text) && text.length <= 200
}

/** PEP 440, or conda's; nothing that a shell or pip could misread. */
export function isVersion(text: string): boolean {
  return /^[A-Za-z0-9][\w.+!~-]*$/.test(text) && text.length <= 200
}

/** `numpy-1.26.4.dist-info`; `old_thing-1.0-py3.11.egg-info`. Undefined: no package. */
export function packageOfDist(directory: string): Package | undefined {
  const match = /^(.+?)-(\d[^-]*)(?:\.dist-info|(?:-py[\d.]+)?\.egg-info)$/.exec(directory)
  const [, name = '', version = ''] = match ?? []
  // A tilde marks a directory that pip could not remove completely.
  return isName(name) && isVersion(version) ? { name, version, by: 'pip' } : undefined
}

/** `numpy-1.26.4-py311h64a7726_0`: name, version and build, of which only the name may have dashes in it. */
export function packageOfCondaFile(stem: string): Package | undefined {
  const match = /^(.+)-([^-]+)-([^-]+)$/.exec(stem)
  const [, raw = '', version = '', build = ''] = match ?? []
  // Such as __glibc and _libgcc_mutex.
  const name = raw.replace(/^_+/, '')
  return isName(name) && isVersion(version) && isVersion(build) ? { name: raw, version, by: 'conda', build } : undefined
}

/** `1.26.4` → [1, 26, 4]; what is not a number ends it. */
function numbersOf(version: string): number[] {
  return (/^(?:\d+!)?(\d+(?:\.\d+)*)/.exec(version)?.[1] ?? '').split('.').map(Number)
}

/** The first part in which two versions differ; `other`: behind these, or they are no numbers. */
export function differingPart(one: string, two: string): 'major' | 'minor' | 'other' {
  const [left, right] = [numbersOf(one), numbersOf(two)]
  if (left[0] !== right[0]) return 'major'
  return (left[1] ?? 0) === (right[1] ?? 0) ? 'other' : 'minor'
}

/** A parcel: what one host made for the others, in a directory of its own, with a list of what it is. */

/** Marks a parcel in a directory of the user's, where `muster left` finds it also when hosts.yaml no longer names it. */
export const PARCEL_MARK = '.muster-wheels'

export type ParcelFacts = {
  readonly isThere: boolean
  /** The lines of its list; undefined: it is incomplete. */
  readonly content?: readonly string[]
  /** Of wheels: the SHA-256 of the list, if this host gathered them itself. */
  readonly digest?: string
  /** Of wheels: the directories of other hosts, and that of earlier versions. */
  readonly stale?: readonly string[]
  /** The host whose wheels are installed, unless they were compared with the hashes of a file. */
  readonly filledBy?: string
}

/** Prints the SHA-256 of a file. */
export const DIGEST = `digest() { if command -v sha256sum > /dev/null; then sha256sum < "$1"; else shasum -a 256 < "$1"; fi | cut -c 1-64; }
`

/** `content`: the name of the list. What is in it comes last, because another host may have written it. */
export function wheelsFact(places: WheelsPlaces, content: string): Fact<ParcelFacts> {
  const { root, parcel, notes, own, filledBy, legacy } = places
  return {
    script: `${DIGEST}r=${pathWord(root)} d=${pathWord(parcel)} n=${pathWord(notes)} old=${pathWord(legacy)}
limited ls -d "$r" > /dev/null || { overdue $? && return 124; [ -e "$n" ] || [ -e "$old" ] || { echo none; return; }; }
echo there
f=$d/${content} own=${pathWord(own)}
[ ! -f "$f" ] || [ ! -f "$own" ] || [ "$(digest "$f")" != "$(digest "$own")" ] || echo "own $(digest "$f")"
[ ! -f ${pathWord(filledBy)} ] || echo "filled $(head -c 300 ${pathWord(filledBy)} | head -n 1)"
[ ! -e "$old" ] || echo stale
for each in "$r"/of-*; do [ "$each" = "$d" ] || [ ! -d "$each" ] || echo "stale \${each##*/}"; done | head -n 100
echo list
[ ! -f "$f" ] || head -c 400000 "$f"`,
    parse(text) {
      const lines = text.split('\n')
      if (text === 'none') return { isThere: false }
      const end = lines.indexOf('list')
      if (lines[0] !== 'there' || end < 0) return undefined
      const said = lines.slice(1, end).map(splitOnce)
      const valuesOf = (wanted: string) => said.flatMap(([key, value]) => (key === wanted ? [value] : []))
      const digest = valuesOf('own').find((each) => /^[0-9a-f]{64}$/.test(each))
      const filledBy = valuesOf('filled')[0]
      const stale = valuesOf('stale').flatMap((each) => {
        if (each === '') return [legacy]
        return /^of-[\w.-]+$/.test(each) && !each.includes('.tmp-') ? [`${root}/${each}`] : []
      })
      const content = lines.slice(end + 1)
      return { isThere: true, ...(content.length === 0 ? {} : { content }), stale, ...defined({ digest, filledBy }) }
    },
  }
}

/**
 * Removes what another host sent than the one that is followed now, and the parcel of earlier versions. Of the followed host's, the
 * notes stay, and scratch directories, which other hosts may use right now if they share the directory.
 */
export function removeStale({ root, parcel, notes, own, brought, filledBy, legacy }: WheelsPlaces): string {
  const [ofFollowed, ...kept] = [parcel, own, brought, filledBy].map((path) =>
    shellQuote(path.slice(path.lastIndexOf('/') + 1)),
  )
  return `old=${pathWord(legacy)}
for each in ${[...new Set([root, notes])].map((path) => `${pathWord(path)}/*`).join(' ')}; do
  case \${each##*/} in ${[ofFollowed, `${ofFollowed}.tmp-*`, ...kept].join(' | ')}) ;; *) rm -rf "$each" || exit 1;; esac
done
rm -rf "$old" "$old".tmp-*`
}

/** `content`: the name of the list in it. */
export function parcelFact(directory: string, content: string): Fact<ParcelFacts> {
  return {
    script: `d=${pathWord(directory)}
limited ls -d "$d" > /dev/null || { overdue $? && return 124; echo none; return; }
echo there
[ ! -f "$d/${content}" ] || head -c 400000 "$d/${content}"`,
    parse(text) {
      const [first, ...lines] = text.split('\n')
      if (first === 'none') return { isThere: false }
      if (first !== 'there') return undefined
      return lines.length === 0 ? { isThere: true } : { isThere: true, content: lines }
    },
  }
}

/** A check: all files that the list names after ` # ` exist. */
export function parcelCheck(directory: string, content: string): string {
  return `d=${pathWord(directory)}
[ -f "$d/${content}" ] || exit 1
sed -n 's/.* # //p' "$d/${content}" | while read -r f; do [ -f "$d/$f" ] || exit 1; done || exit 1`
}

/** Removes it, the scratch directories of interrupted runs beside it (venv-scripts.ts), and parent directories that are then empty. */
export function removeParcel(directory: string): string {
  return `p=${pathWord(directory)}\n${PARCEL_REMOVE}`
}

/** The same for "$p". */
export const PARCEL_REMOVE = `rm -rf "$p" "$p".tmp-* || exit 1
case $p in */.cache/muster/env/*) cd "$HOME" && rmdir -p .cache/muster/env;; *) rmdir "\${p%/*}";; esac 2> /dev/null
:`
