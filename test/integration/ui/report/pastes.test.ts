/** Pastes, and many lines that are typed at once, in the report of a session. */
import { describe, expect, it } from 'vitest'
import { harness, titlesOf } from './report-harness.ts'

it('has all lines of a paste, none of them as output', async () => {
  const { prompts, report, type, print } = harness()
  await prompts()
  const echoOfPaste = ['p1', 'p2', 'p3'].map((each) => `\x1b[7mecho ${each}\x1b[27m`).join('\r\n\r')
  type('\x1b[200~echo p1\necho p2\necho p3\x1b[201~\x13')
  for (const host of ['m1', 'm2', 'm3']) await print(host, echoOfPaste)
  type('\r')
  for (const host of ['m1', 'm2', 'm3'])
    await print(
      host,
      `\x1b[A\x1b[A\b\b\becho p1\r\n\recho p2\r\n\recho p3\r\n\x1b[?2004l\rp1\r\np2\r\np3\r\n\x1b[?2004h${host}# `,
    )
  const { markdown, html } = await report()
  expect(markdown).toContain('(3 lines) `\n\ntyped on m\\[1-3\\]\n\n```\necho p1\necho p2\necho p3\n```')
  expect(markdown).toContain('**m\\[1-3\\] (3)**\n\n```\np1\np2\np3\n```')
  expect(html).toContain('<pre>echo p1\necho p2\necho p3</pre>')
})

it('has no pasted text that was cancelled', async () => {
  const { prompts, run, report, type, print } = harness()
  await prompts()
  type('\x1b[200~echo one\necho two\x1b[201~\x13')
  for (const host of ['m1', 'm2', 'm3']) await print(host, '\x1b[7mecho one\n\recho two\x1b[27m')
  type('\x03')
  for (const host of ['m1', 'm2', 'm3']) await print(host, '^C\x1b[?2004l\r\r\n')
  await prompts()
  await run('echo three', () => 'three\r\n')
  const { markdown } = await report()
  expect(markdown).toContain('1 entry')
  expect(markdown).toContain('` echo three `')
})

