/** What a lying host can do to the console, through its greeting, screen, processes, NFS mount, the programs in its shell, and the session report. */
import { describe, it } from 'vitest'
import { nfsTest } from '../../../src/ops/net/kept-test.ts'
import {
  measureNfs,
  type NfsEvent,
  newNfsRecord,
  nfsPlace,
  nfsSummary,
  takeNfsEvent,
} from '../../../src/ops/net/nfs/measure-nfs.ts'
import { ProcessWatch } from '../../../src/ops/net/watch/processes.ts'
import type { WatchHandlers } from '../../../src/ops/net/watch/repeated-script.ts'
import { parseShellPrograms } from '../../../src/ops/run/shell-programs.ts'
import { createCellGrid } from '../../../src/terminal/cells.ts'
import { lineChart } from '../../../src/ui/charts/line-chart.ts'
import { themes } from '../../../src/ui/compositor/scene.ts'
import { nfsPanes } from '../../../src/ui/network/nfs-panes.ts'
import { processTable, shownProcesses } from '../../../src/ui/network/process-table.ts'
import { buildReport } from '../../../src/ui/report/build-report.ts'
import { formatHtml, formatMarkdown } from '../../../src/ui/report/format-report.ts'
import { SessionLog } from '../../../src/ui/report/session-log.ts'
import { FIRST_TABLE_VIEW } from '../../../src/ui/rows/table-view.ts'
import { goodResult, hostileHosts, resultOf } from '../../support/hostile-host/hostile-hosts.ts'
import { type Choice, mutate } from '../../support/hostile-host/mutate.ts'
import { expectNoDefect, expectNumbers, expectPrintable, playMutations } from '../../support/hostile-host/play.ts'
import { ManualClock } from '../../unit/ssh/manual-clock.ts'
import { createConsoleHarness } from '../../unit/ui/console/console-harness.ts'

type Note = (...how: readonly string[]) => void

const FOREIGN = ['m1', 'm1# ', 'root@m1:~# ', '\x1b[?2004h', '\x1b[?1049h', '\x1b]52;c;aGk=\x07', '\x1b[6n', '\u202em1']

/** What a lying host prints instead, with its endless part a few times. */
function lie(good: string, choice: Choice, note: Note, foreign: readonly string[] = FOREIGN): Buffer[] {
  const answer = mutate(Buffer.from(good), choice, foreign)
  note(...answer.how)
  return [...answer.pieces, ...Array.from({ length: 20 }, () => answer.endless ?? [])].flat()
}

describe('a hostile host whose processes are shown', () => {
  const counted = (up: number) =>
    `units 100 4096\nself 4000\nup ${up}.00\np 1 0 S 500 10 1 5 300 1000 2000 systemd\np 77 1 R ${up} 300 8 100 90000 - - python) x\np 78 1 R 9 3 8 100 90 4 5 m1\ncut\nc 1 root /sbin/init\nc 77 alice python train.py --lr 1\n=\ngpu # gpu pid type sm mem fb command\ngpu 0 77 C 93 40 8000 python\napp 77, 512\ngpus\n`

  it('gives only possible numbers and a bounded number of rows, and nothing acts on the terminal', async () => {
    await playMutations(({ choice, note }) => {
      const clock = new ManualClock()
      const said: WatchHandlers[] = []
      using watch = new ProcessWatch({
        ...{ host: 'm2', clock, onChange() {} },
        port: {
          start(_, __, handlers) {
            said.push(handlers)
            return { stop() {} }
          },
        },
      })
      const decoder = new TextDecoder()
      for (const piece of lie(counted(1000) + counted(1002), choice, note))
        said[0]?.onText(decoder.decode(piece, { stream: true }))
      const { last, host } = watch.view
      if (host !== 'm2') throw new Error(`it is about ${host}`)
      if (last === undefined) return
      expectNumbers(last, 'the report')
      if (last.processes.length > 8000) throw new Error(`${last.processes.length} processes`)
      for (const { gpu = 0 } of last.processes) if (gpu > 1) throw new Error(`${gpu} of a GPU`)
      const view = { ...FIRST_TABLE_VIEW, sortColumn: choice.one(['CPU', 'COMMAND', 'MEM', undefined]) }
      const shown = shownProcesses(watch.view, undefined, view as typeof FIRST_TABLE_VIEW)
      const columns = choice.one([20, 80, 200])
      const table = processTable(last, shown, {
        view: FIRST_TABLE_VIEW,
        pid: 77,
        columns,
        theme: themes.dark,
        head: [],
      })
      for (let index = 0; index < Math.min(20, table.length); index++)
        for (const { text } of table.row(index)) expectPrintable(text, 'the row')
      if (clock.timerCount > 1) throw new Error('timers are left')
    })
  })
})

