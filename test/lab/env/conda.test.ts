/** `muster env` with a conda prefix on hosts without conda: replaced whole, repaired, and restored. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { PROGRAM } from '../../support/console-options.ts'
import { installConda, makeCondaChannel } from '../../support/real-conda.ts'
import { requirement } from '../../support/requirements.ts'
import { type Lab, startLab } from '../cluster/lab.ts'
import type { RunResult } from '../cluster/run.ts'
import { killAtStep } from './kill-at.ts'

const canRun = requirement('root', 'namespaces', 'sshd', 'ip', 'nsenter', 'ssh', 'flock', 'python3', 'conda of PyPI')

const PREFIX = '~/miniforge3/envs/lab'
const FILES = `cd ~ && find . ! -path './.ssh*' -printf '%p %m %l\\n' | sort`
/** What stands in a prefix: the notes of conda, an interpreter, and links. */
const make = (numpy: string) => `mkdir -p ${PREFIX}/conda-meta ${PREFIX}/bin && cd ${PREFIX} && : > conda-meta/history
echo '{}' > conda-meta/python-3.11.7-h955ad1f_0.json; echo '{}' > conda-meta/${numpy}.json
ln -s /usr/bin/python3 bin/python3; ln -s python3 bin/python; printf '#!%s/bin/python\\n' "$PWD" > bin/tool; chmod 755 bin/tool`

