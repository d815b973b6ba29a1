/** `muster job work --install`: a queue that lives without a terminal, kept by a real systemd (of the system, of a login) or by what cron starts. */
import { basename } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { PROGRAM, ROOT } from '../../support/console-options.ts'
import { requirement } from '../../support/requirements.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { type Lab, startLab } from '../cluster/lab.ts'
import type { RunResult } from '../cluster/run.ts'
import { LOGIN, LOGIN_HOME, removeCgroup, startLoginSystemd, startSystemd } from '../ray/systemd.ts'

const canRun = requirement('root', 'namespaces', 'sshd', 'ip', 'ssh', 'flock', 'systemctl')

const PATIENCE_MS = 90_000
const HOSTS = `cluster: "of mine"
hosts: { here: { transport: local, resources: { cpu: 2, gpu: 0, memory: 1GiB } } }
`
/** Where hosts see this repository: its own place may lie below a directory that each host has for itself, as /tmp. */
const HERE = '/mnt'
const UNIT = 'muster-job-of_mine-e1ad4cc1.service'
const FILES = `find . /etc/systemd/system -newer started \\( -type f -o -type l \\) ! -path '*/tsx-*' | sort`
/** Like crontab(1), which no lab host has: prints, replaces and removes the login's table. */
const CRONTAB = `#!/bin/sh
case $1 in
  -l) [ -e ~/.table ] || { echo "no crontab for $(id -un)" >&2; exit 1; }; cat ~/.table;;
  -) cat > ~/.table;;
  -r) rm ~/.table;;
  *) exit 2;;
esac
`

