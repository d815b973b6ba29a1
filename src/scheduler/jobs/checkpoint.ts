/**
 * The checkpoints of a population on hosts: one directory for each member, in the home directory of its host or in a directory that
 * all hosts share. Names in scripts are numbers and identifiers of Muster's own; links are copied as links, and none is followed.
 */
import { shellQuote } from '../../base/shell-quote.ts'
import type { Study } from '../study/study.ts'

/** Where the checkpoints of a host's own members are, as a word for sh. */
export const STUDIES_DIRECTORY = `"\${XDG_STATE_HOME:-$HOME/.local/state}/muster/studies"`

/** A variable of the jobs of a population: the directory of its member. */
export const CHECKPOINT = 'MUSTER_CHECKPOINT'

/** The directory of the checkpoints of a study. */
export const studyDirectory = (storeId: string, { id, stamp }: Pick<Study, 'id' | 'stamp'>): string =>
  [storeId, id, ...(stamp === undefined ? [] : [stamp])].join('-')

export const memberDirectory = (member: number): string => `member-${member}`

/** What the variable is before the host completes it: absolute with `shared`. */
export function checkpointValue(
  storeId: string,
  study: Pick<Study, 'id' | 'stamp'>,
  member: number,
  shared: string | undefined,
): string {
  const path = `${studyDirectory(storeId, study)}/${memberDirectory(member)}`
  return shared === undefined ? path : `${shared.replace(/(?<!\/)\/+$/, '')}/${path}`
}

const MEMBER = '[0-9a-f]+-\\d+(-[0-9a-z]+)?/member-\\d+$'
const OWN = new RegExp(`^${MEMBER}`)
const SHARED = new RegExp(`^/.*/${MEMBER}`, 's')

/** For a bundle, in its directory: makes the member's directory and exports its path; no other value is touched. */
export function formatCheckpoint(value: string | undefined): string {
  if (value === undefined || !(OWN.test(value) || SHARED.test(value))) return ''
  const path = OWN.test(value) ? `"\${PWD%/*/*}/studies/${value}"` : shellQuote(value)
  return `${CHECKPOINT}=${path}; export ${CHECKPOINT}; (umask 077; mkdir -p "$${CHECKPOINT}") || exit; `
}

export type CheckpointPlace = {
  /** As `studyDirectory`. */
  readonly study: string
  /** Undefined: of the host itself. */
  readonly shared: string | undefined
}

/** `digest`: of the names and sizes of its files. */
export type WholeCopy = { readonly name: string; readonly digest: string }

/** A copy for a member, beside its checkpoint; `token` differs for each try. */
export const copyName = (member: number, token: string): string => `.copy-${member}-${token}`
const copiesOf = (member: number): string => `.copy-${member}-*`

/** What a script prints last; anything else is a failure, and stderr says why. */
const DONE = 'muster-done'

const pathOf = ({ study, shared }: CheckpointPlace): string =>
  `${shared === undefined ? STUDIES_DIRECTORY : shellQuote(shared)}/${study}`

const inPlace = (place: CheckpointPlace): string =>
  `umask 077; mkdir -p ${pathOf(place)} && cd ${pathOf(place)} || exit\n`

/**
 * `state`: everything that changes while a program writes: names, sizes, times, and files that took the place of others. `digest`:
 * what a whole copy has in common with it.
 */
const FUNCTIONS = `state() { (cd "./$1" && find . ! -name . -exec stat -c '%n %s %y %i %F' {} + | LC_ALL=C sort | cksum); }
digest() { (cd "./$1" && find . -type f -exec stat -c '%n %s' {} + | LC_ALL=C sort | cksum); }
`

const COPIES = 3

/**
 * Copies the checkpoint of a member beside it, as a whole: a program that writes meanwhile makes it begin again, at most three times.
 * Prints the path of the copy and its digest, or `none`: the member has no checkpoint.
 */