describe('a hostile host whose NFS mount is measured', () => {
  const MOUNTS =
    '/dev/sda1 / ext4 rw 0 0\nm1:/srv /data nfs4 rw,vers=4.2,addr=10.9.0.1 0 0\nm1:/x /with\\040space nfs rw,vers=3 0 0\n'
  const TOLD = `write 4194304 bytes (4.2 MB, 4.0 MiB) copied, 0.5 s, 8.4 MB/s
write 4194304 bytes (4.2 MB, 4.0 MiB) copied, 0.7 s, 8.4 MB/s
cached
read 4194304 bytes (4.2 MB, 4.0 MiB) copied, 1.0 s, 4.2 MB/s
small 512 bytes copied, 0.0031 s, 165 kB/s
small 512 bytes (512B) copied, 0.004000 seconds, 125.0KB/s
`

  it('gives only possible, bounded and printable results, and ends', async () => {
    await playMutations(async ({ choice, note }) => {
      const isMountsLie = choice.once(3)
      const hosts = hostileHosts(async (_, script, options) => {
        const isMounts = script === 'cat /proc/mounts'
        const good = { stdout: Buffer.from(isMounts ? MOUNTS : TOLD) }
        if (isMounts !== isMountsLie) {
          options.onOutput?.('stdout', good.stdout.toString())
          return goodResult(good)
        }
        const answer = mutate(good.stdout, choice, FOREIGN)
        note(...answer.how)
        return resultOf(answer, choice.once(4) ? { stderr: good.stdout } : good, options)
      })
      const events: NfsEvent[] = []
      const directory = choice.one([undefined, '/data', '/with space'])
      const signal = new AbortController().signal
      await measureNfs(
        'm2',
        { directory, seconds: 1 },
        { hosts, signal, clock: new ManualClock(), onEvent: (event) => void events.push(event) },
      )
      if (events.length > 100_010) throw new Error(`${events.length} events`)
      const record = newNfsRecord('m2')
      for (const event of events) {
        if (event.host !== 'm2') throw new Error(`it is about ${event.host}`)
        takeNfsEvent(record, event)
      }
      expectNumbers(record, 'the record')
      for (const line of nfsSummary(record)) {
        expectPrintable(line, 'the summary')
        if (/NaN|Infinity/.test(line)) throw new Error(line)
      }
      nfsPlace(record)
      for (const reason of record.failures) expectNoDefect(reason, 'the failure')
      const rect = { column: 0, row: 0, width: choice.one([40, 80, 200]), height: choice.one([10, 40]) }
      const chart = choice.once(20) ? lineChart : undefined
      const isMeasuring = choice.once(2)
      const ended = { test: nfsTest(record, 0), findings: [], last: undefined, problem: undefined }
      const run = { record, isMeasuring, conclusion: isMeasuring ? undefined : ended }
      for (const pane of nfsPanes(run, { rect, theme: themes.dark, chart }))
        for (const { text } of pane.notice.flat()) expectPrintable(text, 'the pane')
    })
  })
})

describe('a hostile host that names the programs in its shell', () => {
  const ROWS = `shell 10 10 12 pts/0 -bash
program 12 12 12 pts/0 vim /etc/m1
program 13 13 12 pts/0 sleep 500
program 14 12 12 pts/0 /bin/sh -c x
/proc/10/environ
`

  it('is quoted in a few short, printable lines', async () => {
    await playMutations(({ choice, note }) => {
      const programs = parseShellPrograms(
        Buffer.concat(lie(ROWS, choice, note, [...FOREIGN, 'shell 1 1 1 pts/0 x'])).toString(),
      )
      if (programs === undefined) return
      if (programs.length > 20) throw new Error(`${programs.length} programs`)
      for (const program of programs) {
        expectPrintable(program, 'the program')
        if (program.length > 82) throw new Error(`${program.length} characters`)
      }
    })
  })
})

const GREETING = `Welcome to Ubuntu\r\n  System load: 0.1   Usage of /: 95.3% of 9.51GB\r\n*** System restart required ***\r\nYour password will expire in 3 days\r\n\
There were 17 failed login attempts since the last successful login.\r\nLast login: Mon Nov 23 10:00:00 2026 from 10.1.2.3\r\n\x1b[?2004hroot@m2:~# `

