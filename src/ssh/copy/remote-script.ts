/**
 * The remote half of a copy: functions for a POSIX shell, sent over one channel, so that a host needs neither sftp-server nor anything
 * of Muster. The shell reads one line of code at a time (`read` takes not one byte more) and answers with `STATUS LENGTH`, a line feed,
 * and that many bytes. Each order begins with the token of this session. Anything else, such as the bytes of a file whose reader was
 * killed, ends the shell instead of running.
 *
 * Names of partial files end in the machine's name and the shell's process id, so that a later copy knows which ones are stale.
 */
import { HOST_TEMPORARY } from '../../base/host-temporary.ts'
import { PROOF_FUNCTIONS } from '../../base/proof-file.ts'
import { STALE_PARTIALS } from '../../base/stale-partials.ts'

/** Offsets count in these units, and a resumed copy continues at one. */
export const UNIT_BYTES = 65_536

/** The names and facts of a few million files. */
export const LISTING_LIMIT = 256 * 1024 * 1024
/** Of what find says about files that it cannot list. */
export const COMPLAINTS_LIMIT = 16 * 1024 * 1024

const SHRUNK = 'the file is shorter than it was listed, it may have changed meanwhile'
const REPLACED = 'another directory has taken its place'
export const FOREIGN_LINK = 'it is a link that belongs to another account'

/** For any login shell: no line feed, no single quote inside, no `!`, no backslash. */
export function bootCommand(token: string): string {
  const orders = `while IFS= read -r line; do case $line in ${token}*) eval "\${line#${token}}";; *) exit 1;; esac; done`
  return `exec env LC_ALL=C /bin/sh -c 'UMASK=$(umask); umask 077; echo ${token}; ${orders}'`
}