export function formatSnapshot(place: CheckpointPlace, member: number, copy: string): string {
  const from = memberDirectory(member)
  return `${inPlace(place)}${FUNCTIONS}[ -d ${from} ] && [ ! -L ${from} ] && [ -n "$(ls -A ${from})" ] || { echo none; exit; }
n=0
while [ $n -lt ${COPIES} ]; do
  n=$((n + 1)); rm -rf ./${copy}; one=$(state ${from})
  e=$(cp -a ./${from} ./${copy} 2>&1); c=$?
  [ "$one" = "$(state ${from})" ] || continue
  [ $c = 0 ] || { rm -rf ./${copy}; printf '%s\\n' "$e" >&2; exit 1; }
  printf '%s\\n' "$(digest ${copy})" "$PWD/${copy}" ${DONE}; exit
done
rm -rf ./${copy}; echo 'the program keeps writing to it' >&2; exit 1
`
}

/** Prints the path for a copy from another host, or `here`: the hosts have the same home directory, so it is there already. */
export function formatArrival(place: CheckpointPlace, copy: string): string {
  return `${inPlace(place)}mkdir ./${copy} || { [ -d ./${copy} ] && { echo here; exit 0; }; exit 1; }
printf '%s\\n' "$PWD/${copy}" ${DONE}
`
}

const ifWhole = ({ name, digest }: WholeCopy) =>
  `[ -d ./${name} ] && [ "$(digest ${name})" = ${shellQuote(digest)} ] || { echo missing; exit; }`

/** Prints `missing` if a copy is not there, or not whole. */
export function formatCheck(place: CheckpointPlace, copy: WholeCopy): string {
  return `${inPlace(place)}${FUNCTIONS}${ifWhole(copy)}\necho ${DONE}\n`
}

/** Puts a copy in the place of a member's checkpoint; given twice, it does so once. Prints `missing` if it is not there, or not whole. */
export function formatMove(place: CheckpointPlace, member: number, copy: WholeCopy): string {
  const own = memberDirectory(member)
  const { name } = copy
  return `${inPlace(place)}${FUNCTIONS}exec 9>.lock; command -v flock >/dev/null && flock 9
last=; [ -f .${own} ] && read -r last <.${own}
if [ "$last" != ${name} ]; then
  ${ifWhole(copy)}
  rm -rf ./.old-${own}; [ ! -e ./${own} ] || mv ./${own} ./.old-${own} || exit
  mv ./${name} ./${own} && echo ${name} >.${own}.new && mv .${own}.new .${own} || exit
  rm -rf ./.old-${own}
fi
rm -rf ./${copiesOf(member)}
echo ${DONE}
`
}

/** Removes the copies that were made for a member. */
export function formatDrop(place: CheckpointPlace, member: number): string {
  return `cd ${pathOf(place)} 2>/dev/null && rm -rf ./${copiesOf(member)}; echo ${DONE}\n`
}

export type CheckpointAnswer =
  | { readonly kind: 'done'; readonly path: string | undefined; readonly digest: string | undefined }
  | { readonly kind: 'none' | 'missing' | 'here' | 'odd' }

/** Reads what these scripts print. A path that a host names is used on that host alone; digests are only compared. */
export function parseCheckpointAnswer(text: string): CheckpointAnswer {
  const [last, path, digest] = text
    .split('\n')
    .filter((line) => line !== '')
    .toReversed()
  if (last === 'none' || last === 'missing' || last === 'here') return { kind: last }
  if (last !== DONE) return { kind: 'odd' }
  return { kind: 'done', path: matching(path, PATH), digest: matching(digest, DIGEST) }
}

const matching = (text: string | undefined, pattern: RegExp): string | undefined =>
  text !== undefined && pattern.test(text) ? text : undefined

const PATH = /^\/[^\x00-\x1f\x7f]{0,4095}$/
const DIGEST = /^\d{1,20} \d{1,20}$/
