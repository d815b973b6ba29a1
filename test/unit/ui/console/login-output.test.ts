/** What hosts print before their first prompt. */
import { expect, it } from 'vitest'
import { isShellPrompt } from '../../../../src/ui/console/login-output.ts'
import { lastLoginFrom, loginWarnings } from '../../../../src/ui/console/login-warnings.ts'
import { createConsoleHarness } from './console-harness.ts'

/** As readline switches bracketed paste on before it prints the prompt. */
const PROMPT = '\x1b[?2004hroot@m1:~# '
const MOTD = Array.from({ length: 24 }, (_, index) => `welcome ${index + 1}\r\n`).join('')

function harness(options: Parameters<typeof createConsoleHarness>[0] = {}) {
  const harness = createConsoleHarness({ hosts: ['m1', 'm2'], ...options })
  const login = (...hosts: string[]) => {
    for (const host of hosts)
      for (const kind of ['opening', 'open'] as const)
        harness.fleet.events.emit({ type: 'shell', host, state: { kind } })
  }
  const shown = (host = 'm1') => (harness.console.views.screen(host)?.visibleText() ?? []).filter((line) => line !== '')
  const log = () => harness.console.state.log.map(({ host, text }) => `${host}: ${text}`)
  login('m1', 'm2')
  return { ...harness, login, shown, log }
}

it('leaves the prompt alone on the screen, keeps the rest in the scroll-back, and says so', async () => {
  const { print, shown, console, clock, log } = harness()
  await print('m1', MOTD)
  await print('m1', PROMPT)
  expect(shown()).toEqual(['root@m1:~#'])
  const screen = console.views.screen('m1')
  expect(screen?.cursor).toMatchObject({ row: 0, column: 11 })
  if (screen) screen.viewOffset = screen.historyLines
  expect(shown()[0]).toBe('welcome 1')
  expect(screen?.historyLines).toBe(24)
  expect(console.state.hosts.get('m1')?.loginLines).toBe(24)
  await print('m2', MOTD + PROMPT)
  clock.advance(1000)
  expect(log()).toContain('m[1-2]: 24 lines at login')
  expect(console.state.notice?.text).toMatch(/^m\[1-2\]: 24 lines at login, Ctrl-\] L shows them$/)
})

it('shows what all hosts printed with one key, equal texts once', async () => {
  const { print, type, console } = harness({ size: { columns: 100, rows: 60 } })
  await print('m1', MOTD + PROMPT)
  await print('m2', MOTD + PROMPT)
  type('\x1dL')
  const { mode } = console.state
  const lines = mode.kind === 'dialog' ? mode.dialog.lines.map(({ text }) => text) : []
  expect(lines.slice(0, 3)).toEqual(['m[1-2]: 24 lines', '  welcome 1', '  welcome 2'])
})

it('shows what a server printed before the login above its greeting, also of a host that printed nothing else', async () => {
  const { print, type, console, fleet } = harness({ size: { columns: 100, rows: 60 } })
  for (const host of ['m1', 'm2'])
    fleet.events.emit({ type: 'banner', host, text: '\r\nAUTHORIZED\tUSE\r\n\x1b[2Jmaintenance\n' })
  await print('m1', `hello\r\n${PROMPT}`)
  await print('m2', PROMPT)
  const shown = () => {
    type('\x1dL')
    const { mode } = console.state
    const lines = mode.kind === 'dialog' ? mode.dialog.lines.map(({ text }) => text) : []
    type('\x1b')
    return lines.filter((line) => line !== '')
  }
  const banner = ['  AUTHORIZED  USE', '  \\x1b[2Jmaintenance']
  expect(shown()).toEqual(['m1: 3 lines', ...banner, '  hello', 'm2: 2 lines', ...banner])
  fleet.events.emit({ type: 'banner', host: 'm2', text: '' })
  expect(shown()).toEqual(['m1: 3 lines', ...banner, '  hello'])
})

it('says that a greeting has more lines than it keeps', async () => {
  const { print, type, console, clock, log } = harness({ size: { columns: 100, rows: 60 } })
  await print('m1', Array.from({ length: 300 }, (_, at) => `line ${at}\r\n`).join('') + PROMPT)
  clock.advance(1000)
  expect(log()).toContain('m1: more than 200 lines at login')
  expect(console.state.notice?.text).toBe('m1: more than 200 lines at login, Ctrl-] L shows them')
  type('\x1dL')
  const { mode } = console.state
  expect(mode.kind === 'dialog' ? mode.dialog.lines[0]?.text : '').toBe('m1: the last 200 lines')
})

it('keeps all lines of a prompt of two lines', async () => {
  const { print, shown } = harness()
  await print('m1', 'hello\r\n\x1b[?2004h-- root@m1 --\r\n$ ')
  expect(shown()).toEqual(['-- root@m1 --', '$'])
})

