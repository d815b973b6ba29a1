/** History and completion in prompts, and prompts that fail. */
import { execFileSync } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { dialogRect } from '../../../../src/ui/components/layout-dialog.ts'
import type { DialogView } from '../../../../src/ui/dialogs/dialog.ts'
import { PromptHistory } from '../../../../src/ui/dialogs/prompt-history.ts'
import { createConsoleHarness } from './console-harness.ts'

const LEADER = '\x1d'
const [UP, DOWN, TAB, BACK_TAB, CLEAR] = ['\x1b[A', '\x1b[B', '\t', '\x1b[Z', '\x15']

const dialogOf = ({ console }: ReturnType<typeof createConsoleHarness>) => {
  const { mode } = console.state
  return mode.kind === 'dialog' ? mode.dialog : undefined
}
const typed = (harness: ReturnType<typeof createConsoleHarness>) => dialogOf(harness)?.input?.text
const lines = (harness: ReturnType<typeof createConsoleHarness>) => dialogOf(harness)?.lines.map(({ text }) => text)

describe('the history of a prompt', () => {
  let directory: string
  let path: string
  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), 'muster-prompts-'))
    path = join(directory, 'muster', 'prompts.jsonl')
  })
  afterEach(() => rmSync(directory, { recursive: true }))
  const open = () => createConsoleHarness({ prompts: { promptHistory: new PromptHistory(path) } })

  it('is walked with Up and Down, through lines that begin with what was typed', () => {
    const harness = open()
    for (const set of ['m1', 'm[1-2]', 'm3']) harness.type(`${LEADER}/${set}\r`)
    harness.type(`${LEADER}/${UP}`)
    expect(typed(harness)).toBe('m3')
    harness.type(UP + UP + UP)
    expect(typed(harness)).toBe('m1')
    harness.type(DOWN)
    expect(typed(harness)).toBe('m[1-2]')
    harness.type(`${CLEAR}m[${UP}`)
    expect(typed(harness)).toBe('m[1-2]')
    harness.type(DOWN)
    expect(typed(harness)).toBe('m[')
    harness.type(`${UP}\r`)
    expect(harness.receivers()).toBe('m1,m2')
  })

  it('is there again in the next console, in a file that only the user can read', () => {
    open().type(`${LEADER}/m1\r`)
    expect(statSync(path).mode & 0o777).toBe(0o600)
    chmodSync(path, 0o644)
    const next = open()
    next.type(`${LEADER}/m2\r${LEADER}/${UP}${UP}`)
    expect(typed(next)).toBe('m1')
    expect(statSync(path).mode & 0o777).toBe(0o600)
  })

  it('is left alone if its file is a pipe', () => {
    mkdirSync(dirname(path), { recursive: true })
    execFileSync('mkfifo', [path])
    const harness = open()
    harness.type(`${LEADER}/m1\r${LEADER}/${UP}`)
    expect(typed(harness)).toBe('m1')
  })

  /** All shells wait for a line. */
  const atPrompts = async (harness: ReturnType<typeof open>) => {
    for (const { host } of harness.console.state.hosts.values()) await harness.print(host, `\r\nroot@${host}:~# `)
    harness.clock.advance(800)
  }

  it('keeps no text for a question, also not one with a placeholder', async () => {
    const harness = open()
    await atPrompts(harness)
    await harness.print('m2', 'read -s P\r\nPassword: ')
    harness.clock.advance(800)
    harness.type(`${LEADER}mPw-%h-x\r`)
    harness.type(`${LEADER}mtext\r`)
    harness.type('Pw-%h-y\x1b')
    expect(existsSync(path)).toBe(false)
    harness.type(`${LEADER}m${UP}`)
    expect(typed(harness)).toBe('')
  })

  it('keeps no line that begins with a blank, no text without a placeholder, and no line that was refused', async () => {
    const harness = open()
    await atPrompts(harness)
    harness.type(`${LEADER}/ m1\r`)
    harness.type(`${LEADER}mtext\r`)
    harness.type('hunter2\r')
    harness.type(`${LEADER}/nowhere\r\x1b`)
    expect(existsSync(path)).toBe(false)
    harness.type(`${LEADER}mtext\r`)
    harness.type('rank %n\r')
    expect(readFileSync(path, 'utf8')).toBe('{"prompt":"macro-text","text":"rank %n"}\n')
  })

  it('keeps a line that is left with Esc until the console ends, and not in the file', () => {
    const harness = open()
    harness.type(`${LEADER}!uptime -p\x1b${LEADER}!${UP}`)
    expect(typed(harness)).toBe('uptime -p')
    harness.type(`\x1b${LEADER}:run date\x1b${LEADER}:run ${UP}`)
    expect(typed(harness)).toBe('run date')
    expect(existsSync(path)).toBe(false)
  })

  it('takes nothing from a file that another user could have written, and nothing that could act', () => {
    open().type(`${LEADER}/m1\r`)
    writeFileSync(path, '{"prompt":"host-set","text":"m2"}\n{"prompt":"host-set","text":"m\\u001b[2J"}\n[]\nnull\n{\n')
    const harness = open()
    harness.type(`${LEADER}/${UP}${UP}`)
    expect(typed(harness)).toBe('m2')
    chmodSync(path, 0o666)
    const refused = open()
    refused.type(`${LEADER}/${UP}`)
    expect(typed(refused)).toBe('')
    refused.type('m3\r')
    expect(readFileSync(path, 'utf8')).not.toContain('m3')
  })

  it('is bounded', () => {
    open().type(`${LEADER}/m1\r`)
    const line = (index: number) => `{"prompt":"host-set","text":"m1,m${index}"}\n`
    writeFileSync(path, Array.from({ length: 5_000 }, (_, index) => line(index)).join(''))
    const history = new PromptHistory(path)
    expect([history.of('host-set').length, history.of('host-set')[0]]).toEqual([200, 'm1,m4999'])
    expect(readFileSync(path, 'utf8').split('\n')).toHaveLength(201)
    history.add('host-set', 'x'.repeat(100_000))
    expect(statSync(path).size).toBeLessThan(20_000)
  })

  it('writes what it could not write, once it can', () => {
    const inTheWay = join(directory, 'later')
    writeFileSync(inTheWay, '')
    const late = join(inTheWay, 'history')
    const history = new PromptHistory(late)
    history.add('host-set', 'm1')
    history.add('host-set', 'm2')
    rmSync(inTheWay)
    history.add('host-set', 'm3')
    history.add('host-set', 'm4')
    expect(new PromptHistory(late).of('host-set')).toEqual(['m4', 'm3', 'm2', 'm1'])
  })
})

