/** Lines in the report of a session as line editors draw, wrap, complete and recall them. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { buildReport } from '../../../../src/ui/report/build-report.ts'
import { SessionLog } from '../../../../src/ui/report/session-log.ts'
import { randomRuns } from '../../../support/random-runs.ts'
import { harness, titlesOf } from './report-harness.ts'

it('has output that was printed into the line while it was typed, and no line that is only wide', async () => {
  const { prompts, report, type, print, console } = harness()
  const all = ['m1', 'm2', 'm3']
  const line = `echo ${'abcdefgh '.repeat(20)}end`
  await prompts()
  // Readline wraps so.
  const columns = console.views.screen('m1')?.columns ?? 0
  for (const [index, key] of [...line].entries()) {
    type(key)
    for (const host of all) await print(host, (index + 'm1# '.length + 1) % columns === 0 ? `${key} \r` : key)
  }
  type('\r')
  for (const host of all) await print(host, `\r\n\x1b[?2004l\rdone\r\n\x1b[?2004h${host}# `)
  type('true')
  for (const host of all) await print(host, host === 'm2' ? 'truebackground job' : 'true')
  type('\r')
  for (const host of all) await print(host, `\r\n\x1b[?2004l\r\x1b[?2004h${host}# `)
  const { markdown } = await report()
  expect(markdown).toContain('**m\\[1-3\\] (3)**\n\n```\ndone\n```')
  expect(markdown).toContain('**m\\[1,3\\] (2)**\n\nno output')
  expect(markdown).toMatch(/\*\*m2 \(1\)\*\*\n\n```\ntruebackground job\n```/)
})

it('has what is printed after the prompt, again and again', async () => {
  const { prompts, run, report, print } = harness()
  await prompts()
  for (const line of ['true', ':', 'true']) {
    await run(line, () => '')
    await print('m2', `\r\nnote after ${line}\r\n`)
  }
  const { markdown } = await report()
  expect(markdown.match(/^note after (?:true|:)$/gm)).toHaveLength(3)
})

it('loses no row that a host prints, whatever its marks say', async () => {
  const events = ['line', 'key', 'interrupt', 'row', 'starts', 'stops', 'prompt', 'echo', 'row'] as const
  const half = fc.integer({ min: 0, max: 8 })
  await fc.assert(
    fc.asyncProperty(fc.array(fc.tuple(fc.constantFrom(...events), half), { maxLength: 40 }), async (session) => {
      let before = 'm1# '
      let isEditing = true
      const log = new SessionLog(() => ({ columns: 80, before, isEditing, isFullScreen: false }))
      const type = (text: string) => log.noteTyped([{ hosts: ['m1'], bytes: Buffer.from(text) }], 0)
      const print = (text: string, at: number) => {
        log.noteOutput('m1', Buffer.from(text.slice(0, at)), 0)
        log.noteOutput('m1', Buffer.from(text.slice(at)), 0)
        const end = text.slice(text.lastIndexOf('\n') + 1).replace(/\x1b\[\?2004[hl]\r?/g, '')
        before = text.includes('\n') ? end : before + end
      }
      type('first\r')
      print('first\r\n', 0)
      const rows: string[] = []
      let line = 'first'
      for (const [index, [event, at]] of session.entries()) {
        if (event === 'line') {
          line = `line ${index}`
          type(`${line}\r`)
        } else if (event === 'key') type('k')
        else if (event === 'interrupt') type('\x03')
        else if (event === 'row') {
          rows.push(`row-${index}-`)
          print(`\r\nrow-${index}-\r\n`, at)
        } else if (event === 'echo') print(`${line}\r\n`, at)
        else {
          isEditing = event !== 'stops'
          print(event === 'stops' ? '\x1b[?2004l\r' : `\x1b[?2004h${event === 'prompt' ? 'm1# ' : ''}`, at)
        }
      }
      const { sections } = await buildReport(log.entries, log, () => before)
      const shown = sections.flatMap(({ groups }) => groups.flatMap(({ lines }) => lines)).join('\n')
      for (const row of rows) expect(shown).toContain(row)
    }),
    { numRuns: randomRuns(200) },
  )
})

it.each([
  ['marks its prompts', '\x1b[?2004h', '\x1b[?2004l\r'],
  ['does not mark its prompts', '', ''],
])('has neither Ctrl-C at a prompt nor a cancelled line, where a shell %s', async (_, start, end) => {
  const { report, type, print } = harness()
  const each = async (text: (host: string) => string) => {
    for (const host of ['m1', 'm2', 'm3']) await print(host, text(host))
  }
  const prompt = (host: string) => `${start}root@${host}:~# `
  const run = async (line: string, output: string) => {
    type(`${line}\r`)
    await each((host) => `${line}\r\n${end}${output}\r\n${prompt(host)}`)
  }
  const cancel = async () => {
    type('\x03')
    await each((host) => `^C${end}\r\n${prompt(host)}`)
  }
  await each(prompt)
  await run('echo one', 'one')
  await cancel()
  type('echo two')
  await each(() => 'echo two')
  await cancel()
  await run('echo three', 'three')
  const { markdown } = await report()
  expect(titlesOf(markdown)).toEqual(['` echo one `', '` echo three `'])
  expect(markdown).toContain('**m\\[1-3\\] (3)**\n\n```\none\n```')
  expect(markdown).not.toContain('all different')
})

describe('a line that is typed beside half a row of output', () => {
  const typedBeside = async (half: string, line: string, rest: (host: string) => string) => {
    const { prompts, report, type, print } = harness()
    const all = ['m1', 'm2', 'm3']
    await prompts()
    type('make\r')
    for (const host of all) await print(host, `make\r\n\x1b[?2004l\rstep 1\r\n${half}`)
    type(`${line}\r`)
    for (const host of all) await print(host, rest(host))
    return (await report()).markdown
  }

  it('is shown where the shell shows it at its prompt', async () => {
    const markdown = await typedBeside(
      'half',
      'echo next',
      (host) => ` of it\r\n\x1b[?2004h${host}# echo next\r\n\x1b[?2004l\rnext\r\n\x1b[?2004h${host}# `,
    )
    expect(titlesOf(markdown)).toEqual(['` make `', '` echo next `'])
    expect(markdown).not.toContain('not shown')
  })

  it('is hidden where a program has read it without echo, whatever it prints', async () => {
    const markdown = await typedBeside(
      'Your code',
      'hunter2-next',
      (host) => `\r\ncode> hunter2-next\r\n# hunter2-next\r\n\x1b[?2004h${host}# `,
    )
    expect(markdown).not.toContain('hunter2')
  })
})

it('has no line that Ctrl-C cancelled after its completions were listed', async () => {
  const { prompts, run, report, type, print } = harness()
  const all = ['m1', 'm2', 'm3']
  await prompts()
  await run('echo one', () => 'one\r\n')
  type('ls /e')
  for (const host of all) await print(host, 'ls /e')
  type('\t')
  type('\t')
  for (const host of all) await print(host, `\r\nempty/  etc/\r\n${host}# ls /e`)
  type('\x03')
  for (const host of all) await print(host, `^C\x1b[?2004l\r\r\n\x1b[?2004h${host}# `)
  await run('echo three', () => 'three\r\n')
  const { markdown } = await report()
  expect(titlesOf(markdown)).toEqual(['` echo one `', '` echo three `'])
  expect(markdown).not.toContain('ls /e')
})

describe('after a change of size', () => {
  const all = ['m1', 'm2', 'm3']
  const zoom = '\x1dz'
  type Harness = ReturnType<typeof harness>
  const sizes: readonly (readonly [string, (harness: Harness) => void])[] = [
    ['zoom and back', ({ type }) => [zoom, zoom].forEach(type)],
    ['fewer columns', ({ console }) => console.resize(60, 40)],
    ['fewer columns and rows', ({ console }) => console.resize(60, 20)],
    [
      'a large, a small and a medium terminal',
      ({ console }) => {
        console.resize(240, 67)
        console.resize(80, 24)
        console.resize(120, 40)
      },
    ],
  ]
  const filled = async () => {
    const made = harness()
    await made.prompts()
    // There are lines to scroll back to, and some that are wrapped.
    await made.run('seq 200', () => `${Array.from({ length: 200 }, (_, index) => `line ${index}`).join('\r\n')}\r\n`)
    await made.run('cat wide', () => `${'wide '.repeat(60)}\r\n`)
    return made
  }
  /** As readline draws its line again. */
  const redraw = async ({ print }: Harness, line = '') => {
    for (const host of all) await print(host, `\r\x1b[K${host}# ${line}`)
  }

  it.each(sizes)('has the lines that are typed then: %s', async (_, resize) => {
    const made = await filled()
    resize(made)
    await redraw(made)
    await made.run('uname -n', (host) => `${host}\r\n`)
    await made.run('date +%Y', () => '2031\r\n')
    const { markdown } = await made.report()
    expect(titlesOf(markdown)).toEqual(['` seq 200 `', '` cat wide `', '` uname -n `', '` date +%Y `'])
    expect(markdown).not.toContain('not shown')
  })

  it.each(sizes)('has a line that was half typed: %s', async (_, resize) => {
    for (const isDrawnAgain of [true, false]) {
      const made = await filled()
      const { type, print } = made
      type('uname')
      for (const host of all) await print(host, 'uname')
      resize(made)
      if (isDrawnAgain) await redraw(made, 'uname')
      type(' -n\r')
      for (const host of all) await print(host, ` -n\r\n\x1b[?2004l\r${host}\r\n\x1b[?2004h${host}# `)
      const { markdown } = await made.report()
      expect(titlesOf(markdown)).toEqual(['` seq 200 `', '` cat wide `', '` uname -n `'])
      expect(markdown).not.toContain('not shown')
    }
  })

  it.each(sizes)('has a long line that the shell draws again: %s', async (_, resize) => {
    const made = await filled()
    const { type, print } = made
    const line = `echo ${'wide '.repeat(60)}`
    type(line)
    for (const host of all) await print(host, line)
    resize(made)
    for (const host of all) await print(host, `\x1b[A\x1b[A\r\x1b[K${host}# ${line}`)
    type('end\r')
    for (const host of all) await print(host, `end\r\n\x1b[?2004l\r${host}\r\n\x1b[?2004h${host}# `)
    expect((await made.report()).markdown).not.toContain('not shown')
  })

  it.each(sizes)('has no password that is typed without echo: %s', async (_, resize) => {
    const made = await filled()
    const { type, print } = made
    for (const [index, mask] of ['', '*'].entries()) {
      const [early, late] = [`early${index}`, `late${index}`]
      type('read -s x\r')
      for (const host of all) await print(host, 'read -s x\r\n\x1b[?2004l\rGive: ')
      // Before, during and after the change; with an answer that no shell draws again.
      type(early)
      for (const host of all) await print(host, mask.repeat(early.length))
      resize(made)
      type(`${late}\r`)
      for (const host of all)
        await print(host, `${mask.repeat(late.length)}\r\nyou typed ${early}${late}\r\n\x1b[?2004h${host}# `)
      type('read -s x\r')
      for (const host of all) await print(host, 'read -s x\r\n\x1b[?2004l\rGive: ')
      type(`next${late}\r`)
      for (const host of all) await print(host, `\r\nyou typed next${late}\r\n\x1b[?2004h${host}# `)
    }
    await made.run('uname -n', (host) => `${host}\r\n`)
    const { markdown, html } = await made.report()
    for (const text of [markdown, html]) expect(text).not.toMatch(/early|late/)
    expect(titlesOf(markdown)?.at(-1)).toBe('` uname -n `')
  })

  it('hides a line that was lost in it on one host there alone', async () => {
    const made = harness()
    const { type, print, console } = made
    await made.prompts()
    await made.run('cat words', () => 'some words of the file\r\n')
    const prompt = `[root@m1 ${'long/'.repeat(10)}]# `
    type('true\r')
    await print('m1', `true\r\n\x1b[?2004l\r\x1b[?2004h${prompt}`)
    for (const host of ['m2', 'm3']) await print(host, `true\r\n\x1b[?2004l\r\x1b[?2004h${host}# `)
    type('cat some file\r')
    for (const host of all) await print(host, 'cat so')
    console.resize(40, 20)
    console.resize(120, 40)
    for (const host of all) await print(host, `me file\r\n\x1b[?2004l\rdone\r\n\x1b[?2004h${host}# `)
    await made.run('cat words', () => 'some words of the file\r\n')
    const { markdown } = await made.report()
    expect(titlesOf(markdown)).toEqual(['` cat words `', '` true `', '` cat some file `', '` cat words `'])
    expect(markdown.match(/some words of the file/g)).toHaveLength(2)
    expect(markdown).not.toContain('not shown')
  })

  it.each(sizes)('has no password whose characters are erased one by one: %s', async (_, resize) => {
    const made = await filled()
    const { type, print } = made
    type('ask\r')
    for (const host of all) await print(host, 'ask\r\n\x1b[?2004l\rGive: ')
    const secret = 'hunter2secret'
    for (const [index, key] of [...secret].entries()) {
      if (index === 6) resize(made)
      type(key)
      for (const host of all) await print(host, `${index > 0 ? '\b*' : ''}${key}`)
    }
    type('\r')
    for (const host of all) await print(host, `\b*\r\n${secret}\r\n\x1b[?2004h${host}# `)
    expect((await made.report()).markdown).not.toContain('hunter')
  })

  it('has no password that was typed ahead, and shown by no host', async () => {
    const made = await filled()
    const { type, print } = made
    type('sleep 1; read -s x\r')
    for (const host of all) await print(host, 'sleep 1; read -s x\r\n\x1b[?2004l\r')
    type('hunter2\r')
    type(zoom)
    type(zoom)
    for (const host of all) await print(host, `\r\ngot hunter2\r\n\x1b[?2004h${host}# `)
    await made.run('uname -n', (host) => `${host}\r\n`)
    const { markdown } = await made.report()
    expect(markdown).not.toContain('hunter2')
    expect(titlesOf(markdown)?.at(-1)).toBe('` uname -n `')
  })
})