it('recognises zsh, which prints its prompt first, and, after a pause, a shell without a line editor', async () => {
  const zsh = harness()
  await zsh.print('m1', 'hello\r\nm1% \x1b[?2004h')
  expect(zsh.shown()).toEqual(['m1%'])
  const dash = harness()
  dash.fleet.events.emit({ type: 'data', host: 'm1', bytes: Buffer.from('hello\r\n$ ') })
  for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setImmediate(resolve))
  expect(dash.shown()).toEqual(['hello', '$'])
  dash.clock.advance(400)
  expect(dash.shown()).toEqual(['$'])
})

it.each([
  ['a forced change of the password', 'Your password has expired.\r\nCurrent password: '],
  ['a menu', '1) train\r\n2) test\r\nSelect> '],
  ['a question of a line editor', 'Project a or b\r\n\x1b[?2004hWhich one? '],
  ['a script that still works', 'checking disks\r\nplease wait'],
  ['a full-screen program', 'hello\r\n\x1b[?1049h\x1b[?2004h# '],
])('hides nothing of %s', async (_, text) => {
  const { print, clock, console } = harness()
  await print('m1', text)
  clock.advance(5000)
  expect(console.views.screen('m1')?.historyLines).toBe(0)
})

it('moves nothing after the first key, and nothing with greeting: show', async () => {
  const typed = harness()
  await typed.print('m1', 'hello\r\n')
  typed.type('x')
  await typed.print('m1', PROMPT)
  expect(typed.shown()).toEqual(['hello', 'root@m1:~#'])
  const shown = harness({ preferences: { greeting: 'show' } })
  await shown.print('m1', `hello\r\nSystem restart required\r\n${PROMPT}`)
  shown.clock.advance(1000)
  expect(shown.shown()).toEqual(['hello', 'System restart required', 'root@m1:~#'])
  expect(shown.log()).toContain('m1: at login: reboot required')
})

it('leaves the output of the previous shell in view when a host comes back', async () => {
  const { print, login, shown, console } = harness()
  await print('m1', `hello\r\n${PROMPT}`)
  await print('m1', 'make\r\nstep 1\r\n')
  login('m1')
  await print('m1', `hello again\r\n${PROMPT}`)
  expect(shown()).toEqual(['root@m1:~# make', 'step 1', 'root@m1:~#'])
  expect(console.views.screen('m1')?.cursor).toMatchObject({ row: 2, column: 11 })
  await print('m1', 'ls\r\n')
  expect(shown()).toEqual(['root@m1:~# make', 'step 1', 'root@m1:~# ls'])
})

it.each([3, 60])('takes the greeting of a new shell out of the pane, after %i lines of output', async (count) => {
  const { print, login, shown, console, type, clock } = harness({ size: { columns: 100, rows: 20 } })
  await print('m1', PROMPT)
  await print('m1', `seq\r\n${Array.from({ length: count }, (_, at) => `step ${at + 1}\r\n`).join('')}${PROMPT}`)
  const before = shown()
  login('m1')
  await print('m1', MOTD)
  await print('m1', PROMPT)
  const rows = console.views.screen('m1')?.rows ?? 0
  expect(shown()).toEqual([...before, 'root@m1:~#'].slice(-rows))
  await print('m1', 'ls\r\nfile\r\n')
  expect(shown()).toEqual([...before, 'root@m1:~# ls', 'file'].slice(-rows + (count > rows ? 1 : 0)))
  clock.advance(1000)
  expect(console.state.notice?.text).toContain('m1: 24 lines at login')
  type('\x1dL')
  expect(console.state.mode).toMatchObject({ kind: 'dialog', dialog: { id: 'login-output' } })
})

it.each([
  ['the whole screen', '\x1b[H\x1b[2J'],
  ['what is below the cursor', '\x1b[H\x1b[J'],
])('counts and takes out the greeting of each new shell alone when it clears %s', async (_, clear) => {
  const { print, login, shown, console } = harness({ size: { columns: 100, rows: 20 } })
  const lines = () =>
    console.views
      .screen('m1')
      ?.allText()
      .filter((line) => line.startsWith('welcome')).length
  await print('m1', clear + MOTD + PROMPT)
  for (let shell = 0; shell < 3; shell++) {
    login('m1')
    await print('m1', clear + MOTD)
    await print('m1', PROMPT)
    expect(console.state.hosts.get('m1')?.loginLines).toBe(24)
    expect(lines()).toBe(24)
    expect(shown().at(-1)).toBe('root@m1:~#')
  }
})