describe('a paste that is taller than its pane', () => {
  const all = ['m1', 'm2', 'm3']
  const zoom = '\x1dz'
  type Harness = ReturnType<typeof harness>
  const server = (port: number) => ['server {', `  listen ${port};`, ...Array(14).fill('  index service;'), '}']
  const LINES = ['cat > x.conf <<EOF', ...server(80), ...server(81), ...server(82), 'EOF', 'restart nginx', 'echo done']
  const ANSWER = 'restarting the service\r\ndone\r\n'
  const rowsOf = ({ console }: Harness) => console.views.screen('m1')?.rows ?? 0
  const each = async ({ print }: Harness, textOf: (host: string) => string) => {
    for (const host of all) await print(host, textOf(host))
  }
  /** As readline draws them: those that have no row are all in the last one. */
  const drawn = (lines: readonly string[], rows: number) =>
    [lines.slice(0, rows).join('\r\n\r'), ...lines.slice(rows)].join('\r')
  const paste = async (test: Harness, lines: readonly string[], echo: string) => {
    test.type(`\x1b[200~${lines.join('\n')}\x1b[201~\x13`)
    await each(test, () => echo)
  }
  const redraw = async (test: Harness) => {
    const columns = () => test.console.views.screen('m1')?.columns
    for (const key of [zoom, zoom]) {
      const before = columns()
      test.type(key)
      expect(columns()).not.toBe(before)
      const up = '\x1b[K\r\x1b[A'.repeat(rowsOf(test))
      await each(test, (host) => `\r\r\n\r\n\r${up}\x1b[K\r${host}# ${drawn(LINES, rowsOf(test))}`)
    }
  }
  const started = async () => {
    const test = harness()
    await test.prompts()
    await test.run('echo the service is nginx', () => 'the service is nginx\r\n')
    return test
  }
  const finished = async (test: Harness) => {
    await test.run('restart nginx', () => 'the server listens\r\n')
    const { markdown, html } = await test.report()
    expect(markdown).toContain('the service is nginx\n')
    expect(markdown).toContain('the server listens\n')
    expect(titlesOf(markdown)?.at(0)).toBe('` echo the service is nginx `')
    expect(titlesOf(markdown)?.at(-1)).toBe('` restart nginx `')
    return { markdown, html }
  }

  it.each([
    ['at once', async () => undefined],
    ['again after a change of size', redraw],
  ])('is shown with its output alone where readline draws it %s', async (_, change) => {
    const test = await started()
    expect(LINES.length).toBeGreaterThan(rowsOf(test))
    await paste(test, LINES, drawn(LINES, rowsOf(test)))
    await change(test)
    test.type('\r')
    // It is drawn again without its highlight.
    await each(
      test,
      (host) => `\x1b[A\x1b[A\r${LINES.slice(-3).join('\r')}\r\n\x1b[?2004l\r${ANSWER}\x1b[?2004h${host}# `,
    )
    const { markdown } = await finished(test)
    expect(markdown).not.toMatch(/not shown|different/)
    const shown = LINES.join('\n')
    expect(markdown).toContain(
      `\` cat > x.conf <<EOF … (${LINES.length} lines) \`\n\ntyped on m\\[1-3\\]\n\n\`\`\`\n${shown}\n\`\`\``,
    )
    expect(markdown).toContain('**m\\[1-3\\] (3)**\n\n```\nrestarting the service\ndone\n```')
  })

  it('is shown where Enter is typed before its echo comes', async () => {
    const test = await started()
    test.type(`\x1b[200~${LINES.join('\n')}\x1b[201~\x13`)
    test.type('\r')
    await each(test, (host) => `${drawn(LINES, rowsOf(test))}\r\n\x1b[?2004l\r${ANSWER}\x1b[?2004h${host}# `)
    expect((await finished(test)).markdown).not.toContain('not shown')
  })

  it('is shown where it is a single long line', async () => {
    const test = await started()
    const line = `echo ${Array.from({ length: 420 }, (_, index) => `nginx${index}`).join(' ')}`
    const columns = test.console.views.screen('m1')?.columns ?? 0
    const rows = [
      line.slice(0, columns - 4),
      ...(line.slice(columns - 4).match(new RegExp(`.{1,${columns}}`, 'g')) ?? []),
    ]
    expect(rows.length).toBeGreaterThan(rowsOf(test))
    test.type(`\x1b[200~${line}\x1b[201~`)
    await each(test, () => `${rows.slice(0, rowsOf(test)).join('')}\r${rows.slice(rowsOf(test)).join('\r')}`)
    test.type('\r')
    await each(test, (host) => `\r\n\x1b[?2004l\r${ANSWER}\x1b[?2004h${host}# `)
    const { markdown } = await finished(test)
    expect(markdown).not.toContain('not shown')
    expect(markdown).toContain(line)
  })

  it('keeps what else is printed before it is entered', async () => {
    const test = await started()
    await paste(test, LINES, drawn(LINES, rowsOf(test)))
    await test.print('m2', '\r\nbackup failed\r\n')
    test.type('\r')
    await each(test, (host) => `\r\n\x1b[?2004l\r${ANSWER}\x1b[?2004h${host}# `)
    expect((await finished(test)).markdown).toContain('backup failed')
  })

  it('hides words in its own entry alone where an editor shows only its end, as zsh does', async () => {
    const test = await started()
    const lines = ['echo hidden-at-first', ...LINES]
    await paste(test, lines, `>....\r\n${lines.slice(1 - rowsOf(test)).join('\x1b[K\r\r\n')}\x1b[K`)
    test.type('\r')
    await each(test, (host) => `\x1b[?2004l\r\r\nhidden at first\r\n${ANSWER}\x1b[?2004h${host}# `)
    await test.run('echo hidden', () => 'hidden\r\n')
    const { markdown, html } = await finished(test)
    expect(markdown + html).not.toContain('hidden-at-first')
    expect(markdown).toContain(`\` [not shown: not echoed] … (${lines.length} lines) \``)
    expect(markdown).toContain('```\nhidden\n```')
  })

  const SECRETS = ['hunter2-one', 'hunter2-two', 'hunter2-three']
  it.each<[string, string, (text: string) => string, string?]>([
    ['shown as stars', 'pw> ', (text) => text.replace(/[^\n]/g, '*').replaceAll('\n', '\r\n')],
    ['not shown', 'pw> ', () => ''],
    ['concealed', 'pw> ', (text) => `\x1b[8m${text.replaceAll('\n', '\r\n\r')}\x1b[m`],
    ['covered with stars', 'pw> ', (text) => text.replace(/[^\n]/g, '$&\b*').replaceAll('\n', '\r\n')],
    ['erased key by key', 'pw> ', (text) => text.replace(/[^\n]/g, '$&\b \b').replaceAll('\n', '')],
    ['erased row by row', 'pw> ', (text) => text.replace(/[^\n]+/g, '\r$&\r\x1b[K').replaceAll('\n', '')],
    ['printed by the program', 'pw> ', () => '', SECRETS.join('\r\n')],
    ['read before Enter', 'pw> ', (text) => `${text.replaceAll('\n', '\r\n\r')}\x1b[2J\x1b[?2004l`],
  ])('never has passwords that are pasted into a line editor: %s', async (_, prompt, echo, answer = '') => {
    const test = await started()
    test.type('ask\r')
    await each(test, () => `ask\r\n\x1b[?2004l\r\x1b[?2004h${prompt}`)
    await paste(test, SECRETS, echo(SECRETS.join('\n')))
    test.type('\r')
    await each(test, (host) => `\r\n\x1b[?2004l\r${answer}\r\n\x1b[?2004h${host}# `)
    await test.run('history', () => `${SECRETS.join('\r\n')}\r\n`)
    await test.run('restart nginx', () => 'the server listens\r\n')
    const { markdown, html } = await test.report()
    expect(markdown + html).not.toContain('hunter2')
  })

  it.each<[string, string]>([
    ['in brackets that its shell does not know', '\x1b[?2004h'],
    ['as keys', ''],
  ])('never has a password of a paste that answers a question, %s', async (_, mark) => {
    const test = harness()
    await each(test, (host) => `${mark}${host}# `)
    const lines = ['read -s pw', 'hunter2-read', 'echo one', 'echo two']
    await paste(test, lines, '')
    await each(test, (host) => `0~read -s pw\r\n\r\n${host}# echo one\r\none\r\n${host}# echo two`)
    test.type('\r')
    await each(test, (host) => `\r\ntwo\r\n${host}# `)
    await test.run('echo $pw', () => 'hunter2-read\r\n')
    const { markdown, html } = await test.report()
    expect(markdown + html).not.toContain('hunter2')
  })

  it('never has a password that one host reads without echo and others take for lines', async () => {
    const test = await started()
    const { type, print } = test
    type('ask\r')
    await print('m1', 'ask\r\n\x1b[?2004l\rSay it: ')
    for (const host of ['m2', 'm3']) await print(host, `ask\r\n\x1b[?2004l\r\x1b[?2004h${host}# `)
    type('\x1b[200~hunter2-one\necho row\x1b[201~\x13')
    await print('m1', '\r\n\x1b[?2004hm1# echo row')
    for (const host of ['m2', 'm3']) await print(host, 'hunter2-one\r\n\recho row')
    type('\r')
    await print('m1', '\r\n\x1b[?2004l\rrow\r\n\x1b[?2004hm1# ')
    for (const host of ['m2', 'm3'])
      await print(host, `\r\n\x1b[?2004l\rhunter2-one: not found\r\nrow\r\n\x1b[?2004h${host}# `)
    const { markdown, html } = await test.report()
    expect(markdown + html).not.toContain('hunter2')
  })
})

