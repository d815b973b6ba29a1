# Builds the root file system of kernel hosts: Debian 12 with an SSH server, the NFS server and client, and the modules of the
# User-Mode Linux kernel that is installed here. Runs in mount and PID namespaces of its own, so that its end leaves nothing.
# Arguments: IMAGE (the file to write) MODULES (lib/modules/VERSION of that kernel).
set -eu
image=$1
modules=$2
scripts=$(dirname "$0")

# Everything but the result stays in memory: unpacking is thousands of small files.
mount -t tmpfs -o size=2g,mode=755 tmpfs /mnt
root=/mnt/root

packages=openssh-server,nfs-kernel-server,nfs-common,kmod,iproute2,iputils-ping,procps,psmisc,sudo,systemd-sysv
mmdebstrap --quiet --variant=minbase --include="$packages" \
  --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
  --dpkgopt=force-unsafe-io \
  --customize-hook='mkdir "$1/var/local/packages" && cd "$1/var/local/packages" && APT_CONFIG=$MMDEBSTRAP_APT_CONFIG apt-get -q download nfs-kernel-server' \
  bookworm "$root"

# Where a guest without a network installs packages from; the index as dpkg-scanpackages(1) writes it.
(
  cd "$root/var/local/packages"
  for file in *.deb; do
    chroot "$root" dpkg-deb -f "/var/local/packages/$file"
    printf 'Filename: ./%s\nSize: %s\nSHA256: %s\n\n' "$file" "$(stat -c %s "$file")" "$(sha256sum "$file" | cut -d ' ' -f 1)"
  done > Packages
)
echo 'deb [trusted=yes] file:/var/local/packages ./' > "$root/etc/apt/sources.list"
rm -rf "$root"/etc/apt/sources.list.d/* "$root"/var/lib/apt/lists/*
chroot "$root" apt-get -q update

mkdir -p "$root/lib/modules"
version=$(basename "$modules")
mkdir "$root/lib/modules/$version" "$root/lib/modules/$version/kernel"
cp -a "$modules"/modules.* "$root/lib/modules/$version/"
for part in fs net lib crypto; do
  cp -a "$modules/kernel/$part" "$root/lib/modules/$version/kernel/"
done
chroot "$root" depmod "$version"

install -m 755 "$scripts/guest-setup.sh" "$root/sbin/lab-setup"
install -m 755 "$scripts/guest-init.sh" "$root/sbin/lab-init"
rm -f "$root"/etc/ssh/ssh_host_* "$root/etc/hostname" "$root/etc/resolv.conf"
: > "$root/etc/fstab"
: > "$root/etc/machine-id"
# A server that starts again holds back every open for this long; the default is 90 s.
mkdir -p "$root/etc/nfs.conf.d"
printf '[nfsd]\ngrace-time=10\nlease-time=10\n' > "$root/etc/nfs.conf.d/lab.conf"

units=$root/etc/systemd/system
cat > "$units/lab-setup.service" << 'UNIT'
[Unit]
DefaultDependencies=no
After=systemd-remount-fs.service
Before=sysinit.target
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/sbin/lab-setup
[Install]
WantedBy=sysinit.target
UNIT
mkdir "$units/ssh.service.d"
cat > "$units/ssh.service.d/lab.conf" << 'UNIT'
[Service]
ExecStartPre=
ExecStart=
ExecStart=/usr/sbin/sshd -D -f /run/lab/sshd_config -E /run/lab/sshd.log
ExecStartPost=/bin/sh -c 'echo lab: ready > /dev/console'
UNIT
chroot "$root" systemctl --quiet enable lab-setup.service
# What only costs time in a guest that lives for a minute, and the services that are for the one at the keyboard to start.
chroot "$root" systemctl --quiet disable nfs-server.service nfs-blkmap.service e2scrub_reap.service
chroot "$root" systemctl --quiet mask apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer \
  fstrim.timer getty.target systemd-pstore.service systemd-update-utmp.service systemd-update-utmp-runlevel.service
chroot "$root" systemctl --quiet set-default multi-user.target
chroot "$root" update-rc.d nfs-kernel-server disable

truncate -s 1G /mnt/disk
mkfs.ext4 -q -d "$root" /mnt/disk
cp --sparse=always /mnt/disk "$image.new"
mv "$image.new" "$image"
