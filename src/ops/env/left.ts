/**
 * Finds what env left on hosts after hosts.yaml changed or a run was interrupted: environments with Muster's mark, incomplete ones,
 * parcels, containers and images. They are removed as `down` would.
 */

import type { LeftKind } from '../../base/left.ts'
import { shellQuote } from '../../base/shell-quote.ts'
import { pathWord } from '../kernel/files.ts'
import { declaredWith, defineLeft, type LeftAnswer, type Leftover, leftFact, leftoversOf } from '../kernel/left.ts'
import { CONDA_FINISH, CONDA_REMOVE } from './conda-scripts.ts'
import { CONTAINER_LABEL, CONTAINER_REMOVE, IMAGE_REMOVE, SOURCE_LABEL } from './docker.ts'
import { findPrefix, HALF, MARK_FILE, PARCEL_MARK, PARCEL_REMOVE, prefixOf } from './facts.ts'
import { VENV_REMOVE } from './venv-scripts.ts'
import { type EnvWanted, envWantedOf, PARCELS, parcelOf, wheelsOf } from './wanted.ts'

/** `declared` is the directory that hosts.yaml names, if any; `wheels` the user's directory of wheels. */
function findScript(wanted: EnvWanted | undefined): string {
  const spec = wanted?.spec
  const declared = spec === undefined || spec.kind === 'docker' ? 'p=' : findPrefix(prefixOf(spec))
  const wheels = spec?.kind === 'venv' && spec.wheels !== undefined ? ` ${pathWord(spec.wheels)}` : ''
  const parcel = wanted === undefined ? "''" : pathWord(parcelOf(wanted))
  const notes = spec?.kind === 'venv' ? pathWord(wheelsOf({ spec }).notes) : parcel
  return `${declared}
declared=$p
is_declared() { [ -n "$declared" ] && { [ "$1" = "$declared" ] || [ "$1" -ef "$declared" ]; }; }
reported=$nl
report_once() {
  case $reported in *"$nl$2$nl"*) return;; esac
  reported="$reported$2$nl"
  left_found "$1" "$2"
}
# Whether only this account and root can put files into a directory: elsewhere a name does not prove that Muster made it.
is_private() {
  set -- $(stat -L -c '%u %a %G' "$1")
  case $1 in 0 | "$(id -u)") ;; *) return 1;; esac
  case $2 in *[2367]) return 1;; *[2367]?) [ "$3" = "$(id -un)" ];; esac
}
mark() {
  each=\${1%/*}; kind=venv
  case $each in *.muster-new) return;; esac
  [ ! -d "$each/conda-meta" ] || kind=conda
  is_private "$each" || kind=doubtful
  ! is_declared "$each" || kind=declared
  report_once $kind "$each"
}
half() {
  kind=half
  is_private "\${1%/*}" || kind=doubtful
  ! is_declared "\${1%${HALF}}" || kind=declared
  report_once $kind "$1"
}
wheels() {
  each=\${1%/*}; kind=parcel
  case \${each##*/} in muster-*[!0-9a-f]*) return;; muster-????????????????) ;; *) return;; esac
  is_private "$each" || kind=doubtful
  [ ! "$each" -ef ${parcel} ] || kind=declared
  report_once $kind "$each"
}
new() { [ ! -f "$1/${MARK_FILE}" ] || report_once unpacked "$1"; }
old() { [ ! -f "$1/${MARK_FILE}" ] || report_once unpacked "$1"; }
before() {
  [ -d "$1/conda-meta" ] || return 0
  each=\${1%.muster-before}
  [ ! -f "$each/${MARK_FILE}" ] && [ ! -e "$each${HALF}" ] || return 0
  if [ -e "$each" ]; then report_once others "$1"
  elif ! is_private "\${1%/*}"; then report_once doubtful "$1"
  else report_once replaced "$1"; fi
}
# hosts.yaml may name a directory outside those that are searched.
[ -z "$declared" ] || [ ! -f "$declared/${MARK_FILE}" ] || mark "$declared/${MARK_FILE}"
left_each '${MARK_FILE}' mark
left_each '*${HALF}' half
left_each '${PARCEL_MARK}' wheels
left_each '*.muster-new' new
left_each '*.muster-old' old
left_each '*.muster-before' before
for place in ${pathWord(PARCELS)}${wheels}; do
  for each in "$place"/muster-????????????????; do
    [ -d "$each" ] || continue
    if [ "$each" = ${parcel} ] || [ "$each" = ${notes} ]; then report_once declared "$each"; else report_once parcel "$each"; fi
  done
  # Of one that is cut; with the parcel they go, too.
  for each in "$place"/muster-????????????????.tmp-*; do [ ! -e "$each" ] || left_found scratch "$each"; done
done
command -v docker > /dev/null || return 0
dock() { limited docker "$@"; }
docker_names() { dock ps --all --filter label=${CONTAINER_LABEL} --format '{{.State}} {{.Names}}' | head -n 100; }
said=$(dock version --format '{{.Server.Version}}' 2>&1) || {
  case $said in *'permission denied'*) dock() { limited sudo -n docker "$@"; };; *) return 0;; esac
}
# Another program may be called docker.
docker_names | while read -r state name; do
  case $state in *[!a-z]*) continue;; esac
  case $name in '' | *[!A-Za-z0-9_.-]*) continue;; esac
  [ "$name" != ${spec?.kind === 'docker' ? shellQuote(spec.name) : "''"} ] || { left_sum declared "container $name" 1; continue; }
  if [ "$state" = running ]; then left_sum container "$name" 1 - - "it runs; to end it: docker stop $name"
  else left_sum container "$name" 1; fi
done
dock image ls --filter label=${SOURCE_LABEL} --format '{{.ID}} {{.Repository}}:{{.Tag}}' | head -n 100 | while read -r id name; do
  case $id in '' | *[!0-9a-f]*) continue;; esac
  [ -n "$name" ] || continue
  if [ "$name" = ${spec?.kind === 'docker' ? shellQuote(spec.image.includes(':') ? spec.image : `${spec.image}:latest`) : "''"} ]; then left_sum declared "image $name" 1
  elif [ -n "$(dock ps --all --quiet --filter "ancestor=$id" | head -n 1)" ]; then left_sum image "$id" 1 - - 'a container uses it'
  else left_sum image "$id" 1; fi
done`
}

