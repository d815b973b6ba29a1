# First process of a host: private /root, /run, /tmp, /dev/pts, /proc and /sys over a read-only view of the machine's files,
# and an sshd. Arguments: DIRECTORY (the host's files, seen inside as /run/lab). Prints `ready PID` with the machine's process id.
set -eu
directory=$1

read -r outer _ < /proc/self/stat
# Before the places where their sources are vanish behind the host's own.
while read -r place source; do
  mount --bind "$source" "$place"
  mount -o remount,bind,ro "$place"
done < "$directory/mounts"
mount -t tmpfs -o size=64m,mode=755 tmpfs /run
mkdir /run/sshd /run/lab /run/lock
mount --bind "$directory" /run/lab
mount --bind "$directory/passwd" /etc/passwd
mount --bind "$directory/home" /root
mount -t devpts -o newinstance,ptmxmode=0666,mode=620,gid=5 devpts /dev/pts
mount --bind /dev/pts/ptmx /dev/ptmx
mount -t sysfs sysfs /sys
mount -t proc proc /proc
mount -o remount,bind,ro /etc
mount -o remount,bind,ro /
cd /
mount -t tmpfs -o size=256m,mode=1777 tmpfs /tmp

env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
  /usr/sbin/sshd -f /run/lab/sshd_config -E /run/lab/sshd.log </dev/null >/dev/null || { status=$?; cat /run/lab/sshd.log >&2; exit $status; }
# Process 1 may not end; `wait` reaps orphans meanwhile. Whoever ends the `sleep` gets another one, not a busy loop.
# The first one runs before the host is ready: a test that lists the processes of an idle host sees it.
sleep infinity </dev/null >/dev/null 2>&1 &
echo "ready $outer"
exec </dev/null >/dev/null 2>&1
while :; do wait; sleep infinity & done
