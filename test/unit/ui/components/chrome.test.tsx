/** The chrome as the screen shows it: small terminals, and text from outside that tries to act. */
import chalk from 'chalk'
import { render } from 'ink'
import { afterEach, beforeAll, describe, expect, it } from 'vitest'
import { systemClock } from '../../../../src/base/clock.ts'
import type { CredentialRequest } from '../../../../src/ssh/questions.ts'
import { textOfCells } from '../../../../src/terminal/cell-row.ts'
import { WORDS_PER_CELL } from '../../../../src/terminal/cells.ts'
import { Chrome } from '../../../../src/ui/components/chrome.tsx'
import { credentialDialog } from '../../../../src/ui/dialogs/credential-dialog.ts'
import { createVirtualStdin, VirtualStdout } from '../../../../src/ui/tty/virtual-terminal.ts'
import { waitUntil } from '../../../support/wait-until.ts'
import { type ConsoleHarness, createConsoleHarness } from '../console/console-harness.ts'

const LEADER = '\x1d'
const opened: Disposable[] = []

beforeAll(() => {
  chalk.level = 3
})

afterEach(() => {
  for (const one of opened.splice(0).reverse()) one[Symbol.dispose]()
})

/** The rows of the chrome layer. */
async function drawChrome({ console }: ConsoleHarness): Promise<string[]> {
  const onFault = (error: unknown) => {
    throw error
  }
  const { columns, rows } = console.state
  let draws = 0
  const stdout = new VirtualStdout({ columns, rows, onDraw: () => draws++ })
  opened.push(stdout)
  const source = { subscribe: () => () => undefined, state: () => console.state, pageInfo: () => console.arrangement }
  const ink = render(<Chrome source={source} clock={systemClock} onFault={onFault} />, {
    stdout: stdout.stream,
    stdin: createVirtualStdin(),
    interactive: true,
    patchConsole: false,
    exitOnCtrlC: false,
  })
  opened.push({ [Symbol.dispose]: () => ink.unmount() })
  await waitUntil(() => draws > 0, 'a frame')
  const { grid } = stdout
  return Array.from({ length: rows }, (_, row) => textOfCells(grid.words, row * columns * WORDS_PER_CELL, columns))
}

const ask = (harness: ConsoleHarness, request: Partial<CredentialRequest>): void => {
  const whole = {
    title: 'Password for root',
    instruction: '',
    prompts: [{ text: 'Password:', isEchoed: false }],
    hosts: ['m1'],
    isRetry: false,
    ...request,
  } as CredentialRequest
  harness.console.dialogs.openWhenQuiet(credentialDialog(whole, () => undefined))
}

it('draws again after a state that it could not draw', async () => {
  const { console } = createConsoleHarness({ size: { columns: 80, rows: 24 } })
  let isBroken = false
  const faults: unknown[] = []
  const listeners = new Set<() => void>()
  const source = {
    subscribe: (listener: () => void) => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    state: () => console.state,
    pageInfo: () => {
      if (isBroken) throw new Error('planted')
      return console.arrangement
    },
  }
  const stdout = new VirtualStdout({ columns: 80, rows: 24, onDraw: () => {} })
  opened.push(stdout)
  const onFault = (error: unknown) => void faults.push(error)
  const ink = render(<Chrome source={source} clock={systemClock} onFault={onFault} />, {
    stdout: stdout.stream,
    stdin: createVirtualStdin(),
    interactive: true,
    patchConsole: false,
    exitOnCtrlC: false,
  })
  opened.push({ [Symbol.dispose]: () => ink.unmount() })
  const firstRow = () => textOfCells(stdout.grid.words, 0, 80)
  const show = (clusterNow: string) => {
    console.change(() => ({ cluster: clusterNow }))
    for (const listener of listeners) listener()
  }
  await waitUntil(() => firstRow().includes('muster'), 'the header')
  isBroken = true
  show('broken')
  await waitUntil(
    () => firstRow().includes('cannot draw header and footer. Ctrl-] 6 shows the Log.'),
    'what is drawn instead',
  )
  expect(faults).toEqual([expect.objectContaining({ message: 'planted' })])
  isBroken = false
  show('mended')
  await waitUntil(() => firstRow().includes('mended'), 'the header again')
})

describe('dialogs', () => {
  it('show their whole text at 80 columns', async () => {
    for (const key of ['!', 'c']) {
      const harness = createConsoleHarness({ size: { columns: 80, rows: 24 } })
      harness.type(`${LEADER}${key}`)
      const text = (await drawChrome(harness)).join('\n')
      expect(text).toContain(key === '!' ? 'for that.' : 'interrupted copy.')
      expect(text).not.toContain('…')
    }
  })
})