const KINDS: Readonly<Record<string, LeftKind>> = {
  declared: { title: 'environment' },
  venv: { title: 'virtual environment', remove: VENV_REMOVE },
  conda: { title: 'conda environment', remove: CONDA_REMOVE },
  half: { title: 'unfinished conda environment', remove: `p=\${p%${HALF}}\n${CONDA_FINISH}`, isBrief: true },
  unpacked: { title: 'unpacked conda environment', isBrief: true },
  replaced: {
    title: 'conda environment that Muster moved aside',
    action: 'put it back in its place',
    remove: `p=\${p%.muster-before}\n${CONDA_FINISH}`,
  },
  others: {
    title: 'conda environment as it was before Muster',
    keep: 'another one has taken its place; move it back or remove it by hand',
  },
  doubtful: {
    title: 'what looks like an environment',
    keep: 'others may write into its directory, so Muster may not have made it; remove it by hand',
  },
  parcel: { title: 'packages brought from another host', remove: PARCEL_REMOVE },
  scratch: { title: 'temporary files of an environment', remove: PARCEL_REMOVE, isBrief: true },
  container: { title: 'container', remove: CONTAINER_REMOVE, isSum: true },
  image: { title: 'image', remove: IMAGE_REMOVE, isSum: true },
}

export const left = defineLeft<{ found: LeftAnswer }>({
  name: 'env',
  factsOf: (declared, host, also) => ({ found: leftFact(findScript(wantedOn(host, declared)), also) }),
  itemsOf: ({ found }): Leftover[] =>
    leftoversOf(found, KINDS, ({ kind }) => (kind === 'declared' ? declaredWith('env') : undefined)),
})

function wantedOn(host: string, declared: Parameters<typeof envWantedOf>[0]): EnvWanted | undefined {
  const wanted = envWantedOf(declared)
  return wanted?.spec.hosts.includes(host) === true ? wanted : undefined
}
