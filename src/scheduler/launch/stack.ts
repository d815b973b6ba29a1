/** Processes of a rank that are asked: a shell, what it started, and data loaders. */
const MOST_PROCESSES = 4
const MOST_THREADS = 32

/**
 * A program for `sh` that prints where a process of this host and its children are: the Python stack where py-spy is installed and may
 * read it, else the functions of the kernel in which the threads wait. It changes nothing.
 */
export const stackProgram = (pid: number): string => `PATH=$PATH:$HOME/.local/bin
[ -d /proc/${pid} ] || { echo "process ${pid} has ended"; exit; }
s=; command -v py-spy >/dev/null && s=1 || echo "py-spy is not installed on this host (pip install py-spy), so there are no Python stacks"
all="${pid} $(cat /proc/${pid}/task/*/children 2>/dev/null)"
n=0; for p in $all; do
  n=$((n + 1)); [ $n -gt ${MOST_PROCESSES} ] && break
  c=; read -r c </proc/$p/comm || continue
  echo; echo "process $p ($c)"
  [ -n "$s" ] && case $c in *python*) timeout 8 py-spy dump --pid $p 2>&1 && continue;; esac
  for t in /proc/$p/task/*; do
    c=; read -r c <$t/comm
    w=; read -r w <$t/wchan; [ "\${w:-0}" = 0 ] && w="the program itself, or not known"
    echo "  thread \${t##*/} ($c) is in $w"
  done | head -n ${MOST_THREADS}
done 2>/dev/null`
