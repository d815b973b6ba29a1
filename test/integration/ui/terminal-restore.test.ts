import { execFileSync } from 'node:child_process'
import { closeSync, constants, existsSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, describe, expect, it } from 'vitest'
import type { Pty } from '../../../src/base/pty.ts'
import { spawnLocalPty } from '../../../src/terminal/local-pty.ts'
import { enterSequence, leaveSequence } from '../../../src/ui/tty/terminal-session.ts'
import { waitUntil } from '../../support/wait-until.ts'

const program = fileURLToPath(new URL('terminal-program-fixture.ts', import.meta.url))
const ENTER = enterSequence({ mouse: true }).toString()
const LEAVE = leaveSequence({ mouse: true }).toString()
const CANCEL = '\x18'

const opened: Pty[] = []

afterEach(() => {
  for (const pty of opened.splice(0)) pty.close()
})

/** The program in a terminal of its own, between two looks at the terminal's settings. */
async function start(way: string, script = `"$0" "$1" ${way}`) {
  const chunks: Uint8Array[] = []
  const end = Promise.withResolvers<void>()
  const text = () => Buffer.concat(chunks).toString('latin1')
  const pty = spawnLocalPty(
    {
      file: '/bin/sh',
      // The shell lives on when the whole group is signalled; the program's own exit code is what it tells.
      args: ['-c', `tty; stty -a; ${script}; code=$?; echo; echo "code=$code"; stty -a`, process.execPath, program],
      columns: 80,
      rows: 24,
      term: 'xterm-256color',
      environment: { PATH: process.env.PATH ?? '/usr/bin:/bin', LC_ALL: 'C.UTF-8' },
    },
    { onData: (bytes) => chunks.push(bytes), onExit: () => end.resolve() },
  )
  opened.push(pty)
  const until = (wanted: string) => waitUntil(() => text().includes(wanted), JSON.stringify(wanted))
  await waitUntil(() => /ready:\d+;/.test(text()), 'the program to be ready')
  const pid = Number(/ready:(\d+);/.exec(text())?.[1])
  return { pty, pid, text, until, end: end.promise, device: text().split('\r\n')[0] as string }
}

type Running = Awaited<ReturnType<typeof start>>

