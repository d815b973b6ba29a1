/** The fact script in every POSIX shell that is installed here, alone and with programs that are missing or hang. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { factScript, parseFacts } from '../../../src/ops/doctor/fact-script.ts'
import { endMark } from '../../../src/ops/kernel/fact.ts'
import { writeProgram } from '../../support/program.ts'
import { findProgram, requirement } from '../../support/requirements.ts'
import { waitUntil } from '../../support/wait-until.ts'

const SHELLS: readonly (readonly string[])[] = [
  ['sh', '-s'],
  ['dash', '-s'],
  ['bash', '-s'],
  ['bash', '--posix', '-s'],
  ['busybox', 'sh', '-s'],
  ['ksh', '-s'],
]
const installed = SHELLS.filter(([name = '']) => findProgram(name) !== undefined)

let directory = ''
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'muster-facts-'))
})
afterEach(() => rmSync(directory, { recursive: true, force: true }))

function fakeProgram(name: string, script: string): void {
  writeProgram(join(directory, name), script)
}

function spawnScript([name = '', ...args]: readonly string[], path: string, script = factScript('mark', 20)) {
  const environment = { PATH: path, HOME: directory, LANG: 'C.UTF-8' }
  const child = spawn(findProgram(name) ?? name, args, { env: environment, stdio: ['pipe', 'pipe', 'ignore'] })
  child.stdout.setEncoding('utf8')
  child.stdin.write(script)
  return child
}

/** As the doctor does it: stdin stays open until the last word has arrived. */
async function readFacts(argv: readonly string[], path = `${directory}:${process.env.PATH}`, script?: string) {
  const child = spawnScript(argv, path, script)
  let answer = ''
  child.stdout.on('data', (text: string) => {
    answer += text
    if (answer.includes(endMark('mark'))) child.stdin.end()
  })
  await once(child, 'close')
  return parseFacts(answer, 'mark')
}

describe('the fact script', () => {
  it.each(installed.map((argv) => ({ shell: argv.join(' '), argv })))('reads everything in $shell', async ({
    argv,
  }) => {
    const facts = await readFacts(argv)
    expect(facts.hanging).toEqual([])
    expect(facts.system).toMatchObject({ home: directory, user: expect.any(String), hostName: expect.any(String) })
    expect(facts.disks.map(({ path }) => path)).toEqual(['/', '/tmp', directory, '/var', '/dev/shm'])
    expect(facts.disks[0]).toMatchObject({ mountPoint: '/', availableBytes: expect.any(Number) })
    expect(facts.load?.cores).toBeGreaterThan(0)
    expect(facts.openFiles).toBeDefined()
    if (process.platform === 'linux') {
      expect(facts.memory?.availableBytes).toBeGreaterThan(0)
      expect(facts.mounts?.map(({ mountPoint }) => mountPoint)).toContain('/')
    }
  })

  it.skipIf(process.getuid?.() !== 0 || !requirement('unshare', 'setpriv', 'bash'))(
    "reads limits from no process of another user that calls itself sshd's",
    async () => {
      const title = 'sshd: /usr/sbin/sshd -f /nowhere [listener] 0 of 7-9 startups'
      const liar = `setpriv --reuid 65534 --clear-groups bash -c 'exec -a "${title}" sleep 600' & exec sh -s`
      // Among processes of their own: this machine may have several that are sshd's.
      const { sshd } = await readFacts(['unshare', '--pid', '--fork', '--mount-proc', 'sh', '-c', liar])
      expect(sshd?.maxStartups?.full).not.toBe(9)
    },
  )

  it('separates answers that are written at the same time, also from a shell that writes line by line', async () => {
    for (let round = 0; round < 5; round += 1) {
      const facts = await readFacts(['bash', '-s'])
      expect(facts.hanging).toEqual([])
      expect(facts.disks).toHaveLength(5)
    }
  })

  it.each([
    { answer: 'exit 0', sudo: 'passwordless', hanging: [] },
    { answer: 'echo "sudo: a password is required" >&2; exit 1', sudo: 'password', hanging: [] },
    { answer: 'kill -9 $$', sudo: undefined, hanging: ['sudo'] },
  ])('derives from `$answer` that sudo is $sudo', async ({ answer, sudo, hanging }) => {
    fakeProgram('id', 'case $1 in -u) echo 1000;; *) echo anna;; esac')
    fakeProgram('sudo', `[ "$*" = '-n true' ] || exit 0\n${answer}`)
    const facts = await readFacts(['sh', '-s'])
    expect(facts).toMatchObject({ system: { user: 'anna', isRoot: false }, hanging })
    expect(facts.sudo).toBe(sudo)
  })

  it('names what hangs, reports the rest, and leaves nothing behind', async () => {
    const hang = `echo $$ >> ${directory}/pids; exec sleep 1000`
    for (const name of ['df', 'python3', 'ip']) fakeProgram(name, hang)
    const facts = await readFacts(['sh', '-s'], undefined, factScript('mark'))
    expect(facts.hanging).toEqual(['python', 'disk-root', 'disk-tmp', 'disk-home', 'disk-var', 'disk-shm'])
    expect(facts.disks).toEqual([])
    expect(facts.python).toBeUndefined()
    expect(facts).toMatchObject({ system: { home: directory }, memory: { totalBytes: expect.any(Number) } })
    const pids = readFileSync(join(directory, 'pids'), 'utf8').trim().split('\n')
    await waitUntil(() => pids.every((pid) => !existsSync(`/proc/${pid}`)), 'the programs that hang to be killed')
  })

  it('ends at once when its stdin ends, whatever hangs', async () => {
    fakeProgram('df', 'exec sleep 1000')
    const child = spawnScript(['sh', '-s'], `${directory}:${process.env.PATH}`)
    const exited = once(child, 'exit')
    await once(child.stdout, 'data')
    child.stdin.end()
    expect(await exited).toEqual([null, 'SIGKILL'])
  })

  it('reports what it can where almost nothing is installed, and the rest as unknown', async () => {
    for (const name of ['uname', 'id', 'cat']) symlinkSync(findProgram(name) ?? '', join(directory, name))
    const onlyBuiltins = factScript('mark').replace('PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin', '')
    expect(onlyBuiltins).not.toBe(factScript('mark'))
    const facts = await readFacts(['sh', '-s'], directory, onlyBuiltins)
    expect(facts.system).toMatchObject({ user: expect.any(String), kernelName: expect.any(String) })
    expect(facts).toMatchObject({ python: 'missing', hanging: [] })
    expect(facts.disks).toEqual([])
    expect(facts.distribution).toBeUndefined()
    expect(facts.route).toBeUndefined()
    expect(facts.load).not.toHaveProperty('cores')
  })
})
