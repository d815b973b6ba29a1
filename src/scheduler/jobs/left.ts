/**
 * What jobs leave on a host. Nothing of a job that may still run is removed, also on another host that shares the storage.
 */

import { JOBS_DIRECTORY, type LeftSearch } from '../../base/left.ts'
import { READ_STAT } from '../../base/proc-stat.ts'
import { PROOF_FILE } from '../../base/proof-file.ts'
import { shellQuote } from '../../base/shell-quote.ts'
import { STUDIES_DIRECTORY } from './checkpoint.ts'
import { WITHOUT_HELPER } from './start-helper.ts'

/** Another queue's are left alone until they have not changed for this long. */
const OTHERS_DAYS = 30

export type OwnQueue = {
  readonly id: string
  /** Directories that unfinished jobs need; undefined: too many to name, so none of the queue may go. */
  readonly kept: readonly string[] | undefined
  /** Directories of results, in which a killed check of `--storage` may have left its file. */
  readonly storages: readonly string[]
}

/** Finds these files, with more words for find(1). Where a server is gone it gives up. */
const findProofs = (storages: readonly string[], words: string): string =>
  `for storage in ${storages.map(shellQuote).join(' ')}; do
  timeout 10 find "$storage" "\${storage%/*}/" -maxdepth 1 -name '${PROOF_FILE}*' -type f ${words} 2>/dev/null </dev/null
done`

/** `queue`: the one of this cluster on this machine; undefined: there is none. */
export function jobsLeft(queue: OwnQueue | undefined): LeftSearch {
  const classes = formatClasses(queue)
  const { storages = [] } = queue ?? {}
  return {
    name: 'jobs',
    find: `left_place=${JOBS_DIRECTORY}
if cd "$left_place" 2> /dev/null; then
${classes}
  left_classes=$(classes)
  for left_class in ended running waiting other; do
    left_list=$(printf '%s\\n' "$left_classes" | sed -n "s/^$left_class //p" | head -n 20000)
    [ -n "$left_list" ] || continue
    left_kb=$(printf '%s\\n' "$left_list" | limited xargs du -sk 2> /dev/null | awk '{ sum += $1 } END { print sum + 0 }')
    left_why=
    case $left_class in
      running) left_why='running jobs';;
      waiting) left_why='unfinished jobs of the queue';;
      other) left_why='jobs of another queue, changed within the last ${OTHERS_DAYS} days';;
    esac
    left_sum jobs "$left_place" $(printf '%s\\n' "$left_list" | wc -l) "$left_kb" - "$left_why"
  done
  for left_file in .room* .line.* .lock.*; do [ ! -e "$left_file" ] || left_found helper "$left_place/$left_file"; done
  for left_file in ${PROOF_FILE}*; do [ ! -e "$left_file" ] || left_found proof "$left_place/$left_file"; done
  cd "$HOME" || cd /
fi
${
  storages.length === 0
    ? ''
    : `left_proofs=$(${findProofs(storages, '')} | head -n 100)
while IFS= read -r left_file; do
  [ -z "$left_file" ] || left_found proof "$left_file"
done << PROOFS
$left_proofs
PROOFS
`
}${findStudies(queue)}while read -r _ left_mount left_type _; do
  [ "$left_type" = cgroup2 ] && [ -d "$left_mount/muster" ] || continue
  if grep -q -x 'populated 1' "$left_mount/muster/cgroup.events"; then left_found cgroup "$left_mount/muster" 'jobs are running in it'
  else left_found cgroup "$left_mount/muster"; fi
done < /proc/mounts`,
    kinds: {
      jobs: {
        title: 'job directories',
        action: 'remove the directories of ended jobs, with their output',
        isSum: true,
        remove: `cd "$p" || exit 0
${classes}
classes | sed -n 's/^ended //p' | xargs rm -rf
cd / && rmdir "$p" "\${p%/*}" 2> /dev/null
:`,
      },
      helper: { title: 'scheduler file', isBrief: true },
      checkpoints: {
        title: 'checkpoints of a study',
        remove: `rm -rf "$p" && { rmdir "\${p%/*}" 2> /dev/null; rmdir "\${p%/*/*}" 2> /dev/null; :; }`,
      },
      proof: { title: 'proof of a shared directory', isBrief: true },
      cgroup: { title: 'control groups of jobs', remove: `find "$p" -depth -type d -exec rmdir {} +` },
    },
  }
}

/** Directories of checkpoints: those of unfinished studies stay, and those of other queues until they are old. */
const findStudies = (queue: OwnQueue | undefined): string => `left_place=${STUDIES_DIRECTORY}
for left_file in "$left_place"/*-*; do
  [ -d "$left_file" ] && [ ! -L "$left_file" ] || continue
  left_name=\${left_file##*/}
  case $left_name in *[!0-9a-z-]*) continue;; esac
  case $left_name in
    ${queue === undefined ? "''" : `${queue.id}-*`})
      case '${queue?.kept === undefined ? '*' : ` ${queue.kept.join(' ')} `}' in
        '*' | *" $left_name "*) left_found checkpoints "$left_file" 'unfinished studies of the queue';;
        *) left_found checkpoints "$left_file";;
      esac;;
    *)
      if [ -n "$(find "$left_file" -mtime -${OTHERS_DAYS} 2> /dev/null | head -n 1)" ]; then
        left_found checkpoints "$left_file" 'checkpoints of another queue, changed within the last ${OTHERS_DAYS} days'
      else left_found checkpoints "$left_file"; fi;;
  esac
done
`

