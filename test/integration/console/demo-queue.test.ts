/** The queue of the demo: real jobs on its own hosts, and nothing of them anywhere else or after it. */
import { existsSync, globSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { type ConsoleDriver, openConsole } from '../../support/console-driver.ts'
import type { ConsoleOptions } from '../../support/console-options.ts'
import { requirement } from '../../support/requirements.ts'
import { waitUntil } from '../../support/wait-until.ts'

const canRun = process.platform === 'linux' && requirement('setsid', 'awk')

describe.skipIf(!canRun)('the queue of the demo', () => {
  let directory: string
  let home: string
  let temporary: string
  let console: ConsoleDriver

  beforeAll(() => {
    directory = mkdtempSync(join(tmpdir(), 'muster-demo-queue-'))
    home = join(directory, 'home')
    temporary = join(directory, 'tmp')
    mkdirSync(home)
    mkdirSync(temporary)
  })
  afterAll(() => rmSync(directory, { recursive: true, force: true }))

  const open = (options: ConsoleOptions = {}) =>
    openConsole({
      args: ['demo'],
      size: [100, 40],
      ...options,
      environment: { HOME: home, TMPDIR: temporary, ...options.environment },
    })

  const left = () => [
    ...readdirSync(temporary).filter((name) => name.startsWith('muster-demo-')),
    ...programsAt(temporary),
  ]

  describe('while it is open', () => {
    beforeAll(async () => {
      console = await open()
      await console.expectReady()
    })
    afterAll(async () => await console?.close())

    it('starts when its tab is first opened', async () => {
      expect(readdirSync(temporary).filter((name) => existsSync(join(temporary, name, 'state', 'muster')))).toEqual([])
      await console.leader('4')
      await console.expectScreen(/GPUs [1-9][\d.]*\/26 held/)
      await console.expectScreen(/1[0-9] running, 2 waiting {2}scheduler: /)
      await console.expectScreen(/pretrain[\s\S]*(Only \d of|fits on no host)/)
      await console.expectScreen(/too large for any host[\s\S]*Too large for these hosts/)
    })

    it('draws each device with its job at every size of the terminal, and describes the selected one', async () => {
      await console.leader('4')
      for (const [columns, rows] of [
        [80, 24],
        [240, 67],
        [100, 40],
      ] as const) {
        await console.resize(columns, rows)
        // A letter with the name of a job: in blocks, or in the list of jobs.
        await console.expectScreen(/[A-Za-z\d] (\d+ )?(resnet|notebook|evaluate|lr-sweep|pretrain|bert)/)
        await console.expectScreen(/m1 GPU 0 ─/)
      }
      await console.key('Down')
      await console.expectScreen(/m1 GPU 1 ─/)
      await console.key('Right')
      await console.expectScreen(/m2 GPU \d ─/)
    })

    it('shows the results of a study, the best first', async () => {
      await console.leader('5')
      await console.key('/')
      await console.type('lr-sweep')
      await console.key('Enter')
      await console.expectScreen(/▸study .*lr-sweep/)
      await console.key('Enter')
      await console.expectScreen(/best: loss=0\.\d+ in trial \d+/)
      await console.expectScreen(/▸\d+ ★ +done +0\.\d+/)
      await console.key('q', 'Escape')
      await console.expectNowhere(/\/lr-sweep/)
    })

    it('shows the ranks of launched gangs, the one that failed first and one that is behind', async () => {
      await console.key('/')
      await console.type('two towers')
      await console.key('Enter')
      await console.expectScreen(/▸7 +failed .*two towers/)
      await console.key('Enter')
      await console.expectScreen(/7 two towers · demo · 4 ranks on 2 hosts · attempt 1 · failed/)
      // The sentence may have a time in it, and then a second row.
      await console.expectScreen(/rank 1 on m\d failed first: exit 1[\s\S]*ValueError: bad batch/)
      await console.expectScreen(/▸1 +ValueError: bad batch: shard 7 has no labels/)
      await console.key('q', 'Escape')
      await console.expectNowhere(/\/two towers/)
      await console.key('/')
      await console.type('resnet')
      await console.key('Enter')
      await console.expectScreen(/▸1 +running .*resnet/)
      await console.key('Enter')
      // It spreads over the hosts that have answered by then.
      await console.expectScreen(/resnet · demo · 8 ranks on [2-4] hosts/)
      await console.expectScreen(/▸5 +data loader: worker 2 restarted/)
      await console.key('q', 'Escape')
      await console.expectNowhere(/\/resnet/)
    })

    it('cancels a job after confirmation', async () => {
      await console.key('/')
      await console.type('too large')
      await console.key('Enter')
      await console.expectScreen(/▸9 +queued .*too large/)
      await console.key('c')
      await console.expectMode('dialog:change-jobs')
      await console.key('y')
      await console.expectScreen(/▸9 +cancelled/)
    })

    it('shows where a gang would go', async () => {
      await console.leader('4')
      await console.key('w')
      await console.expectMode('dialog:what-if')
      await console.key('Enter')
      await console.expectScreen(/2 × \(1 CPU \+ 1 GPU\) SPREAD:[^+]*?(\+ on m|Bundle|Only)/)
    })

    it('starts further jobs when the first ones have ended', async () => {
      await console.leader('5')
      await console.key('Escape')
      await console.expectScreen(/(1[89]|[2-9]\d)(-\d+)? +(queued|starting|running|done|\S+ \d\/4)/)
    })

    it('accepts a job from a shell of its hosts, which opens no connection', async () => {
      await console.leader('1')
      await console.receivers('m2')
      await console.type(
        "muster run all -- true; muster job submit --gpu 0.5 --name mine -- 'echo from $MUSTER_HOSTS'\r",
      )
      await console.expectOn('m2', /muster: the demo has only/)
      await console.expectOn('m2', /^\d+$/m)
      await console.leader('5')
      await console.key('/')
      await console.type('mine')
      await console.key('Enter')
      await console.expectScreen(/▸\d+ +done +[\d.]+ m?s +m\d +.*mine/)
    })

    it('does not change files of the user', () => {
      expect(existsSync(join(home, '.local', 'state', 'muster', 'jobs'))).toBe(false)
    })

    it('leaves nothing behind when the user quits', async () => {
      expect(programsAt(temporary).length).toBeGreaterThan(0)
      expect(await console.quit()).toEqual({ code: 0 })
      expect(left()).toEqual([])
    })
  })

  describe('that ends abruptly', () => {
    beforeEach(async () => {
      console = await open({ until: false })
    })
    afterEach(async () => await console?.close())

    it('leaves nothing behind when it is ended while it starts', async () => {
      await waitUntil(() => left().length > 0, 'its directory')
      console.signal('SIGTERM')
      await console.ended()
      await waitUntil(() => left().length === 0, 'the end of what it began')
    })

    it('leaves nothing behind when it is ended while its queue is opened', async () => {
      await console.expectAllOpen()
      console.send('\u001d4')
      await waitUntil(() => queuesAt(temporary).length > 0, 'the file of its queue')
      console.signal('SIGTERM')
      await console.ended()
      await waitUntil(() => left().length === 0, 'the end of what it began')
    })

    it('leaves nothing behind when it is killed while jobs run', async () => {
      await console.expectAllOpen()
      await console.leader('4')
      await console.expectScreen(/1[0-9] running/)
      const groups = groupsAt(temporary)
      console.signal('SIGKILL')
      await console.ended()
      await waitUntil(() => left().length === 0, 'the end of what it began')
      expect(groups.filter((path) => existsSync(path))).toEqual([])
    })
  })

  it('says what the machine lacks, and the rest of the demo works', async () => {
    const bin = join(directory, 'bin')
    mkdirSync(bin)
    for (const path of (process.env.PATH ?? '').split(delimiter).filter(existsSync))
      for (const name of readdirSync(path))
        if (name !== 'setsid' && !existsSync(join(bin, name))) symlinkSync(join(path, name), join(bin, name))
    await using poor = await open({ environment: { PATH: bin }, args: ['demo', '--count', '2'] })
    await poor.expectReady()
    await poor.leader('4')
    await poor.expectScreen(/setsid is missing/)
    await poor.leader('1')
    await poor.type('hostname\r')
    await poor.expectOn('m2', /^m2$/m)
    await poor.quit()
    expect(left()).toEqual([])
  })
})

/** Control groups of the demo's jobs; none where this user cannot make any. */
function groupsAt(directory: string): readonly string[] {
  return globSync(join(directory, 'muster-demo-*', '*', '.local/state/muster/jobs/*/cgroup')).map((file) =>
    readFileSync(file, 'utf8').trim(),
  )
}

function queuesAt(directory: string): readonly string[] {
  return readdirSync(directory).filter((name) =>
    existsSync(join(directory, name, 'state', 'muster', 'jobs', 'demo.db')),
  )
}

/** Numbers of processes whose home is below a directory. */
function programsAt(directory: string): readonly string[] {
  return readdirSync('/proc').filter((name) => {
    if (!/^\d+$/.test(name)) return false
    try {
      return readFileSync(`/proc/${name}/environ`, 'utf8').includes(`HOME=${directory}/muster-demo-`)
    } catch {
      return false
    }
  })
}
