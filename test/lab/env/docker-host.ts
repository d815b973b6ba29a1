/** Docker's daemon on hosts of a lab: one each, without a bridge, its files in the host's own home directory. */
import { waitUntil } from '../../support/wait-until.ts'
import type { LabHost } from '../cluster/host.ts'

const PATIENCE_MS = 60_000

/** Ends with the host. */
export async function startDocker(host: LabHost): Promise<void> {
  // Whatever is called docker on this machine, it is Debian's that is asked here.
  const script = `[ ! -e /usr/local/bin/docker ] || mount --bind /usr/bin/docker /usr/local/bin/docker
# The controllers as this machine has them: each by itself (version 1), or all together.
mount -t tmpfs cgroup /sys/fs/cgroup
each=$(sed -n 's/^\\([a-z_]*\\)\\t[1-9].*\\t1$/\\1/p' /proc/cgroups)
for c in $each; do mkdir /sys/fs/cgroup/$c && mount -t cgroup -o $c cgroup /sys/fs/cgroup/$c || rmdir /sys/fs/cgroup/$c; done
# By its name, as every process has it: without it nothing can be run in a container that runs.
[ -z "$each" ] || { mkdir /sys/fs/cgroup/systemd && mount -t cgroup -o none,name=systemd cgroup /sys/fs/cgroup/systemd || rmdir /sys/fs/cgroup/systemd; }
[ -n "$each" ] || mount -t cgroup2 cgroup2 /sys/fs/cgroup
mkdir /run/lab/docker
echo '{ "deprecated-key-path": "/run/docker-key.json" }' > /run/docker.json`
  const { code, stderr } = await host.exec(script)
  if (code !== 0) throw new Error(`Docker on ${host.name}: ${stderr}`)
  await runDocker(host)
}

/** Again, too, after it was stopped: what it has is there. */
export async function runDocker(host: LabHost): Promise<void> {
  const script = `exec setsid /usr/sbin/dockerd --config-file /run/docker.json --data-root /run/lab/docker/data --exec-root /run/docker-exec --host unix:///run/docker.sock \\
  --pidfile /run/docker.pid --storage-driver vfs --bridge none --iptables=false --ip6tables=false > /run/lab/docker/log 2>&1 < /dev/null &`
  const { code, stderr } = await host.exec(script)
  if (code !== 0) throw new Error(`dockerd on ${host.name}: ${stderr}`)
  const isReady = async () => (await host.exec('docker version')).code === 0
  await waitUntil(isReady, `Docker on ${host.name}`, PATIENCE_MS)
}

export async function stopDocker(host: LabHost): Promise<void> {
  await host.exec('kill $(cat /run/docker.pid)')
  const isGone = async () => (await host.exec('test -e /run/docker.pid')).code !== 0
  await waitUntil(isGone, `the end of Docker on ${host.name}`, PATIENCE_MS)
}
