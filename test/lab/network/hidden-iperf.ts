/** Hosts of the lab without iperf, where apt can install it. */
/** Hides a program on a host of the lab. */
export const hide = (program: string) => `mount --bind /dev/null /usr/bin/${program}`

/** A lab reaches no package archive: a fake apt-get shows and hides the iperf3 that is already there. */
export const PACKAGES = `mount -t tmpfs tmpfs /var/lib && mkdir /run/apt && touch /var/lib/archive
cat > /run/apt/dpkg-query << 'END'
#!/bin/sh
test -x /usr/bin/iperf3 && echo installed iperf3 3.12
END
cat > /run/apt/apt-get << 'END'
#!/bin/sh
case " $* " in
*' -s '*) echo 'Inst iperf3 (3.12 Debian)' ;;
*' install iperf3 '*) umount /usr/bin/iperf3; echo install iperf3 >> /var/lib/archive ;;
*' purge iperf3 '*) mount --bind /dev/null /usr/bin/iperf3; echo purge iperf3 >> /var/lib/archive ;;
*) exit 1 ;;
esac
END
chmod 755 /run/apt/*
for program in apt-get dpkg-query; do mount --bind /run/apt/$program /usr/bin/$program; done`