describe('Tab in a prompt', () => {
  const files: Readonly<Record<string, readonly string[]>> = {
    '': ['app.conf', 'app data/', '.hidden', 'bin/'],
    'app data/': ['model.bin'],
  }
  const open = () =>
    createConsoleHarness({
      hosts: ['gpu1', 'gpu2', 'head'],
      groups: new Map([['gpus', ['gpu1', 'gpu2']]]),
      prompts: {
        listFiles: async (directory) => {
          const names = files[directory]
          if (names === undefined) throw new Error('no such directory')
          return names
        },
      },
    })
  const press = async (harness: ReturnType<typeof createConsoleHarness>, keys: string) => {
    harness.type(keys)
    await setImmediate()
    return typed(harness)
  }

  it('completes hosts and groups, then cycles through the remaining matches', async () => {
    const harness = open()
    expect(await press(harness, `${LEADER}/h${TAB}`)).toBe('head')
    expect(await press(harness, `,g${TAB}`)).toBe('head,gpu')
    expect(lines(harness)).toEqual(['gpu1', 'gpu2'])
    expect(await press(harness, TAB)).toBe('head,gpu1')
    expect(await press(harness, TAB)).toBe('head,gpu2')
    expect(await press(harness, BACK_TAB)).toBe('head,gpu1')
    expect(await press(harness, `!@${TAB}`)).toBe('head,gpu1!@gpus')
    expect(await press(harness, `${CLEAR}xyz${TAB}`)).toBe('xyz')
    expect(lines(harness)).toEqual(['nothing to complete'])
    expect(await press(harness, `${CLEAR}head${TAB}\r`)).toBeUndefined()
    expect(harness.receivers()).toBe('head')
  })

  it('says that a command has nothing to complete', async () => {
    const harness = open()
    expect(await press(harness, `${LEADER}!on head: ca${TAB}`)).toBe('on head: ca')
    expect(lines(harness)).toEqual(['nothing to complete'])
  })

  it('completes only hosts that are not open where hosts are added', async () => {
    const harness = createConsoleHarness({
      hosts: ['h1', 'h2'],
      groups: new Map([
        ['here', ['h1']],
        ['more', ['h2', 'h5']],
      ]),
      prompts: { declaredHosts: () => ['h1', 'h2', 'h4', 'h5'] },
    })
    expect(await press(harness, `${LEADER}+h${TAB}`)).toBe('h')
    expect(lines(harness)).toEqual(['h4', 'h5'])
    expect(await press(harness, `${CLEAR}@${TAB}`)).toBe('@more')
  })

  it('replaces the typed word where all of it is common to the matches, and keeps what follows the cursor', async () => {
    const harness = open()
    expect(await press(harness, `${LEADER}/gpu${TAB}`)).toBe('gpu')
    expect(await press(harness, TAB)).toBe('gpu1')
    expect(await press(harness, TAB)).toBe('gpu2')
    const [HOME, RIGHT] = ['\x1b[H', '\x1b[C']
    expect(await press(harness, `${CLEAR}gpu,head${HOME}${RIGHT.repeat(3)}${TAB}`)).toBe('gpu,head')
    expect(await press(harness, TAB)).toBe('gpu1,head')
    expect(await press(harness, TAB)).toBe('gpu2,head')
  })

  it('completes paths of this machine, quoted if necessary, and hosts after `on`', async () => {
    const harness = open()
    expect(await press(harness, `${LEADER}capp${TAB}`)).toBe('app')
    expect(lines(harness)).toEqual(['app data/', 'app.conf'])
    expect(await press(harness, `\\ ${TAB}`)).toBe('app\\ data/')
    expect(await press(harness, TAB)).toBe('app\\ data/model.bin')
    expect(await press(harness, ` b${TAB}`)).toBe('app\\ data/model.bin bin/')
    expect(await press(harness, TAB)).toBe('app\\ data/model.bin bin/')
    expect(await press(harness, `${CLEAR}on @g${TAB}`)).toBe('on @gpus')
    expect(await press(harness, `: .h${TAB}`)).toBe('on @gpus: .hidden')
    harness.type('\x1b')
    expect(await press(harness, `${LEADER}:copy bi${TAB}`)).toBe('copy bin/')
  })
})