it('has a recalled line as most hosts show it, and the line of a host that shows another one', async () => {
  const { prompts, run, report, type, print } = harness()
  await prompts()
  await run('echo one', () => 'one\r\n')
  const recall = async (lineOf: (host: string) => string) => {
    type('\x1b[A')
    for (const host of ['m1', 'm2', 'm3']) await print(host, lineOf(host))
    type('\r')
    for (const host of ['m1', 'm2', 'm3']) await print(host, `\r\n\x1b[?2004l\rdone\r\n\x1b[?2004h${host}# `)
  }
  await recall((host) => (host === 'm1' ? 'rm -rf /' : 'echo one'))
  await recall((host) => `echo ${host}`)
  const { markdown } = await report()
  expect(titlesOf(markdown)).toEqual([
    '` echo one `',
    '` echo one `',
    'recalled or completed: no line is that of most hosts',
  ])
  expect(markdown).toContain('**m1 (1)**\n\n```\n[line on this host: rm -rf /]\ndone\n```')
  expect(markdown).toContain('**m2 (1)**\n\n```\n[line on this host: echo m2]\ndone\n```')
})

it.each([
  ['marks its prompts', '\x1b[?2004h', '\x1b[?2004l\r'],
  ['does not mark its prompts', '', ''],
])('has all rows of a line that was edited in an upper row, where a shell %s', async (_, starts, stops) => {
  const { report, type, print } = harness({ columns: 80, rows: 24 })
  const all = ['m1', 'm2', 'm3']
  const each = async (text: string) => {
    for (const host of all) await print(host, text)
  }
  const line = 'rm -rf /srv/data/2024 /srv/data/2025'
  const prompt = `${starts}root@m1:~# `
  await each(prompt)
  type(`echo ${line}\r`)
  await each(`echo ${line}\r\n${stops}${line}\r\n${prompt}`)
  type('\x1b[A')
  await each(`echo ${line}`)
  type('\x01')
  await each('\x1b[A\b\b\b')
  type('\x05')
  await each(`\r\n\r${'\x1b[C'.repeat(14)}`)
  type('\x01')
  await each('\x1b[A\b\b\b')
  type('\x1bf')
  await each('\x1b[C'.repeat(4))
  for (const key of ' -n') type(key)
  await each(`\x1b[C-n ${line}\x1b[A\x1b[C`)
  type('\r')
  await each(`\r\n\r\r\n${stops}${line}\r\n${prompt}`)
  const { markdown } = await report()
  expect(titlesOf(markdown)).toEqual([`\` echo ${line} \``, `\` echo -n ${line} \``])
  expect(markdown.split(`**m\\[1-3\\] (3)**\n\n\`\`\`\n${line}\n\`\`\``)).toHaveLength(3)
})

