/** What a bundle started ends with it: real processes of this machine, with a cgroup where there is one, and without. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import {
  accessSync,
  constants,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  rmSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { systemClock } from '../../../src/base/clock.ts'
import { HostClock, HostLine, type JobHosts } from '../../../src/scheduler/jobs/host-line.ts'
import { type BundleOrder, formatPrelude, parseHostAnswer } from '../../../src/scheduler/jobs/host-program.ts'
import { writeProgram } from '../../support/program.ts'
import { requirement } from '../../support/requirements.ts'
import { waitUntil } from '../../support/wait-until.ts'

const canRun = process.platform === 'linux' && requirement('setsid', 'mkfifo', 'awk', 'xargs')

const KEY = `abc-${process.pid}-1-0`
/** Told by its fraction from the processes of others. */
const SLEEP = `sleep 3000.${process.pid}`

/** The cgroup of another bundle. */
const OTHER = `other-${process.pid}-1-0`

/** Where version 2 of cgroups is mounted and can be written. */
const GROUPS = groupsDirectory()

describe.skipIf(!canRun)('what a bundle started', { timeout: 120_000 }, () => {
  let directory: string
  let notices: string[]
  let line: HostLine
  let others: ChildProcess[]

  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), 'muster-stop-'))
    mkdirSync(join(directory, 'bin'))
    notices = []
    others = []
    line = new HostLine({
      host: 'a',
      port,
      clock: systemClock,
      hostClock: new HostClock(),
      onNotice: (text) => notices.push(...text.split('\n')),
      onLost() {},
    })
  })
  afterEach(async () => {
    for (const child of others) child.kill('SIGKILL')
    for (const pid of sleepers()) process.kill(pid, 'SIGKILL')
    line[Symbol.dispose]()
    if (GROUPS !== undefined) for (const name of [`muster/${OTHER}`, 'muster']) removeEmpty(join(GROUPS, name))
    await waitUntil(() => sleepers().length === 0, 'the end of all processes')
    rmSync(directory, { recursive: true, force: true })
  })

  const environment = (): NodeJS.ProcessEnv => ({
    ...{ PATH: `${join(directory, 'bin')}:${process.env.PATH}`, HOME: directory },
  })
  const port: JobHosts = {
    open(_, { onText, onEnd }) {
      const own = spawn('sh', ['-s'], { env: environment(), stdio: ['pipe', 'pipe', 'ignore'] })
      own.stdout.setEncoding('utf8').on('data', onText)
      own.on('close', () => onEnd('it ended'))
      return { write: (text) => void own.stdin.write(text), [Symbol.dispose]: () => own.stdin.end() }
    },
  }
  /** As on a host that does not let its user make cgroups. */
  const withoutGroups = () =>
    writeProgram(
      join(directory, 'bin', 'mkdir'),
      `case $* in */sys/fs/cgroup/*) exit 1;; esac\nPATH=${process.env.PATH}; exec mkdir "$@"`,
    )
  const jobs = () => join(directory, '.local', 'state', 'muster', 'jobs')
  const order = async (...orders: readonly BundleOrder[]) => {
    const result = await line.round({ orders, wantsFacts: false, besides: '' })
    if (result.kind === 'trouble') throw new Error(result.reason)
    return parseHostAnswer(result.text).bundles.get(KEY)
  }
  const start = async (command: string, isLaunched = true) => {
    // Neither its own variables nor the mark that it was submitted with change its mark.
    const environment = { MUSTER_JOB: '17', MUSTER_BUNDLE: 'other-17-1-0', k: 'x', p: '1' }
    const run = { command: `${command}\ntouch "$HOME/up"; wait`, directory: undefined, environment, isLaunched }
    await order({ kind: 'start', key: KEY, run })
    await waitUntil(() => has('up'), 'all of it to run')
  }
  const has = (name: string) => existsSync(join(directory, name))
  const ended = () => notices.find((notice) => notice.startsWith(`${KEY} exit`))
  const stopped = async () => {
    await waitUntil(async () => {
      const signal = 'KILL'
      await order({ kind: 'stop', key: KEY, signal })
      return ended() !== undefined
    }, 'its end')
    return ended()
  }
  const sleepers = () => processes().flatMap(({ pid, line }) => (line === SLEEP ? [pid] : []))
  /** A process that has nothing to do with the bundle, in whose environment something looks like it. */
  const stranger = async (...variables: readonly string[]) => {
    const child = spawn('env', [...variables, ...SLEEP.split(' ')], { env: environment(), stdio: 'ignore' })
    others.push(child)
    await waitUntil(() => sleepers().includes(child.pid ?? 0), 'a stranger')
  }
  const strangersLive = () => others.every(({ exitCode, signalCode }) => exitCode === null && signalCode === null)
  const groups = () =>
    GROUPS === undefined || !existsSync(join(GROUPS, 'muster'))
      ? []
      : readdirSync(join(GROUPS, 'muster')).filter((name) => name === KEY)

  describe.each([
    ['without a cgroup', true],
    ['in a cgroup', GROUPS !== undefined],
  ])('%s', (title, isPossible) => {
    beforeEach(() => {
      if (title === 'without a cgroup') withoutGroups()
    })

    it.skipIf(!isPossible)(
      'ends with it by a stop, in whatever session it is and whatever it ignores, and strangers live on',
      async () => {
        await stranger('MUSTER_JOB=17', 'MUSTER_RANK=0', `MUSTER_BUNDLE=other-17-1-0`)
        await stranger(`SAVED=\nMUSTER_BUNDLE=${KEY}\nMUSTER_JOB=17`)
        await stranger(`MUSTER_BUNDLE=${KEY}0`, `AMUSTER_BUNDLE=${KEY}`)
        const [first] = others
        // Looks like the output of the reader at another process.
        await stranger(`SAVED=\n==> ${first?.pid}/environ <==\nMUSTER_BUNDLE=${KEY}\n`)
        await start(`setsid ${SLEEP} &
          (setsid sh -c '${SLEEP} &' &)
          (setsid sh -c 'trap "" TERM; ${SLEEP}; ${SLEEP}' &)
          i=0; while [ $i -lt 200 ]; do i=$((i + 1)); (setsid ${SLEEP} &); done
          trap "" TERM`)
        await waitUntil(() => sleepers().length === others.length + 203, 'all processes')
        expect(groups()).toEqual(title === 'in a cgroup' ? [KEY] : [])
        const sinceMs = Date.now()
        expect(await stopped()).toMatch(/ exit 137 at=\S+ to=\S+ left=0$/)
        expect(Date.now() - sinceMs).toBeLessThan(15_000)
        expect([sleepers().length, strangersLive()]).toEqual([others.length, true])
        await waitUntil(() => groups().length === 0, 'the end of its cgroup')
      },
    )

    it.skipIf(!isPossible)('of a launched one ends when its command does, with time to save', async () => {
      const saves = `trap "sleep 0.3; echo saved >>\\"$HOME/saved\\"; exit" TERM; touch "$HOME/ready"; while :; do sleep 0.1; done`
      await start(
        `(setsid ${SLEEP} &); setsid sh -c '${saves}' & (trap "" TERM; ${SLEEP}) &
        while [ ! -e "$HOME/ready" ]; do sleep 0.05; done; exit 0`.replace('exit 0', 'touch "$HOME/up"; exit 0'),
      )
      await waitUntil(() => ended() !== undefined, 'its end')
      expect(ended()).toMatch(/ exit 0 at=\S+ to=\S+ left=0$/)
      expect([sleepers(), readFileSync(join(directory, 'saved'), 'utf8')]).toEqual([[], 'saved\n'])
      expect(await order({ kind: 'check', key: KEY })).toMatchObject({ kind: 'ended', left: { count: 0 } })
      await waitUntil(() => groups().length === 0, 'the end of its cgroup')
    })

    it.skipIf(!isPossible)('of a launched one ends when its first process is killed', async () => {
      if (title === 'in a cgroup') mkdirSync(join(GROUPS ?? '', 'muster', OTHER), { recursive: true })
      await start(`(setsid ${SLEEP} &); (trap "" TERM; ${SLEEP}; ${SLEEP}) & trap "" TERM; ${SLEEP} &`)
      await waitUntil(() => sleepers().length === 3, 'all processes')
      const [first] = readFileSync(join(jobs(), KEY, 'id'), 'utf8').split(' ')
      process.kill(Number(first), 'SIGKILL')
      const sinceMs = Date.now()
      let seen = await order({ kind: 'check', key: KEY })
      expect(seen).toMatchObject({ kind: 'begun' })
      await waitUntil(async () => {
        seen = await order({ kind: 'check', key: KEY })
        return seen?.kind !== 'begun'
      }, 'its end')
      expect(Date.now() - sinceMs).toBeLessThan(15_000)
      expect(seen).toMatchObject({ kind: 'ended', end: { kind: 'gone' }, left: { count: 0, processes: [] } })
      expect([sleepers(), groups()]).toEqual([[], []])
      expect(processes().filter(({ line }) => line.includes(KEY))).toEqual([])
    })

    it.skipIf(!isPossible)('is found by the cgroup alone when it hides its environment and its parents', async () => {
      // The command goes on, or the process would be looked for before it has hidden.
      await start(`(env -i "PATH=$PATH" setsid ${SLEEP} &); sleep 3000 &`)
      await waitUntil(() => sleepers().length === 1, 'the process')
      expect(await stopped()).toMatch(/ left=0$/)
      expect(sleepers().length).toBe(title === 'in a cgroup' ? 0 : 1)
    })
  })

  it('lives on when a plain one ends by itself', async () => {
    await start(`(setsid ${SLEEP} &); touch "$HOME/up"; exit 0`, false)
    await waitUntil(() => ended() !== undefined && sleepers().length === 1, 'its end, and the process that goes on')
    expect(ended()).toMatch(/ exit 0 at=\S+ to=\S+$/)
    expect(await order({ kind: 'check', key: KEY })).toMatchObject({ kind: 'ended' })
    expect(sleepers()).toHaveLength(1)
  })

  it('ends with a plain one that is stopped, in sessions of its own as well', async () => {
    await start(`(setsid ${SLEEP} &); ${SLEEP} &`, false)
    await waitUntil(() => sleepers().length === 2, 'all processes')
    expect(await stopped()).toMatch(/ exit 143 /)
    expect(sleepers()).toEqual([])
  })

  it.each(['a\\n1 (b) S 1', ') R 1 1 1 1 1'])('ends with a plain one, also when its name is %j', async (name) => {
    const loop = `printf "${name}" >/proc/$$/comm; while :; do ${SLEEP}; done`
    await start(`(setsid sh -c '${loop}' &); ${SLEEP} &`, false)
    await waitUntil(() => processes().filter(({ line }) => line === SLEEP).length === 2, 'all processes')
    expect(await stopped()).toMatch(/ exit 143 /)
    expect(sleepers()).toEqual([])
  })

  it('is named when it cannot be ended, without what its names could do', () => {
    const name = 'a b;$(x)'
    const program = `${formatPrelude('m', 'p')}
      echo '${name}' >/proc/$$/comm; blind=; r="$$ 1 1 1 1 1 1 1 1 1"; name_left; echo "left=$left" >&2
      r=; name_left; echo "left=$left" >&2
      blind=1; name_left; echo "left=$left" >&2`
    const told = execFileSync('sh', ['-c', '{ sh -s >/dev/null; } 2>&1'], { input: program, env: environment() })
    const [some = '', nothing, unknown] = told.toString().trim().split('\n')
    expect(some).toMatch(/^left=10,\d+:a_b___x_(,1:[\w.+-]+){7}$/)
    expect([nothing, unknown]).toEqual(['left=0', 'left='])
    const { left } = parseHostAnswer(`k exit 0 at=1 to=2 ${some}`).bundles.get('k') as { left?: object }
    expect(left).toMatchObject({ count: 10, processes: { 0: { name: 'a_b___x_' }, length: 8 } })
  })
})

function removeEmpty(path: string): void {
  try {
    rmdirSync(path)
  } catch {
    // It is not there, or others use it.
  }
}

function processes(): readonly { readonly pid: number; readonly line: string }[] {
  return readdirSync('/proc').flatMap((name) => {
    if (!/^\d+$/.test(name)) return []
    try {
      const line = readFileSync(`/proc/${name}/cmdline`, 'utf8').split('\0').join(' ').trim()
      return [{ pid: Number(name), line }]
    } catch {
      return []
    }
  })
}

function groupsDirectory(): string | undefined {
  if (process.platform !== 'linux') return undefined
  const mount = readFileSync('/proc/mounts', 'utf8')
    .split('\n')
    .map((mounted) => mounted.split(' '))
    .find(([, , type]) => type === 'cgroup2')?.[1]
  try {
    accessSync(join(mount ?? '/nowhere', 'cgroup.procs'), constants.W_OK)
    return mount
  } catch {
    return undefined
  }
}
