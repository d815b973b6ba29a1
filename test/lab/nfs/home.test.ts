/** A home directory on a real NFS server, as several hosts mount it: trust, env, copy and the queue find that it is one place. */
import { execFileSync } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { formatPrelude, formatRound } from '../../../src/scheduler/jobs/host-program.ts'
import { PROGRAM } from '../../support/console-options.ts'
import { requirement } from '../../support/requirements.ts'
import { kernelImage } from '../cluster/kernel-image.ts'
import { type Lab, startLab } from '../cluster/lab.ts'
import { labQueue } from '../jobs/lab-queue.ts'

const canRun = requirement('root', 'namespaces', 'ssh', 'ip', 'nsenter', 'kernel hosts', 'python environments')

const NAMES = ['m10', 'm8', 'm9'] as const
const PACKAGES = ['pip==24.0', 'idna==3.6']
/** What Debian's Python needs on a guest that was built without it. */
const PYTHON = 'usr/bin/python3 usr/bin/python3.11 usr/lib/python3.11 usr/lib/python3 usr/share/python-wheels'

type Line = {
  readonly type: string
  readonly host?: string
  readonly action?: string
  readonly sentBytes?: number
  readonly with?: string
  readonly path?: string
  readonly directories?: number
}

describe.skipIf(!canRun)('a home on NFS', { timeout: 900_000 }, () => {
  let lab: Lab
  let hostsFile: string

  const muster = (...args: readonly string[]) =>
    lab.run([...PROGRAM, '--hosts', hostsFile, '--connect-timeout', '60', ...args], { timeoutMs: 600_000 })
  const linesOf = (stdout: string): Line[] =>
    stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Line)
  /** As the user whose home it is. */
  const shell = async (host: string, command: string) =>
    await lab.kernelHost(host).mustExec(`su ada -c ${quoted(`cd && { ${command}; }`)}`)
  const onAll = async (command: string) => await Promise.all(NAMES.map((name) => shell(name, command)))
  const big = (sizeBytes: number): string => {
    const path = join(lab.directory, 'home', 'big')
    writeFileSync(path, randomBytes(sizeBytes))
    return path
  }
  const sha256 = (path: string): string => createHash('sha256').update(readFileSync(path)).digest('hex')

  beforeAll(async () => {
    await kernelImage()
  }, 1_200_000)
  beforeAll(async () => {
    lab = await startLab({ count: 0, kernelHosts: { m10: 'service', m8: 'service', m9: 'service' } })
    for (const name of NAMES) {
      const directory = join(lab.directory, 'hosts', name)
      const libraries = execFileSync('sh', [
        '-c',
        'ldd /usr/bin/python3.11 | sed -n "s/.*=> \\(.*libexpat[^ ]*\\).*/\\1/p"',
      ])
      const files = [...PYTHON.split(' '), `${libraries}`.trim().slice(1)]
      execFileSync('tar', [
        '-C',
        '/',
        '--dereference',
        '--exclude=__pycache__',
        // Large libraries of other tests, some of them with links that lead nowhere.
        '--exclude=usr/lib/python3/dist-packages',
        '-cf',
        join(directory, 'python.tar'),
        ...files,
      ])
    }
    const server = lab.kernelHost('m10')
    const account = "useradd --create-home --shell /bin/bash --password '*' ada"
    await Promise.all(
      lab.kernelHosts.map((host) =>
        host.mustExec(
          `${account} && cp -r /root/.ssh /root/.bashrc /home/ada && chown -R ada: /home/ada && tar -C / -xf /run/lab/python.tar && cp /run/lab/ssh_host_ed25519_key.pub /etc/ssh/`,
        ),
      ),
    )
    await server.mustExec(
      `echo '/home/ada *(rw,sync,no_subtree_check)' > /etc/exports && service nfs-kernel-server start && exportfs -ra`,
    )
    for (const name of ['m8', 'm9']) {
      const { address } = server
      await lab.kernelHost(name).mustExec(`mount -t nfs ${address}:/home/ada /home/ada`)
    }
    expect(await lab.kernelHost('m9').mustExec('grep " /home/ada nfs4 " /proc/mounts')).toMatch(/vers=4/)
    const wheels = join(lab.directory, 'hosts', 'm10', 'wheels')
    mkdirSync(wheels)
    const download = ['-m', 'pip', '--retries', '10', '--disable-pip-version-check', '--quiet', 'download']
    execFileSync('/usr/bin/python3', [...download, '--only-binary', ':all:', '--dest', wheels, ...PACKAGES], {
      stdio: 'pipe',
    })
    await server.mustExec('cp -r /run/lab/wheels /home/ada/ && chown -R ada: /home/ada/wheels')
    hostsFile = join(lab.directory, 'shared.yaml')
    const hosts = lab.kernelHosts.map(({ name, address }) => `  ${name}: { address: ${address} }\n`).join('')
    const venv =
      'environment:\n  venv: { path: ~/lab, python: /usr/bin/python3, wheels: ~/wheels, requirements: requirements.txt }\n'
    const resources = 'resources: { cpu: 4, gpu: 0, memory: 128MiB }'
    writeFileSync(
      hostsFile,
      `cluster: shared\ndefaults: { user: ada, ${resources} }\nhosts:\n${hosts}trust: { mesh: "@all" }\n${venv}`,
    )
    writeFileSync(join(lab.directory, 'requirements.txt'), 'idna\n')
  }, 900_000)
  afterAll(async () => await lab?.stop())

  it('is set up once by trust and env, and works on each host', async () => {
    const status = await muster('status', 'trust')
    expect(status.stdout).toMatch(/^m10,m\[8-9\] share \/home\/ada$|^m\[8-10\] share \/home\/ada$/m)
    const up = await muster('up', 'trust', 'env', '--yes')
    expect(up.stdout).not.toMatch(/FAILED|blocker/)
    expect([up.stderr, up.code]).toEqual(['', 0])
    expect(await shell('m8', 'grep -c muster-trust .ssh/authorized_keys; ls -d .muster-* 2>/dev/null || :')).toBe('1\n')
    expect(await shell('m9', 'ssh -o BatchMode=yes m8 hostname; ssh -o BatchMode=yes m10 hostname')).toBe('m8\nm10\n')
    expect(await onAll("~/lab/bin/python -c 'import idna; print(idna.__version__)'")).toEqual([
      '3.6\n',
      '3.6\n',
      '3.6\n',
    ])
    const again = await muster('up', 'trust', 'env')
    expect([again.code, again.stdout]).toEqual([0, expect.stringContaining('no change')])
  })

  it('gets each file of a copy once, also when a host has just found that it is missing', async () => {
    const source = big(3_000_000)
    const tree = join(lab.directory, 'home', 'tree')
    mkdirSync(join(tree, 'sub'), { recursive: true })
    for (let index = 0; index < 20; index += 1) writeFileSync(join(tree, 'sub', `f${index}`), `${index}`)
    await shell('m10', 'mkdir -p data/tree/sub')
    await onAll('ls -l data data/tree/sub data/big data/tree/sub/f1 newname newname/sub > /dev/null 2>&1 || :')
    const first = await muster('copy', 'all', '--json', source, tree, 'data/')
    expect(first.code).toBe(0)
    const results = linesOf(first.stdout).filter(({ type }) => type === 'result')
    expect(results.filter(({ sentBytes = 0 }) => sentBytes > 0)).toHaveLength(1)
    expect(linesOf(first.stdout).filter(({ type }) => type === 'shared')).toHaveLength(2)
    expect(await onAll('sha256sum data/big | cut -d " " -f 1')).toEqual(Array(3).fill(`${sha256(source)}\n`))
    expect(await onAll('cat data/tree/sub/f7; ls -A . data data/tree/sub | grep "muster-[0-9ap]" || :')).toEqual([
      '7',
      '7',
      '7',
    ])

    const named = await muster('copy', 'all', '--json', tree, 'newname')
    expect(named.code).toBe(0)
    expect(await onAll('ls newname')).toEqual(['sub\n', 'sub\n', 'sub\n'])
    const writers = linesOf(named.stdout).filter(({ type, sentBytes = 0 }) => type === 'result' && sentBytes > 0)
    expect(writers).toHaveLength(1)

    writeFileSync(join(tree, 'sub', 'f7'), 'changed')
    await onAll('cat data/tree/sub/f7 > /dev/null')
    const changed = linesOf((await muster('copy', 'all', '--json', source, tree, 'data/')).stdout)
    expect(changed.filter(({ action }) => action === 'copied')).toHaveLength(1)
    expect(await onAll('cat data/tree/sub/f7')).toEqual(['changed', 'changed', 'changed'])
  })

  it('gives each job its own directory, and cleans it once', async () => {
    const queue = labQueue(lab, hostsFile)
    try {
      // The second time without anything of the first.
      for (const _ of [1, 2]) {
        for (const { name } of lab.kernelHosts)
          await queue.submit('--on', name, '--array', '1-4', '--', 'hostname; echo $MUSTER_ARRAY_INDEX')
        expect(await queue.work().ended).toEqual([0, null])
        const jobs = await queue.list()
        expect(jobs.map(({ state, attempt }) => `${state} ${attempt}`)).toEqual(Array(12).fill('done 1'))
        const running = await queue.submit('--on', 'm9', '--', 'sleep 1000')
        const driver = queue.work()
        await driver.seen(new RegExp(`"job":${running},"state":"running"`))
        driver.child.kill('SIGKILL')
        await driver.ended
        await shell('m10', 'find .local/state/muster/jobs -maxdepth 1 -exec touch -d @0 {} +')
        const clean = await queue.job('clean', '--json')
        expect([clean.stderr, clean.code]).toEqual(['', 0])
        expect(linesOf(clean.stdout).reduce((sum, { directories = 0 }) => sum + directories, 0)).toBe(12)
        expect(await onAll('ls .local/state/muster/jobs | wc -l')).toEqual(['1\n', '1\n', '1\n'])
        const last = queue.work()
        await queue.job('cancel', running)
        expect(await last.ended).toEqual([0, null])
        await queue.job('clean', '--older-than', '0', '--records')
        await shell('m8', 'rm -rf .local/state/muster')
      }
    } finally {
      await queue.stop()
    }
  })

  it('starts a job although another host has just removed the directory of jobs', async () => {
    const start = {
      kind: 'start',
      key: 'q-1-1-0',
      run: { command: 'true', directory: undefined, environment: {} },
    } as const
    const rounds = [[], [start]].map((orders, index) =>
      formatRound({ number: index + 1, orders, wantsFacts: true, besides: '' }),
    )
    const wait = ': > /tmp/there; while [ ! -e /tmp/go ]; do sleep 0.1; done'
    const script = `${formatPrelude('', 'p')}${rounds.join(`${wait}\n`)}`
    writeFileSync(join(lab.directory, 'hosts', 'm9', 'round'), script)
    const running = lab.kernelHost('m9').mustExec("cp /run/lab/round /tmp/round; su ada -c 'cd; sh /tmp/round'")
    await lab.kernelHost('m9').mustExec('while [ ! -e /tmp/there ]; do sleep 0.1; done')
    await shell('m10', 'rm -rf .local/state/muster')
    await lab.kernelHost('m9').mustExec('touch /tmp/go')
    const said = await running
    expect(said).not.toContain('trouble')
    const key = '.local/state/muster/jobs/q-1-1-0'
    expect(await shell('m10', `while [ ! -e ${key}/exit ]; do sleep 0.1; done; cut -d ' ' -f 1 ${key}/exit`)).toBe(
      '0\n',
    )
  })

  it('is restored', async () => {
    expect((await muster('down', 'trust', 'env', '--yes')).code).toBe(0)
    expect(await shell('m8', 'ls -d lab .cache/muster .ssh/id_muster .muster-* 2> /dev/null || :')).toBe('')
  })
})

function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`
}