describe.skipIf(!canRun)('muster env with a conda environment', { timeout: 200_000 }, () => {
  let lab: Lab

  const env = async (...args: readonly string[]): Promise<RunResult> =>
    await lab.run([...PROGRAM, '--hosts', join(lab.directory, 'env.yaml'), 'env', ...args], { timeoutMs: 150_000 })
  const exec = async (name: string, script: string): Promise<string> => {
    const { code, stdout, stderr } = await lab.host(name).exec(script)
    if (code !== 0) throw new Error(`${name}: ${script}: exit ${code}\n${stdout}${stderr}`)
    return stdout
  }

  beforeAll(async () => {
    lab = await startLab({ count: 3 })
    const hosts = lab.hosts.map(({ name, address }) => `  ${name}: { address: ${address} }\n`).join('')
    const head = `defaults: { user: root }\nhosts:\n${hosts}`
    writeFileSync(join(lab.directory, 'env.yaml'), `${head}environment: { conda: { name: lab } }\n`)
    await exec('m1', make('numpy-1.26.4-py311h64a7726_0'))
    await exec('m3', make('numpy-1.25.0-py311h64a7726_0'))
  })
  afterAll(async () => await lab?.stop())

  it('replaces the whole prefix, repairs another one, and restores the earlier one', async () => {
    const before = await Promise.all(lab.names.map((name) => exec(name, FILES)))
    const check = await env('check')
    expect(check.stdout.split('\n').map((line) => line.split('\t'))).toEqual([
      ['', 'what', 'm1', 'm2', 'm3'],
      ['blocker', 'environment', 'conda', 'not there', '='],
      ['risk', 'numpy', '1.26.4', '=', '1.25.0'],
      ['3 hosts compared with m1: 1 blocker, 1 risk'],
      [''],
    ])
    const up = await env('up', '--yes')
    expect(up.stdout).not.toMatch(/FAILED|blocker/)
    expect([up.code, up.stderr]).toEqual([0, ''])
    for (const name of ['m2', 'm3']) {
      expect(await exec(name, `ls ${PREFIX}/conda-meta && readlink ${PREFIX}/bin/python`)).toBe(
        'history\nnumpy-1.26.4-py311h64a7726_0.json\npython-3.11.7-h955ad1f_0.json\npython3\n',
      )
    }
    expect((await env('up')).stdout).toContain('no change: nothing to do')
    expect((await env('check')).stdout).toBe('3 hosts compared with m1: no drift\n')
    await exec('m2', `rm ${PREFIX}/conda-meta/numpy-*`)
    const again = await env('up', '--yes')
    expect(again.stdout).toMatch(/^ +- all files in \S+\/lab that are not on m1$/m)
    expect(again.code).toBe(0)

    const down = await env('down', '--yes')
    expect([down.code, down.stderr]).toEqual([0, ''])
    const after = await Promise.all(lab.names.map((name) => exec(name, FILES)))
    // The directory that the prefix lies in stays.
    expect(after[1]?.replace(/^\.\/miniforge3.*\n/gm, '')).toBe(before[1])
    expect([after[0], after[2]]).toEqual([before[0], before[2]])
  })

  it('is no reason to delete files of the user, wherever the followed host says that it has one', async () => {
    const file = join(lab.directory, 'hostile.yaml')
    const hosts = lab.hosts.map(({ name, address }) => `  ${name}: { address: ${address} }\n`).join('')
    const conda = '{ name: ml, from: m3 }'
    writeFileSync(file, `defaults: { user: root }\nhosts:\n${hosts}environment: { conda: ${conda} }\n`)
    const up = async () => await lab.run([...PROGRAM, '--hosts', file, 'env', 'up', '--yes'], { timeoutMs: 150_000 })
    const places = ['~/precious/ml', '~/micromamba/envs/ml', '~/elsewhere/envs/ml']
    for (const name of ['m1', 'm2']) {
      for (const place of places) await exec(name, `mkdir -p ${place} && echo mine > ${place}/results.csv`)
    }
    const list = 'find ~/precious ~/micromamba ~/elsewhere -type f | sort'
    const before = await exec('m1', list)
    for (const [place, expected] of [
      ['~/precious/ml', /m3 has ml at \/root\/precious\/ml, which is no directory envs\/ml/],
      ['~/micromamba/envs/ml', /\/root\/micromamba\/envs\/ml: it holds something else/],
      // Only the step itself finds this one.
      ['~/elsewhere/envs/ml', /FAILED: .*\/root\/elsewhere\/envs\/ml: it holds something else\. Move it away\./],
    ] as const) {
      await exec('m3', `mkdir -p ${place}/conda-meta ~/.conda && : > ${place}/conda-meta/history`)
      await exec('m3', `echo ${place} > ~/.conda/environments.txt`)
      const { code, stdout } = await up()
      expect([code, stdout]).toEqual([5, expect.stringMatching(expected)])
      for (const name of ['m1', 'm2']) expect(await exec(name, list)).toBe(before)
      await exec('m3', `rm -r ${place} ~/.conda`)
    }
    await exec('m3', 'rm -rf ~/precious ~/micromamba ~/elsewhere')
    for (const name of ['m1', 'm2']) await exec(name, 'rm -r ~/precious ~/micromamba ~/elsewhere')
  })

  it('creates it with a real conda on one host, also after kills in the middle of steps and a full disk', async () => {
    const home = join(lab.directory, 'hosts', 'm1', 'home')
    await exec('m1', 'rm -r ~/miniforge3')
    mkdirSync(join(home, 'miniforge3'))
    installConda(join(home, 'miniforge3'))
    makeCondaChannel(join(home, 'channel'))
    writeFileSync(join(home, '.condarc'), 'add_pip_as_python_dependency: false\n')
    writeFileSync(
      join(lab.directory, 'environment.yml'),
      'name: other\nchannels: ["file:///root/channel", nodefaults]\ndependencies: [lab-tool]\n',
    )
    const hosts = lab.hosts.map(({ name, address }) => `  ${name}: { address: ${address} }\n`).join('')
    const file = join(lab.directory, 'real.yaml')
    const conda = '{ name: real, file: environment.yml }'
    writeFileSync(file, `defaults: { user: root }\nhosts:\n${hosts}environment: { conda: ${conda} }\n`)
    const real = [...PROGRAM, '--hosts', file, 'env']
    for (const step of [/env\/conda@m1\/make/, /env\/file@m1\/pack/, /env\/conda@m[23]\/take/]) {
      await killAtStep(lab, [...real, 'up', '--yes'], step)
    }
    await exec('m3', 'rm -rf ~/.conda; mkdir ~/.conda && mount -t tmpfs -o size=1m none ~/.conda')
    const full = await lab.run([...real, 'up', '--yes'], { timeoutMs: 150_000 })
    expect(full.stdout).toMatch(/^m3: create .*: FAILED: .*No space left on device/m)
    expect(full.code).toBe(5)
    await exec('m3', 'test ! -e ~/.conda/envs/real && mount -o remount,size=100m ~/.conda')
    const up = await lab.run([...real, 'up', '--yes'], { timeoutMs: 150_000 })
    expect(up.stdout).not.toMatch(/FAILED|blocker/)
    expect([up.code, up.stderr]).toEqual([0, ''])
    for (const name of lab.names) {
      const said = await exec(
        name,
        '~/.conda/envs/real/bin/lab-tool; ls -A ~/.conda/envs; ls -A ~/.cache 2> /dev/null || :',
      )
      expect(said).toBe('/root/.conda/envs/real\nreal\n')
    }
    expect((await lab.run([...real, 'up'])).stdout).toContain('no change: nothing to do')
    expect((await lab.run([...real, 'check'])).stdout).toBe('3 hosts compared with m1: no drift\n')
    await killAtStep(lab, [...real, 'down', '--yes'], /env\/conda@m[23]\/remove/)
    const down = await lab.run([...real, 'down', '--yes'])
    expect([down.code, down.stderr]).toEqual([0, ''])
    for (const name of lab.names) expect(await exec(name, 'ls -A ~/.conda/envs')).toBe('')
  })
})
