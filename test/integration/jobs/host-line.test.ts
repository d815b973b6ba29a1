/** What is said to a host, to a real shell of this machine. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { systemClock } from '../../../src/base/clock.ts'
import { shellQuote } from '../../../src/base/shell-quote.ts'
import { HostClock, HostLine, type JobHosts } from '../../../src/scheduler/jobs/host-line.ts'
import {
  type BundleOrder,
  formatPrelude,
  formatRound,
  parseHostAnswer,
} from '../../../src/scheduler/jobs/host-program.ts'
import { requirement } from '../../support/requirements.ts'
import { waitUntil } from '../../support/wait-until.ts'

const canRun = process.platform === 'linux' && requirement('setsid', 'mkfifo')

/** Where bundles are begun by it. */
const hasHelper = canRun && existsSync('/usr/bin/python3')

const KEY = 'abc-1-1-0'
const start = (command: string, environment = {}): BundleOrder => ({
  kind: 'start',
  key: KEY,
  run: { command, directory: undefined, environment },
})
const only = (...orders: readonly BundleOrder[]) => ({ orders, wantsFacts: false, besides: '' })

describe.skipIf(!canRun)('the line to a host', () => {
  let directory: string
  let child: ChildProcess
  let notices: string[]
  let lost: number
  let line: HostLine

  const shell = () => {
    const environment = { PATH: process.env.PATH, HOME: directory, MUSTER_HARDWARE: join(directory, 'hardware') }
    return spawn('sh', ['-c', 'umask 027; exec sh -s'], { env: environment, stdio: ['pipe', 'pipe', 'ignore'] })
  }
  const port: JobHosts = {
    open(_, { onText, onEnd }) {
      const own = shell()
      child = own
      own.stdout.setEncoding('utf8').on('data', onText)
      own.on('close', () => onEnd('it ended'))
      return { write: (text) => void own.stdin.write(text), [Symbol.dispose]: () => own.stdin.end() }
    },
  }
  const jobs = () => join(directory, '.local', 'state', 'muster', 'jobs')
  const has = (name: string) => existsSync(join(jobs(), KEY, name))

  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), 'muster-line-'))
    notices = []
    lost = 0
    line = new HostLine({
      host: 'a',
      port,
      clock: systemClock,
      hostClock: new HostClock(),
      onNotice: (text) => notices.push(...text.split('\n')),
      onLost: () => {
        lost++
      },
    })
  })
  afterEach(() => {
    line[Symbol.dispose]()
    rmSync(directory, { recursive: true, force: true })
  })

  it('one shell serves many rounds, and a bundle reports that it began and how it ended', async () => {
    const first = await line.round(only(start('exit 3', { k: 'x', c: '9' })))
    expect(first).toMatchObject({ kind: 'answer', text: expect.stringMatching(/^host \d+ \d+$/m) })
    await waitUntil(() => notices.length === 2, 'both words of it')
    const [at, to] = /at=(\S+) to=(\S+)$/
      .exec(notices[1] ?? '')
      ?.slice(1)
      .map(Number) as [number, number]
    expect(notices[0]).toMatch(new RegExp(`^${KEY} begun at=${at}0*$`))
    expect(to).toBeGreaterThanOrEqual(at)
    const { pid } = child
    const said = new RegExp(`^up \\S+\n${KEY} exit 3 at=\\S+ to=\\S+$`)
    expect(await line.round(only({ kind: 'check', key: KEY }))).toMatchObject({ text: expect.stringMatching(said) })
    expect(await line.round(only(start('exit 4')))).toMatchObject({ text: expect.stringMatching(said) })
    expect(child.pid).toBe(pid)
    expect(readdirSync(jobs())).toEqual([KEY])
  })

  it.each([
    ['no driver of NVIDIA', [], undefined],
    ['a driver without a GPU', ['proc/driver/nvidia/gpus'], undefined],
    ['one GPU', ['proc/driver/nvidia/gpus/0000:01:00.0'], 1],
    ['two GPUs', ['proc/driver/nvidia/gpus/0000:01:00.0', 'proc/driver/nvidia/gpus/0000:02:00.0'], 2],
    [
      'a GPU that could be divided',
      ['proc/driver/nvidia/gpus/0000:01:00.0', 'proc/driver/nvidia/capabilities/gpu0/mig'],
      1,
    ],
    [
      'a divided GPU',
      ['proc/driver/nvidia/gpus/0000:01:00.0', 'proc/driver/nvidia/capabilities/gpu0/mig/gi7/ci0'],
      undefined,
    ],
    ['GPUs of AMD as well', ['proc/driver/nvidia/gpus/0000:01:00.0', 'dev/kfd'], undefined],
  ])('a host with %s says how many GPUs it has, or nothing', async (_, paths, gpus) => {
    for (const path of paths) mkdirSync(join(directory, 'hardware', path), { recursive: true })
    const answer = await line.round(only())
    const { facts } = parseHostAnswer(answer.kind === 'answer' ? answer.text : '')
    expect(facts).toEqual({ cores: expect.any(Number), memoryBytes: expect.any(Number), gpus })
    expect(facts?.memoryBytes).toBeGreaterThan(0)
  })

  it('a bundle creates files with the umask of its user, and its output stays private', async () => {
    await line.round(only(start('echo data >"$HOME/result"; umask')))
    await waitUntil(() => notices.length === 2, 'its end')
    const modeOf = (path: string) => (statSync(path).mode & 0o777).toString(8)
    expect(readFileSync(join(jobs(), KEY, 'out'), 'utf8')).toBe('0027\n')
    expect(modeOf(join(directory, 'result'))).toBe('640')
    expect(['out', 'err', 'id', 'exit'].map((name) => modeOf(join(jobs(), KEY, name)))).toEqual(Array(4).fill('600'))
    expect(modeOf(join(jobs(), KEY))).toBe('700')
  })

  it('a late stop still sends TERM first and leaves time to save', async () => {
    await line.round(
      only(start(`trap 'touch "$HOME/saved"; exit 5' TERM; touch "$HOME/up"; while :; do sleep 0.05; done`)),
    )
    await waitUntil(() => existsSync(join(directory, 'up')), 'it to listen')
    await line.round(only({ kind: 'stop', key: KEY, signal: 'KILL' }))
    await waitUntil(() => notices.length === 2, 'its end')
    expect([notices[1], existsSync(join(directory, 'saved'))]).toEqual([expect.stringContaining(`${KEY} exit 5`), true])
  })

  it.each([
    'term.99999999999',
    'term.99999999999999999999',
    'term.x',
    'term.08',
  ])('a bundle is ended though a file %s in its directory looks like the mark of an earlier order', async (name) => {
    await line.round(
      only(start(`trap 'touch "$HOME/saved"; exit 5' TERM; touch "$HOME/up"; while :; do sleep 0.05; done`)),
    )
    await waitUntil(() => existsSync(join(directory, 'up')), 'it to listen')
    writeFileSync(join(jobs(), KEY, name), '')
    await line.round(only({ kind: 'stop', key: KEY, signal: 'TERM' }))
    await waitUntil(() => notices.length === 2, 'its end')
    expect(notices[1]).toContain(`${KEY} exit 5`)
  })

  const launched = (command: string): BundleOrder => ({
    kind: 'start',
    key: KEY,
    run: { command, directory: undefined, environment: {}, isLaunched: true },
  })

  it('what a launched bundle tells cannot pass for a report of another bundle, and has a limit', async () => {
    await line.round(
      only(
        launched(`printf '%s\\n' 'one a\\n+abc-2-1-0 exit 0' 1<>"$MUSTER_SAY"
echo 'ValueError: C:\\new' >&2; i=0; while [ $i -lt 2000 ]; do echo "many 1"; i=$((i+1)); done >"$MUSTER_SAY"; exit 1`),
      ),
    )
    await waitUntil(() => notices.some((one) => one.startsWith(`${KEY} exit 1`)), 'its end')
    expect(notices).toContain(`${KEY} said one a\\n+abc-2-1-0 exit 0`)
    expect(notices.filter((one) => !one.startsWith(`${KEY} `))).toEqual([])
    expect(notices.filter((one) => one.endsWith('many 1')).length).toBeLessThan(1000)
  })

  it('a launched bundle names ranks whose program was killed, and what mpirun says of one', async () => {
    const rank = (number: number, command: string) => `RANK=${number} sh "$MUSTER_DIRECTORY/rank" sh -c '${command}' &`
    const killed = (number: number) =>
      rank(number, `until grep -q "^${number} " "$MUSTER_DIRECTORY/ranks"; do sleep 0.05; done; kill -9 $PPID`)
    const says = (word: string) => `process rank 3 with PID 84 on node 10.81.0.2 ${word} on signal 9 (Killed).`
    await line.round(
      only(
        launched(`${killed(4)} ${rank(5, 'exit 3')} ${killed(6)} wait
echo 'mpirun noticed that ${says('waits')}
mpirun noticed that ${says('exited')}' >&2; exit 137`),
      ),
    )
    await waitUntil(() => notices.some((one) => one.startsWith(`${KEY} exit 137`)), 'its end')
    const told = notices.filter((one) => / (lost|noticed) /.test(one)).toSorted()
    expect(told).toEqual([expect.stringMatching(`^${KEY} said lost (4 6|6 4)$`), `${KEY} said noticed 3 9`])
    expect(readFileSync(join(jobs(), KEY, 'said'), 'utf8')).toMatch(/^lost .*\nnoticed 3 9$/m)
  })

  it('what a launched bundle tells after its shell was lost is kept for the next one', async () => {
    await line.round(
      only(
        launched(`until [ -e "$HOME/lost" ]; do sleep 0.05; done
for i in 1 2 3; do echo "fact$i x"; done >"$MUSTER_SAY"; until [ -e "$HOME/over" ]; do sleep 0.05; done`),
      ),
    )
    await waitUntil(() => has('say'), 'it to begin')
    line[Symbol.dispose]()
    await once(child, 'close')
    writeFileSync(join(directory, 'lost'), '')
    const facts = () => (has('said') ? readFileSync(join(jobs(), KEY, 'said'), 'utf8') : '')
    await waitUntil(() => facts() === 'fact1 x\nfact2 x\nfact3 x\n', 'all facts')
    writeFileSync(join(directory, 'over'), '')
    await waitUntil(() => has('exit'), 'its end')
  })

  it('each shell hears once what a launched bundle told, and a pipe among its files holds up no round', async () => {
    const command = `echo "one 1" >"$MUSTER_SAY"; cd "$MUSTER_DIRECTORY"; until [ -e ${directory}/over ]; do sleep 0.1; done`
    const order = start(command)
    if (order.kind !== 'start') throw new Error('it is a start')
    await line.round(only({ ...order, run: { ...order.run, isLaunched: true } }))
    await waitUntil(() => notices.includes(`${KEY} said one 1`), 'a fact')
    const check = only({ kind: 'check', key: KEY })
    const tellings = async () => {
      const answer = await line.round(check)
      return answer.kind === 'answer' ? answer.text.split('\n').filter((text) => text.includes(' said ')) : []
    }
    expect([await tellings(), await tellings()]).toEqual([[`${KEY} said one 1`], []])
    for (const name of ['id', 'cgroup', 'told']) {
      rmSync(join(jobs(), KEY, name), { force: true })
      spawnSync('mkfifo', [join(jobs(), KEY, name)])
    }
    expect(await line.round(check)).toMatchObject({ kind: 'answer' })
    expect(await line.round(only({ kind: 'stop', key: KEY, signal: 'TERM' }))).toMatchObject({ kind: 'answer' })
    writeFileSync(join(directory, 'over'), '')
    await waitUntil(() => has('exit'), 'its end')
  })

  it('half a round does nothing', async () => {
    const own = shell()
    const text = formatRound({ ...only(start('true'), start('true')), number: 1 })
    own.stdin.end(formatPrelude('m', 'p') + text.slice(0, text.lastIndexOf(')')))
    const said = (await own.stdout.setEncoding('utf8').toArray()).join('')
    expect(said.trim()).toBe('')
    expect(existsSync(join(jobs(), KEY))).toBe(false)
  })

  it('a bundle is found though the file that says who runs it gets its name just after a look for it', async () => {
    const own = shell()
    const alias = `look() {
  case $1$2 in -fkey/id) command [ "$@" || { mv key/run.$boot.1 key/id; return 1; };; *) command [ "$@";; esac
}
alias [=look
`
    const check = `mkdir key; : >key/claim; read -r s </proc/$$/stat; s=\${s##*) }; set -- $s
echo "$$ $boot \${20} 1" >key/run.$boot.1; check key
`
    own.stdin.end(`${alias}${formatPrelude('m', 'p')}${check}`)
    const said = (await own.stdout.setEncoding('utf8').toArray()).join('')
    expect(said.trim()).toBe('mkey begun at=1')
  })

  it('a bundle outlives its shell and is found by the next one', async () => {
    await line.round(only(start('while [ ! -e go ]; do sleep 0.05; done; exit 5')))
    await waitUntil(() => notices.length === 1, 'it to begin')
    const { pid = 0 } = child
    // The round itself may take a moment to end after its last line.
    await waitUntil(() => childrenOf(pid).length === (hasHelper ? 2 : 1), 'the reader and the helper to be alone')
    const readers = childrenOf(pid)
    child.kill('SIGKILL')
    child.stdout?.destroy()
    await waitUntil(() => lost === 1, 'its end to be noticed')
    writeFileSync(join(directory, 'go'), '')
    await waitUntil(() => has('exit'), 'its end')
    await waitUntil(
      () => !readers.some((reader) => existsSync(`/proc/${reader}`)),
      'the end of the reader and the helper',
    )
    expect(await line.round(only({ kind: 'check', key: KEY }))).toMatchObject({
      text: expect.stringContaining(`${KEY} exit 5`),
    })
    expect(notices).toHaveLength(1)
  })

  it('closing the channel ends the reader while a bundle continues', async () => {
    await line.round(only(start('while [ ! -e go ]; do sleep 0.05; done')))
    await waitUntil(() => notices.length === 1, 'it to begin')
    const ended = once(child, 'close')
    line[Symbol.dispose]()
    await ended
    expect(has('exit')).toBe(false)
    writeFileSync(join(directory, 'go'), '')
    await waitUntil(() => has('exit'), 'its end')
  })

  describe.skipIf(!hasHelper)('with a helper that begins bundles', () => {
    /** Empty for a process that has ended meanwhile. */
    const commandOf = (pid: string): string => {
      try {
        return readFileSync(`/proc/${pid}/cmdline`, 'utf8')
      } catch {
        return ''
      }
    }
    const helpers = () =>
      readdirSync('/proc').filter((pid) => /^\d+$/.test(pid) && commandOf(pid).includes(`\0${jobs()}\0`))
    const theHelper = async (): Promise<number> => {
      let pids: readonly string[] = []
      await waitUntil(() => {
        pids = helpers()
        return pids.length === 1
      }, 'the helper')
      return Number(pids[0])
    }
    const ended = async () => await waitUntil(() => has('exit'), 'its end')
    const output = () => readFileSync(join(jobs(), KEY, 'out'), 'utf8')
    const firstOf = (number: number) => readFileSync(join(jobs(), `abc-${number}-1-0`, 'id'), 'utf8').split(' ')[0]
    const roundOf = (...orders: readonly BundleOrder[]) => formatRound({ ...only(...orders), number: 1000 })
    const keyed = (number: number, command: string, directory?: string): BundleOrder => ({
      ...{ kind: 'start', key: `abc-${number}-1-0`, run: { command, directory, environment: {} } },
    })
    const told = async (text: string) => {
      await waitUntil(() => notices.some((notice) => notice.startsWith(text)), `the report ${text}`)
      return notices.find((notice) => notice.startsWith(text))
    }

    it('a bundle has the process group, environment, signals and files that it has without it', async () => {
      // The C library may have ignored two signals of its own, which no program can use, beyond the last seven digits.
      const look = `env | sort; grep '^Sig[BIC]' /proc/$$/status | sed 's/\\t.*\\(.......\\)$/ \\1/'; ls /proc/$$/fd
        read -r pid comm state parent group session rest </proc/$PPID/stat; [ $pid = $group ] && echo leads a group`
      const outputs: string[] = []
      for (const isHelped of [true, false]) {
        for (const pid of isHelped ? [] : helpers()) process.kill(Number(pid), 'SIGKILL')
        await waitUntil(() => isHelped || helpers().length === 0, 'the helper to end')
        await line.round(only(start(look)))
        await ended()
        outputs.push(output())
        rmSync(join(jobs(), KEY), { recursive: true })
      }
      expect(outputs[0]).toBe(outputs[1])
      expect(outputs[0]).toContain('leads a group')
    })

    it('a helper that dies while the shell waits for it holds up nothing', async () => {
      await line.round(only())
      const pid = await theHelper()
      process.kill(pid, 'SIGSTOP')
      const round = line.round(only(start('echo begun')))
      process.kill(pid, 'SIGKILL')
      expect(await round).toMatchObject({ kind: 'answer' })
      await ended()
      expect(output()).toBe('begun\n')
    })

    it('a helper that dies in the middle of a round holds up no bundle of it', async () => {
      await line.round(only())
      const pid = await theHelper()
      process.kill(pid, 'SIGSTOP')
      // More than it may have before it, so the last ones come when the shell knows that it is dead.
      const numbers = Array.from({ length: 30 }, (_, index) => index)
      const round = line.round(only(...numbers.map((number) => keyed(number, `: ${'x'.repeat(1000)}; exit 6`))))
      process.kill(pid, 'SIGKILL')
      expect(await round).toMatchObject({ text: expect.not.stringMatching(/trouble|unable/) })
      for (const number of numbers) await told(`abc-${number}-1-0 exit 6`)
    })

    it('one process waits for bundles that come one after the other, and tells the exit code of each', async () => {
      for (const number of [1, 2, 3]) {
        await line.round(only(keyed(number, `exit ${number}`)))
        expect(await told(`abc-${number}-1-0 exit`)).toMatch(new RegExp(`^abc-${number}-1-0 exit ${number} at=`))
      }
      expect(new Set([1, 2, 3].map(firstOf)).size).toBe(1)
    })

    it('a bundle that is stopped takes nothing with it that an earlier one left running', async () => {
      await line.round(only(keyed(1, `sh -c 'echo $$ >"$HOME/left"; exec sleep 3000' & exit 0`)))
      await told('abc-1-1-0 exit 0')
      await line.round(only(keyed(2, 'sleep 3000')))
      await told('abc-2-1-0 begun')
      await line.round(only({ kind: 'stop', key: 'abc-2-1-0', signal: 'TERM' }))
      await told('abc-2-1-0 exit 143')
      const left = Number(readFileSync(join(directory, 'left'), 'utf8'))
      expect(existsSync(`/proc/${left}`)).toBe(true)
      process.kill(left, 'SIGKILL')
    })

    it('a bundle that is stopped before its command runs does not run on', async () => {
      await line.round(only())
      await theHelper()
      mkdirSync(join(jobs(), 'abc-3-1-0'), { recursive: true })
      writeFileSync(join(jobs(), 'abc-3-1-0', 'term.1'), '')
      await line.round(only(keyed(3, 'exec sleep 3000')))
      await told('abc-3-1-0 exit 143')
    })

    it('the exit code of a bundle is kept though the helper was killed meanwhile', async () => {
      await line.round(only(start('touch here; until [ -e go ]; do sleep 0.05; done; exit 7')))
      await waitUntil(() => existsSync(join(directory, 'here')), 'its command')
      const supervisor = readFileSync(join(jobs(), KEY, 'id'), 'utf8').split(' ')[0]
      for (const pid of helpers()) if (pid !== supervisor) process.kill(Number(pid), 'SIGKILL')
      writeFileSync(join(directory, 'go'), '')
      await told(`${KEY} exit 7`)
      expect(await line.round(only({ kind: 'check', key: KEY }))).toMatchObject({
        text: expect.stringContaining(`${KEY} exit 7`),
      })
    })

    it('a bundle is not stopped in place of an earlier one that ended just before', async () => {
      await line.round(only(keyed(1, 'until [ -e go ]; do sleep 0.05; done')))
      await told('abc-1-1-0 begun')
      // While the shell looks for the processes of the first one, that ends, and its process takes the next one.
      const second = `trap 'echo TERM' TERM; : >there; until [ -e over ]; do sleep 0.05; done`
      child.stdin?.write(`cat() {
  : >"$HOME/go"; until [ -e "$HOME/next" ]; do :; done
  [ -e abc-2-1-0 ] || eval ${shellQuote(roundOf(keyed(2, second)))} >/dev/null
  until [ -e "$HOME/there" ]; do :; done
  command cat "$@"
}
`)
      const stopped = line.round(only({ kind: 'stop', key: 'abc-1-1-0', signal: 'TERM' }))
      await told('abc-1-1-0 exit 0')
      writeFileSync(join(directory, 'next'), '')
      await stopped
      expect(firstOf(2)).toBe(firstOf(1))
      writeFileSync(join(directory, 'over'), '')
      await told('abc-2-1-0 exit 0')
      expect(readFileSync(join(jobs(), 'abc-2-1-0', 'out'), 'utf8')).toBe('')
    })

    it('a bundle that is ordered twice at once begins once, and is found', async () => {
      const numbers = Array.from({ length: 20 }, (_, index) => index + 1)
      const twice = numbers
        .map((number) => keyed(number, `echo ${number} >>"$HOME/begun"; until [ -e go ]; do sleep 0.05; done`))
        .flatMap((order) => [order, order])
      await line.round(only(...twice))
      const begun = () => (existsSync(join(directory, 'begun')) ? readFileSync(join(directory, 'begun'), 'utf8') : '')
      await waitUntil(() => begun().split('\n').length > numbers.length, 'all of them')
      const answer = await line.round(
        only(...numbers.map((number): BundleOrder => ({ kind: 'check', key: `abc-${number}-1-0` }))),
      )
      if (answer.kind !== 'answer') throw new Error(answer.reason)
      expect(answer.text.match(/ begun /g)).toHaveLength(numbers.length)
      writeFileSync(join(directory, 'go'), '')
      for (const number of numbers) await told(`abc-${number}-1-0 exit 0`)
      expect(
        begun()
          .trim()
          .split('\n')
          .map(Number)
          .toSorted((one, other) => one - other),
      ).toEqual(numbers)
    })

    it('a bundle that another one has claimed does not begin', async () => {
      mkdirSync(join(jobs(), KEY), { recursive: true })
      // The shell that looks first does not see it.
      symlinkSync('nowhere', join(jobs(), KEY, 'claim'))
      await line.round(only(start('true')))
      await line.round(only(keyed(2, 'true')))
      await told('abc-2-1-0 exit 0')
      await waitUntil(() => readdirSync(join(jobs(), KEY)).length === 1, 'it to be given up')
      expect(notices.filter((notice) => notice.startsWith(KEY))).toEqual([])
    })

    it('begins a bundle though every process that waited for the next one was killed', async () => {
      await line.round(only())
      const helper = String(await theHelper())
      await line.round(only(keyed(1, 'true'), keyed(2, 'true')))
      for (const number of [1, 2]) await told(`abc-${number}-1-0 exit 0`)
      for (const pid of helpers()) if (pid !== helper) process.kill(Number(pid), 'SIGKILL')
      // Orders are repeated: a process that is just being killed may take one with it.
      await waitUntil(async () => {
        await line.round(only(keyed(3, 'exit 3')))
        return notices.some((notice) => notice.startsWith('abc-3-1-0 exit 3'))
      }, 'its end')
    })

    it('begins as many bundles at once as it is told to, again and again', async () => {
      const numbers = Array.from({ length: 80 }, (_, index) => index)
      for (const round of [1, 2, 3]) {
        await line.round(only(...numbers.map((number) => keyed(100 * round + number, 'sleep 0.1; exit 6'))))
        for (const number of numbers) await told(`abc-${100 * round + number}-1-0 exit 6`)
      }
    })

    it('a long command, and one in a directory that is not there, are begun as without it', async () => {
      const long = `: ${'x'.repeat(100_000)}; exit 4`
      await line.round(only(keyed(1, long), keyed(2, 'true', 'not-there'), keyed(3, `echo "it's"; exit 5`)))
      await told('abc-1-1-0 exit 4')
      await told('abc-2-1-0 exit 2')
      await told('abc-3-1-0 exit 5')
      expect(readFileSync(join(jobs(), 'abc-2-1-0', 'err'), 'utf8')).toContain("can't cd to not-there")
      expect(readFileSync(join(jobs(), 'abc-3-1-0', 'out'), 'utf8')).toBe("it's\n")
    })
  })

  const room = () => join(jobs(), `.room.${readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()}`)

  it('leaves nothing on a host that ran no job, not even leftovers of a killed shell', async () => {
    mkdirSync(jobs(), { recursive: true })
    writeFileSync(room(), '')
    expect(await line.round({ ...only(), wantsFacts: true })).toMatchObject({ kind: 'answer' })
    expect(readdirSync(jobs())).toEqual([])
    const ended = once(child, 'close')
    line[Symbol.dispose]()
    await ended
    expect(readdirSync(directory, { recursive: true })).toEqual(['.local', '.local/state'])
  })

  it('starts a bundle after another shell removed the empty directory', async () => {
    await line.round({ ...only(), wantsFacts: true })
    rmSync(join(directory, '.local'), { recursive: true })
    const { text } = (await line.round({ ...only(start('exit 3')), wantsFacts: true })) as { text: string }
    expect(text).toMatch(/^host /m)
    await waitUntil(() => notices.length === 2, 'both words of it')
    expect(notices).toEqual([expect.stringMatching(/ begun( |$)/), expect.stringMatching(/ exit 3( |$)/)])
  })

  it('starts nothing on a host with a full disk, not even in the round that finds out', async () => {
    mkdirSync(room(), { recursive: true })
    const { text } = (await line.round({ ...only(start('exit 3')), wantsFacts: true })) as { text: string }
    expect(text).toMatch(/^trouble .* cannot be written: Is a directory$/m)
    expect(text).toMatch(new RegExp(`^${KEY} exit unable$`, 'm'))
    rmSync(room(), { recursive: true })
    expect(await line.round({ ...only(), wantsFacts: true })).toMatchObject({
      text: expect.stringMatching(/^up \S+\nhost.*$/),
    })
    expect([has('out'), notices]).toEqual([false, []])
  })

  it('reports what is wrong with the host and opens a new shell', async () => {
    writeFileSync(join(directory, '.local'), '')
    for (const _ of [1, 2])
      expect(await line.round(only())).toMatchObject({
        text: expect.stringMatching(/^trouble .* cannot be used: Not a directory$/),
      })
    rmSync(join(directory, '.local'))
    expect(await line.round(only())).toMatchObject({ kind: 'answer', text: expect.stringMatching(/^host/m) })
    child.stdin?.end()
    await waitUntil(() => lost === 1, 'the line to be missed')
  })
})

function childrenOf(pid: number): readonly number[] {
  return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').filter(Boolean).map(Number)
}
