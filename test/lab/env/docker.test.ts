/** `muster env` with real daemons: an image from scratch built on one host, loaded by the other without a registry, and run. */
import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { PROGRAM } from '../../support/console-options.ts'
import { findProgram, requirement } from '../../support/requirements.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { type Lab, startLab } from '../cluster/lab.ts'
import type { RunResult } from '../cluster/run.ts'
import { runDocker, startDocker, stopDocker } from './docker-host.ts'
import { killAtStep } from './kill-at.ts'

const canRun = requirement('root', 'namespaces', 'sshd', 'ip', 'nsenter', 'ssh', 'flock', 'dockerd', 'busybox', 'sudo')

const dockerfile = (label: string) =>
  `FROM scratch\nCOPY busybox /bin/busybox\nENV ROLE=${label}\nSTOPSIGNAL SIGKILL\nCMD ["/bin/busybox", "sleep", "100000"]\n`

describe.skipIf(!canRun)('muster env with Docker', { timeout: 300_000 }, () => {
  let lab: Lab

  const command = (...args: readonly string[]) => [
    ...PROGRAM,
    '--hosts',
    join(lab.directory, 'env.yaml'),
    'env',
    ...args,
  ]
  const env = async (...args: readonly string[]): Promise<RunResult> =>
    await lab.run(command(...args), { timeoutMs: 200_000 })
  const exec = async (name: string, script: string): Promise<string> => {
    const { code, stdout, stderr } = await lab.host(name).exec(script)
    if (code !== 0) throw new Error(`${name}: ${script}: exit ${code}\n${stdout}${stderr}`)
    return stdout
  }
  let declare: (from: string) => void
  const context = () => join(lab.directory, 'image')

  beforeAll(async () => {
    lab = await startLab({ count: 2 })
    mkdirSync(context())
    copyFileSync(findProgram('busybox') ?? '', join(context(), 'busybox'))
    writeFileSync(join(context(), 'Dockerfile'), dockerfile('one'))
    // The login on m1 is not in the group that may use the daemon: there it is asked through sudo.
    await exec(
      'm1',
      `mkdir files && mount -t tmpfs none /home
{ cat /etc/passwd; echo 'ann:x:1555:1555::/home/ann:/bin/bash'; } > files/passwd
{ cat /etc/shadow; echo 'ann:*:19000:0:99999:7:::'; } > files/shadow && chmod 640 files/shadow
echo 'ann ALL=(ALL:ALL) NOPASSWD: ALL' > files/sudoers && chmod 440 files/sudoers
for name in passwd shadow sudoers; do mount --bind files/$name /etc/$name; done
mkdir -p /home/ann/.ssh && cp .ssh/authorized_keys /home/ann/.ssh && chown -R 1555:1555 /home/ann && chmod 700 /home/ann /home/ann/.ssh`,
    )
    const hosts = lab.hosts
      .map(({ name, address }) => `  ${name}: { address: ${address}${name === 'm1' ? ', user: ann' : ''} }\n`)
      .join('')
    declare = (from) => {
      const docker = `{ image: "lab/tool:1", file: image/Dockerfile, name: tool, from: ${from} }`
      writeFileSync(
        join(lab.directory, 'env.yaml'),
        `defaults: { user: root }\nhosts:\n${hosts}environment:\n  docker: ${docker}\n`,
      )
    }
    declare('m1')
    await Promise.all(lab.hosts.map(startDocker))
  }, 200_000)
  afterAll(async () => {
    await lab?.stop()
  })

  it('builds an image on one host, loads it on the other and runs it on both, although each step is killed once', async () => {
    for (const step of [
      /env\/image@m1\/build/,
      /env\/file@m1\/save/,
      /env\/image@m2\/load/,
      /env\/container@m2\/run/,
    ]) {
      await killAtStep(lab, command('up', '--yes'), step)
    }
    const up = await env('up', '--yes')
    expect(up.stdout).not.toMatch(/FAILED|blocker/)
    expect([up.code, up.stderr]).toEqual([0, ''])
    const layers = await Promise.all(
      lab.names.map((name) => exec(name, `docker image inspect -f '{{json .RootFS.Layers}}' lab/tool:1`)),
    )
    expect(layers[0]).toMatch(/^\["sha256:/)
    expect(layers[1]).toBe(layers[0])
    const format = '{{.State.Status}} {{.HostConfig.NetworkMode}} {{.HostConfig.RestartPolicy.Name}}'
    for (const name of lab.names) {
      expect(await exec(name, `docker inspect -f '${format}' tool`)).toBe('running host unless-stopped\n')
      expect(await exec(name, 'find /home/ann /root -name "*.tar*" 2> /dev/null | wc -l')).toBe('0\n')
    }
  })

  it('finds nothing to do the second time, and no drift', async () => {
    const up = await env('up')
    expect(up.stdout).toContain('2 hosts: no change: nothing to do')
    const check = await env('check')
    expect([check.code, check.stdout]).toEqual([0, '2 hosts compared with m1: no drift\n'])
  })

  it('says on which host the daemon does not run, and finds the container again when it does', async () => {
    await stopDocker(lab.host('m2'))
    const up = await env('up', '--yes')
    expect(up.stdout).toMatch(/Docker: .*Cannot connect to the Docker daemon/)
    expect(up.code).toBe(5)
    await runDocker(lab.host('m2'))
    const state = async () => await exec('m2', "docker inspect -f '{{.State.Running}}' tool")
    await waitUntil(async () => (await state()) === 'true\n', 'the container')
    expect((await env('up')).stdout).toContain('2 hosts: no change: nothing to do')
  })

  it('repairs a container that ended, and a wrong image', async () => {
    await exec('m1', 'docker stop -t 0 tool')
    writeFileSync(join(context(), 'Dockerfile'), dockerfile('two'))
    const check = await env('check')
    expect(check.stdout).toMatch(/^risk\tcontainer\texited\trunning$/m)
    expect(check.code).toBe(1)
    await exec('m2', 'mkdir -p ~/.cache && mount -t tmpfs -o size=512k none ~/.cache')
    const full = await env('sync', '--yes')
    await exec('m2', 'umount ~/.cache')
    expect(full.stdout).toMatch(/^m2: bring lab\/tool:1 from m1: FAILED: .*No space left on device/m)
    expect(full.code).toBe(5)
    const both = await Promise.all([env('sync', '--yes'), env('sync', '--yes')])
    for (const { code, stderr } of both) {
      if (code !== 0) expect([code, stderr]).toEqual([5, expect.stringContaining('is being changed by another Muster')])
    }
    const sync = await env('sync', '--yes')
    expect(both[0].stdout + both[1].stdout + sync.stdout).toMatch(/ {4}~ lab\/tool:1\n/)
    expect([sync.code, sync.stderr]).toEqual([0, ''])
    for (const name of lab.names) {
      expect(await exec(name, `docker inspect -f '{{json .Config.Env}}' tool`)).toContain('"ROLE=two"')
      expect(await exec(name, 'docker images --quiet --all | sort -u | wc -l')).toMatch(/^\d\n$/)
    }
    expect((await env('up')).stdout).toContain('no change: nothing to do')
  })

  it('takes an image that another host made for none of the host that is followed from now on', async () => {
    for (const [followed, told] of [
      ['m2', ', which m1 made'],
      ['m1', ', which m2 made'],
    ] as const) {
      declare(followed)
      const { code, stdout } = await env('up', '--yes')
      expect(stdout).toMatch(
        new RegExp(`^env · image · ${followed}\n  build lab/tool:1 from .*\n    ~ lab/tool:1${told}$`, 'm'),
      )
      expect([code, stdout]).toEqual([0, expect.not.stringMatching(/FAILED|blocker/)])
      expect((await env('up')).stdout).toContain('no change: nothing to do')
    }
  })

  it('gives no other name a new image, whatever the host that is followed sends', async () => {
    declare('m2')
    expect((await env('up', '--yes')).code).toBe(0)
    await exec('m1', 'docker tag lab/tool:1 base:1')
    const idOf = `docker image inspect --format '{{.Id}}' base:1`
    const before = await exec('m1', idOf)
    // m2 makes another image, and its file names it base:1, too.
    const at = await exec(
      'm2',
      `cp /usr/bin/docker docker.real && chmod 755 docker.real && cat > docker.false << 'END'
#!/bin/sh
case "$1 $2" in 'save lab/tool:1') /root/docker.real tag lab/tool:1 base:1 && exec /root/docker.real save lab/tool:1 base:1;; esac
exec /root/docker.real "$@"
END
chmod 755 docker.false && at=$(command -v docker) && mount --bind docker.false $at && printf %s $at`,
    )
    writeFileSync(join(context(), 'Dockerfile'), dockerfile('three'))
    const hostile = await env('up', '--yes')
    await exec('m2', `umount ${at} && docker image rm base:1 && rm docker.real docker.false`)
    expect(hostile.stdout).toMatch(
      /^m1: load lab\/tool:1 from m2: FAILED: .*the image file of m2 is not of lab\/tool:1 alone/m,
    )
    expect([hostile.code, await exec('m1', idOf)]).toEqual([5, before])
    await exec('m1', 'docker image rm base:1')
    declare('m1')
    expect((await env('up', '--yes')).code).toBe(0)
  })

  it('removes what it created, and leaves a foreign container alone', async () => {
    await exec('m2', 'docker rm -f tool && docker run -d --name tool --network host lab/tool:1')
    const up = await env('up', '--yes')
    expect(up.stdout).toMatch(/a container tool exists that Muster did not create/)
    expect(up.code).toBe(5)
    await exec('m2', 'docker rename tool other && docker rm -f other')
    const down = await env('down', '--yes')
    expect(down.stdout).not.toContain('FAILED')
    expect([down.code, down.stderr]).toEqual([0, ''])
    for (const name of lab.names) {
      expect(
        await exec(
          name,
          'docker ps --all --quiet; docker images --quiet; ls -A ~/.cache /home/ann/.cache 2> /dev/null || :',
        ),
      ).toBe('')
    }
    expect((await env('down')).stdout).toContain('no change: nothing to do')
  })
})
