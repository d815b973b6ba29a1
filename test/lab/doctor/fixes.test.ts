/** Problems that `muster doctor` finds on real hosts: once its fix has run there, it finds nothing more. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { PROGRAM } from '../../support/console-options.ts'
import { requirement } from '../../support/requirements.ts'
import { type Lab, startLab } from '../cluster/lab.ts'

const canRun = requirement('root', 'namespaces', 'sshd', 'ip', 'nsenter', 'tc', 'sudo')

type Trouble = {
  /** Of the finding. */
  readonly id: string
  readonly gravity: 'blocker' | 'risk' | 'note'
  /** Run on the host as root, before. */
  readonly make?: string
  readonly bashrc?: string
  readonly sshdOptions?: Readonly<Record<string, string>>
  /** What the fix prints if it only shows where the problem is; `cure` then solves it. */
  readonly shows?: RegExp
  readonly cure?: string
  /** Where the fix runs; on the host unless given. */
  readonly where?: 'here'
  /** The fix needs what a lab host lacks: a service manager, a package mirror. */
  readonly isOnlyFound?: true
}

const fake = (path: string, text: string) => `printf '${text}' > /run/fake && mount --bind /run/fake ${path}`
const FAKE_MEMORY = 'MemTotal: 8000000 kB\\nMemAvailable: 20000 kB\\nSwapTotal: 0 kB\\nSwapFree: 0 kB\\n'
const UNREACHED =
  '#!/bin/sh\\necho "NVIDIA-SMI has failed because it could not communicate with the NVIDIA driver."; exit 9\\n'
const PARTIAL = '.muster-0123456789abcdef'
const FILL_INODES = 'n=0; while touch /tmp/file-$n 2> /dev/null; do n=$((n + 1)); done'
/** A user who has to give a password to sudo; /etc is read-only on lab hosts. */
const ANN = `mkdir -p files && mount -t tmpfs none /home && mkdir -p /home/ann/.ssh
{ cat /etc/passwd; echo 'ann:x:1555:1555::/home/ann:/bin/bash'; } > files/passwd
{ cat /etc/shadow; echo 'ann:*:19000:0:99999:7:::'; } > files/shadow
printf 'root ALL=(ALL:ALL) ALL\\nann ALL=(ALL:ALL) ALL\\n@includedir /etc/sudoers.d\\n' > files/sudoers
chmod 644 files/passwd; chmod 640 files/shadow; chmod 440 files/sudoers
for name in passwd shadow sudoers; do mount --bind files/$name /etc/$name; done
mount -t tmpfs -o mode=755 none /etc/sudoers.d
cp .ssh/authorized_keys /home/ann/.ssh/ && chown -R 1555:1555 /home/ann && chmod 700 /home/ann/.ssh`

const TROUBLES: Readonly<Record<string, Trouble>> = {
  prints: { id: 'startup-prints', gravity: 'risk', bashrc: 'echo hello\n' },
  complains: { id: 'startup-complains', gravity: 'note', bashrc: 'no-such-program\n' },
  lossy: {
    id: 'mtu',
    gravity: 'blocker',
    make: 'tc qdisc replace dev eth0 root tbf rate 1gbit burst 1300b latency 50ms',
  },
  noexec: { id: 'tmp-noexec', gravity: 'risk', make: 'mount -t tmpfs -o noexec tmpfs /tmp' },
  shm: { id: 'shm-small', gravity: 'note', make: 'mount -t tmpfs -o size=16m tmpfs /dev/shm' },
  full: {
    id: 'disk-full',
    gravity: 'blocker',
    make: 'mount -t tmpfs -o size=8m tmpfs /tmp && head -c 7m /dev/zero > /tmp/file',
    shows: /\/tmp$/m,
    cure: 'rm /tmp/file',
  },
  inodes: {
    id: 'inodes-full',
    gravity: 'blocker',
    make: `mount -t tmpfs -o nr_inodes=200 tmpfs /tmp && ${FILL_INODES}; :`,
    shows: /^200\t\/tmp$/m,
    cure: 'rm /tmp/file-*',
  },
  memory: {
    id: 'memory-full',
    gravity: 'blocker',
    make: fake('/proc/meminfo', FAKE_MEMORY),
    shows: /sshd/,
    cure: 'umount /proc/meminfo',
  },
  busy: {
    id: 'load',
    gravity: 'risk',
    make: fake('/proc/loadavg', '999.00 999.00 999.00 1/100 1\\n'),
    shows: /sshd/,
    cure: 'umount /proc/loadavg',
  },
  gpus: {
    id: 'gpus-fail',
    gravity: 'risk',
    make: `mount -t tmpfs none /usr/local/sbin && printf '${UNREACHED}' > /usr/local/sbin/nvidia-smi && chmod 755 /usr/local/sbin/nvidia-smi`,
    isOnlyFound: true,
  },
  asks: { id: 'sudo-password', gravity: 'note', make: ANN },
  snakeless: {
    id: 'python-missing',
    gravity: 'note',
    make: 'for name in python3 python; do [ ! -e /usr/bin/$name ] || mount --bind /dev/null /usr/bin/$name; done',
    isOnlyFound: true,
  },
  startups: { id: 'max-startups', gravity: 'risk', sshdOptions: { MaxStartups: '2' }, isOnlyFound: true },
  partial: {
    id: 'unfinished-copies',
    gravity: 'note',
    make: `mkdir -p data && cd data && : > ${PARTIAL}.m9.7 && : > ${PARTIAL}.m9.8 && touch -d '8 days ago' ${PARTIAL}.m9.7`,
    where: 'here',
  },
  files: { id: 'open-files', gravity: 'risk', bashrc: 'ulimit -n 200\n', isOnlyFound: true },
}
const NAMES = Object.keys(TROUBLES)