const paste = (text: string) => `\x1b[200~${text}\x1b[201~`

it('shows a group without open hosts with nothing but the reason', () => {
  const harness = createConsoleHarness({ hosts: ['m1'], groups: new Map([['late', ['m9']]]) })
  harness.type(`${LEADER}g`)
  const { mode } = harness.console.state
  expect(mode.kind === 'dialog' && mode.dialog.lines.map(({ text }) => text)).toEqual([
    'all  1 host',
    '@late · none of its hosts is open',
  ])
})

describe('a prompt into which several lines are pasted', () => {
  it.each(['!', ':', 'c'])('opened with %s does not make one command of them', (key) => {
    const harness = createConsoleHarness()
    harness.type(`${LEADER}${key}${paste('cd /srv\r\nrm x\n')}`)
    expect(typed(harness)).toBe('')
    expect(dialogOf(harness)?.input?.error).toBe(
      'not inserted: the paste has 2 lines, and a prompt takes one; the shells take several',
    )
    harness.type(paste('uptime\n'))
    expect(typed(harness)).toBe('uptime')
    expect(dialogOf(harness)?.input?.error ?? '').not.toContain('not inserted')
  })

  it('joins them to a list of hosts', () => {
    const harness = createConsoleHarness()
    harness.type(`${LEADER}/${paste('m1\nm2\n')}\r`)
    expect(harness.receivers()).toBe('m1,m2')
  })
})

describe('a prompt into which too much is pasted', () => {
  it.each(['!', ':', 'c', '/'])('opened with %s inserts nothing, and says so', (key) => {
    const harness = createConsoleHarness()
    harness.type(`${LEADER}${key}m1${paste('a word\r\n'.repeat(10_000))}`)
    expect(typed(harness)).toBe('m1')
    expect(dialogOf(harness)?.input?.error).toBe('not inserted: a prompt holds at most 16384 characters')
    harness.type(paste('m2'))
    expect(typed(harness)).toBe('m1m2')
    expect(dialogOf(harness)?.input?.error ?? '').not.toContain('not inserted')
  })
})