it('hides no word of a pasted line that every host echoed, where the echo of other lines was not found', async () => {
  const { prompts, run, report, type, print } = harness()
  await prompts()
  await run('echo before', () => 'before\r\n')
  type('echo first\recho second\r')
  for (const host of ['m1', 'm2', 'm3']) {
    await print(host, `echo first\r\n\x1b[?2004l\rfirst\r\n\x1b[?2004h${host}# `)
    await print(host, `\x1b[?2004l\r\n\x1b[?2004h${host}# `)
  }
  const { markdown } = await report()
  expect(markdown).toContain('` echo before `')
  expect(markdown).not.toContain('echo second')
})

describe('lines that are pasted into an interpreter or a shell', () => {
  const all = ['m1', 'm2', 'm3']
  const CLASS = 'class A:\n    pass\n\nprint(A)\n'
  const answered = (continued: string) =>
    `class A:\r\n${continued}    pass\r\n${continued}\r\n>>> print(A)\r\n<class 'A'>\r\n>>> `
  const pasted = async (text: string, output: string, prompt = '>>> ') => {
    const test = harness()
    const { type, print, report } = test
    const enter = async (line: string, answer: string) => {
      type(`${line}\r`)
      for (const host of all) await print(host, `${line}\r\n${answer}\r\n${prompt}`)
    }
    for (const host of all) await print(host, prompt)
    await enter('echo all tests pass', 'all tests pass')
    type(`\x1b[200~${text}\x1b[201~\x13`)
    for (const host of all) await print(host, output)
    await enter('echo 3 pass 1 fail', '3 pass 1 fail')
    return { ...test, ...(await report()) }
  }

  it('are shown with their output, and their words in other entries', async () => {
    const { markdown, html } = await pasted(CLASS, answered('... '))
    expect(markdown).not.toContain('not shown')
    expect(markdown).toContain('(4 lines) `\n\ntyped on m\\[1-3\\]\n\n```\nclass A:\n    pass\n\nprint(A)\n```')
    expect(html).toContain('<pre>class A:\n    pass\n\nprint(A)</pre>')
    // A prompt that cannot name the host stays whole.
    expect(markdown).toContain('\n>>> print(A)\n')
    expect(titlesOf(markdown)).toEqual([
      '` echo all tests pass `',
      '` class A: … (4 lines) `',
      '` echo 3 pass 1 fail `',
    ])
  })

  it('hide a common word of which no echo was found in their own entry alone', async () => {
    const { markdown, html } = await pasted(CLASS, answered('cont: '))
    expect(markdown).toContain('```\nclass A:\n[not shown: not echoed]\n\nprint(A)\n```')
    expect(markdown).toContain('cont:     [not shown: typed without echo]')
    expect(titlesOf(markdown)).toEqual([
      '` echo all tests pass `',
      '` class A: … (4 lines) `',
      '` echo 3 pass 1 fail `',
    ])
    for (const text of [markdown, html]) expect(text.match(/3 pass 1 fail/g)).toHaveLength(2)
  })

  it('hide another word everywhere, and say why there is no output', async () => {
    const text = CLASS.replace('pass', 'horse')
    const { markdown, html } = await pasted(text, answered('cont: ').replace('pass', 'horse'))
    expect(markdown + html).not.toContain('horse')
    expect(markdown).toContain('[output not shown: a line that was not echoed may be a password]')
    expect(markdown).not.toContain('another host')
  })

  it.each([
    ['at a question', 'pass', 'Password: '],
    ['alone, with no question', 'pass', 'code> '],
  ])('hide a common word everywhere that was also typed %s', async (_, word, question) => {
    const test = harness()
    const { type, print, run, prompts, report } = test
    await prompts()
    await run(`echo all tests ${word}`, () => `all tests ${word}\r\n`)
    type('ask\r')
    for (const host of all) await print(host, `ask\r\n\x1b[?2004l\r${question}`)
    type(`${word}\r`)
    for (const host of all) await print(host, `\r\n\x1b[?2004h${host}# `)
    expect((await report()).markdown).not.toMatch(new RegExp(`\\b${word}\\b`))
  })

  it('hide a word that was typed before on a line of its own, as a password by mistake', async () => {
    const test = harness()
    const { type, print, report } = test
    for (const host of all) await print(host, '# ')
    type('horse\r')
    for (const host of all) await print(host, 'horse\r\nhorse: not found\r\n# ')
    type('read -s pw\rhorse\r')
    for (const host of all) await print(host, 'read -s pw\r\n\r\n# ')
    const { markdown, html } = await report()
    expect(markdown + html).not.toContain('horse')
  })

  it('are as they were typed: with indentation, blank lines and tabs', async () => {
    const lines = ["cat > x.yaml <<'E'", 'a:', '  b:', '    - c: 1', '', '    - d: 2', '\tt: 3', 'E', 'cat x.yaml']
    const text = lines.join('\n')
    const answer = `${lines.slice(1, -2).join('\r\n')}\r\n`
    for (const [start, end, echo] of [
      ['', '', `${lines.join('\r\n> ').replace('> cat', '# cat')}\r\n`],
      ['', '', `${lines.join('\r\n')}\r\n${'> '.repeat(7)}# `],
      ['\x1b[?2004h', '\x1b[?2004l\r', `${lines.join('\r\n\r')}\r\n`],
    ] as const) {
      const { type, print, report } = harness()
      for (const host of all) await print(host, `${start}# `)
      type(`\x1b[200~${text}${start === '' ? '\n' : ''}\x1b[201~\x13`)
      if (start !== '') type('\r')
      for (const host of all) await print(host, `${echo}${end}${answer}${start}# `)
      const { markdown, html } = await report()
      expect(markdown).toContain(`\n\`\`\`\n${text}\n\`\`\`\n`)
      expect(html).toContain(
        `<pre>${text.replace('>', '&gt;').replace('<<', '&lt;&lt;').replaceAll("'", '&#39;')}</pre>`,
      )
      if (start !== '') expect(markdown.match(/cat &gt; x|cat > x/g)).toHaveLength(2)
    }
  })
})

