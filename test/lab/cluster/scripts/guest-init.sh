#!/bin/sh
# First process of a kernel host without systemd: mounts, the services of runlevel 2 that are switched on, an sshd. It does what
# sysvinit with its initscripts does, as far as NFS needs it; services are managed with `service` and update-rc.d.
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev 2> /dev/null
mkdir -p /dev/pts /dev/shm
mount -t devpts -o mode=620,gid=5,ptmxmode=666 devpts /dev/pts
mount -t tmpfs -o size=64m,mode=755 tmpfs /run
mount -t tmpfs -o mode=1777 tmpfs /tmp
mkdir -p /run/lock /run/sendsigs.omit.d
mount -o remount,rw /
/sbin/lab-setup || exec poweroff -f
/usr/sbin/sshd -f /run/lab/sshd_config -E /run/lab/sshd.log < /dev/null
for script in /etc/rcS.d/S*rpcbind /etc/rcS.d/S*nfs-common /etc/rc2.d/S*nfs-kernel-server; do
  [ ! -x "$script" ] || "$script" start < /dev/null
done
mount -a -t nfs,nfs4 < /dev/null &
echo 'lab: ready' > /dev/console
exec < /dev/null > /dev/null 2>&1
# Process 1 may not end; `wait` reaps orphans meanwhile.
sleep infinity &
while :; do wait; done