describe('a prompt that failed', () => {
  it('keeps what was typed, says why, and works once it is corrected', async () => {
    const asked: string[] = []
    const harness = createConsoleHarness({
      prompts: {
        resolveNewHosts: async (text) => {
          asked.push(text)
          if (text === 'm99') throw new Error('m99 is not known')
          return []
        },
      },
    })
    harness.type(`${LEADER}+m99\r`)
    expect(lines(harness)).toEqual(['working …'])
    await setImmediate()
    expect([typed(harness), dialogOf(harness)?.input?.error]).toEqual(['m99', 'm99 is not known'])
    harness.type('\x7f\x7f8\r')
    await setImmediate()
    expect([dialogOf(harness), asked]).toEqual([undefined, ['m99', 'm8']])
  })

  it('lets no half of a line into the shells that was typed while it waited', async () => {
    const harness = createConsoleHarness({ prompts: { resolveNewHosts: async () => [] } })
    harness.type(`${LEADER}+m8\recho a`)
    await setImmediate()
    harness.type('bc')
    expect(lines(harness)).toEqual(['Done. What you typed meanwhile reached no host.'])
    harness.type('\r')
    expect([dialogOf(harness), harness.got('m1')]).toEqual([undefined, ''])
    harness.type('ls')
    expect(harness.got('m1')).toBe('ls')
  })

  it('keeps the name of a group that could not be written', async () => {
    const harness = createConsoleHarness({
      prompts: { saveGroup: async () => Promise.reject(new Error('cannot write hosts.yaml: permission denied')) },
    })
    harness.type(`${LEADER}wtrainers\r`)
    await setImmediate()
    expect([typed(harness), dialogOf(harness)?.input?.error]).toEqual([
      'trainers',
      'cannot write hosts.yaml: permission denied',
    ])
    expect(harness.console.state.groups.has('trainers')).toBe(false)
  })
})

describe('the name of a group', () => {
  it('is not asked for hosts that hosts.yaml does not have', () => {
    const saveGroup = () => expect.unreachable()
    const harness = createConsoleHarness({ prompts: { saveGroup, declaredHosts: () => ['m1', 'm2'] } })
    harness.type(`${LEADER}w`)
    expect(lines(harness)).toEqual(['m[3-4] are not in hosts.yaml'])
    // However long one thinks of the name, no host gets it.
    harness.clock.advance(60_000)
    harness.type('web\r')
    expect([dialogOf(harness), harness.got('m1')]).toEqual([undefined, ''])
    harness.type('ls')
    expect(harness.got('m1')).toBe('ls')
  })

  it('that other hosts have is written only with a second Enter', async () => {
    const saved: unknown[] = []
    const saveGroup = async (...words: readonly unknown[]) => {
      saved.push(words)
      return 'saved'
    }
    const groups = new Map([['web', ['m1', 'm2', 'm3']]])
    const harness = createConsoleHarness({ groups, prompts: { saveGroup } })
    harness.type(`${LEADER}s${LEADER}wweb`)
    expect(lines(harness)).toEqual(['web is m[1-3] now'])
    harness.type('\r')
    await setImmediate()
    expect([saved, dialogOf(harness)?.input?.error]).toEqual([[], 'web is m[1-3] now: Enter again replaces it'])
    // Another name in between is another question.
    harness.type('x\x7f\r')
    await setImmediate()
    expect(saved).toEqual([])
    harness.type('\r')
    await setImmediate()
    expect([saved, dialogOf(harness)]).toEqual([[['web', ['m1'], true]], undefined])
    harness.type(`${LEADER}wdb\r`)
    await setImmediate()
    expect(saved.at(-1)).toEqual(['db', ['m1'], false])
  })
})

describe('what is typed', () => {
  const sizes = [
    { columns: 80, rows: 24 },
    { columns: 120, rows: 40 },
    { columns: 240, rows: 67 },
  ]
  it.each(sizes)('stays in its place while the lines below it change, at $columns×$rows', (size) => {
    const harness = createConsoleHarness({ size })
    const place = () => {
      const { column, row, width } = dialogRect(dialogOf(harness) as DialogView, size.columns, size.rows)
      return { column, row, width }
    }
    for (const [command, text] of Object.entries({
      ':': 'run x',
      '!': 'on nowhere: x',
      '/': 'm1,nowhere',
      '?': '/reconnect zzz',
      m: 'text',
      p: 'first\n'.repeat(8),
      t: '/m',
    })) {
      harness.type(LEADER + command)
      const before = place()
      for (const letter of text) {
        harness.type(letter)
        expect(place()).toEqual(before)
      }
      harness.type('\x1b')
      harness.type('\x1b')
      expect(dialogOf(harness)).toBeUndefined()
    }
  })
})
