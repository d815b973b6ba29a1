# Plugs a host into the bridge, then becomes its first process (host-init.sh) in PID and mount namespaces of its own.
# Runs in the lab's PID namespace and in the host's own network and UTS namespace.
# Arguments: SCRIPTS DIRECTORY NAME ADDRESS/PREFIX LAB_PID HARDWARE_ADDRESS
set -eu
scripts=$1
directory=$2
name=$3
address=$4
lab=$5
hardware=$6

for each in all default; do
  echo 1 > /proc/sys/net/ipv6/conf/$each/disable_ipv6 2> /dev/null || true
done
echo "$name" > /proc/sys/kernel/hostname
# Process 1 of this PID namespace is the lab: the other end of the cable goes to its network.
# The hardware address stays the same over a reboot, or the neighbours would send to the old one for a while.
ip -batch - << LINKS
link add eth0 address $hardware type veth peer name $name netns 1
addr add $address dev eth0
link set lo up
link set eth0 up
LINKS
nsenter --target "$lab" --net ip link set "$name" master muster0 up
unshare --mount --pid --fork sh "$scripts/host-init.sh" "$directory" &
