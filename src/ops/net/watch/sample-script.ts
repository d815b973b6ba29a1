/**
 * The script that runs on a watched host: one line of POSIX sh without apostrophes, backslashes, exclamation marks or percent
 * signs, so that any login shell passes it to sh unchanged. Once a second one sed prints the kernel's counters, and a line `=`
 * ends the sample. Slow programs (df, tools of graphics cards) run rarely.
 */

/** proc(5): the lines that are printed from each file; the parser recognises them by their shape. */
const PICK = [
  '/^[0-9][0-9.]* [0-9][0-9.]*$/p', // uptime
  '/^[0-9.]* [0-9.]* [0-9.]* [0-9]*.[0-9]* [0-9]*$/p', // loadavg
  '/^cpu /p',
  ...['MemTotal', 'MemAvailable', 'MemFree', 'Buffers', 'Cached', 'SwapTotal', 'SwapFree'].map(
    (name) => `/^${name}:/p`,
  ),
  '/^pswpin /p;/^pswpout /p',
  // net/dev; the lines of mountstats have fewer numbers.
  `/^ *[^ :]*: *[0-9][0-9]*${'  *[0-9][0-9]*'.repeat(9)}/p`,
  '/ [shv]d[a-z]* [0-9]/p;/ xvd[a-z]* [0-9]/p;/ nvme[0-9]*n[0-9]* [0-9]/p;/ mmcblk[0-9]* [0-9]/p;/ ubd[a-z]* [0-9]/p', // diskstats
  '/^device .* mounted on /p;/bytes:/p;/READ:/p;/WRITE:/p;/GETATTR:/p', // mountstats
].join(';')

const FILES = '/proc/uptime /proc/loadavg /proc/stat /proc/meminfo /proc/vmstat /proc/net/dev /proc/diskstats'
const NVIDIA = 'index,uuid,name,utilization.gpu,memory.used,memory.total,temperature.gpu,power.draw'
const tagged = (tag: string) => `while read -r l; do echo "${tag} $l" || exit; done`
/** How many samples pass between two calls of df. */
const SELDOM = 15

export const WATCH_SCRIPT = [
  'LC_ALL=C; export LC_ALL; PATH="$PATH:/usr/local/bin:/usr/sbin:/sbin:/opt/rocm/bin"',
  'if [ -r /proc/stat ] && [ -r /proc/meminfo ]; then :; else echo none; exit 0; fi',
  'c=0; while read -r w x; do case $w in cpu[0-9]*) c=$((c+1));; intr) break;; esac; done </proc/stat; echo "cores $c"',
  `if command -v nvidia-smi >/dev/null 2>&1; then nvidia-smi --query-gpu=${NVIDIA} --format=csv,noheader,nounits -l 5 2>/dev/null | ${tagged('nvidia')} & nvidia-smi --query-compute-apps=gpu_uuid,pid,used_memory --format=csv,noheader,nounits -l 5 2>/dev/null | ${tagged('nvproc')} & fi`,
  `if command -v rocm-smi >/dev/null 2>&1; then while :; do rocm-smi --showproductname --showuse --showmeminfo vram --showtemp --showpower --csv 2>/dev/null | ${tagged('rocm')}; sleep 30; done & fi`,
  `n=0; while :; do if [ $n = 0 ]; then m=; if grep -q " nfs4* " /proc/mounts; then m=/proc/self/mountstats; fi; { df -Pkl 2>/dev/null || df -Pk / 2>/dev/null; } | ${tagged('fs')}; n=${SELDOM}; fi; sed -n "${PICK}" ${FILES} $m 2>/dev/null; echo "=" || exit; n=$((n-1)); sleep 1 || exit; done`,
].join('; ')