/** What the terminal was sent, cut where the program took the terminal and gave it back. */
function partsOf({ text }: Running) {
  const [, settingsBefore, rest] = /^\S+\r\n(.*?;\r\n.*?)(\x1b\[.*)$/s.exec(text()) ?? []
  const [, sent, code, settingsAfter] = /^(.*)\r\ncode=(\d+)\r\n(.*)$/s.exec(rest ?? '') ?? []
  return {
    sent: sent ?? '',
    code: Number(code),
    settingsBefore: settingsBefore ?? '',
    settingsAfter: settingsAfter ?? '',
  }
}

/** Sent to the terminal: taken over, what is given here, and given back; nothing else but what followed on stderr. */
function expectRestored(running: Running, code: number): { readonly drawn: string; readonly after: string } {
  const { sent, settingsBefore, settingsAfter, ...rest } = partsOf(running)
  expect(rest.code).toBe(code)
  expect(settingsBefore).toContain('icanon')
  expect(settingsAfter).toBe(settingsBefore)
  expect(sent.startsWith(ENTER)).toBe(true)
  expect(sent.split(ENTER)).toHaveLength(2)
  expect(sent.split(LEAVE)).toHaveLength(2)
  expect(sent).not.toContain('never seen')
  const [drawn, after] = sent.slice(ENTER.length).split(LEAVE)
  expect(after).not.toContain('\x1b')
  return { drawn: drawn ?? '', after: after ?? '' }
}

/** `stty` on the program's terminal, from outside. */
function settingsOf({ device }: Running): string {
  const descriptor = openSync(device, constants.O_RDWR | constants.O_NOCTTY)
  try {
    return execFileSync('stty', ['-a'], { stdio: [descriptor, 'pipe', 'pipe'], encoding: 'utf8' })
  } finally {
    closeSync(descriptor)
  }
}

function stateOf(pid: number): string {
  try {
    return execFileSync('ps', ['-o', 'stat=', '-p', String(pid)], { encoding: 'utf8' }).trim()
  } catch {
    return 'gone'
  }
}

const isGone = (pid: number) => () => stateOf(pid) === 'gone'

describe('the terminal is restored', () => {
  it.each([
    ['SIGTERM', 143],
    ['SIGHUP', 129],
    ['SIGINT', 130],
    ['SIGQUIT', 131],
  ] as const)('after %s', async (signal, code) => {
    const running = await start('wait')
    expect(settingsOf(running)).toContain('-icanon')
    process.kill(running.pid, signal)
    await running.end
    expect(expectRestored(running, code)).toEqual({ drawn: `ready:${running.pid};`, after: '' })
  })

  it.each([
    ['throw', 1, 'thrown on purpose'],
    ['reject', 1, 'rejected on purpose'],
  ])('after a crash (%s), and the error is printed below', async (way, code, message) => {
    const running = await start(way)
    process.kill(running.pid, 'SIGUSR1')
    await running.end
    const { drawn, after } = expectRestored(running, code)
    expect(drawn).toBe(`ready:${running.pid};`)
    expect(after.split(message)).toHaveLength(2)
    expect(after).toMatch(/^muster: unexpected error\r\n/)
  })

  it.each([
    ['exit', 5],
    ['dispose', 0],
  ])('after the program ended by itself (%s)', async (way, code) => {
    const running = await start(way)
    process.kill(running.pid, 'SIGUSR1')
    await running.end
    expect(expectRestored(running, code)).toEqual({ drawn: `ready:${running.pid};`, after: '' })
  })

  it('after a signal to a program whose cleanup never ends', async () => {
    const running = await start('hang')
    process.kill(running.pid, 'SIGTERM')
    await running.end
    expect(expectRestored(running, 143).after).toBe('')
  })

  it('without sequences for the mouse if it was not used', async () => {
    const running = await start('no-mouse')
    process.kill(running.pid, 'SIGTERM')
    await running.end
    const { sent, code } = partsOf(running)
    const [enter, leave] = [enterSequence({ mouse: false }), leaveSequence({ mouse: false })].map(String)
    expect(sent).toBe(`${enter}ready:${running.pid};${leave}`)
    expect(code).toBe(143)
  })

  it('while the program is suspended, and again after it continued and ended', async () => {
    const running = await start('wait')
    const before = /^\S+\r\n(.*?;\r\n.*?)\x1b\[/s.exec(running.text())?.[1]
    process.kill(running.pid, 'SIGTSTP')
    await waitUntil(() => stateOf(running.pid).startsWith('T'), 'the program to stop')
    await running.until(LEAVE)
    expect(settingsOf(running).replaceAll('\n', '\r\n')).toBe(before)

    process.kill(running.pid, 'SIGCONT')
    await running.until('resumed;')
    expect(settingsOf(running)).toContain('-icanon')
    running.pty.resize(100, 30)
    await running.until('size:100x30;')
    running.pty.resize(80, 24)
    await running.until('size:80x24;')
    running.pty.write(Buffer.from('k'))
    await running.until('input:6b;')

    process.kill(running.pid, 'SIGTERM')
    await running.end
    const { sent, code, settingsBefore, settingsAfter } = partsOf(running)
    const ready = `ready:${running.pid};`
    expect(sent).toBe(`${ENTER}${ready}${LEAVE}${ENTER}resumed;size:100x30;size:80x24;input:6b;${LEAVE}`)
    expect(code).toBe(143)
    expect(settingsAfter).toBe(settingsBefore)
  })

  it('after a resize during a suspension, and the new size is reported', async () => {
    const running = await start('wait')
    process.kill(running.pid, 'SIGTSTP')
    await waitUntil(() => stateOf(running.pid).startsWith('T'), 'the program to stop')
    running.pty.resize(100, 30)
    process.kill(running.pid, 'SIGCONT')
    await running.until('resumed;')
    await running.until('size:100x30;')
    process.kill(running.pid, 'SIGTERM')
    await running.end
    expect(partsOf(running).sent.split('size:100x30;')).toHaveLength(2)
  })

  it('after an end in the middle of a frame, and nothing of the frame follows', async () => {
    const running = await start('flood')
    process.kill(running.pid, 'SIGUSR1')
    await running.end
    const { drawn, after } = expectRestored(running, 7)
    expect(after).toBe('')
    expect(drawn).toMatch(/^ready:\d+;x+\x18$/)
    expect(drawn.endsWith(CANCEL)).toBe(true)
    expect(drawn.length).toBeLessThan(40_000_000)
  })

  it('and the program ends although the terminal reads nothing more', async () => {
    const running = await start('flood')
    running.pty.pause()
    process.kill(running.pid, 'SIGUSR1')
    await waitUntil(isGone(running.pid), 'the program to end')
    running.pty.resume()
    await running.end
    const { code, settingsBefore, settingsAfter } = partsOf(running)
    expect(code).toBe(7)
    expect(settingsAfter).toBe(settingsBefore)
  })

  it('or gone, and the program ends by itself', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'muster-terminal-'))
    try {
      const codeFile = join(directory, 'code')
      // A shell that the hang-up spares tells how the program ended.
      const running = await start('wait', `trap '' HUP; "$0" "$1" wait; echo "ended with $?" >'${codeFile}'`)
      running.pty.close()
      const code = () => (existsSync(codeFile) ? readFileSync(codeFile, 'utf8') : '')
      await waitUntil(() => code().endsWith('\n'), 'the end of the program')
      expect(code()).toBe('ended with 129\n')
    } finally {
      rmSync(directory, { recursive: true })
    }
  })
})
