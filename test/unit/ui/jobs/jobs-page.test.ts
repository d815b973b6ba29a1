/** The tabs Jobs and Packing of a console, over a queue that a test makes up. */
import { setImmediate } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import type { ActiveState, Job, JobState } from '../../../../src/scheduler/jobs/job.ts'
import { JOB_COLUMNS, type JobColumn } from '../../../../src/scheduler/jobs/job-columns.ts'
import { themes } from '../../../../src/ui/compositor/scene.ts'
import { jobDocument, progressSpans } from '../../../../src/ui/jobs/documents.ts'
import { LIST } from '../../../../src/ui/jobs/jobs-tables.ts'
import { type JobDetails, type JobLine, LOG_IS_GONE } from '../../../../src/ui/jobs/queue-view.ts'
import type { Row } from '../../../../src/ui/rows/rows-pane.ts'
import { tableView } from '../../../../src/ui/state/console-state.ts'
import { createConsoleHarness } from '../console/console-harness.ts'
import { FakeQueue, hostSpecs, jobOf, runningOn, statusOf } from './fake-queue.ts'
import { openQueueTab } from './open-tab.ts'

const LEADER = '\x1d'

const JOBS = [
  ...Array.from({ length: 4 }, (_, index) =>
    jobOf(index + 1, index < 2 ? { kind: 'done', endedMs: 0 } : runningOn('n1', 0), { name: 'sweep' }),
  ),
  jobOf(5, { kind: 'failed', endedMs: 0, reason: 'exit 3' }),
  jobOf(6, { kind: 'queued' }),
]

const openTab = async (key: string, columns = 80, rows = 24, jobs: readonly Job[] = JOBS) =>
  await openQueueTab(key, columns, rows, jobs, { 1: 4 })

