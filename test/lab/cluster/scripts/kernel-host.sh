# Plugs a kernel host into the bridge and becomes it: User-Mode Linux, its disk a copy-on-write file over the image.
# Runs in the lab's network, mount and PID namespaces. Prints `ready PID` with the machine's process id before the boot;
# what the guest writes to its console is in console.log.
# Arguments: DIRECTORY (the host's files, seen inside as /run/lab) IMAGE NAME ADDRESS/PREFIX HARDWARE_ADDRESS INIT PRELOAD (a library, or empty)
set -eu
directory=$1
image=$2
name=$3
address=$4
hardware=$5
init=$6
preload=$7

# The id by which the owner knows us: /proc is the machine's.
read -r outer _ < /proc/self/stat
ip link show dev "$name" > /dev/null 2>&1 || ip tuntap add dev "$name" mode tap
ip link set "$name" master muster0 up
echo "ready $outer"
# One processor for all processes of a guest, another for the next guest: to pass control between processes is what UML does
# all the time, and from one processor to another it takes ten times as long, in a virtual machine at least.
processors=$(sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' /proc/self/status | tr ',' '\n' | while IFS=- read -r first last; do
  seq "$first" "${last:-$first}"
done)
number=${address%/*}
number=${number##*.}
processor=$(echo "$processors" | sed -n "$((number % $(echo "$processors" | wc -l) + 1))p")
# Memory is a file: one in /dev/shm never reaches a disk.
exec env -i ${preload:+LD_PRELOAD="$preload"} PATH="$PATH" HOME="$directory" TMPDIR=/dev/shm setsid taskset --cpu-list "$processor" linux.uml \
  "ubda=$directory/disk.cow,$image" root=/dev/ubda rw mem=256M "init=$init" "hostfs=$directory" "uml_dir=$directory/uml" umid="$name" \
  "vec0:transport=tap,ifname=$name,depth=128,gro=1,mac=$hardware" con=null con0=null,fd:1 \
  ipv6.disable=1 systemd.show_status=0 "lab.name=$name" "lab.address=$address" < /dev/null >> "$directory/console.log" 2>&1
