/** Processes of a rank that are asked: a shell, what it started, and data loaders. */
const MOST_PROCESSES = 4
const MOST_THREADS = 32

/**
 * A program for `sh` that prints where a process of this host and those below it are: the Python stack where py-spy is installed and
 * may read it, else the functions of the kernel in which the threads wait. It changes nothing.
 */
export const stackProgram = (pid: number): string => `PATH=$PATH:$HOME/.local/bin
[ -d /proc/${pid} ] || { echo "process ${pid} has ended"; exit; }
s=; command -v py-spy >/dev/null && s=1 || echo "py-spy is not installed on this host (pip install py-spy), so there are no Python stacks"
set -- ${pid}; n=0
while [ $# -gt 0 ] && [ $n -lt ${MOST_PROCESSES} ]; do
  p=$1; n=$((n + 1)); shift
  set -- "$@" $(cat /proc/$p/task/*/children)
  c=; read -r c </proc/$p/comm || continue
  echo; echo "process $p ($c)"
  [ -n "$s" ] && case $c in *python*) timeout 8 py-spy dump --pid $p 2>&1 && continue;; esac
  for t in /proc/$p/task/*; do
    c=; read -r c <$t/comm
    w=; read -r w <$t/wchan; [ "\${w:-0}" = 0 ] && w="the program itself, or not known"
    echo "  thread \${t##*/} ($c) is in $w"
  done | head -n ${MOST_THREADS}
done 2>/dev/null`