describe('a line that was searched for with Ctrl-R', () => {
  const all = ['m1', 'm2', 'm3']
  /** As bash prints it. */
  const search = async ({ type, print }: ReturnType<typeof harness>) => {
    type('\x12')
    for (const host of all) await print(host, "\r(reverse-i-search)`': ")
    type('up')
    for (const host of all) await print(host, "\b\b\bup': echo the \x1b[7mup\x1b[27mtime\b\b\b\b\b\b")
  }

  it('is a recalled line, and what was searched for is no password', async () => {
    const test = harness()
    const { prompts, run, report, type, print } = test
    await prompts()
    await run('echo the uptime', () => 'the uptime\r\n')
    await search(test)
    type('\r')
    for (const host of all)
      await print(
        host,
        `\r\x1b[K${host}# echo the uptime\b\b\b\b\b\b\r\n\x1b[?2004l\rthe uptime\r\n\x1b[?2004h${host}# `,
      )
    const { markdown } = await report()
    expect(markdown).not.toContain('not shown')
    expect(titlesOf(markdown)).toEqual(['` echo the uptime `', '` echo the uptime `'])
    expect(markdown.match(/\*\*m\\\[1-3\\\] \(3\)\*\*\n\n```\nthe uptime\n```/g)).toHaveLength(2)
  })

  it('and given up, leaves the line that is typed instead', async () => {
    const test = harness()
    const { prompts, run, report, type, print } = test
    await prompts()
    await run('echo the uptime', () => 'the uptime\r\n')
    await search(test)
    type('\x07')
    for (const host of all) await print(host, `\r${host}# \x1b[K`)
    await run('echo fin', () => 'fin\r\n')
    const { markdown } = await report()
    expect(markdown).not.toContain('not shown')
    expect(titlesOf(markdown)).toEqual(['` echo the uptime `', '` echo fin `'])
  })
})

