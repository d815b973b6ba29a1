/** `muster env` with real daemons: an image from scratch built on one host, loaded by the other without a registry, and run. */
import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { PROGRAM } from '../../support/console-options.ts'
import { findProgram, requirement } from '../../support/requirements.ts'
import { type Lab, startLab } from '../cluster/lab.ts'
import type { RunResult } from '../cluster/run.ts'
import { startDocker } from './docker-host.ts'

const canRun = requirement('root', 'namespaces', 'sshd', 'ip', 'nsenter', 'ssh', 'flock', 'dockerd', 'busybox')

const dockerfile = (label: string) =>
  `FROM scratch\nCOPY busybox /bin/busybox\nENV ROLE=${label}\nSTOPSIGNAL SIGKILL\nCMD ["/bin/busybox", "sleep", "100000"]\n`

describe.skipIf(!canRun)('muster env with Docker', { timeout: 300_000 }, () => {
  let lab: Lab

  const env = async (...args: readonly string[]): Promise<RunResult> =>
    await lab.run([...PROGRAM, '--hosts', join(lab.directory, 'env.yaml'), 'env', ...args], { timeoutMs: 200_000 })
  const exec = async (name: string, script: string): Promise<string> => {
    const { code, stdout, stderr } = await lab.host(name).exec(script)
    if (code !== 0) throw new Error(`${name}: ${script}: exit ${code}\n${stdout}${stderr}`)
    return stdout
  }
  const context = () => join(lab.directory, 'image')

  beforeAll(async () => {
    lab = await startLab({ count: 2 })
    mkdirSync(context())
    copyFileSync(findProgram('busybox') ?? '', join(context(), 'busybox'))
    writeFileSync(join(context(), 'Dockerfile'), dockerfile('one'))
    const hosts = lab.hosts.map(({ name, address }) => `  ${name}: { address: ${address} }\n`).join('')
    const docker = '{ image: "lab/tool:1", file: image/Dockerfile, name: tool }'
    writeFileSync(
      join(lab.directory, 'env.yaml'),
      `defaults: { user: root }\nhosts:\n${hosts}environment:\n  docker: ${docker}\n`,
    )
    await Promise.all(lab.hosts.map(startDocker))
  }, 200_000)
  afterAll(async () => {
    await lab?.stop()
  })

  it('builds on one host, loads it on the other, and runs it on both', async () => {
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
      expect(await exec(name, 'find ~/.cache/muster -name "*.tar*" 2> /dev/null | wc -l')).toBe('0\n')
    }
  })

  it('finds nothing to do the second time, and no drift', async () => {
    const up = await env('up')
    expect(up.stdout).toContain('2 hosts: no change: it is as wanted')
    const check = await env('check')
    expect([check.code, check.stdout]).toEqual([0, '2 hosts compared with m1: no drift\n'])
  })

  it('mends a container that ended, and an image that is another one', async () => {
    await exec('m1', 'docker stop -t 0 tool')
    writeFileSync(join(context(), 'Dockerfile'), dockerfile('two'))
    const check = await env('check')
    expect(check.stdout).toMatch(/^risk {2}container {2}exited {2}running$/m)
    expect(check.code).toBe(1)
    const sync = await env('sync', '--yes')
    expect(sync.stdout).toMatch(/ {4}~ lab\/tool:1\n/)
    expect([sync.code, sync.stderr]).toEqual([0, ''])
    for (const name of lab.names) {
      expect(await exec(name, `docker inspect -f '{{json .Config.Env}}' tool`)).toContain('"ROLE=two"')
      expect(await exec(name, 'docker images --quiet --all | sort -u | wc -l')).toMatch(/^\d\n$/)
    }
    expect((await env('up')).stdout).toContain('no change: it is as wanted')
  })

  it('removes what it made, and leaves a container of somebody else alone', async () => {
    await exec('m2', 'docker rm -f tool && docker run -d --name tool --network host lab/tool:1')
    const up = await env('up', '--yes')
    expect(up.stdout).toMatch(/a container tool is there that Muster did not make/)
    expect(up.code).toBe(5)
    await exec('m2', 'docker rename tool other && docker rm -f other')
    const down = await env('down', '--yes')
    expect(down.stdout).not.toContain('FAILED')
    expect([down.code, down.stderr]).toEqual([0, ''])
    for (const name of lab.names) {
      expect(await exec(name, 'docker ps --all --quiet; docker images --quiet; ls -A ~/.cache 2> /dev/null || :')).toBe(
        '',
      )
    }
    expect((await env('down')).stdout).toContain('no change: it is as wanted')
  })
})
