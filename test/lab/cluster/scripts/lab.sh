# First process of a lab: makes the bridge and the files that every host shares, then lives until its owner is gone.
# It is process 1 of a PID namespace of its own, so that its end is the end of everything in the lab.
# Arguments: DIRECTORY BRIDGE_ADDRESS/PREFIX UNTIL. UNTIL is `end-of-file` (of stdin, which comes when the owner ends) or `killed`.
set -eu
directory=$1
address=$2
until=$3

# /proc is still the machine's, so this is the id by which the owner knows us.
read -r outer _ < /proc/self/stat
for name in all default; do
  echo 1 > /proc/sys/net/ipv6/conf/$name/disable_ipv6 2> /dev/null || true
done
ip -batch - << LINKS
link set lo up
link add muster0 type bridge
addr add $address dev muster0
link set muster0 up
LINKS
# A copy: a mount on a file goes when somebody replaces the file by another, as adduser and apt do on the machine.
mount -t tmpfs -o size=128m,mode=755 tmpfs /mnt
cp -a /etc/. /mnt
mount --move /mnt /etc
for name in passwd hosts resolv.conf profile; do
  [ ! -e "/etc/$name" ] || mount --bind "$directory/etc/$name" "/etc/$name"
done

echo "ready $outer"
exec 3<&0 </dev/null >/dev/null
if [ "$until" = killed ]; then sleep infinity & else cat <&3 & fi
# `wait` also reaps the orphans that a process 1 inherits.
wait $! || true
kill -9 -1 2>/dev/null || true
rm -rf "$directory"