it('shows what Esc left of a word, and this word elsewhere', async () => {
  const { prompts, run, report, type, print } = harness()
  const all = ['m1', 'm2', 'm3']
  await prompts()
  await run('uptime -p', () => 'up 3 days\r\n')
  type('\x1b')
  for (const key of 'uptime') {
    type(key)
    if (key !== 'u') for (const host of all) await print(host, key)
  }
  type('\r')
  for (const host of all) await print(host, `\r\n\x1b[?2004l\rbash: ptime: command not found\r\n\x1b[?2004h${host}# `)
  await run('uptime', () => 'uptime is long\r\n')
  const { markdown } = await report()
  expect(markdown).not.toContain('not shown')
  expect(titlesOf(markdown)).toEqual(['` uptime -p `', '` ptime `', '` uptime `'])
})

it('has a line that is recalled with Esc and k, as vi does it', async () => {
  const { prompts, run, report, type, print } = harness()
  const all = ['m1', 'm2', 'm3']
  await prompts()
  await run('echo one two', () => 'one two\r\n')
  type('\x1b')
  type('k')
  for (const host of all) await print(host, `echo one two${'\b'.repeat(12)}`)
  type('\r')
  for (const host of all) await print(host, `\r\n\x1b[?2004l\rone two\r\n\x1b[?2004h${host}# `)
  const { markdown } = await report()
  expect(titlesOf(markdown)).toEqual(['` echo one two `', '` echo one two `'])
})