it('takes out nothing that is longer than what is kept of a greeting', async () => {
  const { print, login, shown } = harness()
  await print('m1', `${PROMPT}make\r\n`)
  login('m1')
  await print('m1', Array.from({ length: 300 }, (_, at) => `line ${at}\r\n`).join('') + PROMPT)
  expect(shown().slice(-2)).toEqual(['line 299', 'root@m1:~#'])
})

it('says between two shells that the connection was lost, and that the second one is new', async () => {
  const { print, login, shown, fleet, clock, log } = harness()
  await print('m1', `${PROMPT}python3\r\n>>> print("hal`)
  const end = { kind: 'lost', reason: 'no answer for 15 s' } as const
  fleet.events.emit({ type: 'shell', host: 'm1', state: { kind: 'ended', end } })
  clock.advance(2000)
  login('m1')
  await print('m1', PROMPT)
  expect(shown()).toEqual([
    'root@m1:~# python3',
    '>>> print("hal',
    expect.stringMatching(/^── connection lost \d\d:\d\d:\d\d, new shell \d\d:\d\d:\d\d ──$/),
    'root@m1:~#',
  ])
  expect(log()).toContain('m1: new shell; what ran in the last one was hung up')
  fleet.events.emit({ type: 'shell', host: 'm2', state: { kind: 'ended', end: { kind: 'exit', code: 0 } } })
  login('m2')
  await print('m2', PROMPT)
  expect(shown('m2')).toEqual(['root@m1:~#'])
})

it('says that the connection was lost also where only a full-screen program had shown something', async () => {
  const { print, login, shown, fleet } = harness()
  await print('m1', `${PROMPT}vi\r\n\x1b[H\x1b[2J\x1b[?1049h\x1b[Htext`)
  fleet.events.emit({ type: 'shell', host: 'm1', state: { kind: 'ended', end: { kind: 'lost', reason: 'gone' } } })
  login('m1')
  await print('m1', PROMPT)
  expect(shown()).toEqual([expect.stringMatching(/^── connection lost .*, new shell .* ──$/), 'root@m1:~#'])
})

it('names warnings in the log, hosts that print the same together', async () => {
  const { print, clock, log } = harness()
  const text = `*** System restart required ***\r\nUsage of /: 97.2% of 9.51GB\r\nLast login: Mon from 203.0.113.9\r\n${PROMPT}`
  await print('m1', text)
  await print('m2', text)
  clock.advance(1000)
  expect(log().slice(-4)).toEqual([
    'm[1-2]: 3 lines at login',
    'm[1-2]: at login: reboot required',
    'm[1-2]: at login: / is 97% full',
    'm[1-2]: at login: last login from 203.0.113.9',
  ])
})

it('reads no more than the screen after each piece of output, however long the line of the cursor is', async () => {
  const { print, console } = harness()
  await print('m1', 'x'.repeat(50_000))
  const screen = console.views.screen('m1')
  const prompt = screen?.loginPrompt()
  expect(prompt?.text.endsWith('xx')).toBe(true)
  expect(prompt?.text.length).toBeLessThanOrEqual((screen?.columns ?? 0) * (screen?.rows ?? 0))
  expect(prompt?.rowsAbove).toBe(0)
})

it('finds warnings and no others', () => {
  expect(loginWarnings(['  Usage of /:   45.0% of 9GB', 'Memory usage: 98%', '/ is using 91.5% of 9GB'])).toEqual([
    '/ is 91% full',
  ])
  expect(loginWarnings(['Warning: your password will expire in 3 days'])).toEqual(['password expires in 3 days'])
  expect(loginWarnings(['There were 2 failed login attempts since the last successful login.'])).toEqual([
    'failed login attempts: 2',
  ])
  const many = Array.from({ length: 200 }, (_, index) => `/disk${index} is using 95% of 9GB`)
  expect(loginWarnings(many)).toHaveLength(10)
  expect(loginWarnings(['Welcome to Ubuntu', '12 updates can be applied immediately.'])).toEqual([])
  expect(lastLoginFrom(['Last login: Mon Nov 23 10:00:00 2026 from 10.0.0.5'])).toBe('10.0.0.5')
  expect(lastLoginFrom(['Last login: Mon Nov 23 10:00:00 2026 on tty1'])).toBeUndefined()
})

it('recognises the end of a prompt', () => {
  const isPrompt = (text: string, isLineEditor: boolean) => isShellPrompt({ text, isLineEditor })
  expect(['$ ', 'root@m1:~# ', '~ ❯ ', '>'].map((text) => isPrompt(text, true))).toEqual([true, true, true, true])
  expect(['$ ', '# ', 'm1% '].map((text) => isPrompt(text, false))).toEqual([true, true, true])
  expect(['Password: ', 'Go on? ', '#? ', 'Select> ', ' '].map((text) => isPrompt(text, false))).toEqual(
    Array(5).fill(false),
  )
})