describe('a hostile host at login and at its prompt', () => {
  it('gets a few printable lines in the Log under its own name, and only it differs', async () => {
    await playMutations(async ({ choice, note }) => {
      const { console, fleet, clock, type, print } = createConsoleHarness({
        hosts: ['m1', 'm2', 'm3'],
        size: { columns: 80, rows: 24 },
      })
      for (const kind of ['opening', 'open'] as const)
        for (const host of ['m1', 'm2', 'm3']) fleet.events.emit({ type: 'shell', host, state: { kind } })
      for (const host of ['m1', 'm3']) await print(host, `\x1b[?2004hroot@${host}:~# `)
      for (const bytes of lie(GREETING, choice, note)) fleet.events.emit({ type: 'data', host: 'm2', bytes })
      for (let turn = 0; !console.isIdle; turn++) {
        await new Promise((resolve) => setImmediate(resolve))
        // A prompt without a line editor counts after a pause.
        if (turn % 10 === 9) clock.advance(100)
      }
      clock.advance(1000)
      clock.advance(2000)
      const { log, notice, diverged } = console.state
      if (log.length > 30) throw new Error(`${log.length} lines in the log`)
      for (const { host, text } of log) {
        expectPrintable(`${host}${text}`, 'the log')
        if (text.length > 400) throw new Error(`${text.length} characters in the log`)
        if (/at login/.test(text) && host !== 'm2') throw new Error(`${host}: ${text}`)
      }
      expectPrintable(notice?.text ?? '', 'the notice')
      if (diverged.some((host) => host !== 'm2')) throw new Error(`different: ${diverged.join()}`)
      if ((fleet.received.get('m1') ?? '') + (fleet.received.get('m3') ?? '') !== '')
        throw new Error('another host got its reply')
      type('\x1dL')
      const { mode } = console.state
      if (mode.kind === 'dialog') for (const { text } of mode.dialog.lines) expectPrintable(text, 'the dialog')
      createCellGrid(80, 24)
      console[Symbol.dispose]()
    }, 0.05)
  })
})

describe('a hostile host in a session report', () => {
  const PASSWORD = 'hunter2-Xy'

  it('shows no password that another host asked for, and puts no active markup into the report', async () => {
    await playMutations(async ({ choice, note }) => {
      const before = new Map([
        ['m1', 'm1# '],
        ['m2', 'm2# '],
        ['m3', 'm3# '],
      ])
      const log = new SessionLog((host) => ({
        columns: choice.one([20, 80]),
        before: before.get(host) ?? '',
        isEditing: false,
        isFullScreen: false,
      }))
      const hosts = [...before.keys()]
      const type = (text: string) => log.noteTyped([{ hosts, bytes: Buffer.from(text) }], 0)
      const says = (host: string, text: string) => {
        if (host !== 'm2') return log.noteOutput(host, Buffer.from(text), 0)
        for (const piece of lie(text, choice, note, [...FOREIGN, '```', '<script>', '# x', 'Password: ']))
          log.noteOutput(host, piece, 0)
      }
      type('sudo -k true\r')
      for (const host of hosts) says(host, `sudo -k true\r\n[sudo] password for me: `)
      before.set('m1', '[sudo] password for me: ')
      type(`${PASSWORD}\r`)
      says('m1', '\r\nm1# ')
      for (const host of ['m2', 'm3']) says(host, `${PASSWORD}\r\nbash: ${PASSWORD}: command not found\r\n${host}# `)
      before.set('m1', 'm1# ')
      type('history\r')
      for (const host of hosts) says(host, `history\r\n 1 sudo\r\n 2 ${PASSWORD}\r\n${host}# `)
      const report = await buildReport(log.entries, log, (host) => before.get(host))
      if (report.sections.length > 4) throw new Error(`${report.sections.length} entries`)
      const facts = { cluster: 'lab', nowMs: 0 }
      const [markdown, html] = [formatMarkdown(report, facts), formatHtml(report, facts)]
      for (const text of [markdown, html]) {
        expectPrintable(text, 'the report', { lines: true })
        if (text.includes(PASSWORD)) throw new Error('the password is shown')
        if (text.length > 5_000_000) throw new Error(`${text.length} characters`)
      }
      if (/<script/.test(html)) throw new Error('a script in HTML')
      if (report.withoutEcho.some((host) => host !== 'm2')) throw new Error(report.withoutEcho.join())
    }, 0.03)
  })
})
