/** `muster env` on hosts without a network: real packages are gathered on one host and installed on all; drift is found and repaired. */
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { copyFileSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { PROGRAM } from '../../support/console-options.ts'
import { requirement } from '../../support/requirements.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { type Lab, startLab } from '../cluster/lab.ts'
import { signalProcess } from '../cluster/processes.ts'
import type { RunResult } from '../cluster/run.ts'
import { killAtStep, killWhen } from './kill-at.ts'

const canRun = requirement('root', 'namespaces', 'sshd', 'ip', 'nsenter', 'ssh', 'flock', 'python3')

const UV = 'uv==0.13.9'
/** The system's own, whatever else is installed. */
const PYTHON = '/usr/bin/python3'
const PACKAGES = ['pip==24.0', 'requests==2.31.0', 'idna==3.6', 'certifi==2024.2.2', 'urllib3==2.2.1']
const SITE = '~/lab/lib/python3.*/site-packages'
const FILES = 'find . ! -path "./lab/*" \\( -type d -o -type f \\) -printf "%p %m\\n" | sort'

describe.skipIf(!canRun)('muster env with a virtual environment', { timeout: 400_000 }, () => {
  let lab: Lab
  let wheels: string
  /** uv is in it. */
  let tools: string
  let before: string[]

  const command = (file: string, ...args: readonly string[]) => [
    ...PROGRAM,
    '--hosts',
    join(lab.directory, file),
    ...args,
  ]
  const muster = async (...args: readonly string[]): Promise<RunResult> =>
    await lab.run(command('env.yaml', ...args), { timeoutMs: 300_000 })
  const exec = async (name: string, script: string): Promise<string> => {
    const { code, stdout, stderr } = await lab.host(name).exec(script)
    if (code !== 0) throw new Error(`${name}: ${script}: exit ${code}\n${stdout}${stderr}`)
    return stdout
  }
  const homes = async () => await Promise.all(lab.names.map(async (name) => await exec(name, FILES)))

  beforeAll(async () => {
    wheels = mkdtempSync(join(tmpdir(), 'muster-wheels-'))
    tools = mkdtempSync(join(tmpdir(), 'muster-tools-'))
    const pip = [PYTHON, '-m', 'pip', '--retries', '10', '--disable-pip-version-check', '--quiet', '--no-cache-dir']
    const download = [...pip, 'download', '--only-binary', ':all:', '--dest', wheels]
    execFileSync('env', [...download, ...PACKAGES], { stdio: 'pipe' })
    execFileSync('env', [...pip, 'install', '--root-user-action', 'ignore', '--target', tools, UV], { stdio: 'pipe' })
    lab = await startLab({ count: 3 })
    // A directory of wheels on the host that is followed; its name has a blank.
    const there = join(lab.directory, 'hosts', 'm1', 'home', 'the wheels')
    mkdirSync(there)
    execFileSync('sh', ['-c', 'cp "$1"/*.whl "$2"', 'sh', wheels, there])
    const hosts = lab.hosts.map(({ name, address }) => `  ${name}: { address: ${address} }\n`).join('')
    const head = `defaults: { user: root }\nhosts:\n${hosts}environment:\n  venv:\n    path: ~/lab\n    python: ${PYTHON}\n`
    const keys = '    wheels: ~/the wheels\n'
    writeFileSync(join(lab.directory, 'env.yaml'), `${head}${keys}    requirements: requirements.txt\n`)
    writeFileSync(join(lab.directory, 'followed.yaml'), `${head}${keys}`)
    writeFileSync(
      join(lab.directory, 'locked.yaml'),
      `${head.replace('~/lab', '~/mine')}${keys}    requirements: job/uv.lock\n`,
    )
    writeFileSync(join(lab.directory, 'requirements.txt'), 'requests<3  # and what it needs\nidna\n')
    before = await homes()
  }, 200_000)
  afterAll(async () => {
    await lab?.stop()
    for (const directory of [wheels, tools]) rmSync(directory, { recursive: true, force: true })
  })

  it('says that no host has the environment', async () => {
    expect((await muster('env', 'check', '--json')).stdout).toMatch(/"type":"drift".*"name":"environment"/)
    const { code, stdout } = await muster('env', 'check')
    expect(stdout).toMatch(/^blocker\tenvironment\t-\tnot there$/m)
    expect(code).toBe(1)
  })

  it('continues after a kill and after a full disk', async () => {
    await killAtStep(lab, command('env.yaml', 'env', 'up', '--yes'), /env\/wheels@m1\/gather/)
    await killAtStep(lab, command('env.yaml', 'env', 'up', '--yes'), /env\/venv@m[2-3]\/install/)
    await exec('m3', 'rm -rf ~/lab; mkdir -p ~/"the wheels" && mount -t tmpfs -o size=200k none ~/"the wheels"')
    const full = await muster('env', 'up', '--yes')
    await exec('m3', 'umount ~/"the wheels"')
    expect(full.stdout).toMatch(/^m3: copy the wheels from m1: FAILED: .*No space left on device/m)
    expect(full.code).toBe(5)
    const up = await muster('env', 'up', '--yes')
    expect(up.stdout).not.toMatch(/FAILED|blocker/)
    expect([up.code, up.stderr]).toEqual([0, ''])
    for (const name of lab.names) {
      const said = await exec(
        name,
        `~/lab/bin/python -c 'import requests, idna; print(requests.__version__, idna.__version__)'`,
      )
      expect(said).toBe('2.31.0 3.6\n')
    }
  })

  it('finds nothing to do the second time, and no drift', async () => {
    const up = await muster('up', 'env')
    expect(up.stdout).toContain('3 hosts: no change: nothing to do')
    expect(up.code).toBe(0)
    const check = await muster('env', 'check')
    expect([check.code, check.stdout]).toEqual([0, '3 hosts compared with m1: no drift\n'])
  })

  it('shows drift as a table, and repairs it', async () => {
    await exec('m2', `rm -r ${SITE}/idna ${SITE}/idna-3.6.dist-info`)
    await exec(
      'm3',
      `cd ${SITE} && mv certifi-2024.2.2.dist-info certifi-2023.7.22.dist-info
sed -i 's/^Version: .*/Version: 2023.7.22/' certifi-2023.7.22.dist-info/METADATA
mkdir black-24.1.0.dist-info && printf 'Name: black\\nVersion: 24.1.0\\n' > black-24.1.0.dist-info/METADATA
printf 'black-24.1.0.dist-info/METADATA,,\\nblack-24.1.0.dist-info/RECORD,,\\n' > black-24.1.0.dist-info/RECORD`,
    )
    await exec('m2', `rm ${SITE}/urllib3-2.2.1.dist-info/RECORD`)
    const check = await muster('env', 'check')
    expect(check.code).toBe(1)
    expect(check.stdout.split('\n').map((line) => line.split('\t'))).toEqual([
      ['', 'what', 'm1', 'm2', 'm3'],
      ['risk', 'certifi', '2024.2.2', '=', '2023.7.22'],
      ['risk', 'idna', '3.6', '-', '='],
      ['risk', 'urllib3: files', '-', 'no list of them', '='],
      ['note', 'black', '-', '=', '24.1.0'],
      ['3 hosts compared with m1: 3 risks, 1 note'],
      [''],
    ])
    const sync = await muster('env', 'sync', '--yes')
    expect(sync.stdout).toMatch(/m3\n(?:.*\n)* {4}~ certifi 2023\.7\.22 → 2024\.2\.2\n {4}- black 24\.1\.0\n/)
    expect(sync.stdout).not.toContain('FAILED')
    expect([sync.code, sync.stderr]).toEqual([0, ''])
    const again = await muster('env', 'check')
    expect([again.code, again.stdout]).toEqual([0, '3 hosts compared with m1: no drift\n'])
  })

  it('reports another Python version, which no step can fix', async () => {
    await exec(
      'm2',
      `cd ~/lab/bin && mv python python.kept && printf '#!/bin/sh\\necho python 3.11.0\\n' > python && chmod 755 python`,
    )
    const status = await muster('env', 'status', '--json')
    await exec('m2', 'cd ~/lab/bin && mv python.kept python')
    expect(status.stdout).toMatch(
      /"host":"m2","gravity":"blocker","id":"drift","cause":"Python is 3\.11\.0, and 3\.\S+ on m1"/,
    )
    expect(status.code).toBe(1)
  })

  it('shows in the status, too, that a Python lacks standard modules', async () => {
    await exec(
      'm2',
      `cd ~/lab/bin && mv python python.kept && cat > python << 'END' && chmod 755 python
#!/bin/sh
case "$*" in *ssl*) echo 'No module named _ssl' >&2; exit 1;; esac
exec "\${0%/*}/python.kept" "$@"
END`,
    )
    const status = await muster('env', 'status')
    await exec('m2', 'cd ~/lab/bin && mv python.kept python')
    expect(status.stdout).toMatch(/^risk +env · m2: its Python lacks standard modules \[No module named _ssl/m)
    expect(status.stdout).toMatch(/^3 good, 1 risk$/m)
  })

  it('copies the environment of a host if hosts.yaml does not list its packages', async () => {
    await exec('m3', `rm -r ${SITE}/idna ${SITE}/idna-3.6.dist-info`)
    const up = await lab.run(command('followed.yaml', 'env', 'up', '--yes'), { timeoutMs: 200_000 })
    expect(up.stdout).not.toMatch(/FAILED/)
    expect(up.stdout).toMatch(
      /^m1: gather the wheels of 6 packages of ~\/lab, from ~\/the wheels where possible: done/m,
    )
    expect([up.code, up.stderr]).toEqual([0, ''])
    expect((await muster('env', 'check')).stdout).toBe('3 hosts compared with m1: no drift\n')
  })

  it('accepts the lock file of uv, and fills an environment that uv created', async () => {
    const uv = join(tools, 'bin', 'uv')
    const pins = readdirSync(wheels).map((name) => name.split('-').slice(0, 2).join('==').replaceAll('_', '-'))
    const wanted = pins.filter((pin) => !pin.startsWith('pip=='))
    const project = join(lab.directory, 'job')
    mkdirSync(project)
    const dependencies = JSON.stringify([...wanted, "colorama; sys_platform == 'win32'"])
    writeFileSync(
      join(project, 'pyproject.toml'),
      `[project]\nname = "job"\nversion = "1"\nrequires-python = ">=3.9"\ndependencies = ${dependencies}\n`,
    )
    const lock = ['lock', '--quiet', '--no-cache', '--python', PYTHON, '--project', project]
    execFileSync(uv, lock, { stdio: 'pipe', env: { ...process.env, UV_HTTP_RETRIES: '10' } })
    for (const name of lab.names) copyFileSync(uv, join(lab.directory, 'hosts', name, 'home', 'uv'))
    const freeze = '~/uv pip freeze --no-cache --python ~/mine/bin/python'
    await exec(
      'm1',
      `~/uv venv --quiet --no-cache --python ${PYTHON} ~/mine && echo idna==3.6 > ~/idna.txt &&
~/uv pip sync --quiet --no-cache --python ~/mine/bin/python --no-index --find-links ~/'the wheels' ~/idna.txt && rm ~/idna.txt`,
    )
    expect(await exec('m1', freeze)).toBe('idna==3.6\n')
    const locked = async (...args: readonly string[]) =>
      await lab.run(command('locked.yaml', 'env', ...args), { timeoutMs: 200_000 })
    const up = await locked('up', '--yes')
    expect(up.stdout).not.toMatch(/FAILED/)
    expect([up.code, up.stderr]).toEqual([0, ''])
    // The lock has no hash of pip, so that of m1 goes to no other host.
    expect(await exec('m1', freeze)).toBe(`${pins.toSorted().join('\n')}\n`)
    const ofOthers = `${freeze} | grep -v -e ^pip= -e ^setuptools= -e ^wheel=`
    for (const name of ['m2', 'm3']) expect(await exec(name, ofOthers)).toBe(`${wanted.toSorted().join('\n')}\n`)
    expect((await locked('up')).stdout).toContain('3 hosts: no change: nothing to do')
    expect((await locked('down', '--yes')).code).toBe(0)
    await exec('m1', 'rm -r ~/mine')
    for (const name of lab.names) await exec(name, 'rm ~/uv')
  })

  describe('without wheels, and with a package index', () => {
    const bare = (...args: readonly string[]) => command('bare.yaml', 'env', ...args)
    const hasPip = () =>
      lab
        .host('m1')
        .processes()
        .some(({ command }) => /pip.* (download|wheel) /.test(command))

    beforeAll(async () => {
      const hosts = lab.hosts.map(({ name, address }) => `  ${name}: { address: ${address} }\n`).join('')
      writeFileSync(
        join(lab.directory, 'bare.yaml'),
        `defaults: { user: root }\nhosts:\n${hosts}environment:\n  venv:\n    path: ~/bare\n    python: ${PYTHON}\n    requirements: requirements.txt\n`,
      )
      const address = lab.hosts.find(({ name }) => name === 'm2')?.address
      const index = `http://somebody:secret@${address}:8099/simple`
      await exec(
        'm1',
        `mkdir -p ~/.config/pip && printf '[global]\nindex-url = ${index}\ntrusted-host = ${address}\nretries = 1\n' > ~/.config/pip/pip.conf`,
      )
    })
    afterAll(async () => void (await exec('m1', 'rm -r ~/.config/pip && rmdir ~/.config 2> /dev/null; :')))

    it('leaves nothing of pip behind when it is interrupted, and counts what was cancelled', async () => {
      // It takes connections and never answers.
      await exec(
        'm2',
        `${PYTHON} -c "import signal, socket; s = socket.create_server(('', 8099)); signal.pause()" > /dev/null 2>&1 & echo $! > /run/index.pid`,
      )
      const files = await exec('m1', `ls -A /tmp; ${FILES}`)
      const [file = '', ...args] = lab.command(bare('up', '--yes'))
      const child = spawn(file, args, { env: lab.environment, stdio: ['ignore', 'pipe', 'ignore'] })
      const closed = once(child, 'close')
      let said = ''
      child.stdout.setEncoding('utf8').on('data', (text: string) => {
        said += text
      })
      await waitUntil(hasPip, 'pip to ask the index', 60_000)
      const made = 'find /tmp ~/.cache -name "pip-*" -path "*pip-*" ! -name "*.whl" 2> /dev/null; :'
      await waitUntil(async () => (await exec('m1', made)) !== '', 'the temporary directories of pip', 60_000)
      child.kill('SIGINT')
      const [code] = (await closed) as [number]
      expect([code, said.trimEnd().split('\n').at(-1)]).toEqual([130, expect.stringMatching(/ 1 cancelled/)])
      await waitUntil(() => !hasPip(), 'the end of pip', 30_000)
      expect(await exec('m1', 'ls -A /tmp')).toBe('')
      // Killed at once, nothing can be tidied up: `down` does it.
      await killWhen(lab, bare('up', '--yes'), async () => (await exec('m1', made)) !== '')
      for (const { pid, command } of lab.host('m1').processes()) if (/pip/.test(command)) signalProcess(pid, 'SIGKILL')
      await waitUntil(() => !hasPip(), 'the end of pip', 30_000)
      const down = await lab.run(bare('down', '--yes'), { timeoutMs: 60_000 })
      expect([down.code, await exec('m1', `ls -A /tmp; ${FILES}`)]).toEqual([0, files])
    })

    it('says that the index does not answer, and what to do without it', async () => {
      await exec('m2', 'kill $(cat /run/index.pid); rm /run/index.pid')
      const up = await lab.run(bare('up', '--yes'), { timeoutMs: 200_000 })
      expect(up.code).toBe(5)
      const index = 'http://[^@ ]*:8099/simple'
      expect(up.stdout).toMatch(
        new RegExp(
          `^m1: gather the wheels of .*: FAILED: cannot fetch pip: the package index ${index} does not answer this host. Put the wheels into a directory of this host and name it in hosts.yaml \\(wheels: DIRECTORY, below environment: venv:\\) \\(exit 1\\)$`,
          'm',
        ),
      )
      expect((await lab.run(bare('down', '--yes'), { timeoutMs: 60_000 })).code).toBe(0)
    })
  })

  it('removes what it created, and nothing else', async () => {
    const down = await muster('env', 'down', '--yes')
    expect([down.code, down.stderr]).toEqual([0, ''])
    await lab.run(command('followed.yaml', 'env', 'down', '--yes'), { timeoutMs: 200_000 })
    expect(await homes()).toEqual(before)
    expect(readFileSync(join(lab.directory, 'requirements.txt'), 'utf8')).toContain('requests<3')
    const again = await muster('env', 'down')
    expect([again.code, again.stdout]).toEqual([0, expect.stringContaining('no change: nothing to do')])
  })
})
