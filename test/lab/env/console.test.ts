/** Bring-up in the console where a step brings files: packages of one host, for an environment on all. */
import { execFileSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type ConsoleDriver, openConsole } from '../../support/console-driver.ts'
import { requirement } from '../../support/requirements.ts'
import { makeTinyWheel } from '../../support/tiny-wheel.ts'
import { type Lab, startLab } from '../cluster/lab.ts'

const canRun = requirement('root', 'namespaces', 'sshd', 'ip', 'nsenter', 'ssh', 'flock', 'python3')

const PYTHON = '/usr/bin/python3'

describe.skipIf(!canRun)('an environment from the Bring-up tab', { timeout: 200_000 }, () => {
  let lab: Lab
  let console: ConsoleDriver

  beforeAll(async () => {
    lab = await startLab({ count: 2 })
    const wheels = join(lab.directory, 'hosts', 'm1', 'home', 'wheels')
    mkdirSync(wheels)
    makeTinyWheel(wheels, 'tiny')
    const pip = [PYTHON, '-m', 'pip', '--retries', '10', '--disable-pip-version-check', '--quiet', '--no-cache-dir']
    execFileSync('env', [...pip, 'download', '--only-binary', ':all:', '--dest', wheels, 'pip==24.0'], {
      stdio: 'pipe',
    })
    const hosts = lab.hosts.map(({ name, address }) => `  ${name}: { address: ${address} }\n`).join('')
    const venv = `{ path: ~/lab, python: ${PYTHON}, wheels: ~/wheels, from: m1, requirements: requirements.txt }`
    const file = join(lab.directory, 'env.yaml')
    writeFileSync(file, `defaults: { user: root }\nhosts:\n${hosts}environment: { venv: ${venv} }\n`)
    writeFileSync(join(lab.directory, 'requirements.txt'), 'tiny==1.0\n')
    console = await openConsole({ in: lab, args: ['--hosts', file], size: [120, 40] })
    await console.expectReady()
  })
  afterAll(async () => {
    await console?.close()
    await lab?.stop()
  })

  it('comes to all hosts over the connections of the shells', async () => {
    await console.leader('2')
    await console.expectScreen(/m1 .*\+ missing[\s\S]*m2 .*\+ missing/)
    await console.key('u')
    await console.expectScreen(/y applies it/)
    await console.key('y')
    await console.expectScreen(/m1 +.*✓ good[\s\S]*m2 +.*✓ good/, { timeoutMs: 120_000 })
    expect((await lab.host('m2').exec('~/lab/bin/python -c "import tiny"')).stdout).toBe('brought\n')
  })
})
