import { PassThrough, Writable } from 'node:stream'
import { expect, it, onTestFinished, vi } from 'vitest'
import { LiveScreen } from '../../../../src/cli/output/live-screen.ts'

const screenOf = (stdout: Writable, calls: string[]) =>
  new LiveScreen({
    stdout,
    stderr: new PassThrough(),
    environment: {},
    live: () => [],
    onFull: () => calls.push('full'),
    onRoom: () => calls.push('room'),
    onGone: ({ message }) => calls.push(message),
  })

it('holds back nothing for an output that nobody can write to any more', async () => {
  const calls: string[] = []
  const stdout = new Writable({ highWaterMark: 4, write: (_bytes, _encoding, done) => setImmediate(done) })
  using screen = screenOf(stdout, calls)
  screen.out('more than it takes')
  await screen.room()
  stdout.destroy(new Error('the disk is full'))
  await new Promise((resolve) => stdout.once('close', resolve))
  screen.out('more than it takes')
  await screen.room()
  expect(calls).toEqual(['full', 'room', 'the disk is full'])
})

it('holds hosts back again for an output that is full again', async () => {
  const calls: string[] = []
  const taken: (() => void)[] = []
  const stdout = new Writable({ highWaterMark: 4, write: (_bytes, _encoding, done) => taken.push(done) })
  using screen = screenOf(stdout, calls)
  for (const text of ['first', 'second']) {
    screen.out(text)
    const room = screen.room()
    taken.splice(0).forEach((done) => {
      done()
    })
    await room
  }
  expect(calls).toEqual(['full', 'room', 'full', 'room'])
})

const onTerminal = (TERM: string) => {
  vi.useFakeTimers()
  onTestFinished(() => void vi.useRealTimers())
  const written: string[] = []
  const stderr = Object.assign(
    new Writable({ write: (bytes, _encoding, done) => done(void written.push(`${bytes}`)) }),
    { isTTY: true },
  )
  const live = () => ['1 of 2 done']
  const screen = new LiveScreen({ stdout: new PassThrough(), stderr, environment: { TERM }, live })
  return { screen, stderr, written }
}

it('draws the live lines anew below what the shell printed while the process was stopped', () => {
  const { screen, stderr, written } = onTerminal('xterm')
  using _screen = screen
  screen.refresh()
  vi.runOnlyPendingTimers()
  written.splice(0)
  stderr.emit('continued')
  vi.runOnlyPendingTimers()
  expect(written.join('')).toMatch(/^\x1b\[\?7l1 of 2 done/)
})

it('draws no live lines on a dumb terminal', () => {
  const { screen, written } = onTerminal('dumb')
  using _screen = screen
  screen.refresh()
  vi.runOnlyPendingTimers()
  screen.err('a message\n')
  expect(written).toEqual(['a message\n'])
})
