import { afterEach, describe, expect, it } from 'vitest'
import type { Pty, PtyHandlers } from '../../../src/base/pty.ts'
import { spawnLocalPty } from '../../../src/terminal/local-pty.ts'

type End = Parameters<PtyHandlers['onExit']>[0]

const environment = { PATH: process.env.PATH ?? '/usr/bin:/bin', LC_ALL: 'C.UTF-8' }
const opened: Pty[] = []

afterEach(() => {
  for (const pty of opened.splice(0)) pty.close()
})

/** A shell command in a terminal, and what came out of it. */
function run(command: string, handlers: Partial<PtyHandlers> = {}) {
  const chunks: Uint8Array[] = []
  const end = Promise.withResolvers<End>()
  let waiting: { isMet(text: string): boolean; resolve(): void }[] = []
  const text = () => Buffer.concat(chunks).toString()
  const pty = spawnLocalPty(
    { file: '/bin/sh', args: ['-c', command], columns: 80, rows: 24, term: 'xterm-256color', environment },
    {
      onData(bytes) {
        chunks.push(bytes)
        waiting = waiting.filter(({ isMet, resolve }) => !isMet(text()) || resolve())
        handlers.onData?.(bytes)
      },
      onExit: (result) => end.resolve(result),
      ...(handlers.onDrain ? { onDrain: handlers.onDrain } : {}),
    },
  )
  opened.push(pty)
  return {
    pty,
    text,
    bytes: () => Buffer.concat(chunks),
    end: end.promise,
    until: (wanted: string) =>
      new Promise<void>((resolve) => {
        if (text().includes(wanted)) resolve()
        else waiting.push({ isMet: (now) => now.includes(wanted), resolve })
      }),
  }
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

/** Polls, because the kernel does not report the end of a process that is not our child. */
async function untilGone(pid: number): Promise<void> {
  while (isRunning(pid)) await new Promise((resolve) => setImmediate(resolve))
}

describe('a local pseudo-terminal', () => {
  it('tells a program in the foreground from one in the background, also without /proc', async () => {
    const module = new URL('../../../src/base/processes.ts', import.meta.url).href
    const script = `import('${module}').then((m) => console.log([process.argv[1], m.isInForeground(), m.isInForeground('/nowhere')].join(' ')))`
    const node = (name: string) => `'${process.execPath}' --disable-warning=ExperimentalWarning -e "${script}" ${name}`
    const { end, text } = run(`set -m; ${node('behind')} & wait; ${node('front')}`)
    expect(await end).toEqual({ code: 0 })
    expect(text()).toMatch(/behind false false\r\n/)
    expect(text()).toMatch(/front true true\r\n/)
  })

  it('is a terminal with the given size and name', async () => {
    const { text, end } = run('test -t 0 && stty size && echo $TERM')
    expect(await end).toEqual({ code: 0 })
    expect(text()).toBe('24 80\r\nxterm-256color\r\n')
  })

  it('reports the exit code', async () => {
    expect(await run('exit 42').end).toEqual({ code: 42 })
  })

  it('reports the signal that ended the program', async () => {
    expect(await run('kill -TERM $$').end).toEqual({ signal: 'SIGTERM' })
  })

  it('passes bytes on unchanged', async () => {
    const { bytes, end } = run("stty -opost; printf '\\377\\376\\000\\200\\303\\050'")
    await end
    expect([...bytes()]).toEqual([0xff, 0xfe, 0x00, 0x80, 0xc3, 0x28])
  })

  it('loses no byte of ten megabytes that are written just before the exit', async () => {
    const { bytes, end } = run('stty -opost; head -c 10000000 /dev/zero | tr "\\0" x; printf END')
    await end
    expect(bytes().length).toBe(10_000_003)
    expect(bytes().subarray(-4).toString()).toBe('xEND')
  })

  it('loses no byte when it is paused while the program ends', async () => {
    const { pty, bytes, text, end, until } = run(
      'stty -opost -echo; echo ready; read x; head -c 3000 /dev/zero | tr "\\0" x; printf END',
    )
    await until('ready')
    pty.pause()
    pty.write(Buffer.from('\n'))
    await untilGone(pty.pid)
    // Longer than the 200 ms after which the library would close the terminal.
    const start = Date.now()
    while (Date.now() - start < 300) await new Promise((resolve) => setImmediate(resolve))
    const before = bytes().length
    pty.resume()
    await end
    expect(before).toBe('ready\n'.length)
    expect(text().slice('ready\n'.length)).toBe(`${'x'.repeat(3000)}END`)
  })

  it('really stops reading while it is paused', async () => {
    const { pty, bytes, until } = run('stty -opost; echo ready; read x; yes')
    await until('ready')
    pty.pause()
    pty.write(Buffer.from('\n'))
    const before = bytes().length
    // The program blocks in a write to its terminal: the kernel's buffer is full.
    const { readFileSync } = await import('node:fs')
    const start = Date.now()
    while (!/tty|n_tty|wait/.test(readFileSync(`/proc/${pty.pid}/wchan`, 'latin1')) && Date.now() - start < 2000) {
      await new Promise((resolve) => setImmediate(resolve))
    }
    expect(bytes().length).toBe(before)
    pty.resume()
    await until('y\ny\ny')
  })

  it('ends although a background process keeps the terminal open', async () => {
    const { pty, text, end, until } = run('trap "" HUP; sleep 30 & echo pid $!.; echo done; exit 3')
    expect(await end).toEqual({ code: 3 })
    await until('done')
    const pid = Number(/pid (\d+)/.exec(text())?.[1])
    expect(pid).toBeGreaterThan(1)
    expect(pty.pid).not.toBe(pid)
    process.kill(pid, 'SIGKILL')
    await untilGone(pid)
  })

  it('resizes the terminal of the program', async () => {
    const { pty, until } = run('trap "stty size" WINCH; echo ready; while :; do read x; done')
    await until('ready')
    pty.resize(132, 50)
    await until('50 132')
  })

  it('kills a program that ignores the hang-up, and calls no handler after close', async () => {
    let calls = 0
    const { pty, until } = run('trap "" HUP TERM INT; echo ready; while :; do echo x; sleep 0.01; done', {
      onData: () => {
        calls++
      },
    })
    await until('ready')
    pty.close()
    const before = calls
    await untilGone(pty.pid)
    expect(calls).toBe(before)
  })

  it('ends the foreground group of a shell with job control', async () => {
    const { pty, text, until } = run(
      'set -m; (trap "" HUP; echo child $(sh -c "echo \\$PPID").; while :; do sleep 1; done); :',
    )
    await until('child ')
    await until('.')
    const child = Number(/child (\d+)/.exec(text())?.[1])
    expect(isRunning(child)).toBe(true)
    pty.close()
    await untilGone(pty.pid)
    await untilGone(child)
  })

  it('reports when input piles up, keeps it, and reports when it has been taken', async () => {
    const drained = Promise.withResolvers<void>()
    const { pty, until } = run('stty raw -echo; echo ready; sleep 0.2; head -c 1000000 | wc -c; echo', {
      onDrain: () => drained.resolve(),
    })
    await until('ready')
    expect(pty.write(Buffer.alloc(1_000_000, 'x'))).toBe(false)
    await drained.promise
    await until('1000000')
  })

  it('lets this program continue while the other one neither reads nor is read', async () => {
    const { pty, until, text } = run('stty raw -echo; echo ready; cat; echo end')
    await until('ready')
    pty.pause()
    // `cat` stops when its output is full, and so stops reading: only who does not block here can read it again.
    expect(pty.write(Buffer.alloc(1_000_000, 'x'))).toBe(false)
    pty.resume()
    await until('x'.repeat(1_000_000))
    expect(text()).not.toContain('end')
    pty.close()
  })

  it('ignores calls after the end', async () => {
    const { pty, end } = run('exit 0')
    await end
    expect(() => {
      pty.write(Buffer.from('x'))
      pty.resize(10, 10)
      pty.pause()
      pty.resume()
      pty.close()
      pty.close()
    }).not.toThrow()
  })
})