it('leaves out an arrow where there is no line to recall', async () => {
  const { prompts, run, report, type, print } = harness()
  await prompts()
  type('\x1b[A')
  for (const host of ['m1', 'm2', 'm3']) await print(host, '\x07')
  type('\r')
  for (const host of ['m1', 'm2', 'm3']) await print(host, `\r\n\x1b[?2004l\r\x1b[?2004h${host}# `)
  await run('echo one', () => 'one\r\n')
  const { markdown } = await report()
  expect(titlesOf(markdown)).toEqual(['` echo one `'])
})

it.each([
  [
    'erased with Ctrl-U',
    [
      ['\x1b[A', 'echo one'],
      ['\x15', `${'\b'.repeat(8)}\x1b[K`],
    ],
  ],
  [
    'searched for in vain',
    [
      ['\x12', "\r(reverse-i-search)`': "],
      [
        'zqz',
        '\x07\r\x1b[C\x1b[8@failed reverse-i-search)`z\x1b[C\x1b[C\x1b[C\x07\b\b\b\x1b[1@q\x1b[C\x1b[C\x1b[C\x07\b\b\b\x1b[1@z\x1b[C\x1b[C\x1b[C',
      ],
      [
        '\x07',
        (host: string) => `\r\x1b[${`(failed reverse-i-search)\`zqz': `.length - host.length - 2}P${host}#\x1b[C`,
      ],
    ],
  ],
] as const)('has no entry of an empty line whose text was %s', async (_, keys) => {
  const { prompts, run, report, type, print } = harness()
  const all = ['m1', 'm2', 'm3']
  await prompts()
  await run('echo one', () => 'one\r\n')
  for (const [key, answer] of keys) {
    type(key)
    for (const host of all) await print(host, typeof answer === 'string' ? answer : answer(host))
  }
  type('\r')
  for (const host of all) await print(host, `\r\n\x1b[?2004l\r\x1b[?2004h${host}# `)
  await run('echo two', () => 'two\r\n')
  const { markdown } = await report()
  expect(titlesOf(markdown)).toEqual(['` echo one `', '` echo two `'])
})

