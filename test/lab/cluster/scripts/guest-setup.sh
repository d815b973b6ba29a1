#!/bin/sh
# What a kernel host does before its services: its files out of the lab (seen as /run/lab), its name and its address.
# The kernel's command line carries lab.name=NAME and lab.address=ADDRESS/PREFIX.
set -eu
for word in $(cat /proc/cmdline); do
  case $word in
    lab.name=*) name=${word#*=} ;;
    lab.address=*) address=${word#*=} ;;
  esac
done
mkdir -p /run/lab /run/sshd
mount -t hostfs none /run/lab
# The first boot; what the host changes afterwards stays.
if [ ! -e /etc/hostname ]; then
  cp -r /run/lab/home/. /root/
  cp /run/lab/hosts /etc/hosts
  echo "$name" > /etc/hostname
fi
echo "$name" > /proc/sys/kernel/hostname
ip link set lo up
ip link set vec0 name eth0
ip addr add "$address" dev eth0
ip link set eth0 up
