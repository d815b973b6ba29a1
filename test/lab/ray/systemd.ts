/**
 * A real systemd on a host of a lab: process 1 of a PID namespace and root of a cgroup of its own, which starts the host's sshd and
 * what is asked for over it. It knows the units of the test and no others: those of this machine would do what they do to a machine
 * that starts (empty /tmp, for one).
 */
import { waitUntil } from '../../support/wait-until.ts'
import type { LabHost } from '../cluster/host.ts'
import { run } from '../cluster/run.ts'

const PATIENCE_MS = 60_000
const TARGETS = ['default', 'sysinit', 'basic', 'shutdown', 'multi-user', 'network-online']

/** Where the login `LOGIN` is at home. */
export const LOGIN_HOME = '/run/ray'
export const LOGIN = 'ray'
const LOGIN_ID = 1000

/** Ends with the host; then `removeCgroup`. */
export async function startSystemd(host: LabHost, cgroup: string): Promise<void> {
  await start(host, cgroup, '', '')
}

/**
 * The same with the login `LOGIN` and a manager of its own, which begins with the machine: what logind does for logins that root
 * lets linger. There is no logind, and nobody whom the login could ask for it.
 */
export async function startLoginSystemd(host: LabHost, cgroup: string): Promise<void> {
  const script = `echo '${LOGIN}:x:${LOGIN_ID}:${LOGIN_ID}::${LOGIN_HOME}:/bin/bash' >> /etc/passwd
mkdir -p ${LOGIN_HOME}/.ssh /run/user/${LOGIN_ID} /run/login-units
cp /root/.ssh/authorized_keys ${LOGIN_HOME}/.ssh
chown -R ${LOGIN_ID}:${LOGIN_ID} ${LOGIN_HOME} /run/user/${LOGIN_ID}
chmod 700 /run/user/${LOGIN_ID}
mount -t tmpfs tmpfs /var/lib/systemd
mkdir /var/lib/systemd/linger
: > /var/lib/systemd/linger/${LOGIN}
cp /run/units/*.target /run/login-units
cat > /run/units/user@.service << 'MANAGER'
[Unit]
DefaultDependencies=no
[Service]
Type=notify
User=%i
Environment=XDG_RUNTIME_DIR=/run/user/%i SYSTEMD_UNIT_PATH=/run/login-units:${LOGIN_HOME}/.config/systemd/user
ExecStart=/lib/systemd/systemd --user
Delegate=yes
KillMode=mixed
MANAGER
ln -s ../user@.service /run/units/default.target.wants/user@${LOGIN_ID}.service
`
  await start(host, cgroup, script, ` && [ -S /run/user/${LOGIN_ID}/systemd/private ]`)
}

async function start(host: LabHost, cgroup: string, more: string, condition: string): Promise<void> {
  const script = `set -e
# Nothing of the machine may be within its reach.
if touch /usr/own 2> /dev/null; then echo 'the host can write to /usr' >&2; exit 1; fi
mount -t tmpfs tmpfs /etc/systemd/system
mkdir -p /run/units /run/cgroups
for t in ${TARGETS.join(' ')}; do
  printf '[Unit]\\nDefaultDependencies=no\\nAllowIsolate=yes\\n' > /run/units/$t.target
done
cat > /run/units/sshd.service << 'SSHD'
[Unit]
DefaultDependencies=no
[Service]
ExecStart=/usr/sbin/sshd -D -f /run/lab/sshd_config -E /run/lab/sshd.log
KillMode=process
SSHD
mkdir /run/units/default.target.wants
ln -s ../sshd.service /run/units/default.target.wants/
${more}mount -t cgroup2 cgroup2 /run/cgroups
mkdir /run/cgroups/${cgroup}
cat > /run/systemd-first << 'FIRST'
mount --make-rprivate /
mount -t proc proc /proc
mount -t cgroup2 cgroup2 /sys/fs/cgroup
exec env -i PATH="$PATH" container=lab SYSTEMD_UNIT_PATH=/run/units:/etc/systemd/system SYSTEMD_GENERATOR_PATH=/run/units \\
  /lib/systemd/systemd --system --unit=default.target --log-target=console --show-status=0
FIRST
setsid sh -c 'echo $$ > /run/cgroups/${cgroup}/cgroup.procs; umount /run/cgroups
  exec unshare --cgroup --mount --pid --fork --kill-child sh /run/systemd-first' > /run/systemd-log 2>&1 < /dev/null &`
  await host.killSshd()
  const { code, stderr } = await host.exec(script)
  if (code !== 0) throw new Error(`systemd on ${host.name}: ${stderr}`)
  const isReady = async () => (await host.exec(`ss -H -l -t -n | grep -q :22${condition}`)).code === 0
  await waitUntil(isReady, `systemd on ${host.name}`, PATIENCE_MS)
}

/** Once nothing runs in it. */
export async function removeCgroup(cgroup: string): Promise<void> {
  const script = `mount -t cgroup2 cgroup2 /mnt && cd /mnt && [ ! -d ${cgroup} ] || find ${cgroup} -depth -type d -exec rmdir {} +`
  const isGone = async () => (await run(['unshare', '--mount', 'sh', '-c', script])).code === 0
  await waitUntil(isGone, `the end of the cgroup ${cgroup}`, PATIENCE_MS)
}