it('has the line after Esc and Enter, which bash takes for one key, once', async () => {
  const { prompts, run, report, type, print } = harness()
  await prompts()
  await run('echo one', () => 'one\r\n')
  type('\x1b')
  type('\r')
  for (const host of ['m1', 'm2', 'm3']) await print(host, '\x07')
  await run('echo two', () => 'two\r\n')
  await run('echo three', () => 'three\r\n')
  const { markdown } = await report()
  expect(markdown).not.toContain('typed ahead')
  expect(titlesOf(markdown)).toEqual(['` echo one `', '` echo two `', '` echo three `'])
  expect(markdown).toContain('**m\\[1-3\\] (3)**\n\n```\ntwo\n```')
})

it('has no rows of a prompt that got more of them, and folds equal output', async () => {
  const { prompts, run, report, type, print } = harness()
  const all = ['m1', 'm2', 'm3']
  await prompts()
  await run('echo one', () => 'one\r\n')
  const prompt = (host: string) => `\x1b[?2004h\r\r\nroot@${host} ~\r\r\n> `
  const line = "PS1='\\n\\u@\\h \\w\\n> '"
  for (const each of [line, 'echo two', 'echo two']) {
    type(`${each}\r`)
    const output = each === line ? '' : 'two\r\n'
    for (const host of all) await print(host, `${each}\r\n\x1b[?2004l\r${output}${prompt(host)}`)
    type('\r')
    for (const host of all) await print(host, `\r\n\x1b[?2004l\r${prompt(host)}`)
  }
  const { markdown } = await report()
  expect(markdown.match(/\*\*m\\\[1-3\\\] \(3\)\*\*\n\n```\ntwo\n```/g)).toHaveLength(2)
  expect(markdown).not.toMatch(/^root@|all different/m)
})