const FUNCTIONS = [
  // r STATUS TEXT: the answer.
  `r() { unwatch; printf '%s %s\\n%s' "$1" "\${#2}" "$2"; }`,
  // watched ORDER...: runs an order that may take long. Until it answers, a second process prints `busy` once a second, and ends the process group when that fails, because the connection is gone: the order itself does not read stdin. It does so only if this shell leads its process group, as under sshd.
  `B=; watched() { { read -r q q q q q w </proc/$$/stat; } 2>/dev/null || q=$(ps -o pgid= -p $$ 2>/dev/null); [ "$((q))" != $$ ] || { trap '' PIPE; while sleep 1 >/dev/null && echo busy; do :; done 2>/dev/null; kill -TERM 0; } & B=$!; "$@"; }`,
  // KILL: a TERM that arrives before the second process has reset its traps would be lost.
  `unwatch() { [ -z "$B" ] || { kill -KILL "$B"; wait "$B"; } 2>/dev/null; B=; }`,
  `NL=$(printf '\\n_'); NL=\${NL%_}`,
  `NODE=$(uname -n)`,
  // $SHA: SHA-256 of stdin.
  `if command -v sha256sum >/dev/null 2>&1; then SHA=sha256sum; elif command -v shasum >/dev/null 2>&1; then SHA='shasum -a 256'; elif command -v sha256 >/dev/null 2>&1; then SHA='sha256 -q'; else SHA='openssl dgst -sha256 -r'; fi`,
  // X BYTES: exactly this many bytes of stdin. Some heads read ahead; on those systems dd knows fullblock.
  `if [ "$(printf abcdef | { head -c 3 >/dev/null; cat; })" = def ]; then X() { head -c "$1"; }; else X() { [ "$1" = 0 ] || dd bs="$1" count=1 iflag=fullblock 2>/dev/null; }; fi`,
  // size FILE
  `size() { echo "$(($(wc -c <"$1" 2>/dev/null)))"; }`,
  ...PROOF_FUNCTIONS,
  ...HOST_TEMPORARY,
  // fresh DIRECTORY...: opens them, so that a network file system asks its server what is in them now.
  `fresh() { for d; do [ ! -d "$d" ] || true <"$d"; done 2>/dev/null; }`,
  `R() { fresh "$@"; r ok; }`,
  // up PATH: $d becomes the directory above it, or the answer is no.
  `up() { case $1 in */*) d=\${1%/*}; d=\${d:-/}; [ "$d" != "$1" ];; *) return 1;; esac; }`,
  // H PATH NAME: writes a proof file in the nearest directory of a path that exists. Answers the length of that directory's path here, how names of partial files end, and its real path.
  `H() { d=$1; while [ ! -d "$d" ] && up "$d"; do :; done; prove "$d" "$2"; r ok "\${#d} $NODE.$$ $(cd "$d" 2>/dev/null && pwd -P)"; }`,
  // J PATH NAME...: the proof files that are seen in a directory of the path, each with the length of that directory's path.
  `J() { s=; d=$1; shift; while :; do for n in $(proofs "$d" "$@"); do s="$s$n \${#d}$NL"; done; up "$d" || break; done; r ok "$s"; }`,
  `Q() { unprove; r ok; }`,
  // D PATH [MARK]: the kind of a destination; none for a directory that is marked as incomplete.
  `D() { if foreign "$1"; then r err "$e"; elif [ -d "$1" ]; then k=directory; [ -z "$2" ] || for o in "$2".*; do mine "$o" && k=none; done; r ok $k; elif [ -e "$1" ] || [ -L "$1" ]; then r ok other; else r ok none; fi; }`,
  // foreign PATH: a link of another account, which may lead anywhere. The user's own and root's are meant.
  `foreign() { [ -L "$1" ] && [ -z "$(find "$1" -prune '(' -user "$ME" -o -user 0 ')' 2>/dev/null)" ] && e="$1: ${FOREIGN_LINK}"; }`,
  // K PATH [REPLACES]: makes a directory, writable. With a second word, no link is followed: it is removed first. Nothing is made below a directory that was refused ($NO), which may be a link.
  `NO=; K() { if [ -n "$NO" ] && [ "\${1#"$NO"/}" != "$1" ]; then r err "$NO: Not a directory"; return; fi; NO=$1; if [ -n "$2" ] && [ -L "$1" ] && ! e=$(rm -f "$1" 2>&1); then r err "$e"; elif foreign "$1"; then r err "$e"; elif [ -d "$1" ] || { e=$(mkdir "$1" 2>&1) || [ -d "$1" ]; }; then NO=; [ -w "$1" ] || chmod u+rwx "$1" 2>/dev/null; fresh "$1"; r ok; else r err "$e"; fi; }`,
  // A PATH: makes a directory and all above it, with the umask of the user.
  `A() { if e=$(umask "$UMASK"; mkdir -p "$1" 2>&1); then r ok; else r err "$e"; fi; }`,
  // B PATH: whether names there, or in the nearest directory above that exists, are the same when they differ only in case. It makes a directory, because mkdir follows no link.
  `B() { d=$1; while [ ! -d "$d" ]; do case $d in */*) d=\${d%/*}; d=\${d:-/};; *) d=.;; esac; done; if e=$(mkdir "$d/.muster-case.$NODE.$$" 2>&1); then k=no; [ -d "$d/.MUSTER-CASE.$NODE.$$" ] && k=yes; rmdir "$d/.muster-case.$NODE.$$"; r ok $k; else r err "$d: $e"; fi; }`,
  // mine FILE: a regular file of this user without a second link. In a directory of many users any name may be a link to somewhere else.
  `LAST=; ME=$(id -u); mine() { [ -f "$1" ] && [ ! -L "$1" ] && [ -n "$(find "$1" -prune -type f -links 1 -user "$ME" 2>/dev/null)" ]; }`,
  // top PATH: the directory that is copied into, for at. No path begins with a dash.
  `HERE=$PWD; TOP=-; top() { TOP=-; if AT=$(cd -P "$1" 2>/dev/null && printf %s "\${PWD%/}/"); then TOP=\${1%/}; fi; r ok; }`,
  // at PATH: enters the directory of a path, in a subshell or until one returns to $HERE; $b is its name there. Directories below the top that became a link of another account are refused, and what is entered stays the same, however others rename it.
  `at() { case $1 in "$TOP"/*) a=\${1#"$TOP"/}; cd -P "$AT" && [ "\${PWD%/}/" = "$AT" ] || { echo "$TOP: ${REPLACED}"; return 1; }; while [ "\${a#*/}" != "$a" ]; do c=./\${a%%/*}; a=\${a#*/}; if foreign "$c"; then echo "$e"; return 1; fi; if [ -L "$c" ]; then cd -P "$c" || return 1; else n=\${PWD%/}/\${c#./}; cd -P "$c" && [ "$PWD" = "$n" ] || { echo "$c: ${REPLACED}"; return 1; }; fi; done; b=./$a;; *) b=./\${1##*/}; cd "\${1%/*}/";; esac; }`,
  // seen PATH: partial files of earlier copies are removed from its directory at the end.
  `seen() { case $1 in */*) x=\${1%/*};; *) x=.;; esac; [ "$x" = "$LAST" ] || { LAST=$x; DIRS=$DIRS$x$NL; }; }`,
  // P PATH TEMPORARY CLAIM: kind and size of what is there, and the size of the partial file of an earlier copy, which this shell takes over. Then how the names end that other machines left.
  `P() { [ "$3" != yes ] || seen "$2"; k='none 0'; if [ -L "$1" ]; then k='link 0'; elif [ -d "$1" ]; then k='directory 0'; elif [ -f "$1" ]; then k="file $(size "$1")"; elif [ -e "$1" ]; then k='special 0'; fi; p=0; for o in "$2.$NODE".*; do [ -f "$o" ] && [ ! -L "$o" ] || continue; q=\${o##*.}; [ "$q" = $$ ] || { kill -0 "$q" 2>/dev/null && continue; }; mine "$o" || continue; [ "$3" = yes ] && [ "$q" != $$ ] && { mv -f "$o" "$2.$NODE.$$" 2>/dev/null || continue; o="$2.$NODE.$$"; }; p=$(size "$o"); done; f=; [ "$3" != yes ] || for o in "$2".*; do case $o in "$2.$NODE".*|"$2.*"|*' '*) ;; *) f="$f \${o#"$2."}";; esac; done; r ok "$k $p$f"; }`,
  // adopt FILE TEMPORARY: takes over a partial file of another machine.
  `adopt() { if mine "$1" && mv -f "$1" "$2.$NODE.$$" 2>/dev/null; then r ok "$(size "$2.$NODE.$$")"; else r ok 0; fi; }`,
  // stale: runs at the end and removes partial files older than a week from the directories of this copy.
  `DIRS=; stale() { printf '%s\\n' "$DIRS" | while IFS= read -r d; do case $d in -*) d=./$d;; esac; [ -n "$d" ] && [ -d "$d" ] || continue; find "$d" -maxdepth 1 ${STALE_PARTIALS} 2>/dev/null | while IFS= read -r o; do q=\${o##*.}; case $q in ''|*[!0-9]*) continue;; esac; case $o in *."$NODE".*) kill -0 "$q" 2>/dev/null && continue;; esac; rm -f "$o"; done; sweep_proofs "$d"; done; }`,
  // S PATH [BYTES]: the checksum of a file, or of its beginning.
  `S() { if [ -r "$1" ]; then if [ $# = 1 ]; then h=$($SHA <"$1"); else h=$(head -c "$2" <"$1" | $SHA); fi; r ok "\${h%% *}"; else r err "$1: Permission denied"; fi; }`,
  // T TEMPORARY: makes the partial file, unless this shell took one over. If it fails, W refuses.
  `BAD=; T() { probe; t="$1.$NODE.$$"; BAD=$t; if [ -e "$t" ] || [ -L "$t" ]; then mine "$t" || rm -f "$t"; fi; if [ -f "$t" ] || e=$({ at "$t" && set -C && : >"$b"; } 2>&1); then BAD=; r ok; else r err "$e"; fi; }`,
  // probe: sets $O, the name of an open file; empty where the system or its find knows none. T and V call it in the main shell, so that it runs once, and only where files are written.
  `O=?; probe() { [ "$O" != '?' ] || { O=/proc/self/fd/4; [ -e /proc/self/fd/0 ] && find / -prune -inum 0 >/dev/null 2>&1 </dev/null || O=; }; }`,
  // own FILE ORDER...: runs an order with the file open at $O, if it is this user's, and no link that somebody has put in its place: others may write to its directory. One look at the name tells all of this of the file that is open.
  `own() { at "$1" || return 1; x=$b; shift; if [ -z "$O" ]; then O=$x; "$@"; q=$?; O=; return $q; fi; { i=$(ls -diL "$O"); i=\${i#"\${i%%[0-9]*}"}; if [ -n "$(find "$x" -prune -type f -links 1 -user "$ME" -inum "\${i%% *}")" ]; then "$@"; else echo "$x: another file has taken its place"; false; fi; } 4<>"$x"; }`,
  // W TEMPORARY UNITS BYTES: writes bytes of stdin from an offset on; reads all of them even if it fails.
  `put() { dd of="$O" bs=${UNIT_BYTES} seek="$1" conv=notrunc; }`,
  `W() { X "$3" | { if [ "$1.$NODE.$$" = "$BAD" ]; then r err "$1: File exists"; elif e=$(own "$1.$NODE.$$" put "$2" 2>&1); then r ok; else r err "$e"; fi; cat >/dev/null; }; }`,
  // V TEMPORARY BYTES: writes a whole small file without starting a program.
  `V() { probe; t="$1.$NODE.$$"; if [ -e "$t" ] || [ -L "$t" ]; then rm -f "$t"; fi; set -C; if { at "$t" && printf %s "$2" >"$b"; } >/dev/null 2>&1; then cd "$HERE" || exit 1; r ok; else cd "$HERE" || exit 1; e=$({ at "$t" && printf %s "$2" >"$b"; } 2>&1); r err "$e"; fi; set +C; }`,
  // begin MARK FIRST: marks a directory as incomplete (the first host that writes it: in place of the marks of earlier copies). complete MARK: removes the marks of this machine.
  `begin() { [ "$2" != yes ] || for o in "$1".*; do mine "$o" && rm -f "$o"; done; V "$1" '' >/dev/null; r ok; }`,
  `complete() { seen "$1"; for o in "$1.$NODE".*; do mine "$o" && rm -f "$o"; done; r ok; }`,
  // Y TEMPORARY BYTES: the checksum of the beginning of a partial file.
  `Y() { S "$1.$NODE.$$" "$2"; }`,
  // C TEMPORARY UNITS: truncates a partial file.
  `trim() { dd if=/dev/null of="$O" bs=${UNIT_BYTES} seek="$1"; }`,
  `C() { if [ "$1.$NODE.$$" = "$BAD" ]; then r err "$1: File exists"; elif e=$(own "$1.$NODE.$$" trim "$2" 2>&1); then r ok; else r err "$e"; fi; }`,
  `Z() { rm -f "$1.$NODE.$$"; r ok; }`,
  // E: how names of partial files end.
  `E() { r ok "$NODE.$$"; }`,
  // O: user and group of new files.
  `O() { r ok "$(id -u):$(id -g)"; }`,
  // U PATH TIME STAMP: sets the modification time, with fractions of a second if touch knows them.
  `U() { TZ=UTC0 touch -d "$2" "$1" 2>/dev/null || TZ=UTC0 touch -t "$3" "$1"; }`,
  // clear PATH: prepares it for a rename. Removes a link to a directory, because mv would move into the directory.
  `clear() { if [ -L "$1" ]; then if [ -d "$1" ]; then rm -f "$1"; fi; elif [ -d "$1" ]; then echo 'Is a directory'; return 1; elif [ -e "$1" ] && [ ! -f "$1" ]; then echo 'Is a device, pipe or socket'; return 1; fi; }`,
  // F TEMPORARY PATH SHA256 MODE TIME STAMP: verifies a file (unless SHA256 is empty), sets its time and mode, and renames it.
  `finish() { if [ -n "$3" ]; then h=$($SHA <"$O"); if [ "\${h%% *}" != "$3" ]; then echo 'the checksum differs'; return 1; fi; fi; U "$O" "$5" "$6" && chmod "$4" "$O" || return 1; clear "./\${2##*/}" && mv -f "$b" "./\${2##*/}"; }`,
  `F() { t="$1.$NODE.$$"; shift; if e=$(own "$t" finish "$t" "$@" 2>&1); then r ok; else rm -f "$t"; r err "$e"; fi; }`,
  // M PATH MODE TIME STAMP
  `M() { if foreign "$1"; then r err "$e"; elif e=$(U "$1" "$3" "$4" 2>&1 && chmod "$2" "$1" 2>&1); then r ok; else r err "$e"; fi; }`,
  // L TARGET PATH TEMPORARY TIME: a symbolic link.
  `L() { if [ -L "$2" ] && [ "$(readlink "$2"; echo x)" = "$1\${NL}x" ]; then r ok same; return; fi; t="$3.$NODE.$$"; rm -f "$t"; if e=$(link "$@" 2>&1); then r ok new; else rm -f "$t"; r err "$e"; fi; }`,
  `link() { at "$2" && t=./\${t##*/} && ln -s -- "$1" "$t" || return 1; TZ=UTC0 touch -h -d "$4" "$t" 2>/dev/null; clear "$b" && mv -f "$t" "$b"; }`,
  // G PATH UNITS BYTES [SIZE]: bytes of a file from an offset on, padded with zeros if it shrinks meanwhile. It refuses a file that is shorter than SIZE.
  `G() { if [ ! -r "$1" ]; then r err "$1: Permission denied"; elif [ -n "$4" ] && [ -n "$(find "$1" -prune -size "-$4c" 2>/dev/null)" ]; then r err "$1: ${SHRUNK}"; else printf 'ok %s\\n' "$3"; { dd if="$1" bs=${UNIT_BYTES} skip="$2" 2>/dev/null; cat /dev/zero; } 2>/dev/null | head -c "$3"; fi; }`,
  // I PATH: the target of a symbolic link, and a slash, so that line feeds at its end survive.
  `I() { e=$(readlink "$1" 2>&1; echo /); r ok "$e"; }`,
  `if stat -c %.9Y / 2>/dev/null | grep -q '^[0-9]*[.][0-9]*$'; then STAT='-c %f:%s:%.9Y:%b:%u:%g:%n'; elif stat -c %Y / >/dev/null 2>&1; then STAT='-c %f:%s:%Y:%b:%u:%g:%n'; else STAT='-f %Xp:%z:%Fm:%b:%u:%g:%N'; fi; export STAT`,
  // sweep: removes the directory of a listing.
  `l=; sweep() { [ -z "$l" ] || rm -rf "$l"; l=; }; trap 'sweep; unprove; stale' EXIT; trap 'exit 1' HUP INT TERM PIPE`,
  // list DIRECTORY PATH: writes a listing of PATH to two files in a new directory, $l, which no other user can enter or replace. `names` has batches of names, each followed by a NUL; then come an empty name and the output of stat for these names. `said` has the messages of find. Both files end with a mark, which is missing if the disk was full. A listing that reaches its limit stops there, and find stops with it; no other directory is tried.
  `MARK='@done@'; facts() { find "$1" -exec sh -c 'trap "" PIPE; printf "%s\\0" "$@" ""; case $STAT in -c*) stat -c "\${STAT#-c }" "$@";; *) stat -f "\${STAT#-f }" "$@";; esac 2>/dev/null; printf "\\0" || kill "$PPID"' sh {} +; printf %s "$MARK"; printf %s "$MARK" >&2; }`,
  `list() { [ -z "$big" ] && l=$(temporary "$1" 2>/dev/null) || return; { { facts "$2" 2>&1 >&3 3>&- | head -c ${COMPLAINTS_LIMIT} >"$l/said"; } 3>&1 | head -c ${LISTING_LIMIT} >"$l/names"; } 2>/dev/null; [ "$(size "$l/names")" -lt ${LISTING_LIMIT} ] && [ "$(size "$l/said")" -lt ${COMPLAINTS_LIMIT} ] || big=yes; for x in "$l/names" "$l/said"; do [ "$(tail -c 6 "$x" 2>/dev/null | tr '\\0' 0)" = "$MARK" ] || { sweep; return 1; }; done; }`,
  // N PATH: a listing of it (the first one; where it leads to if it is a link) and everything below.
  `N() { big=; if [ -e "$1" ]; then s=$1; if [ -L "$1" ]; then s=$(readlink -f "$1"); fi; list "\${TMPDIR:-/tmp}" "$s" || list /dev/shm "$s" || list /var/tmp "$s" || list . "$s" || { if [ -n "$big" ]; then r err "$1: too many files to list, fetch parts of it"; else r err "$1: no directory has room for the list of its files, set TMPDIR to one of your own"; fi; return; }; e=$(cat "$l/said"); n=$(($(size "$l/names") - 6)); exec 3<"$l/names"; sweep; unwatch; printf 'ok %s\\n' "$n"; head -c "$n" <&3; exec 3<&-; r ok "\${e%"$MARK"}"; elif [ -L "$1" ]; then e=$(ls -dL "$1" 2>&1); r err "$1: the link cannot be followed (\${e##*: })"; else r err "$1: No such file or directory"; fi; }`,
] as const

/** The first lines: they define everything and answer when done. */
export const SETUP = [
  ...FUNCTIONS,
  `if ! printf '' | $SHA >/dev/null 2>&1; then r err 'none of sha256sum, shasum, sha256 and openssl is installed'; elif [ "$(printf abcdef | { X 3 >/dev/null; cat; })" != def ]; then r err 'neither head nor dd reads a given number of bytes'; else r ok; fi`,
]