describe('the Jobs tab', () => {
  it.each([
    [80, 24],
    [240, 67],
  ])('shows states, why a job waits, and an array as one row with its progress, on %i×%i', async (columns, rows) => {
    const { text } = await openTab('5', columns, rows)
    expect(text()).toMatch(/^▸6 +queued .*train-6/m)
    expect(text()).toMatch(/^ 5 +failed exit 3 .*train-5/m)
    expect(text()).toMatch(/^ 1-4 +████▒▒▒▒ 2\/4 .*sweep/m)
    expect(text()).not.toMatch(/…$/m)
    expect(text()).toContain('n1: too few cores are free')
    expect(text()).toContain('python train.py 6')
  })

  it('shows a column that is added to the list of columns, with a dash where the jobs of an array differ', async () => {
    const columns = JOB_COLUMNS as JobColumn[]
    columns.splice(-1, 0, { title: 'TRIES', width: 6, text: ({ attempt }) => `x${attempt}` })
    try {
      const { text } = await openTab('5')
      expect(text()).toMatch(/^ JOB +STATE +RAN +(?:STARTED +)?ON +TRIES NAME/m)
      expect(text()).toMatch(/^ 5 +failed.* x1 +train-5/m)
      expect(text()).toMatch(/^ 1-4 .* - +sweep/m)
    } finally {
      columns.splice(-2, 1)
    }
  })

  it('counts cancelled jobs of an array apart from failed ones', async () => {
    const shown = async (...kinds: ('done' | 'failed' | 'timed-out' | 'lost' | 'cancelled')[]) => {
      const jobs = kinds.map((kind, index) => {
        const reason = kind === 'failed' || kind === 'lost' ? { reason: '' } : {}
        return jobOf(index + 1, { kind, endedMs: 0, ...reason } as JobState)
      })
      return (await openTab('5', 80, 24, jobs)).text()
    }
    expect(await shown('cancelled', 'cancelled', 'cancelled', 'cancelled')).toMatch(/█{8} 4\/4 4 cancelled +-/)
    expect(await shown('done', 'timed-out', 'timed-out')).toMatch(/3\/3 2 timed-out/)
    expect(await shown('done', 'lost', 'failed', 'cancelled')).toMatch(/4\/4 2 failed, 1 cancelled +-/)
    const counts = new Map(['done', 'lost', 'failed', 'cancelled'].map((kind) => [kind, 1]))
    const line = { count: 4, counts } as unknown as JobLine
    const text = (columns: number) => progressSpans(line, themes.none, columns).at(-1)?.text.trim()
    expect([60, 32, 26, 18].map(text)).toEqual([
      '4/4 2 failed, 1 cancelled',
      '2 failed, 1 cancelled',
      '4/4 2 failed',
      '2 failed',
    ])
  })

  it('finds the jobs of a host, also of one in a folded set', async () => {
    const places = ['n1', 'n2', 'n3'].map((host) => ({ host, devices: [] }))
    const gang: JobState = { kind: 'running', places, bundles: places.map(() => ({ kind: 'begun' })), startedMs: 0 }
    const { press, text, titles } = await openTab('5', 120, 40, [
      jobOf(8, gang, { bundles: 3 }),
      jobOf(9, runningOn('n3')),
    ])
    await press('/on:n2\r')
    expect(titles()[0]).toBe(' jobs  /on:n2  1 of 2 ')
    expect(text()).toMatch(/^▸8 .* n\[1-3\] /m)
  })

  it('shows what a job of an engine printed, or why that cannot be read', async () => {
    const { queue, press, text, clock, logs } = await openTab('5', 120, 40, [
      jobOf(1, runningOn('@slurm'), { engine: 'slurm' }),
    ])
    expect([queue.logsRead, logs]).toEqual([[{ job: 1, attempt: 1 }], []])
    clock.advance(10_000)
    expect(text()).toContain('no answer in time')
    for (const [answer, shown] of [
      // As a terminal shows it: without colours, what was drawn last, tabs as blanks.
      [Buffer.from('loss=1\u001b[2J\u0007\n'), 'loss=1\\x07'],
      [Buffer.from('\r 5%|x\r\u001b[32m60%|xx\u001b[0m\na\tb\n'), '60%|xx\n a       b'],
      ['its login host is not open', 'its login host is not open'],
    ] as const) {
      queue.engineLog = answer
      clock.advance(1_000)
      for (let turn = 0; turn < 5; turn++) await press('')
      expect(text()).toContain(shown)
    }
    // What was read before it fell silent stays.
    expect(text()).toContain('60%|xx\n a       b')
    expect(text()).toContain('log: its login host is not open; this was read before')
  })

  it('shows the output of each rank of a gang that an engine runs', async () => {
    const gang = { engine: 'slurm', bundles: 3, strategy: 'SPREAD' as const }
    const { queue, press, text, titles, hints } = await openTab('5', 120, 40, [jobOf(1, runningOn('@slurm'), gang)])
    queue.engineLog = Buffer.from('hi\n')
    expect(titles().at(-1)).toMatch(/^ job 1, rank 0 of 3 /)
    expect(text()).toContain('bundles 0-2: Slurm: started')
    expect(hints()).not.toContain('next rank')
    await press('\r')
    expect(hints()).toContain('Right next rank')
    await press('\x1b[C')
    await press('lll')
    expect(titles()).toEqual([' job 1, rank 2 of 3 train-1 '])
    await press('\x1b[D')
    expect(titles().at(-1)).toMatch(/^ job 1, rank 1 of 3 /)
    expect(queue.logsRead.at(-1)).toEqual({ job: 1, attempt: 1, rank: 1 })
    await press('\x1b')
    expect(titles().at(-1)).toMatch(/^ job 1, rank 0 of 3 /)
  })

  it('shows only rows with a word, then all again', async () => {
    const { press, text, titles } = await openTab('5')
    await press('/SWEEP\r')
    expect([titles()[0], text()]).toEqual([
      ' jobs  /SWEEP  0 of 3 ',
      expect.stringContaining('no job matches “SWEEP” · Esc clears the filter'),
    ])
    await press('\x1b')
    await press('/sweep\r')
    expect(text()).toMatch(/^▸1-4 /m)
    expect(text()).not.toContain('train-6')
    await press('\x1b')
    expect(text()).toContain('train-6')
    await press('/6\r')
    expect(text()).toMatch(/^▸6 /m)
    expect(text()).not.toMatch(/^ 5 /m)
    expect(titles()[0]).toBe(' jobs  /6  1 of 3 ')
  })

  it('shows the log of the selected job in printable characters, and reads one log at a time', async () => {
    const { press, text, logs } = await openTab('5')
    expect(logs).toHaveLength(0)
    await press('jj')
    expect(logs.map(([host, command]) => [host, command])).toEqual([['n1', "exec /bin/sh -c 'cat log-3'"]])
    const handlers = logs[0]?.[2]
    handlers?.onStdout(Buffer.from('epoch 1\nepoch \x1b[31m2\n'))
    handlers?.onEnd({ kind: 'exit', code: 0 })
    expect(text()).toMatch(/^ epoch 1$/m)
    expect(text()).not.toContain('\x1b')
    await press('\x1b[C')
    expect(logs.at(-1)?.[1]).toContain('log-4')
    expect(text()).not.toContain('epoch 1')
  })

  it.each([
    [80, 24],
    [120, 40],
  ])('opens the log of a plain job, follows it, and filters its lines, on %i×%i', async (columns, rows) => {
    const { press, text, titles, hints, logs, clock } = await openTab('5', columns, rows, [
      ...JOBS,
      jobOf(7, runningOn('n2', 0)),
    ])
    await press('\r')
    expect(titles()).toEqual([' job 7 train-7 '])
    expect(hints()).toContain('Esc list')
    const lines = Array.from({ length: 99 }, (_, index) => `epoch ${index} ${'x'.repeat(columns)} end`)
    const answer = async (own: readonly string[]) => {
      const handlers = logs.at(-1)?.[2]
      handlers?.onStdout(Buffer.from(own.map((line) => `${line}\n`).join('')))
      handlers?.onEnd({ kind: 'exit', code: 0 })
      await press('')
    }
    await answer(lines)
    expect(text()).toMatch(/^ epoch 98\n x+\n x* ?end$/m)
    expect(text()).not.toMatch(/^ epoch 3$/m)
    clock.advance(1000)
    await press('')
    await answer([...lines, 'the last one'])
    expect(text()).toMatch(/the last one$/)
    await press('g')
    expect(text()).toMatch(/^ epoch 0$/m)
    await press('/epoch 77\r')
    expect(titles()).toEqual([' job 7 train-7  /epoch 77  1 of 100 '])
    expect(text()).toMatch(/^ epoch 77\n x+\n x* ?end\n+$/)
    await press('\x1b\x1b')
    expect(titles()).toEqual([' jobs ', ' job 7 '])
  })

  it.each([
    80, 50,
  ])('shows the filter of a log whole, beside the beginning of a long name, at %i columns', async (columns) => {
    const job = jobOf(7, runningOn('n2', 0))
    const name = `sh -c for i in ${'1 2 3 '.repeat(20)}`
    const { press, titles, logs } = await openTab('5', columns, 24, [{ ...job, spec: { ...job.spec, name } }])
    await press('\r')
    expect(titles()[0]).toMatch(/^ job 7 sh -c .*… $/)
    const lines = Array.from({ length: 100 }, (_, index) => `epoch ${index}\n`)
    logs.at(-1)?.[2].onStdout(Buffer.from(lines.join('')))
    logs.at(-1)?.[2].onEnd({ kind: 'exit', code: 0 })
    await press('/epoch 7\r')
    expect(titles()[0]).toMatch(/^ job 7 sh -c .*… {2}\/epoch 7 {2}19 of 100 $/)
    expect(titles()[0]?.length).toBeLessThanOrEqual(columns - 4)
  })

  it('names the commands that start a scheduler and submit a job as its queue needs them', async () => {
    const { text, queue, clock, press, console, hints } = await openTab('5', 120, 40, [])
    expect(text()).toContain('n submits a job, or in a shell: muster job submit -- COMMAND')
    expect(hints()).toContain('n submit')
    const command = (verb: string) => `muster ${verb} --hosts b.yaml`
    queue.next = statusOf(hostSpecs(3), [], { driver: undefined, command })
    clock.advance(1000)
    await press('')
    expect(text()).toContain('no scheduler running: muster job work --hosts b.yaml')
    expect(text()).toContain('n submits a job, or in a shell: muster job submit --hosts b.yaml -- COMMAND')
    await press('n')
    const { mode } = console.state
    expect(mode.kind === 'dialog' && mode.dialog.lines.at(-1)?.text).toContain(
      'muster job submit --help --hosts b.yaml',
    )
    await press('\x1b')
    queue.next = statusOf(hostSpecs(3), [], { commandsWork: 'in a shell of the demo' })
    clock.advance(1000)
    await press('')
    expect(text()).toContain('n submits a job, or in a shell of the demo: muster job submit -- COMMAND')
  })

  it('leaves out when jobs started where another column would be cut for it', async () => {
    const open = async (name: string, columns: number) =>
      (await openTab('5', columns, 24, [jobOf(1, runningOn('n1', 0), { name })])).text()
    expect(await open('short', 80)).toMatch(/^ JOB .* STARTED .*\n▸1 +running .* \d\d:\d\d +n1 /m)
    expect(await open('a name that is long enough to need its room', 80)).not.toContain('STARTED')
    // It is above the log in any case.
    expect(await open('a name that is long enough to need its room', 80)).toMatch(
      /attempt 1, priority 0, from \d\d:\d\d/,
    )
  })

  it('keeps the state and the reason of a job above its log, and says when that is cut', () => {
    const job = jobOf(6, { kind: 'failed', endedMs: 0, reason: 'exit 137: out of memory' })
    const log = { lines: Array.from({ length: 300 }, (_, at) => `line ${at}`), trouble: undefined, isCut: true }
    const details = { job, why: [], expectedMs: undefined, nodes: undefined, log: undefined }
    const { head, length, row } = jobDocument(details as unknown as JobDetails, log, 60, themes.none, 0)
    const textOf = (one: Row) => one.map(({ text }) => text).join('')
    expect(head.map(textOf)).toEqual([expect.stringMatching(/^ failed /), ' exit 137: out of memory'])
    expect(textOf(row(length - 301))).toBe(' … earlier lines: muster job logs 6')
  })

  it('finds a job by the reason that its state shows', async () => {
    const killed = jobOf(6, { kind: 'failed', endedMs: 0, reason: 'exit 137: out of memory' })
    const { press, text } = await openTab('5', 120, 40, [
      killed,
      jobOf(5, { kind: 'failed', endedMs: 0, reason: 'exit 1' }),
    ])
    await press('/memory\r')
    expect(text()).toMatch(/^▸6 +failed exit 137/m)
    expect(text()).not.toMatch(/^.5 +failed/m)
  })

  it('keeps the row selected when newer jobs appear above it', async () => {
    const { text, queue, clock, press, titles } = await openTab('5')
    expect(text()).toMatch(/^▸6 +queued/m)
    queue.jobs.push(jobOf(7, { kind: 'queued' }))
    queue.next = statusOf(hostSpecs(3), queue.jobs)
    clock.advance(1000)
    await press('')
    expect(text()).toMatch(/^ 7 +queued.*\n▸6 +queued/m)
    expect(titles().at(-1)).toBe(' job 6 ')
    await press('g')
    expect(text()).toMatch(/^▸7 +queued/m)
  })

  it('has columns as wide as what is in them, which stay where they are while a filter is typed', async () => {
    const jobs = JOBS.map((job, index) => ({ ...job, user: index === 4 ? 'dora' : 'bob' }))
    const { press, text } = await openTab('5', 80, 24, jobs)
    const head = () => text().split('\n')[1]
    const first = head()
    expect(first).toMatch(/^ JOB +STATE +RAN +STARTED +ON +USER +NAME/)
    // So that enough of the row is left for names.
    expect(first?.indexOf('NAME')).toBeLessThan(54)
    for (const key of '/dora') {
      await press(key)
      expect(head()).toBe(first)
    }
    expect(text()).toMatch(/^▸5 .* dora +train-5/m)
    await press('zzz\r')
    expect(head()).toBe(first)
    expect(text()).toContain('No row is shown: Esc clears the filter.')
    expect(text()).not.toContain('all states')
    await press('\x1b')
    await press('ff')
    expect(text()).not.toContain('dora')
    await press('/dora\r')
    expect(text()).toContain('No row is shown: Esc clears the filter, and Esc again shows all states.')
    await press('\x1b')
    expect(text()).toMatch(/^ only running/m)
    expect(head()).toBe(first)
  })

  it('keeps its columns in a wide list when a job fails, and has room for the reason', async () => {
    const heads = await Promise.all(
      (['queued', 'failed'] as const).map(async (kind) => {
        const state = kind === 'queued' ? { kind } : { kind, endedMs: 0, reason: 'rank 1 on m5 failed' }
        const { text } = await openQueueTab('5', 120, 40, [jobOf(1, state)], {})
        if (kind === 'failed') expect(text()).toContain('failed rank 1 on m5 failed')
        return text().split('\n')[1]
      }),
    )
    expect(heads[1]).toBe(heads[0])
  })

  it('has room for the whole reason in a wide list', async () => {
    const reason = 'rank 1 on m5 failed first: exit code 7'
    const failed = jobOf(1, { kind: 'failed', endedMs: 0, reason })
    expect((await openQueueTab('5', 240, 67, [failed], {})).text()).toContain(`failed ${reason} `)
  })

  it.each([
    ['cancelled', 80],
    ['cancelled', 120],
    ['failed', 80],
    ['held', 80],
  ] as const)('says how many jobs of a large array are %s where the progress has no room, on %i columns', async (kind, columns) => {
    const state = (kind === 'held' ? { kind } : { kind, endedMs: 0 }) as JobState
    const jobs = Array.from({ length: 200 }, (_, at) =>
      jobOf(at + 1, at < 172 ? state : ({ kind: 'done', endedMs: 0 } as JobState)),
    )
    const { text } = await openQueueTab('5', columns, 24, jobs, { 1: 200 })
    expect(text()).toMatch(new RegExp(`^▸1-200 +[█·]{8} .*172 ${kind}`, 'm'))
  })

  it('says first that no scheduler runs, then what runs and waits', async () => {
    const states = ['lost', 'failed', 'done', 'cancelled', 'queued', 'held'] as const
    const jobs = states.flatMap((kind, at) =>
      [1, 2].map((own) => jobOf(at * 2 + own, { kind, endedMs: 0 } as JobState)),
    )
    const { text, queue, clock, press } = await openTab('5', 80, 24, jobs)
    queue.next = statusOf(hostSpecs(3), jobs, { driver: undefined })
    clock.advance(1000)
    await press('')
    expect(text()).toMatch(/^ no scheduler running · 2 queued, 2 held, /)
    queue.next = statusOf(hostSpecs(3), jobs, { changed: 'n2' })
    clock.advance(1000)
    await press('')
    expect(text()).toMatch(/^ hosts.yaml has changed for n2 · 2 queued, 2 held, /)
  })

  it.each([
    [80, 24],
    [120, 40],
  ])('says that what is known of a running job is old where its place does not answer, on %i×%i', async (columns, rows) => {
    const of = (host: string) => runningOn(host, 0)
    const jobs = [jobOf(1, of('@slurm'), { engine: 'slurm' }), jobOf(2, of('n1')), jobOf(3, of('n2'))]
    const { text, queue, clock, press } = await openTab('5', columns, rows, jobs)
    queue.next = statusOf(hostSpecs(3), jobs, { down: { '@slurm': 'its controller does not answer', n1: 'no route' } })
    clock.advance(1000)
    await press('G')
    expect(text()).toMatch(/^ 3 +running {2}/m)
    expect(text()).toMatch(/^ 2 +running, no answer/m)
    expect(text()).toMatch(/^▸1 +running, no answer/m)
    expect(text()).toMatch(/bundle 0: Slurm.*: started, according to its last report: its controller/)
  })

  it('selects the neighbour of a row that leaves the list, and keeps the row of an action', async () => {
    const held = [1, 2, 3, 4, 5].map((id) => jobOf(id, { kind: 'held' }))
    const { text, queue, clock, press, console } = await openQueueTab('5', 120, 40, held, {})
    const show = async (jobs: readonly Job[]) => {
      queue.next = statusOf(hostSpecs(3), jobs)
      clock.advance(1000)
      await press('')
    }
    await press('fj')
    await press('j')
    expect(text()).toMatch(/^▸3 +held/m)
    const ended = held.map((job) => (job.id === 3 ? jobOf(3, { kind: 'cancelled', endedMs: 0 }) : job))
    await show(ended)
    expect(text()).toMatch(/^▸2 +held/m)
    await show([...ended, jobOf(6, { kind: 'held' })])
    expect(text()).toMatch(/^▸2 +held/m)
    await show(ended.slice(2))
    expect(text()).toMatch(/^▸4 +held/m)
    await press('g')
    await press('r')
    await press('\x1b')
    await show([...ended, jobOf(6, { kind: 'held' })])
    expect(text()).toMatch(/^▸5 +held/m)
    expect(console.state.mode.kind).toBe('typing')
  })

  describe('keeps the row that was found selected when the filter is cleared', () => {
    it.each(['/sweep\r\x1b', '/sweep\x1b', 'ff\x1b'])('in the list, after %j', async (keys) => {
      const { press, text, console } = await openTab('5')
      expect(text()).toMatch(/^▸6 /m)
      for (const key of keys.match(/\x1b|[^\x1b]+/g) ?? []) await press(key)
      expect(text()).toMatch(/^▸1-4 /m)
      expect(text()).toContain('train-6')
      await press('/nothing')
      await press('\x1b')
      expect([console.state.queue.spec, console.state.mode.kind]).toEqual([1, 'typing'])
    })

    it('in the table of an array', async () => {
      const { press, text, queue } = await openTab('5')
      const row = (id: number) => {
        const state: JobState = { kind: 'done', endedMs: 0 }
        return { id, state, attempt: 1, parameters: { lr: `0.${id}` }, values: {} }
      }
      queue.sweeps.set(1, { metrics: [], parameters: ['lr'], rows: [1, 2, 3, 4].map(row), count: 4 })
      await press('jj\r')
      expect(text()).toMatch(/^▸1 +done/m)
      await press('/0.3\r')
      await press('\x1b')
      expect(text()).toMatch(/^ 1 +done[\s\S]*^▸3 +done/m)
    })
  })

  describe('an open page stays on its jobs', () => {
    const later = [5, 6].map((id) => jobOf(id, { kind: 'queued' }))
    const row = (id: number) => {
      const state: JobState = { kind: 'done', endedMs: 0 }
      return { id, state, attempt: 1, parameters: { lr: `0.${id}` }, values: {} }
    }
    const sweep = { metrics: [], parameters: ['lr'], rows: [row(1), row(2)], count: 2 }

    const leave = async (tab: Awaited<ReturnType<typeof openTab>>, ended: readonly Job[], isThere = true) => {
      const { queue, clock, press } = tab
      queue.older = isThere ? statusOf(hostSpecs(3), ended, { arrays: { 1: ended.length } }).groups : []
      queue.jobs.splice(0, queue.jobs.length, ...(isThere ? ended : []), ...later)
      queue.next = statusOf(hostSpecs(3), later)
      clock.advance(1000)
      await press('')
      await press('')
    }

    it.each(['', '/train-1\r', 'ff'])('the log of a job that ends and is no longer listed, after %j', async (first) => {
      const tab = await openTab('5', 120, 40, [jobOf(1, runningOn('n1')), ...later])
      await tab.press(`${first}G`)
      await tab.press('\r')
      expect(tab.titles()[0]).toContain('job 1 train-1')
      await leave(tab, [jobOf(1, { kind: 'failed', endedMs: 0, reason: 'exit 3' })])
      expect([tab.titles()[0], tab.text()]).toEqual([
        expect.stringContaining('job 1 train-1'),
        expect.stringContaining('exit 3'),
      ])
      expect(tab.hints()).not.toContain('cancel')
      await tab.press('t')
      expect(tab.console.state.mode).toMatchObject({ dialog: { title: 'Retry job 1?' } })
    })

    it('the table of an array', async () => {
      const tab = await openTab('5', 120, 40, [jobOf(1, runningOn('n1')), jobOf(2, runningOn('n2')), ...later])
      tab.queue.sweeps.set(1, sweep)
      await tab.press('G')
      await tab.press('\r')
      expect(tab.titles()[1]).toContain('jobs 1-2')
      await leave(
        tab,
        [1, 2].map((id) => jobOf(id, { kind: 'done', endedMs: 0 })),
      )
      expect(tab.titles()[1]).toContain('jobs 1-2')
      expect(tab.text()).toContain('0.2')
    })

    it('and says so where they were deleted', async () => {
      const tab = await openTab('5', 120, 40, [jobOf(1, runningOn('n1')), ...later])
      await tab.press('G')
      await tab.press('\r')
      await leave(tab, [], false)
      expect(tab.text()).toContain('This job is no longer in the queue: Esc goes back to the list.')
      await tab.press('\x1b')
      expect(tab.text()).toMatch(/^.5 +queued/m)
    })
  })

  it('does nothing with keys that are typed before a question is shown', async () => {
    const { press, console, queue } = await openTab('5', 120, 40, [jobOf(1, { kind: 'held' })])
    await press('c1y')
    expect(console.state).toMatchObject({ tab: 'jobs', mode: { dialog: { title: 'Cancel job 1?' } } })
    expect(queue.changes).toEqual([])
    await press('y')
    expect(queue.changes).toHaveLength(1)
  })

  it('says that the files of a job were deleted', async () => {
    const { press, text, logs } = await openTab('5', 80, 24, [jobOf(6, runningOn('n1', 0))])
    await press('')
    logs.at(-1)?.[2].onEnd({ kind: 'exit', code: LOG_IS_GONE })
    await press('')
    expect(text()).toContain('log: its files were deleted')
  })

  it('keeps what is read of a log in view while its end moves on', async () => {
    const { press, text, titles, logs, clock } = await openTab('5', 80, 24, [jobOf(6, runningOn('n1', 0))])
    const print = async (from: number) => {
      clock.advance(1000)
      await press('')
      const lines = Array.from({ length: 100 }, (_, at) => `line ${from + at}\n`)
      logs.at(-1)?.[2].onStdout(Buffer.from(lines.join('')))
      logs.at(-1)?.[2].onEnd({ kind: 'exit', code: 0 })
      await press('')
    }
    await press('\r')
    await print(1)
    expect(text()).toContain('line 100')
    await press('b')
    const seen = text()
    expect(seen).not.toContain('line 100')
    await print(51)
    await print(101)
    expect(text()).toBe(seen)
    expect(titles().join()).toContain('more output below')
    await press('G')
    await print(101)
    expect(text()).toContain('line 200')
    expect(titles().join()).not.toContain('more output')
  })

  it('has no filter by states in the table of an array, and names the one that works there', async () => {
    const jobs = [1, 2, 3].map((id) => jobOf(id, { kind: id < 3 ? 'done' : 'failed', endedMs: 0 } as JobState))
    const { press, console } = await openQueueTab('5', 120, 40, jobs, { 1: 3 })
    await press('\r')
    await press('f')
    expect(console.state.queue).toMatchObject({ isTableOpen: true, filter: 'all' })
    expect(console.state.notice?.text).toBe('/ filters these jobs: try /failed')
  })

  it('cuts a long name before what the jobs ask for', async () => {
    const gang = { bundles: 3, strategy: 'STRICT_PACK' as const }
    const long = jobOf(2, { kind: 'queued' }, { ...gang, name: 'python3 -c import time; from mpi4py import MPI' })
    const { text } = await openQueueTab('5', 120, 40, [jobOf(1, { kind: 'queued' }, gang), long], {})
    expect(text()).toMatch(/^ 1 +queued .*3 × \(4 CPU \+ 0\.5 GPU \+ 8 GiB\) STRICT_PACK train-1$/m)
    expect(text()).toMatch(/^▸2 +queued .*3 × \(4 CPU \+ 0\.5 GPU \+ 8 GiB\) STRICT_PACK python3 -c /m)
  })

  it('cuts what a job asks for before a short name', async () => {
    const name = 'too large for any host'
    const gang = { name, bundles: 3, strategy: 'STRICT_PACK' as const }
    const jobs = [jobOf(1, { kind: 'queued' }, gang), jobOf(2, { kind: 'failed', endedMs: 0, reason: 'x'.repeat(40) })]
    const { text } = await openQueueTab('5', 120, 40, jobs, {})
    expect(text()).toMatch(new RegExp(`^ 1 +queued .*3 × \\(.* ${name}$`, 'm'))
  })

  it('shows whole names and requests on a wide screen', async () => {
    const long = 'a name that is longer than twenty columns'
    const jobs = [jobOf(1, { kind: 'queued' }, { name: long })]
    expect((await openTab('5', 240, 67, jobs)).text()).toMatch(new RegExp(`^▸1 +queued.* CPU .* ${long}$`, 'm'))
  })

  it('gives hosts and names the room that the column of states does not need, on 240×67', async () => {
    const name = 'a name of exactly thirty-six columns'
    const jobs = [
      jobOf(1, runningOn('a-host-of-22-columns-01', 0), { name }),
      jobOf(2, { kind: 'failed', reason: 'exit 1: no such file', endedMs: 0, startedMs: 0 } as JobState),
    ]
    const { text } = await openQueueTab('5', 240, 67, jobs, {})
    expect(text()).toMatch(new RegExp(`a-host-of-22-columns-01 .* ${name}$`, 'm'))
    expect(text()).toContain('failed exit 1: no such file')
  })

  it('shows a job of the selected row also once a filter has selected another one', async () => {
    const { press, text, console } = await openTab('5')
    await press('G\x1b[C')
    expect(console.state.queue.details?.job.id).toBeLessThan(5)
    await press('/train-6\r')
    expect(console.state.queue.details?.job.id).toBe(6)
    expect(text()).toMatch(/^▸6 /m)
  })

  it.each([
    [120, 40],
    [240, 67],
  ])('shows how many jobs of a large array are done, and how many failed, on %i×%i', async (columns, rows) => {
    const kinds = (at: number): JobState =>
      (at < 540
        ? { kind: 'done', endedMs: 0 }
        : at < 632
          ? { kind: 'failed', endedMs: 0 }
          : { kind: 'queued' }) as JobState
    const jobs = Array.from({ length: 2000 }, (_, at) => jobOf(at + 1, kinds(at)))
    const { text } = await openQueueTab('5', columns, rows, jobs, { 1: 2000 })
    expect(text()).toMatch(/^▸1-2000 +██·+ 632\/2000 92 failed /m)
  })

  it('says that older jobs are not listed', async () => {
    const { press, titles, text, queue, clock } = await openTab('5')
    queue.next = statusOf(hostSpecs(3), JOBS, { isCut: true })
    clock.advance(1000)
    await press('/nowhere\r')
    expect(titles()[0]).toMatch(/^ jobs \(older ones: muster job list --limit 1000\) /)
    expect(text()).toContain('no listed job matches “nowhere”')
  })

  it('goes to the ends and by pages with the keys of less, vi and k9s', async () => {
    const { press, console } = await openTab('5')
    const selected = () => console.state.queue.details?.job.id
    const visited: (number | undefined)[] = []
    for (const key of ['G', 'g', '\x04', '\x15', '\x06', '\x02', '\x1b[F', '\x1b[H']) {
      await press(key)
      visited.push(selected())
    }
    const [last, first] = visited
    expect(first).not.toBe(last)
    expect(visited).toEqual([last, first, last, first, last, first, last, first])
  })

  it('says why a key does not apply to a finished job, and ignores keys of other views', async () => {
    const { press, console } = await openTab('5')
    await press('jc')
    expect(console.state.notice?.text).toBe('no job to cancel in this row')
    for (const key of ['m', 'o', 's', 'v']) {
      await press('\x1b')
      await press(key)
      expect([key, console.state.notice?.text]).toEqual([
        key,
        `${key} does nothing here: 1 shows the shells, ? the keys`,
      ])
    }
  })

  it('says that jobs had changed before they could be cancelled', async () => {
    const { press, console, queue } = await openTab('5')
    queue.refuses = true
    await press('c')
    await press('y')
    expect(console.state.notice?.text).toMatch(/^cancel: 0 of (?:1 job; it|(\d+) jobs; \1) had changed before$/)
    expect(console.state.notice?.tone).toBe('warning')
  })

  it('cancels nothing when a command line is typed here by mistake', async () => {
    const { press, console, queue } = await openTab('5')
    for (const key of 'cat') await press(key)
    expect(console.state.mode.kind).not.toBe('dialog')
    for (const key of ' /var/log/syslog\r') await press(key)
    expect(queue.changes).toEqual([])
    await press('\x1b')
    await press('c')
    await press('a')
    expect(console.state.notice?.text).toBe('nothing was done: a is no answer')
  })

  it('has its actions in the palette also where they do not apply, with what they are called elsewhere', async () => {
    const { press, console } = await openTab('5')
    const selected = async (text: string) => {
      await press(`:${text}`)
      const { mode } = console.state
      const lines = mode.kind === 'dialog' ? mode.dialog.lines : []
      await press('\x1b')
      return lines.find((line) => line.isSelected)?.text
    }
    expect(await selected('cancel')).toBe('cancel  the running and waiting jobs of this row')
    expect(await selected('stop')).toMatch(/^cancel /)
    await press('j')
    expect(await selected('cancel')).toBe('cancel · not now, or not for this row')
    expect(await selected('hold')).toBe('hold · not now, or not for this row')
    expect(await selected('retry')).toMatch(/^retry {2}the failed, lost, cancelled/)
    await press(':cancel\r')
    expect(console.state.mode).toMatchObject({ kind: 'dialog', dialog: { id: 'palette' } })
  })

  it('changes nothing without a yes, and only jobs that the action applies to', async () => {
    const { press, queue, console } = await openTab('5')
    const hints = () => {
      const { mode } = console.state
      return mode.kind === 'dialog' ? mode.dialog.keys.map((words) => words.join(' ')).join(', ') : undefined
    }
    await press('jjc')
    expect(console.state.mode).toMatchObject({ kind: 'dialog', dialog: { title: 'Cancel 2 jobs of 1-4?' } })
    expect(hints()).toBe('y cancel them, Esc keep them')
    await press('\x1b')
    expect(queue.changes).toEqual([])
    await press('h')
    expect(console.state.notice?.text).toBe('no job to hold in this row')
    await press('kt')
    await press('y')
    expect(queue.changes).toEqual([['retry', [5]]])
  })

  it.each([
    [80, 24],
    [240, 67],
  ])('opens a sweep as a table, best first, sorts it differently, and goes to one of its jobs, on %i×%i', async (columns, rows) => {
    const { press, text, titles, hints, queue, console } = await openTab('5', columns, rows)
    const row = (id: number, lr: string, values: Record<string, string>) => {
      const state: JobState =
        id < 3 ? { kind: 'done', endedMs: 0 } : { kind: 'starting', places: [], bundles: [], startedMs: 0 }
      return { id, state, attempt: 1, parameters: { lr }, values }
    }
    queue.sweeps.set(1, {
      metrics: [{ name: 'loss' }, { name: 'acc', isMost: true }],
      parameters: ['lr'],
      rows: [
        row(1, '0.10', { loss: '0.5', acc: '0.9' }),
        row(2, '0.20', { loss: '1e-1', acc: '0.8' }),
        row(3, '0.30', { loss: 'nan' }),
        row(4, 'a\x1b[2J', {}),
      ],
      count: 4,
    })
    await press('jj\r')
    const order = () => [...text().matchAll(/^[▸ ]([1-4]) .*[■·]{10}$/gm)].map(([, id]) => Number(id))
    expect(order()).toEqual([2, 1, 3, 4])
    expect(text()).toMatch(/^▸2 +done +1e-1 +0.8 +0.20 +- +- +- +■{10}$/m)
    expect(text()).toMatch(/^ JOB.* ■ better$/m)
    expect(text()).toMatch(/^ 1 +done +0.5 +0.9 +0.10 +- +- +- +·{10}$/m)
    expect(text()).toMatch(/best loss 1e-1 lr=0.20 +best acc 0.9 lr=0.10/)
    expect(text()).not.toContain('\x1b')
    await press('>')
    expect(text()).toContain('acc▾')
    expect(order()).toEqual([1, 2, 3, 4])
    await press('I')
    expect(order()).toEqual([2, 1, 3, 4])
    await press('jj')
    expect(text()).toMatch(/^▸3 +starting/m)
    await press('\r')
    expect(titles()).toEqual([' job 3 sweep '])
    expect(hints()).toContain('Esc table')
    await press('c')
    expect(console.state.mode).toMatchObject({ dialog: { title: 'Cancel job 3?' } })
    await press('n')
    await press('\x1b')
    expect(text()).toMatch(/^▸3 +starting/m)
    await press('\x1b')
    expect([console.state.tab, console.state.queue.isTableOpen]).toEqual(['jobs', false])
    expect(text()).toContain('python train.py 3')
  })

  it('submits what is typed after n, keeps what was refused, and takes none of it for keys', async () => {
    const { press, queue, console } = await openTab('5')
    await press('>>')
    await press('/train\r')
    await press('n')
    expect(console.state.mode).toMatchObject({ dialog: { title: 'Submit a job' } })
    queue.refusal = 'type -- between the options and the command'
    await press('--name policy\r')
    const { mode } = console.state
    expect(mode).toMatchObject({ dialog: { input: { text: '--name policy', error: queue.refusal } } })
    queue.refusal = undefined
    await press(' -- ./train.sh | tee log\r')
    expect([queue.submitted, queue.changes]).toEqual([['--name policy -- ./train.sh | tee log'], []])
    const { notice, log } = console.state
    expect(notice?.text).toBe('submitted job 9; warning: no host can ever hold this job.')
    expect(log.at(-1)?.text).toBe('warning: no host can ever hold this job.')
    expect(console.state.mode.kind).toBe('typing')
    const table = tableView(console.state, LIST)
    expect([table.filter.text, table.sort]).toEqual(['', 'STATE'])
  })

  it('cancels nothing for a word with c and y in it', async () => {
    const { press, queue, console, clock } = await openTab('5')
    await press('policy')
    expect(queue.changes).toEqual([])
    expect(console.state.mode).toMatchObject({ dialog: { title: 'Cancel job 6?' } })
    clock.advance(500)
    await press('y')
    expect(queue.changes).toEqual([['cancel', [6]]])
  })

  it('changes only the selected job in the table of an array', async () => {
    const { press, text, hints, queue, console, clock } = await openTab('5')
    const ended = (kind: 'done' | 'failed', host: string, ms: number): JobState => ({
      ...runningOn(host),
      ...{ kind, startedMs: clock.now() - 30_000 - ms, endedMs: clock.now() - 30_000 },
      ...(kind === 'failed' ? { reason: 'exit 1' } : {}),
    })
    const states: JobState[] = [
      ended('done', 'n1', 9_000),
      ended('failed', 'n2', 120_000),
      { ...(runningOn('n3') as ActiveState), startedMs: clock.now() - 30_000 },
      { kind: 'queued', last: 'exit 7' },
    ]
    const rows = states.map((state, index) => ({ id: index + 1, state, attempt: 1, parameters: {}, values: {} }))
    queue.sweeps.set(1, { metrics: [], parameters: ['MUSTER_ARRAY_INDEX'], rows, count: 4 })
    await press('jj\r')
    expect(text()).toMatch(/JOB.* STATE +MUSTER_ARRAY_INDEX +ON +RAN +WHY[\s\S]*^▸1 +done +- +n1 +9.0 s +-$/m)
    expect(text()).toMatch(
      /^ 2 +failed +- +n2 +2 min +exit 1\n 3 +running +- +n3 +30.0 s +-\n 4 +queued +- +- +- +exit 7$/m,
    )
    await press('>>')
    expect(text()).toContain('MUSTER_ARRAY_INDEX▴ ON')
    await press('>>')
    const sorted = [...text().matchAll(/^[▸ ](\d) +(?:done|failed|running|queued) .*(?:-|exit \d)$/gm)].map(
      ([, id]) => id,
    )
    expect(sorted).toEqual(['1', '3', '2', '4'])
    await press('<<<<gg')
    await press('c')
    expect(console.state.notice?.text).toBe('no job to cancel in this row')
    await press('jj')
    expect(hints()).toContain('c cancel')
    await press('c')
    expect(console.state.mode).toMatchObject({ dialog: { title: 'Cancel job 3?' } })
    await press('y')
    expect(queue.changes).toEqual([['cancel', [3]]])
    // A filter that hides the selected job selects another one, and one that hides all of them none.
    await press('/queued\r')
    await press('c')
    expect(console.state.mode).toMatchObject({ dialog: { title: 'Cancel job 4?' } })
    await press('n')
    clock.advance(500)
    await press('\x1b')
    await press('/nothing\r')
    expect(hints()).not.toMatch(/Enter log|c cancel/)
    await press('c')
    expect(console.state.notice?.text).toBe('no job is selected: Esc clears the filter')
    await press('\r')
    expect([console.state.mode.kind, console.state.queue.isLogOpen]).toEqual(['typing', false])
    await press('\x1b')
    await press('qc')
    expect(console.state.mode).toMatchObject({ dialog: { title: 'Cancel 2 jobs of 1-4?' } })
  })

  it('shows only keys that apply to the selected row in the footer', async () => {
    const { press, hints, queue, console, titles } = await openTab('5', 100)
    expect(hints()).toMatch(/1 shells +\? help +\/ filter +Enter log +c cancel +h hold +f states/)
    await press('j')
    expect(hints()).toMatch(/1 shells +\? help +\/ filter +Enter log +t retry +f states/)
    await press('j')
    expect(hints()).toMatch(/1 shells +\? help +\/ filter +Enter its jobs +Right next +c cancel/)
    queue.sweeps.set(1, { metrics: [], parameters: [], rows: [], count: 4 })
    await press('\r')
    expect(titles().join()).toContain('jobs 1-4')
    expect(hints()).toMatch(/Esc list +\? help +\/ filter +Enter log +c cancel/)
    await press('q')
    expect([console.state.tab, console.state.queue.isTableOpen]).toEqual(['jobs', false])
  })

  it('offers results where jobs write metrics', async () => {
    const jobs = JOBS.map((job) => (job.id > 4 ? job : { ...job, spec: { ...job.spec, metrics: [{ name: 'loss' }] } }))
    const { press, hints, queue, titles } = await openTab('5', 80, 24, jobs)
    await press('jj')
    expect(hints()).toMatch(/1 shells +\? help +\/ filter +Enter results +Right next/)
    queue.sweeps.set(1, { metrics: [{ name: 'loss' }], parameters: [], rows: [], count: 4 })
    await press('\r')
    expect(titles().join()).toContain('results of 1-4')
  })

  it('filters as you type, sends nothing to hosts, and keeps the keys of tabs and help for the filter', async () => {
    const { press, text, titles, hints, console, queue } = await openTab('5')
    await press('/')
    expect(hints()).toMatch(/^ FILTER .*Enter keep.*Esc clear/)
    await press('1?:qc')
    expect(titles()[0]).toBe(' jobs  /1?:qc▏  0 of 3 ')
    expect([console.state.tab, console.state.mode.kind, queue.changes]).toEqual(['jobs', 'filter', []])
    await press('\x15name:train')
    expect(text()).toMatch(/^▸6 [\s\S]*^ 5 /m)
    expect(text()).not.toContain('sweep')
    await press('\x1b[B')
    expect(text()).toMatch(/^▸5 /m)
    expect(text()).toContain('python train.py 5')
    await press('\r1')
    expect(console.state.tab).toBe('shells')
    await press(`${LEADER}5`)
    expect(titles()[0]).toBe(' jobs  /name:train  2 of 3 ')
    await press('\x1b')
    expect([titles()[0], console.state.tab]).toEqual([' jobs ', 'jobs'])
  })

  it('shows the user of each job, and when and where an array ran', async () => {
    const extent = { startedMs: 0, endedMs: 250_000, hosts: ['n1', 'n2', 'n3'] }
    const shown = async (columns: number, users: readonly string[]) => {
      const jobs = JOBS.map((job, index) => ({ ...job, user: users[index % users.length] ?? '' }))
      const tab = await openQueueTab('5', columns, 40, jobs, { 1: 4 }, [], [], { 1: extent })
      return tab.text()
    }
    // It has not ended: its time is that until now.
    expect(await shown(120, ['ann'])).toMatch(/^ 1-4 .* 2\/4 +17 min +(?:\d\d:\d\d +)?n\[1-3\] +ann +4 CPU/m)
    expect(await shown(80, ['ann'])).not.toContain('USER')
    expect(await shown(80, ['ann', 'bob'])).toMatch(
      /^ JOB +STATE +RAN +STARTED +ON +USER +NAME[\s\S]*^▸6 .* bob +train-6/m,
    )
  })

  it('sorts the list by any column and in both directions', async () => {
    const { press, text } = await openTab('5')
    const order = () => [...text().matchAll(/^[▸ ](\d+)(?:-\d+)? {2}/gm)].map(([, id]) => Number(id))
    expect(order()).toEqual([6, 5, 1])
    await press('>I')
    expect(text()).toContain('JOB▴')
    expect(order()).toEqual([1, 5, 6])
    await press('>')
    expect(text()).toContain('STATE▴')
    expect(order()).toEqual([1, 5, 6])
    await press('<')
    expect(text()).toContain('JOB▾')
    expect(order()).toEqual([6, 5, 1])
  })

  it('names the column that it is sorted by if the list does not show that column', async () => {
    const { press, text, titles } = await openTab('5')
    await press('<<')
    expect(text()).not.toContain('ASKS FOR')
    expect(titles()[0]).toBe(' jobs by ASKS FOR▴ ')
    await press('<')
    expect(titles()[0]).toBe(' jobs by USER▴ ')
    await press('<')
    expect(text()).toContain('ON▴')
    expect(titles()[0]).toBe(' jobs ')
  })

  it('filters by state, shows the filter, and Esc shows all', async () => {
    const { press, text, hints } = await openTab('5')
    await press('f')
    expect(text()).toMatch(/^ only waiting · \d/m)
    expect(text()).not.toContain('train-5')
    await press('f')
    expect(text()).toContain('sweep')
    await press('f')
    expect(text()).toMatch(/^ ?▸?5 /m)
    await press('f')
    expect(text()).toMatch(/^ only failed · \d/m)
    await press('\x1b')
    expect(text()).not.toMatch(/^ only /m)
    expect(hints()).not.toContain('Esc')
  })

  it('says why the queue cannot be read, and continues when it can', async () => {
    const { queue, clock, text } = await openTab('5')
    queue.trouble = 'the queue is damaged'
    clock.advance(1000)
    await setImmediate()
    expect(text()).toContain('the queue is damaged')
    queue.trouble = undefined
    clock.advance(1000)
    await setImmediate()
    expect(text()).toContain('train-6')
  })
})

describe('the queue', () => {
  it('is read while one of its tabs is shown, at most once a second', async () => {
    const { queue, clock, press, console } = await openTab('4')
    expect(queue.reads).toBe(1)
    expect(console.state.tab).toBe('packing')
    await press('5')
    await press('4')
    expect(queue.reads).toBe(1)
    clock.advance(1000)
    await setImmediate()
    expect(queue.reads).toBe(2)
    await press('1')
    expect(console.state.tab).toBe('shells')
    for (let second = 0; second < 5; second++) {
      clock.advance(1000)
      await setImmediate()
    }
    expect(queue.reads).toBe(2)
    console[Symbol.dispose]()
    expect(clock.timerCount).toBe(0)
  })

  it('is not read before one of its tabs is opened', async () => {
    const jobs: readonly Job[] = []
    const queue = new FakeQueue(jobs, statusOf(hostSpecs(1), jobs))
    createConsoleHarness({ hosts: ['n1'], jobs: queue })
    expect(queue.reads).toBe(0)
  })
})