/** The function `classes` prints `CLASS NAME` for each job directory in the working directory. */
function formatClasses(queue: OwnQueue | undefined): string {
  return `${READ_STAT}classes() {
  boot=none; read -r boot < /proc/sys/kernel/random/boot_id
  shared=; case $(stat -f -c %T .) in nfs* | cifs* | smb* | fuse* | lustre | ceph | gpfs | beegfs | 9p | v9fs | afs) shared=1;; esac
  kept=' ${queue?.kept?.join(' ') ?? ''} '
  old=" $(find . -maxdepth 1 -type d -mtime +${OTHERS_DAYS} | sed 's/^\\.\\///' | tr '\\n' ' ') "
  for name in *-*; do
    case $name in *[!0-9a-z-]*) continue;; esac
    [ -d "$name" ] && [ ! -L "$name" ] || continue
    class_of "$name"; echo "$class $name"
  done
}
class_of() {
  case $kept in *" $1 "*) class=waiting; return;; esac
  if [ ! -e "$1/exit" ]; then
    p=0; o=; t=; { [ -f "$1/id" ] && read -r p o t _ < "$1/id"; } 2> /dev/null
    if [ -n "$o" ] && [ "$o" != "$boot" ]; then
      [ -z "$shared" ] || { class=running; return; }
    elif read_stat "/proc/$p/stat"; then
      s=\${s##*) }; set -- "$1" $s
      if [ "$2" != Z ] && [ "\${21}" = "$t" ]; then class=running; return; fi
    fi
  fi
  case $1 in ${queue === undefined ? "''" : `${queue.id}-*`}) class=${queue !== undefined && queue.kept === undefined ? 'waiting' : 'ended'}; return;; esac
  case $old in *" $1 "*) class=ended;; *) class=other;; esac
}`
}

/** Younger files stay: somebody may still read them, and `kept` does not yet have a job that has just started. */
const LEAST_MINUTES = 1
const MINUTES_A_DAY = 1440
/** After its rename, a directory is removed by another host only if the first one must have been cut off. */
const ABANDONED_MINUTES = 60

/**
 * Deletes directories of this queue, also checkpoints of its studies, except those in `kept` and those that changed recently. Keys are part of the script,
 * as program arguments are limited in size. Where hosts share a home, only one can rename a directory and counts it.
 * `parseCleaned` reads what it prints.
 */
export function formatCleanProgram(
  storeId: string,
  { kept, storages }: Pick<OwnQueue, 'storages'> & { readonly kept: readonly string[] },
  olderThanDays: number,
  isTrial = false,
) {
  const proofs =
    isTrial || storages.length === 0
      ? ''
      : `${findProofs(storages, `-user "$(id -u)" -mmin +${ABANDONED_MINUTES} -exec rm -f {} +`)}\n`
  const minutes = Math.max(LEAST_MINUTES, Math.round(olderThanDays * MINUTES_A_DAY))
  return `${proofs}kept='
${kept.map((key) => `./${key}\n`).join('')}'
n=0
if cd ${STUDIES_DIRECTORY} 2>/dev/null; then
  for d in ./${storeId}-*; do
    [ -d "$d" ] && [ ! -L "$d" ] || continue
    case $d in *[!0-9a-z./-]*) continue;; *-gone) ${isTrial ? '' : `[ -z "$(find "$d" -maxdepth 0 -cmin +${ABANDONED_MINUTES} 2>/dev/null)" ] || rm -rf "$d"; `}continue;; esac
    case $kept in *"
$d
"*) continue;; esac
    [ -z "$(find "$d" -mmin -${minutes} 2>/dev/null | head -n 1)" ] || continue
    ${isTrial ? '' : 'mv "$d" "$d-gone" 2>/dev/null && rm -rf "$d-gone" || continue; '}n=$((n + 1))
  done
  ${isTrial ? '' : 'cd .. && rmdir studies 2>/dev/null'}
fi
cd ${JOBS_DIRECTORY} 2>/dev/null || { echo removed $n; exit 0; }
ls -di . 2>/dev/null | sed 's/^ */inode /'
find . -maxdepth 1 -type d -name '${storeId}-*' -mmin +${minutes} | {
while read -r d; do
  case $d in *[!0-9a-z./-]*) continue;; *-gone) ${isTrial ? '' : `[ -z "$(find "$d" -maxdepth 0 -cmin +${ABANDONED_MINUTES} 2>/dev/null)" ] || rm -rf "$d"; `}continue;; ./${storeId}-*) ;; *) continue;; esac
  case $kept in *"
$d
"*) continue;; esac
  ${isTrial ? '' : 'mv "$d" "$d-gone" 2>/dev/null && rm -rf "$d-gone" || continue; '}n=$((n + 1))
done
echo "removed $n"
}
`
}

/** `inode`: of the directory of jobs, if there is one. Undefined: not an answer. */
export function parseCleaned(text: string): { readonly count: number; readonly inode: string | undefined } | undefined {
  const count = Number(/^removed (\d{1,15})$/m.exec(text)?.[1] ?? Number.NaN)
  return Number.isNaN(count) ? undefined : { count, inode: /^inode (\d{1,20}) \.$/m.exec(text)?.[1] }
}

/** The same in the background: a disk may take minutes to delete a large directory. */
export function formatDetachedClean(
  storeId: string,
  own: Parameters<typeof formatCleanProgram>[1],
  olderThanDays: number,
): string {
  return `( ${formatCleanProgram(storeId, own, olderThanDays)} ) </dev/null >/dev/null 2>&1 3>&- ${WITHOUT_HELPER} &\n`
}
