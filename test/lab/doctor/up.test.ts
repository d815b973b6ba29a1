/** The doctor reports what would stop `muster up` on hosts without a network. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { PROGRAM } from '../../support/console-options.ts'
import { requirement } from '../../support/requirements.ts'
import { type Lab, startLab } from '../cluster/lab.ts'

const canRun = requirement('root', 'namespaces', 'sshd', 'ip', 'nsenter', 'ssh', 'python3')
const PYTHON = '/usr/bin/python3'

describe.skipIf(!canRun)('muster doctor where hosts.yaml declares an environment', { timeout: 300_000 }, () => {
  let lab: Lab
  beforeAll(async () => {
    lab = await startLab({ count: 2 })
    writeFileSync(join(lab.directory, 'requirements.txt'), 'idna\n')
  }, 100_000)
  afterAll(async () => await lab?.stop())

  type Told = { readonly type: string; readonly host: string; readonly id: string; readonly gravity: string }
  const doctor = async (declared: string, ...target: readonly string[]) => {
    const file = join(lab.directory, 'declared.yaml')
    writeFileSync(file, `${readFileSync(lab.hostsFile, 'utf8')}${declared}`)
    const { code, stdout } = await lab.run([...PROGRAM, '--hosts', file, 'doctor', ...target, '--json'])
    const events = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Told & { readonly cause: string; readonly hint?: string })
    const ids = /^(no-packages|no-rights|little-room|no-ray)$/
    return { code, found: events.filter(({ type, id }) => type === 'finding' && ids.test(id)) }
  }
  const brief = (found: readonly Told[]) => found.map(({ host, id, gravity }) => `${host} ${gravity} ${id}`).toSorted()
  const venv = (path: string, more = '') => `environment: { venv: { path: ${path}, python: ${PYTHON}${more} } }\n`

  it('says that there is no package index and no wheels, and what to do', async () => {
    const { code, found } = await doctor(venv('~/lab', ', requirements: requirements.txt'))
    expect([code, brief(found.filter(({ id }) => id !== 'little-room'))]).toEqual([1, ['m1 blocker no-packages']])
    expect(found.find(({ id }) => id === 'no-packages')).toMatchObject({
      cause: 'no packages for the environment: the package index does not answer, and hosts.yaml names no wheels',
      hint: expect.stringContaining('wheels: DIRECTORY'),
    })
  })

  it('finds nothing wrong if there are wheels', async () => {
    await lab.host('m1').exec('mkdir -p wheels && : > wheels/idna-3.6-py3-none-any.whl')
    const { found } = await doctor(venv('~/lab', ', requirements: requirements.txt, wheels: ~/wheels'))
    expect(brief(found.filter(({ id }) => id !== 'little-room'))).toEqual([])
  })

  it('names the selected hosts on which the environment cannot be created', async () => {
    const declared = venv('/usr/lab', ', requirements: requirements.txt')
    const { found } = await doctor(declared)
    expect(brief(found)).toEqual(['m1 blocker no-packages', 'm1 blocker no-rights', 'm2 blocker no-rights'])
    expect(brief((await doctor(declared, 'm2')).found)).toEqual(['m2 blocker no-rights'])
  })

  it('says that Ray is missing in the environment, and that the disk has little space', async () => {
    for (const name of lab.names) {
      const { code } = await lab.host(name).exec(`${PYTHON} -m venv --without-pip ~/lab`)
      expect(code).toBe(0)
    }
    await lab.host('m2').exec('mkdir small && mount -t tmpfs -o size=20m none small')
    const ray = 'ray: { head: m1, workers: m2 }\n'
    const { found } = await doctor(`${venv('~/lab')}${ray}`)
    expect(brief(found)).toContain('m2 blocker no-ray')
    const small = await doctor(venv('~/small/lab', ', requirements: requirements.txt'), 'm2')
    expect(brief(small.found)).toEqual(['m2 risk little-room'])
  })
})