describe('in zsh, which marks its prompt at the end', () => {
  const ENDS_ROW = `\x1b[1m\x1b[7m#\x1b[27m\x1b[1m\x1b[0m${' '.repeat(37)}\r \r`
  const DRAWS = '\r\x1b[0m\x1b[27m\x1b[24m\x1b[J'
  const FENCE = '```'
  const RIGHT = '\x1b[29C1:31 0\x1b[35D'
  it.each([
    ['of two rows', (host: string) => `${ENDS_ROW}\r${DRAWS}root@${host} /tmp\r\n# \x1b[K`],
    [
      'of two rows and text on the right',
      (host: string) => `${ENDS_ROW}\r${DRAWS}root@${host} /tmp\r\n# \x1b[K${RIGHT}`,
    ],
    ['with an empty row above', (host: string) => `${ENDS_ROW}\r\n${DRAWS}root@${host} /tmp\r\n# \x1b[K`],
    ['that ends with a bracket', (host: string) => `${ENDS_ROW}\r${DRAWS}[${host}] \x1b[K`],
    ['that does not end a row', (host: string) => `\r${DRAWS}root@${host} /tmp\r\n[${host}] \x1b[K`],
  ])('a prompt %s is no output', async (_, drawn) => {
    const { report, type, print } = harness({ columns: 120, rows: 40 })
    const all = ['m1', 'm2', 'm3']
    const prompt = (host: string) => `${drawn(host)}\x1b[?2004h`
    const isEnding = drawn('').startsWith('\x1b[1m')
    for (const host of all) await print(host, prompt(host))
    const lines = [
      ['echo same', 'same\r\n'],
      ['true', ''],
      ...(isEnding ? [['printf half', 'half'] as const] : []),
      ['seq 9', '1\r\n2\r\n3\r\n4\r\n5\r\n6\r\n7\r\n8\r\n9\r\n'],
    ] as const
    for (const [line, output] of lines) {
      type(`${line}\r`)
      const echo = `${line[0]}\b${line}\x1b[?2004l\r\r\n`
      for (const host of all) await print(host, `${echo}${output}${prompt(host)}`)
      type('\r')
      for (const host of all) await print(host, `\x1b[?2004l\r\r\n${prompt(host)}`)
    }
    // Zsh draws its prompt again after a change of size.
    for (const host of all) await print(host, `\r\r\x1b[A\x1b[0m\x1b[27m\x1b[24m\x1b[J${drawn(host).split(DRAWS)[1]}`)
    const { markdown } = await report()
    expect(titlesOf(markdown)).toEqual(lines.map(([line]) => `\` ${line} \``))
    const outputs = markdown.split('**m\\[1-3\\] (3)**\n\n').slice(1)
    expect(outputs.map((text) => text.split('\n\n')[0]?.trim())).toEqual(
      lines.map(([, output]) =>
        output === '' ? 'no output' : `${FENCE}\n${output.trimEnd().replaceAll('\r', '')}\n${FENCE}`,
      ),
    )
  })

  it('rows of a program are output, whatever marks it prints', async () => {
    const { prompts, run, report } = harness()
    await prompts()
    await run('fetch', () => `${ENDS_ROW}\r${DRAWS}50%\r\n${DRAWS}done\r\n`)
    expect((await report()).markdown).toContain('50%\ndone\n')
  })
})

it('shows a line as it was entered, without the completions that a line editor listed', async () => {
  const { prompts, report, type, print } = harness()
  const all = ['m1', 'm2', 'm3']
  await prompts()
  const printAll = async (text: (host: string) => string) => {
    for (const host of all) await print(host, text(host))
  }
  type('ls /usr/s')
  await printAll(() => 'ls /usr/s')
  type('\t')
  await printAll(() => '\x07')
  type('\t')
  await printAll((host) => `\r\nsbin/  share/ src/\r\n${host}# ls /usr/s`)
  type('r')
  await printAll(() => 'r')
  type('\t')
  await printAll(() => 'c/')
  type('\r')
  await printAll((host) => `\r\n\x1b[?2004l\rgoogletest\r\n\x1b[?2004h${host}# `)
  const { markdown } = await report()
  expect(titlesOf(markdown)).toEqual(['` ls /usr/src/ `'])
  expect(markdown).toContain('```\ngoogletest\n```')
  expect(markdown).not.toContain('share')
})

it('recognizes a line with wide characters that a line editor wraps with a blank', async () => {
  const { prompts, report, type, print } = harness({ columns: 80, rows: 24 })
  await prompts()
  // Panes have 38 columns.
  const line = `echo ${'a'.repeat(26)} 日本語`
  const hosts = ['m1', 'm2', 'm3']
  type(`${line}\r`)
  const shown = line.replace('日本', '日 \x1b[K本')
  for (const host of hosts) await print(host, `${shown}\r\n\x1b[?2004l\rout\r\n\x1b[?2004h${host}# `)
  const { markdown } = await report()
  expect(titlesOf(markdown)).toEqual([`\` ${line} \``])
  expect(markdown).toContain('```\nout\n```')
})

it('has completed lines as the host shows them, and no screens of full-screen programs', async () => {
  const { prompts, report, type, print } = harness()
  await prompts()
  type('cat /et')
  for (const host of ['m1', 'm2', 'm3']) await print(host, 'cat /et')
  type('\tho\t\r')
  for (const host of ['m1', 'm2', 'm3']) await print(host, `c/hosts\r\nlocal\r\n\x1b[?2004h${host}# `)
  type('vi x\r')
  for (const host of ['m1', 'm2', 'm3']) await print(host, 'vi x\r\n\x1b[?7;1049h\x1b[HSCREEN OF VI')
  type('isecret text\x1b:wq\r')
  for (const host of ['m1', 'm2', 'm3']) await print(host, `secret text\x1b[?1049l\x1b[?2004h${host}# `)
  const { markdown } = await report()
  expect(markdown).toContain('` cat /etc/hosts `')
  expect(markdown).toContain('[a full-screen program ran here]')
  expect(markdown).not.toMatch(/SCREEN OF VI|secret text/)
})