describe('many lines that are typed at once, without a line editor', () => {
  const LINES = Array.from({ length: 90 }, (_, at) => `echo line-${at} of a text that is pasted as a whole`)
  const SECRET = 'correct-horse-battery'

  /** As terminals echo them: the shell reads the first lines while the others arrive. `isEchoed`: others are not. */
  const broken = (host: string, lines: readonly string[], isEchoed: (line: string) => boolean) => {
    const answers = lines.map((line) => (isEchoed(line) ? `${line.replace('echo ', '')}\r\n${host}# ` : ''))
    const echoes = lines.map((line, at) => {
      if (!isEchoed(line)) return '\r\n'
      const answer = at < 40 ? '' : (answers[at - 40] ?? '')
      const cut = 10 + (at % 20)
      return `${line.slice(0, cut)}${answer}${line.slice(cut)}\r\n`
    })
    return [...echoes, ...answers.slice(lines.length - 40)].join('')
  }

  it('are shown, and their words in other lines', async () => {
    const { print, type, report } = harness()
    for (const host of ['m1', 'm2', 'm3']) await print(host, `${host}# `)
    type(`${LINES.join('\r')}\r`)
    for (const host of ['m1', 'm2', 'm3'])
      await print(
        host,
        broken(host, LINES, () => true),
      )
    type('echo line-80 again\r')
    for (const host of ['m1', 'm2', 'm3']) await print(host, `echo line-80 again\r\nline-80 again\r\n${host}# `)
    const { markdown } = await report()
    expect(titlesOf(markdown)).toEqual([`\` ${LINES[0]} … (90 lines) \``, '` echo line-80 again `'])
    expect(markdown).not.toContain('not shown')
  })

  it('are shown also where they print much', async () => {
    const { print, type, report } = harness()
    const lines = LINES.slice(0, 5)
    for (const host of ['m1', 'm2', 'm3']) await print(host, `${host}# `)
    type(`${lines.join('\r')}\r`)
    for (const host of ['m1', 'm2', 'm3'])
      for (const line of lines) await print(host, `${line}\r\n${'[ 2.0] memory\r\n'.repeat(1000)}${host}# `)
    expect((await report()).markdown).not.toContain('not shown')
  })

  it.each([
    ['no output', ''],
    ['output that begins as it does', 'correct-horse and more\r\n-battery-2\r\n'],
    ['a question and its parts', `Password: \r\n${SECRET.slice(0, 10)} x\r\n${SECRET.slice(10)}\r\n`],
    ['short parts', 'cor x\r\nrect-horse-battery\r\n'],
  ])('do not show a password among them that was not echoed, with %s', async (_, output) => {
    const { print, type, report } = harness()
    const lines = LINES.toSpliced(60, 0, SECRET)
    for (const host of ['m1', 'm2', 'm3']) await print(host, `${host}# `)
    type(`${lines.join('\r')}\r`)
    for (const host of ['m1', 'm2', 'm3'])
      await print(host, broken(host, lines, (line) => line !== SECRET).replace('line-30 of', `${output}line-30 of`))
    type(`echo ${SECRET}\r`)
    for (const host of ['m1', 'm2', 'm3']) await print(host, `echo ${SECRET}\r\n${SECRET}\r\n${host}# `)
    const { markdown, html } = await report()
    expect(`${markdown}${html}`).not.toContain(SECRET)
  })
})
