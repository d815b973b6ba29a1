/** `muster env` with real daemons on hosts that share homes: the image is written once in each home, and each daemon loads it. */
import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { PROGRAM } from '../../support/console-options.ts'
import { findProgram, requirement } from '../../support/requirements.ts'
import { type Lab, startLab } from '../cluster/lab.ts'
import type { RunResult } from '../cluster/run.ts'
import { startDocker } from './docker-host.ts'
import { killAtStep } from './kill-at.ts'

const canRun = requirement('root', 'namespaces', 'sshd', 'ip', 'nsenter', 'ssh', 'flock', 'dockerd', 'busybox')

const DOCKERFILE =
  'FROM scratch\nCOPY busybox /bin/busybox\nSTOPSIGNAL SIGKILL\nCMD ["/bin/busybox", "sleep", "100000"]\n'
const COMMAND = (file: string, ...args: readonly string[]) => [...PROGRAM, '--hosts', file, 'env', ...args]

describe.skipIf(!canRun)('muster env with Docker on hosts that share homes', { timeout: 300_000 }, () => {
  let lab: Lab

  const file = () => join(lab.directory, 'env.yaml')
  const env = async (...args: readonly string[]): Promise<RunResult> =>
    await lab.run(COMMAND(file(), ...args), { timeoutMs: 200_000 })
  const exec = async (name: string, script: string): Promise<string> => (await lab.host(name).exec(script)).stdout
  const onAll = async (script: string) => await Promise.all(lab.names.map((name) => exec(name, script)))

  beforeAll(async () => {
    // m1 is followed; m2 has its home, and m4 that of m3.
    const homes: Readonly<Record<string, string>> = { m2: 'm1', m4: 'm3' }
    lab = await startLab({ count: 4, perHost: (name) => ({ homeOf: homes[name] }) })
    const context = join(lab.directory, 'image')
    mkdirSync(context)
    copyFileSync(findProgram('busybox') ?? '', join(context, 'busybox'))
    writeFileSync(join(context, 'Dockerfile'), DOCKERFILE)
    const hosts = lab.hosts.map(({ name, address }) => `  ${name}: { address: ${address} }\n`).join('')
    const docker = '{ image: "lab/tool:1", file: image/Dockerfile, name: tool }'
    writeFileSync(file(), `defaults: { user: root }\nhosts:\n${hosts}environment:\n  docker: ${docker}\n`)
    await Promise.all(lab.hosts.map(startDocker))
  }, 200_000)
  afterAll(async () => await lab?.stop())

  it('copies the image once to each home directory and loads it everywhere, also after a killed run', async () => {
    for (const step of [/env\/file@m3\/bring/, /env\/image@m2\/load/, /env\/image@m4\/load/])
      await killAtStep(lab, COMMAND(file(), 'up', '--yes'), step)
    const up = await env('up', '--yes')
    expect(up.stdout).not.toMatch(/FAILED|blocker/)
    expect([up.code, up.stderr]).toEqual([0, ''])
    expect(up.stdout).not.toMatch(/^m[24]: (?:bring|remove the file)/m)
    expect(await onAll("docker inspect -f '{{.State.Status}}' tool")).toEqual(Array(4).fill('running\n'))
    expect(new Set(await onAll("docker image inspect -f '{{json .RootFS.Layers}}' lab/tool:1")).size).toBe(1)
    expect(await onAll('find /root -name "image.tar*" -o -name ".muster-*"')).toEqual(['', '', '', ''])
    expect((await env('up')).stdout).toContain('4 hosts: no change: nothing to do')
  })

  it('removes from one host only what belongs to it', async () => {
    const image = 'docker images --quiet | wc -l'
    expect((await env('down', '--on', 'm[2-3]', '--yes')).code).toBe(0)
    expect(await onAll(image)).toEqual(['1\n', '0\n', '0\n', '1\n'])
    expect((await env('down', '--yes')).code).toBe(0)
    expect(await onAll(image)).toEqual(Array(4).fill('0\n'))
    expect(await onAll('ls -A ~/.cache 2> /dev/null || :')).toEqual(Array(4).fill(''))
  })
})