it('says why nothing is shown where a program has left the terminal in an unusual mode, and shows a shift that means nothing', async () => {
  const { prompts, run, report } = harness()
  await prompts()
  await run('head -c 300 /dev/urandom', (host) => (host === 'm2' ? 'a\x1b[4h\r\n' : 'a\x0e\r\n'))
  await run('uptime', () => 'up 3 days\r\n')
  const { markdown } = await report()
  expect(markdown).toContain('in an unusual mode that a program has left the terminal in (reset ends it): m2')
  const shifted = harness()
  await shifted.prompts()
  await shifted.run('cat /bin/true', () => 'a\x0e\r\n')
  await shifted.run('uptime', () => 'up 3 days\r\n')
  expect(titlesOf((await shifted.report()).markdown)).toEqual(['` cat /bin/true `', '` uptime `'])
})

it('says that nothing is recorded where a killed program has left its screen behind', async () => {
  const { prompts, report, type, print } = harness()
  await prompts()
  type('htop\r')
  for (const host of ['m1', 'm2', 'm3'])
    await print(host, `htop\r\n\x1b[?2004l\x1b[?1049h\x1b[HBARS\x1b[9;1HKilled\r\n\x1b[?2004h${host}# `)
  type('hostname\r')
  for (const host of ['m1', 'm2', 'm3']) await print(host, `hostname\r\n\x1b[?2004l${host}\r\n\x1b[?2004h${host}# `)
  const { markdown } = await report()
  expect(titlesOf(markdown)).toEqual(['` htop `'])
  expect(markdown).toContain(
    '[a full-screen program has the screen here, and what was typed since is not recorded; if it was killed, reset gives the screen back]',
  )
})

it.each([
  ['many rows', 'row\r\n'.repeat(900)],
  ['much output', `${'x'.repeat(100)}\r\n`.repeat(900)],
  ['few rows', 'row\r\n'.repeat(20)],
])('has nothing of what a full-screen program draws, however often it draws its screen again: %s', async (_, drawn) => {
  const { prompts, type, print, report } = harness()
  await prompts()
  for (const [line, after] of [
    ['tmux attach', '[detached]\r\n'],
    ['vim x; seq 3', `1\r\n2\r\n3\r\n`],
    ['vim x; seq 600', Array.from({ length: 600 }, (_, index) => `${index + 1}\r\n`).join('')],
  ]) {
    type(`${line}\r`)
    for (const host of ['m1', 'm2', 'm3']) {
      await print(host, `${line}\r\n\x1b[?2004l\r\x1b[?1049h`)
      for (const part of [drawn, host === 'm1' ? '' : drawn]) await print(host, `\x1b[H${part}\x1b[32mstatus\x1b[m`)
      await print(host, `\x1b[?1049l${after}\x1b[?2004h${host}# `)
    }
  }
  const { markdown } = await report()
  expect(markdown).not.toMatch(/row|xxx|status|different/)
  expect(markdown).toMatch(/```\n\[detached\]\n(?:\[a full-screen|\[… .* left out\])/)
  expect(markdown).toMatch(/\n1\n2\n3\n/)
  expect(markdown).toContain('\n600\n')
})

it('has what is printed after a full-screen program whose end is not kept', async () => {
  const { prompts, type, print, report } = harness()
  await prompts()
  type('vim x; make\r')
  for (const host of ['m1', 'm2', 'm3']) {
    await print(host, 'vim x; make\r\n\x1b[?2004l\r\x1b[?1049hscreen')
    for (let part = 0; part < 40; part++) await print(host, `${'drawn '.repeat(200)}\r`)
    await print(host, '\x1b[?10')
    await print(host, '49l')
    for (let part = 0; part < 40; part++) await print(host, `${'made '.repeat(200)}\r\n`)
    await print(host, `done\r\n\x1b[?2004h${host}# `)
  }
  const { markdown } = await report()
  expect(markdown).not.toContain('drawn')
  expect(markdown).toMatch(/made[\s\S]*\ndone\n/)
})