type Finding = {
  readonly host: string
  readonly id: string
  readonly gravity: string
  readonly detail?: string
  readonly fix?: { readonly where: string; readonly command: string }
}

describe.skipIf(!canRun)('the fixes that muster doctor suggests', () => {
  let lab: Lab
  let before: readonly Finding[]
  let after: readonly Finding[]
  const shown = new Map<string, string>()

  const doctor = async (): Promise<readonly Finding[]> => {
    const target = NAMES.map((name) => (name === 'asks' ? 'ann@asks' : name)).join(',')
    const { stdout } = await lab.run([...PROGRAM, '--hosts', lab.hostsFile, 'doctor', target, '--json'])
    return stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Finding & { readonly type: string })
      .filter(({ type }) => type === 'finding')
  }
  const find = (findings: readonly Finding[], name: string) =>
    findings.find(({ host, id }) => host.replace('ann@', '') === name && id === TROUBLES[name]?.id)
  const mustExec = async (name: string, command: string): Promise<string> => {
    const { code, stdout, stderr } = await lab.host(name).exec(command)
    if (code !== 0) throw new Error(`${name}: ${command}: exit ${code}: ${stderr}`)
    return stdout
  }

  beforeAll(async () => {
    lab = await startLab({
      names: NAMES,
      perHost: (name) => {
        const { bashrc, sshdOptions } = TROUBLES[name] ?? {}
        return { ...(bashrc === undefined ? {} : { bashrc }), ...(sshdOptions === undefined ? {} : { sshdOptions }) }
      },
    })
    for (const [name, { make }] of Object.entries(TROUBLES)) if (make !== undefined) await mustExec(name, make)
    before = await doctor()
    for (const [name, { isOnlyFound, cure }] of Object.entries(TROUBLES)) {
      const fix = find(before, name)?.fix
      if (fix === undefined || isOnlyFound) continue
      if (fix.where === 'here') {
        const [, verb = '', ...words] = fix.command.split(' ')
        await lab.run([...PROGRAM, '--hosts', lab.hostsFile, verb, name, ...words, '--yes'])
      } else shown.set(name, await mustExec(name, fix.command))
      if (cure !== undefined) await mustExec(name, cure)
    }
    after = await doctor()
  })
  afterAll(async () => await lab?.stop())

  it.each(NAMES)('finds the problem of %s', (name) => {
    const { gravity, where = 'host' } = TROUBLES[name] ?? {}
    expect(find(before, name)).toMatchObject({ gravity, fix: { where } })
  })

  it.each(NAMES.filter((name) => TROUBLES[name]?.shows !== undefined))('shows where the problem of %s is', (name) => {
    expect(shown.get(name)).toMatch(TROUBLES[name]?.shows as RegExp)
  })

  it.each(NAMES.filter((name) => !TROUBLES[name]?.isOnlyFound))('finds no problem on %s after the fix', (name) => {
    // The machine that the lab runs on may be busy itself.
    if (name === 'busy') expect(find(after, name)?.detail ?? '').not.toContain('load 999')
    else expect(find(after, name)).toBeUndefined()
  })

  it('names the phase in which a host could not be reached', async () => {
    await lab.host('shm').killSshd()
    const { stdout, code } = await lab.run([...PROGRAM, '--hosts', lab.hostsFile, 'doctor', 'shm,root@ghost.invalid'])
    expect(stdout).toMatch(/^blocker {2}shm: unreachable \(tcp\): .*connection refused/m)
    expect(stdout).toMatch(/^blocker {2}\S*ghost\.invalid: unreachable \(name\): /m)
    expect(code).toBe(4)
  })
})
