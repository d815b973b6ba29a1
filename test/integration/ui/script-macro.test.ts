/** Macros whose text a program prints: it goes only where it went when the macro was chosen, or nowhere. */
import { execFileSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { isRunning } from '../../../src/base/processes.ts'
import { type ConsoleHarness, createConsoleHarness } from '../../unit/ui/console/console-harness.ts'

const LEADER = '\x1d'

let directory: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'muster-macro-'))
})
afterEach(() => rmSync(directory, { recursive: true }))

const HOSTS = ['m1', 'm2', 'm3']
let count = 0

/** `go`: what the programs of these hosts wait for; absent: they do not wait. */
function harnessWith(output: string, waits = true) {
  count += 1
  const own = count
  const pipe = (host: string) => join(directory, `${own}-${host}`)
  execFileSync('mkfifo', HOSTS.map(pipe))
  const script = `${waits ? `read _ < ${pipe('$MUSTER_HOST')}; ` : ''}${output}`
  const macros = [{ name: 'slow', command: ['sh', '-c', script] }]
  const environment = { PATH: process.env.PATH ?? '' }
  const harness = createConsoleHarness({ hosts: HOSTS, preferences: { macros }, environment })
  // Waits until the program reads.
  const go = (hosts = HOSTS) => {
    for (const host of hosts) writeFileSync(pipe(host), '\n')
  }
  return { ...harness, go }
}

async function until(isTrue: () => boolean): Promise<void> {
  while (!isTrue()) await new Promise((resolve) => setImmediate(resolve))
}

const view = ({ console }: ConsoleHarness) => console.dialogs.current?.view({ columns: 80, rows: 24 })
const got = (harness: ConsoleHarness) => HOSTS.map(harness.got)

it('holds the keys while its program runs, and then types', async () => {
  const harness = harnessWith('printf %s "of-$MUSTER_HOST"')
  harness.type(`${LEADER}mslow\r`)
  expect([view(harness)?.id, view(harness)?.keys]).toEqual(['macro-script', [['Esc', 'cancel']]])
  harness.type('ls\r')
  harness.go()
  await until(() => harness.got('m1') !== '')
  expect(got(harness)).toEqual(['of-m1', 'of-m2', 'of-m3'])
  expect(view(harness)?.lines[0]?.text).toBe('Done. What you typed meanwhile reached no host.')
  harness.type(' x\r')
  expect([harness.got('m1'), harness.console.dialogs.current]).toEqual(['of-m1', undefined])
})

it('types nothing once it is cancelled, into no other receivers', async () => {
  const harness = harnessWith('echo late')
  harness.type(`${LEADER}mslow\r`)
  harness.type('\x1b')
  harness.type(`${LEADER}n`)
  const other = harnessWith('echo late')
  other.type(`${LEADER}s${LEADER}mslow\r`)
  other.go(['m1'])
  await until(() => other.got('m1') !== '')
  expect([got(harness), got(other)]).toEqual([
    ['', '', ''],
    ['late', '', ''],
  ])
})

it('types nothing into a shell that was opened meanwhile, even if all shells are new', async () => {
  const harness = harnessWith('printf %s "of-$MUSTER_HOST"')
  harness.type(`${LEADER}mslow\r`)
  for (const host of HOSTS) harness.fleet.renewShell(host)
  harness.go()
  await until(() => harness.console.state.notice?.text.startsWith('not sent to m[1-3]') === true)
  expect(got(harness)).toEqual(['', '', ''])
})

it('shows several lines before they are typed', async () => {
  const harness = harnessWith('printf "one\\nrm -rf two\\n"', false)
  harness.type(`${LEADER}mslow\r`)
  await until(() => view(harness)?.tone === 'danger')
  expect(view(harness)?.title).toBe('Type this into m[1-3]?')
  expect(
    view(harness)
      ?.lines.slice(1, 4)
      .map(({ text }) => text),
  ).toEqual(['m1: one', '  rm -rf two', 'm2: one'])
  harness.type('\r')
  expect(got(harness)).toEqual(['', '', ''])
  harness.type('y')
  expect(got(harness)).toEqual(Array(3).fill('one\rrm -rf two'))
})

it('does not show what may be a password that a host asks for', async () => {
  const harness = harnessWith('printf "hunter2\\nyes\\n"', false)
  await harness.print('m2', '\r\nPassword: ')
  harness.type(`${LEADER}mslow\r`)
  await until(() => view(harness)?.tone === 'danger')
  const lines = view(harness)?.lines.map(({ text }) => text) ?? []
  expect(lines).toContain('m2: 2 lines, not shown: it may be a password that a host asks for')
  // It is the same text.
  expect(lines.join('\n')).not.toContain('hunter2')
})

it('says for which hosts its program failed and why, which then get no rest of the line', async () => {
  const harness = harnessWith('[ $MUSTER_HOST != m2 ] || { echo "no such rank" >&2; exit 3; }; echo yes', false)
  harness.type(`${LEADER}mslow\r`)
  harness.type('ls\r')
  await until(() => harness.got('m1') !== '')
  const missed = 'ent to 2 of 3, not to m2: sh failed (exit 3): no such rank'
  expect(view(harness)?.lines[0]?.text).toBe(`S${missed}. What you typed meanwhile reached no host.`)
  harness.type('\r')
  expect(harness.console.state.notice?.text).toBe(`s${missed}`)
  harness.type(' && rm x\r')
  expect(got(harness)).toEqual(['yes && rm x\r', '', 'yes && rm x\r'])
})

it('says that its program cannot be started', async () => {
  const macros = [{ name: 'none', command: ['/nowhere/none'] }]
  const harness = createConsoleHarness({ hosts: HOSTS, preferences: { macros } })
  harness.type(`${LEADER}mnone\r`)
  await until(() => harness.console.dialogs.current === undefined)
  expect(harness.console.state.notice?.text).toBe('not sent to m[1-3]: none cannot be started: no such file')
})

it('ends all that its program has started when it is cancelled', async () => {
  const started = join(directory, 'started')
  const macros = [{ name: 'slow', command: ['sh', '-c', 'sleep 300 & echo $! >> "$STARTED"; wait'] }]
  const environment = { PATH: process.env.PATH ?? '', STARTED: started }
  const harness = createConsoleHarness({ hosts: HOSTS, preferences: { macros }, environment })
  harness.type(`${LEADER}mslow\r`)
  const pids = () => (existsSync(started) ? readFileSync(started, 'utf8').trim().split('\n').map(Number) : [])
  await until(() => pids().length === HOSTS.length)
  expect(pids().map(isRunning)).toEqual([true, true, true])
  harness.type('\x1b')
  await until(() => !pids().some(isRunning))
  expect(got(harness)).toEqual(['', '', ''])
})
