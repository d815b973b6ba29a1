/** `muster env` on hosts that share a home: made once, found on each, and taken away only from all of them. */
import { execFileSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { PROGRAM } from '../../support/console-options.ts'
import { requirement } from '../../support/requirements.ts'
import { type Lab, startLab } from '../cluster/lab.ts'
import type { RunResult } from '../cluster/run.ts'

const canRun = requirement('root', 'namespaces', 'sshd', 'ip', 'nsenter', 'ssh', 'flock', 'python3')

const PYTHON = '/usr/bin/python3'
const PACKAGES = ['pip==24.0', 'idna==3.6']

describe.skipIf(!canRun)('muster env on hosts that share a home', { timeout: 300_000 }, () => {
  let lab: Lab

  const muster = async (...args: readonly string[]): Promise<RunResult> =>
    await lab.run([...PROGRAM, '--hosts', join(lab.directory, 'env.yaml'), ...args], { timeoutMs: 200_000 })
  const imported = async (name: string): Promise<string> =>
    (await lab.host(name).exec(`~/lab/bin/python -c 'import idna; print(idna.__version__)'`)).stdout

  beforeAll(async () => {
    // m2 and m3 have one home, m1 is followed and has its own, and m4 has that of m1.
    const homes: Readonly<Record<string, string>> = { m3: 'm2', m4: 'm1' }
    lab = await startLab({ count: 4, perHost: (name) => ({ homeOf: homes[name] }) })
    const wheels = join(lab.directory, 'hosts', 'm1', 'home', 'wheels')
    mkdirSync(wheels)
    const download = [PYTHON, '-m', 'pip', '--retries', '10', '--disable-pip-version-check', '--quiet', 'download']
    execFileSync('env', [...download, '--only-binary', ':all:', '--dest', wheels, ...PACKAGES], { stdio: 'pipe' })
    const hosts = lab.hosts.map(({ name, address }) => `  ${name}: { address: ${address} }\n`).join('')
    const environment = `environment:\n  venv:\n    path: ~/lab\n    python: ${PYTHON}\n    wheels: ~/wheels\n    requirements: requirements.txt\n`
    writeFileSync(join(lab.directory, 'env.yaml'), `defaults: { user: root }\nhosts:\n${hosts}${environment}`)
    writeFileSync(join(lab.directory, 'requirements.txt'), 'idna\n')
  }, 200_000)
  afterAll(async () => await lab?.stop())

  it('installs once in each home directory, and verifies on each host', async () => {
    const up = await muster('env', 'up', '--yes')
    expect(up.stderr).toBe('')
    expect(up.stdout).toMatch(/^m\[1,4\] share \/root$/m)
    expect(up.stdout).toMatch(/^m\[2-3\] share \/root$/m)
    expect(up.stdout.match(/^m\d: (?:create|copy|install).*: done/gm)?.map((line) => line.slice(0, 7))).toEqual(
      expect.arrayContaining(['m1: cre', 'm1: ins', 'm2: cop', 'm2: cre', 'm2: ins']),
    )
    expect(up.stdout).not.toMatch(/^m[34]: |FAILED|blocker/m)
    expect(up.code).toBe(0)
    expect(await Promise.all(lab.names.map(imported))).toEqual(['3.6\n', '3.6\n', '3.6\n', '3.6\n'])
    const again = await muster('env', 'up')
    expect([again.code, again.stdout]).toEqual([0, expect.stringContaining('no change')])
  })

  it('removes it only from all hosts that share it', async () => {
    const part = await muster('env', 'down', '--on', 'm[1-2]', '--yes')
    expect([part.code, part.stderr]).toEqual([0, ''])
    expect(await imported('m3')).toBe('3.6\n')
    expect((await muster('env', 'down', '--yes')).code).toBe(0)
    const left = await Promise.all(
      ['m1', 'm2'].map(async (name) => (await lab.host(name).exec('ls -d ~/lab ~/.cache')).stdout),
    )
    expect(left).toEqual(['', ''])
  })
})
