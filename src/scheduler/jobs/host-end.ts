/**
 * How a bundle is stopped on its host, as functions of POSIX sh for the host's shell and for the bundle's own. Each process gets
 * TERM once and KILL 10 s later: first the process group, then each process that left the group and has no parent in the bundle
 * to pass the signal on. A bundle is its session, its descendants, the processes of the first TERM that still live, and its
 * cgroup. In all functions `p` is the first process, `g` the cgroup or empty.
 */

/** In hundredths of a second after TERM: a little less than the 10 s of the order; the first process is killed last. */
const KILL_AFTER = 990
const KILL_FIRST_AFTER = 1500

/**
 * The name of the mark `term.TIME` holds the time of TERM, so that it fits on a full disk; its lines are the processes of that
 * moment. The job may create such files itself, so a name that cannot be the time of an earlier TERM is ignored (`marked`). The
 * text is quoted as a whole and contains no apostrophe. Only numbers are evaluated, as processes may have any name.
 */
export const END_FUNCTIONS = `state() {
  case $1 in ""|*[!0-9]*) return 1;; esac
  s=; { read -r s <"/proc/$1/stat"; } 2>/dev/null
  set -- \${s##*) }
  parent=$2 group=$3 session=$4 born=\${20}
  case $1 in ""|Z|X) return 1;; esac
  case $parent,$session,$born in ,*|*,,*|*,|*[!0-9,]*) return 1;; esac
}
now() { read -r x y </proc/uptime; up=$((\${x%.*} * 100 + 1\${x#*.} - 100)); }
marked() {
  at=\${1##*term.}
  case $at in ""|0?*|*[!0-9]*) return 1;; esac
  [ -e "$1" ] && [ "$at" -le "$up" ]
}
scan() {
  for f in /proc/[0-9]*; do
    n=\${f#/proc/}
    state "$n" && eval "of_$session=\\"\\$of_$session $n\\" kids_$parent=\\"\\$kids_$parent $n\\""
  done
}
members() {
  r=; more=
  for f in "$1"/term.*; do
    { while read -r n x; do state "$n" && [ "$born" = "$x" ] && more="$more $n"; done <"$f"; } 2>/dev/null
  done
  [ -z "$g" ] || more="$more $(find "$g" -name cgroup.procs -exec cat {} + 2>/dev/null)"
  eval "more=\\"$p \\$of_$p \\$more\\""
  while set -- $more && [ $# -gt 0 ]; do
    more=
    for n; do
      case "$r " in *" $n "*) continue;; esac
      state "$n" || continue
      [ "$n" = "$p" ] || [ "$n" = "$me" ] || r="$r $n"
      eval "more=\\"\\$more \\$kids_$n\\""
    done
  done
}
rest() {
  now; marked "$1" 2>/dev/null || return
  while r=$(trap "" TERM; read -r me x </proc/self/stat; scan; members .; echo $r); do
    now
    [ -n "$r" ] && [ $((up - at)) -lt ${KILL_FIRST_AFTER} ] || break
    [ $((up - at)) -lt 1000 ] || kill -KILL $r
    sleep 0.2 || sleep 1
  done 2>/dev/null
}
`

/** For the bundle's own shell, after the command: it reports the end only when everything that was to end has ended. */
export const END_REST = `p=$$; for x in term.*; do rest "$x"; done
`

/**
 * `end KEY SIGNAL` for the host's shell, with `p` from `alive`; all processes are read once a round. A bundle that got no signal
 * yet gets TERM, even when a late order says KILL. Where no mark can be made, the order alone decides. As the job may have
 * written to its directory, only its own cgroup is touched.
 */
export const END_BUNDLE = `me=
end() {
  case $p in ""|*[!0-9]*) return;; esac
  g=; { read -r g <"$1/cgroup"; } 2>/dev/null
  case $g in *..*) g=;; */muster/"$1") ;; *) g=;; esac
  now
  for f in "$1"/term.* ""; do marked "$f" && break; done || at=
  [ -n "$scanned" ] || { scan; scanned=1; }
  if [ -z "$at" ] && { { true >"$1/term.$up"; } 2>/dev/null || [ "$2" = TERM ]; }; then
    members "$1"
    for n in $r; do state "$n" && echo "$n $born"; done >"$1/term.$up"
    kill -TERM "-$p"
    tell "$1"
  elif [ "$2" = KILL ] && [ $((up - \${at:-0})) -ge ${KILL_AFTER} ]; then
    [ -z "$g" ] || echo 1 >"$g/cgroup.kill"
    members "$1"
    [ -z "$r" ] || kill -KILL $r
    [ $((up - \${at:-0})) -lt ${KILL_FIRST_AFTER} ] || kill -KILL "-$p"
  else
    members "$1"
    tell "$1"
  fi
} 2>/dev/null
tell() {
  told=; while read -r n; do told="$told $n"; done <"$1/told"
  for n in $r; do
    state "$n" && [ "$group" != "$p" ] || continue
    case "$r " in *" $parent "*) continue;; esac
    case "$told " in *" $n:$born "*) ;; *) echo "$n:$born" >>"$1/told" && kill -TERM "$n";; esac
  done
}
`