describe('foreign text', () => {
  it.each([
    [80, 24],
    [120, 40],
    [240, 67],
  ])('shows every line of a page of the help at %i×%i', async (columns, rows) => {
    for (const keys of [`${LEADER}?`, `${LEADER}?/the\r`]) {
      const harness = createConsoleHarness({ size: { columns, rows } })
      harness.type(keys)
      const shown = (await drawChrome(harness)).map((row) => row.replaceAll('│', ' ').trimEnd())
      const { mode } = harness.console.state
      const lines = mode.kind === 'dialog' ? mode.dialog.lines.map(({ text }) => text) : []
      expect(lines.length).toBeGreaterThan(10)
      for (const line of lines) expect(shown.some((row) => row.endsWith(line))).toBe(true)
    }
  })

  it('does not act on the terminal in a question of a server', async () => {
    const harness = createConsoleHarness({ size: { columns: 80, rows: 24 } })
    ask(harness, {
      title: 'Pass\x1b[2J\x1b[Hword',
      instruction: 'first\r\nsecond\x1b[1;1HTYPING INTO NO HOST\u202edrow',
      prompts: [{ text: '\x1b[41mcode\x07', isEchoed: true }],
    })
    const rows = await drawChrome(harness)
    expect(rows[0]).toMatch(/^ muster lab .*CREDENTIALS · hosts get no keys/)
    expect(rows.join('\n')).toMatch(/Pass\\x1b\[2J\\x1b\[Hword/)
    expect(rows.join('\n')).toMatch(/first\\x0d\\x0asecond\\x1b\[1;1HTYPING INTO NO HOST\\u202edrow/)
    expect(rows.filter((row) => row.includes('│'))).not.toContainEqual(expect.stringMatching(/^ *│ *drow/))
    expect(rows.join('\n')).toMatch(/\\x1b\[41mcode\\x07/)
  })

  it('does not act on the terminal in a notice, and stays on its line', async () => {
    const harness = createConsoleHarness({ size: { columns: 80, rows: 24 } })
    harness.console.notice('lost:\n\x1b[1;1Hgone\x9b2J', 'error')
    const rows = await drawChrome(harness)
    expect(rows.at(-2)).toContain('lost:\\x0a\\x1b[1;1Hgone\\x9b2J')
    expect(rows.at(-1)).toContain('Ctrl-] command')
    expect(rows[0]).toMatch(/^ muster lab/)
  })
})

describe('a small terminal', () => {
  it.each([
    [40, 12],
    [20, 5],
    [10, 3],
    [2, 1],
    [1, 1],
  ])('of %i×%i has room for every dialog', async (columns, rows) => {
    for (const keys of [':', '?', '/', 'g', 'm', 'p', '+', 'x', 'w', '[/', '6']) {
      const harness = createConsoleHarness({ size: { columns, rows } })
      for (const key of keys) harness.type(key === keys[0] ? LEADER + key : key)
      const drawn = await drawChrome(harness)
      expect(drawn).toHaveLength(rows)
    }
  })

  it('of 20×5 shows the typed line and the key that leads back', async () => {
    const harness = createConsoleHarness({ size: { columns: 20, rows: 5 } })
    harness.type(`${LEADER}/m[1-2]`)
    const text = (await drawChrome(harness)).join('\n')
    expect(text).toContain('m[1-2]')
    expect(text).toContain('Esc')
  })

  it('of 20×5 shows which action would run', async () => {
    const harness = createConsoleHarness({ size: { columns: 20, rows: 5 } })
    harness.type(`${LEADER}:zoom`)
    const text = (await drawChrome(harness)).join('\n')
    expect(text).toMatch(/▸ ?zoom/)
  })
})

describe('a long prompt', () => {
  const PROMPT = 'Enter the code of six digits that your authenticator shows now, or one of the backup codes: '

  it('is shown whole, with the typed text', async () => {
    const harness = createConsoleHarness({ size: { columns: 80, rows: 24 } })
    ask(harness, { prompts: [{ text: PROMPT, isEchoed: true }] })
    harness.type('123456')
    const text = (await drawChrome(harness))
      .map((row) => row.replace(/^.*?│|│.*$/g, '').trim())
      .join(' ')
      .replace(/ +/g, ' ')
    expect(text).toContain(PROMPT.trim())
    expect(text).toContain('123456')
  })
})

describe('long names', () => {
  const LONG = 'a'.repeat(60)

  it('leave room for the keys that answer a question', async () => {
    const harness = createConsoleHarness({ size: { columns: 80, rows: 24 }, hosts: [LONG, 'b'] })
    harness.type(`${LEADER}x`)
    expect((await drawChrome(harness)).join('\n')).toMatch(/y close a+….*Esc cancel/)
  })

  it('leave room for the hints of the footer, in every mode', async () => {
    const harness = createConsoleHarness({ size: { columns: 80, rows: 24 }, hosts: [LONG, 'b'] })
    expect((await drawChrome(harness)).at(-1)).toContain('help')
    harness.type(`${LEADER}[`)
    expect((await drawChrome(harness)).at(-1)).toMatch(/SCROLL a+….*Esc back/)
  })
})

describe('a console without hosts', () => {
  it('says how to add some, and how to quit', async () => {
    const harness = createConsoleHarness({ size: { columns: 80, rows: 24 }, hosts: ['m1'] })
    harness.type(`${LEADER}x`)
    harness.type('y')
    expect((await drawChrome(harness)).slice(1, -1).join('\n')).toMatch(/No hosts.*Ctrl-\] \+.*Ctrl-\] q/)
    harness.type('ls')
    expect((await drawChrome(harness)).at(-2)).toContain('no hosts: Ctrl-] + adds one')
  })
})

describe('a dialog', () => {
  it('shows the whole text of an error', async () => {
    const harness = createConsoleHarness({ size: { columns: 80, rows: 24 } })
    harness.type(`${LEADER}/m[1-`)
    const text = (await drawChrome(harness)).map((row) => row.replace(/^.*?│|│.*$/g, '').trim()).join(' ')
    expect(text).toMatch(/\[ without \] after it; write a range as m\[1-3\]|write a range/)
    expect(text).not.toContain('…')
  })

  it('shows in the footer only keys that it handles', async () => {
    const harness = createConsoleHarness({ size: { columns: 80, rows: 24 } })
    harness.type(`${LEADER}/`)
    expect((await drawChrome(harness)).at(-1)).not.toContain('Ctrl-]')
  })
})
