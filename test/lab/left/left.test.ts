/** `muster left` after a day of work: it lists leftovers and what is in use, removes what nothing uses, and restores the hosts. */
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { PROGRAM } from '../../support/console-options.ts'
import { requirement } from '../../support/requirements.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { type Lab, startLab } from '../cluster/lab.ts'
import type { RunResult } from '../cluster/run.ts'

const canRun = requirement('root', 'namespaces', 'sshd', 'ip', 'nsenter', 'ssh', 'flock', 'python3')

const PYTHON = '/usr/bin/python3'
const PLACES = '/root /tmp /var/tmp /dev/shm'
const FILES = `find ${PLACES} -xdev ! -path /root -printf '%p %y %m %l\\n' | sort; find ${PLACES} -xdev -type f -exec cksum {} + | sort`
/** It would clear the screen, begin a line of its own, and end a word of the shell. */
const HOSTILE = '/root/a $(touch /root/run) \'"\\\n\u001b[2J/.muster-0123456789abcdef.m1.9999999'

type Item = {
  readonly type: string
  readonly host: string
  readonly area: string
  readonly state: string
  readonly what: string
}

describe.skipIf(!canRun)('muster left', { timeout: 400_000 }, () => {
  let lab: Lab
  let wheels: string
  let before: readonly string[]

  const command = (file: string, ...args: readonly string[]) => [
    ...PROGRAM,
    '--hosts',
    join(lab.directory, file),
    ...args,
  ]
  const muster = async (file: string, ...args: readonly string[]): Promise<RunResult> =>
    await lab.run(command(file, ...args), { timeoutMs: 300_000 })
  const exec = async (name: string, script: string): Promise<string> => {
    const { code, stdout, stderr } = await lab.host(name).exec(script)
    if (code !== 0) throw new Error(`${name}: ${script}: exit ${code}\n${stdout}${stderr}`)
    return stdout
  }
  const states = async () => await Promise.all(lab.names.map(async (name) => await exec(name, FILES)))
  const itemsOf = ({ stdout }: RunResult): Item[] =>
    stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Item)
      .filter(({ type }) => type === 'left')
  const left = async (file: string) => itemsOf(await muster(file, 'left', '--json'))
  const wordsOf = (items: readonly Item[], host: string) =>
    items.filter((item) => item.host === host).map(({ area, state, what }) => `${area} ${state} ${what}`)

  beforeAll(async () => {
    wheels = mkdtempSync(join(tmpdir(), 'muster-wheels-'))
    const pip = [PYTHON, '-m', 'pip', '--retries', '10', '--disable-pip-version-check', '--quiet', '--no-cache-dir']
    execFileSync('env', [...pip, 'download', '--only-binary', ':all:', '--dest', wheels, 'pip==24.0', 'idna==3.6'], {
      stdio: 'pipe',
    })
    lab = await startLab({ count: 3, mounts: { '/opt/wheels': wheels } })
    const hosts = lab.hosts.map(({ name, address }) => `  ${name}: { address: ${address} }\n`).join('')
    const bare = `cluster: left\ndefaults: { user: root, resources: { cpu: 4, gpu: 0, memory: 1GiB } }\nhosts:\n${hosts}`
    const environment = `environment: { venv: { path: ~/lab, python: ${PYTHON}, requirements: requirements.txt } }\n`
    writeFileSync(join(lab.directory, 'bare.yaml'), bare)
    writeFileSync(join(lab.directory, 'full.yaml'), `${bare}trust: { mesh: "@all" }\n${environment}`)
    writeFileSync(join(lab.directory, 'requirements.txt'), 'idna==3.6\n')
    writeFileSync(join(lab.directory, 'large'), Buffer.alloc(40_000_000, 7))
    const pipConf = '[global]\nno-index = true\nfind-links = /opt/wheels\n'
    for (const name of lab.names)
      await exec(name, `mkdir -p /root/.config/pip; printf '${pipConf}' > /root/.config/pip/pip.conf`)
    before = await states()
  }, 200_000)
  afterAll(async () => {
    await lab?.stop()
    if (wheels !== undefined) rmSync(wheels, { recursive: true, force: true })
  })

  it('finds nothing on hosts where Muster did nothing', async () => {
    const { code, stdout, stderr } = await muster('bare.yaml', 'left')
    expect([code, stdout, stderr]).toEqual([0, 'Muster left nothing\n', ''])
    expect(await states()).toEqual(before)
  })

  it('does not remove what hosts.yaml declares, and refers to `down`', async () => {
    const up = await muster('full.yaml', 'up', '--yes')
    expect(up.code, up.stdout + up.stderr).toBe(0)
    const items = await left('full.yaml')
    expect(new Set(items.map(({ state }) => state))).toEqual(new Set(['declared']))
    expect(wordsOf(items, 'm2')).toEqual([
      'trust declared lines in ~/.ssh/authorized_keys',
      'trust declared lines in ~/.ssh/known_hosts',
      'trust declared lines in ~/.ssh/config',
      'trust declared SSH key ~/.ssh/id_muster',
      'env declared environment: /root/lab',
      expect.stringMatching(/^env declared environment: \/root\/\.cache\/muster\/env\/muster-[0-9a-f]{16}$/),
    ])
    const there = await states()
    const removal = await muster('full.yaml', 'left', '--remove', '--yes')
    expect([removal.code, removal.stderr], removal.stdout).toEqual([0, ''])
    expect(await states()).toEqual(there)
  })

  it('reports what is in use, and leaves it alone: a running job, an environment, a file of a copy', async () => {
    const submit = await muster('full.yaml', 'job', 'submit', '--', 'while [ ! -e /root/go ]; do sleep 0.1; done')
    expect(submit.code, submit.stderr).toBe(0)
    const driver = spawn('nsenter', lab.command(command('full.yaml', 'job', 'work')).slice(1), {
      env: lab.environment,
      stdio: 'ignore',
    })
    const running = async () =>
      (await muster('full.yaml', 'job', 'list', '--state', 'running')).stdout.includes('1 running')
    await waitUntil(running, 'the job to run', 60_000)
    const ended = once(driver, 'exit')
    driver.kill('SIGINT')
    await ended
    await exec('m2', 'cd /root/lab; setsid sleep 1001 > /dev/null 2>&1 < /dev/null &')
    await exec(
      'm3',
      `f=/root/.muster-00112233445566778899; exec 9> $f; setsid sleep 1002 > /dev/null 2>&1 < /dev/null &`,
    )
    const items = await left('bare.yaml')
    const used = items.filter(({ state }) => state === 'used').map(({ host, area, what }) => `${host} ${area} ${what}`)
    expect(used).toContain('m2 env virtual environment: /root/lab')
    expect(used).toContain('m3 copy unfinished copy: /root/.muster-00112233445566778899')
    const [job = ''] = used.filter((word) => word.includes(' jobs '))
    expect(job).toMatch(/^m\d jobs job directories: \/root\/\.local\/state\/muster\/jobs$/)
    const removal = await muster('bare.yaml', 'left', '--area', 'jobs,copy', '--remove', '--yes')
    expect(removal.code, removal.stdout + removal.stderr).toBe(0)
    const environments = await muster('bare.yaml', 'left', '--area', 'env', '--remove', '--yes')
    expect(environments.code, environments.stdout + environments.stderr).toBe(0)
    expect(await exec('m2', 'ls /root/lab/bin/python')).toContain('python')
    expect(await exec('m1', 'ls -A /root')).not.toMatch(/^lab$/m)
    expect(await exec('m3', 'ls /root/.muster-00112233445566778899')).toContain('muster')
    const host = job.slice(0, 2)
    await exec(host, 'ls /root/.local/state/muster/jobs/*/id')
    for (const name of lab.names) await exec(name, 'touch /root/go; pkill -f "^sleep 100[12]" || :')
    const over = await muster('full.yaml', 'job', 'work', '--until-empty')
    expect(over.code, over.stdout + over.stderr).toBe(0)
    for (const name of lab.names) await exec(name, 'rm /root/go')
  })

  it('removes all leftovers, also those with hostile names and of interrupted copies, and restores the hosts', async () => {
    await lab.shapeUplink({ bitsPerSecond: 16_000_000 })
    const copying = spawn(
      'nsenter',
      lab.command(command('bare.yaml', 'copy', 'm1', join(lab.directory, 'large'), '/root/large')).slice(1),
      { env: lab.environment, stdio: 'ignore' },
    )
    const over = once(copying, 'exit')
    const part = async () => (await exec('m1', 'ls -A /root')).includes('.muster-')
    await waitUntil(async () => copying.exitCode !== null || (await part()), 'the copy to be under way', 60_000)
    expect(copying.exitCode).toBeNull()
    copying.kill('SIGKILL')
    await over
    const name = HOSTILE.replaceAll("'", "'\\''")
    await exec('m1', `d='${name}'; mkdir -p "\${d%/*}" && echo x > "$d"`)
    const listed = await muster('bare.yaml', 'left')
    const others = expect.stringMatching(/^muster: what .*bare.yaml does not .*\n$/)
    expect([listed.code, listed.stderr]).toEqual([0, others])
    expect(listed.stdout).not.toContain('\u001b')
    expect(listed.stdout).toMatch(/^m1\tcopy\tleft\t4\.0 KiB\t.*\.muster-0123456789abcdef\.m1\.9999999$/m)
    await waitUntil(
      async () => !(await left('bare.yaml')).some(({ area, state }) => area === 'copy' && state === 'used'),
      'the end of the copy on the host',
      60_000,
    )
    const cut = wordsOf(await left('bare.yaml'), 'm1').filter((words) => words.startsWith('copy '))
    expect(cut).toContainEqual(expect.stringMatching(/^copy left unfinished copy: \/root\/\.muster-[0-9a-f]{16}/))
    const shown = await muster('bare.yaml', 'left', '--remove', '--dry-run')
    expect([shown.code, shown.stderr]).toEqual([0, others])
    expect(shown.stdout).not.toContain('\u001b')
    const removal = await muster('bare.yaml', 'left', '--remove', '--yes')
    expect([removal.code, removal.stderr], removal.stdout).toEqual([0, others])
    const again = await muster('bare.yaml', 'left')
    expect([again.code, again.stdout, again.stderr]).toEqual([0, 'Muster left nothing\n', ''])
    // The directories in which it lay.
    await exec('m1', 'rm -r "/root/a "*')
    // Directories that others use, too.
    const shared = /^\/root\/\.(?:local(?:\/state)?|cache|ssh) d .*\n/gm
    const compared = (all: readonly string[]) => all.map((each) => each.replace(shared, ''))
    expect(compared(await states())).toEqual(compared(before))
  })
})