describe.skipIf(!canRun)('muster job work as a service', { timeout: 400_000 }, () => {
  let lab: Lab
  let cgroup = ''

  /** A command of the login on the host, through its sshd: where systemd is, its own namespaces are behind that. */
  const shell = async (host: string, login: string, command: string): Promise<RunResult> =>
    await lab.run(['ssh', '-o', 'BatchMode=yes', `${login}@${lab.host(host).address}`, command], { timeoutMs: 200_000 })
  const must = async (host: string, login: string, command: string): Promise<string> => {
    const { code, stdout, stderr } = await shell(host, login, command)
    if (code !== 0) throw new Error(`${command} on ${host}: exit ${code}\n${stdout}${stderr}`)
    return stdout
  }
  const words = [...PROGRAM].join(' ').replaceAll(`${ROOT}/`, `${HERE}/`)
  const muster = (...args: readonly string[]) => `PATH=/run/bin:$PATH ${words} --hosts hosts.yaml ${args.join(' ')}`

  beforeAll(async () => {
    lab = await startLab({ names: ['s1', 'u1', 'c1'], mounts: { [HERE]: ROOT } })
    cgroup = basename(lab.directory)
  }, 200_000)
  afterAll(async () => {
    await lab?.stop()
    if (cgroup !== '') for (const host of ['s1', 'u1']) await removeCgroup(`${cgroup}-${host}`)
  })

  const kept = [
    { host: 's1', login: 'root', by: 'the systemd of the system', ctl: 'systemctl' },
    {
      host: 'u1',
      login: LOGIN,
      by: 'the systemd of the login',
      ctl: 'XDG_RUNTIME_DIR=/run/user/$(id -u) systemctl --user',
    },
    { host: 'c1', login: 'root', by: 'cron', ctl: '' },
  ]
  it.each(kept)('under $by it works, restarts when killed and is removed without a trace', async ({
    host,
    login,
    ctl,
  }) => {
    const isCron = ctl === ''
    if (host === 's1') await startSystemd(lab.host(host), `${cgroup}-${host}`)
    if (host === 'u1') await startLoginSystemd(lab.host(host), `${cgroup}-${host}`)
    if (isCron)
      await must(
        host,
        login,
        `mkdir -p /run/bin; printf '%s' '${CRONTAB}' > /run/bin/crontab; chmod 755 /run/bin/crontab; echo '5 4 * * * true' > .table`,
      )
    await must(host, login, `printf '%s' '${HOSTS}' > hosts.yaml; : > started; sleep 0.1`)
    const submit = async (command = 'true') =>
      (await must(host, login, muster('job', 'submit', '--', `'${command}'`))).trim()
    const isDone = async (id: string) =>
      (await must(host, login, muster('job', 'show', id))).includes('state:        done')
    const workers = async () =>
      (
        await must(
          host,
          login,
          `grep -l -a 'main[.][jt]s' /proc/[0-9]*/cmdline 2> /dev/null | while read -r f; do tr '\\000' ' ' < $f | grep -q '^[^ ]*/node .*hosts[.]yaml .*job work' && echo $f; done; :`,
        )
      )
        .split('\n')
        .flatMap((line) => /^\/proc\/(\d+)\//.exec(line)?.[1] ?? [])

    const shown = await shell(host, login, muster('job', 'work', '--install', '--dry-run'))
    expect([shown.code, shown.stderr], shown.stdout).toEqual([0, ''])
    expect(await workers()).toEqual([])
    const install = await shell(host, login, muster('job', 'work', '--preempt', '--install', '--yes'))
    expect([install.code, install.stderr], install.stdout).toEqual([0, ''])
    expect(install.stdout).toMatch(/job"? "?work"? "?--preempt/)
    const first = await submit()
    await waitUntil(async () => await isDone(first), 'the first job', PATIENCE_MS)
    await submit('umask > mask; echo $$ > pid; exec sleep 3000')
    const isThere = async () => (await shell(host, login, 'test -s pid')).code === 0
    await waitUntil(isThere, 'a job that goes on', PATIENCE_MS)
    expect(await must(host, login, 'cat mask')).toBe(await must(host, login, 'umask'))
    const goesOn = async () => (await shell(host, login, 'kill -0 $(cat pid)')).code === 0
    expect((await must(host, login, muster('job', 'work', '--preempt', '--install'))).trim()).toContain('no change')

    const [pid = ''] = await workers()
    await must(host, login, `kill -KILL ${pid}`)
    const second = await submit()
    await waitUntil(async () => await isDone(second), 'the second job, after the scheduler was killed', PATIENCE_MS)
    expect(await goesOn()).toBe(true)
    if (isCron) {
      expect(await must(host, login, 'cat .table')).toMatch(
        /^5 4 \* \* \* true\n.*\n@reboot \/bin\/sh \/root\/\S+\/work-of_mine-e1ad4cc1\.sh\n.*\n$/,
      )
      expect(await must(host, login, 'stat -c %a .local/state/muster/jobs/work-of_mine-e1ad4cc1.sh')).toBe('700\n')
    } else {
      expect(await must(host, login, `${ctl} show -p ActiveState -p UnitFileState ${UNIT}`)).toBe(
        'ActiveState=active\nUnitFileState=enabled\n',
      )
    }
    expect(await must(host, login, 'stat -c %a .local/state/muster/jobs')).toBe('700\n')
    const left = await must(host, login, muster('left', '--area', 'records'))
    expect(left).toContain('scheduler as a service')
    expect(left).toContain('muster job work --uninstall')

    const uninstall = await shell(host, login, muster('job', 'work', '--uninstall', '--yes'))
    expect([uninstall.code, uninstall.stderr], uninstall.stdout).toEqual([0, ''])
    expect(await workers()).toEqual([])
    expect(await goesOn()).toBe(true)
    await must(host, login, 'kill $(cat pid)')
    const files = await must(host, login, FILES)
    expect(files).not.toMatch(/muster-job|work-of_mine/)
    if (isCron) expect(await must(host, login, 'cat .table')).toBe('5 4 * * * true\n')
    if (host === 'u1') expect(await must(host, login, `ls ${LOGIN_HOME}/.config/systemd/user 2> /dev/null; :`)).toBe('')
    const again = await must(host, login, muster('job', 'work', '--uninstall', '--yes'))
    expect(again).toContain('it is not installed')
  })

  it('is not installed with options that a service cannot have', async () => {
    const both = await shell('c1', 'root', muster('job', 'work', '--install', '--uninstall'))
    expect([both.code, both.stderr]).toEqual([2, 'muster: --install and --uninstall cannot be used together\n'])
    const until = await shell('c1', 'root', muster('job', 'work', '--install', '--until-empty'))
    expect(until.code).toBe(2)
    expect(until.stderr).toContain('--until-empty cannot be used with --install')
    const dry = await shell('c1', 'root', muster('job', 'work', '--dry-run'))
    expect([dry.code, dry.stderr]).toEqual([2, 'muster: --dry-run needs --install or --uninstall: nothing was done\n'])
  })
})
