/** Which line of the report the output belongs to: lines typed ahead, keys that programs read, marks that programs print. */
import { describe, expect, it } from 'vitest'
import { harness, titlesOf } from './report-harness.ts'

describe('a line that was typed ahead', () => {
  const all = ['m1', 'm2', 'm3']
  const ahead = async (echoOf: (host: string) => readonly [early: string, late: string]) => {
    const { prompts, report, type, print } = harness()
    await prompts()
    type('sleep 1; echo done\r')
    for (const host of all) {
      await print(host, 'sleep 1; echo done\r\n\x1b[?2004l\r')
      if (host === 'm1') await print(host, `done\r\n\x1b[?2004h${host}# `)
    }
    type('echo next\r')
    for (const host of all) {
      const [early, late] = echoOf(host)
      // In two pieces, since a mark of a prompt may arrive so.
      if (host !== 'm1') await print(host, `${early}done${late}\r\n\x1b[?20`)
      await print(host, `${host === 'm1' ? '' : `04h${host}# `}echo next\r\n\x1b[?2004l\rnext\r\n\x1b[?2004h${host}# `)
    }
    return (await report()).markdown
  }

  it('gets its own output, where the shell marks its prompts', async () => {
    const markdown = await ahead((host) => [host === 'm2' ? 'echo next\r\n' : '', ''])
    expect(markdown).toContain('typed on m\\[1-3\\]\n\n**m\\[1-3\\] (3)**\n\n```\ndone\n```')
    expect(markdown).toContain('typed on m\\[1-3\\]\n\n**m\\[1-3\\] (3)**\n\n```\nnext\n```')
  })

  it('makes no difference between hosts where its echo is mixed with other output', async () => {
    const markdown = await ahead((host) => [host === 'm2' ? 'echo n' : '', host === 'm2' ? 'ext' : ''])
    expect(markdown).toContain('typed on m\\[1-3\\], typed ahead: m2\n\n**m\\[1,3\\] (2)**\n\n```\ndone\n```')
    expect(markdown).toContain('**m2 (1)**\n\n```\necho ndoneext\n```')
    expect(markdown).not.toMatch(/ifferent|Output differed/)
  })

  it('is no password where more is printed before its prompt than is searched for an echo', async () => {
    const { prompts, report, type, print } = harness()
    await prompts()
    type('dmesg\r')
    for (const host of all) await print(host, 'dmesg\r\n\x1b[?2004l\r')
    type('uptime\r')
    for (const host of all) {
      await print(host, `u[ 1.0] ptime\r\n${'[ 2.0] memory\r\n'.repeat(2000)}\x1b[?2004h${host}# `)
      await print(host, `uptime\r\n\x1b[?2004l\rup 3 days\r\n\x1b[?2004h${host}# `)
    }
    const { markdown } = await report()
    expect(titlesOf(markdown)).toEqual(['` dmesg `', '` uptime `'])
  })

  it('makes no difference between hosts whose shells mark no prompts', async () => {
    const { report, type, print } = harness()
    for (const host of all) await print(host, '# ')
    type('sleep 1; echo done\r')
    for (const host of all) await print(host, 'sleep 1; echo done\r\n')
    for (const host of ['m1', 'm2']) await print(host, 'done\r\n# ')
    type('echo next\r')
    for (const host of ['m1', 'm2']) await print(host, 'echo next\r\nnext\r\n# ')
    await print('m3', 'echo next\r\ndone\r\n# next\r\n# ')
    const { markdown } = await report()
    expect(markdown).toContain('**m\\[1-2\\] (2)**\n\n```\nnext\n```')
    expect(markdown).not.toMatch(/ifferent|Output differed/)
    expect(markdown.match(/typed ahead: m3/g)).toHaveLength(2)
  })

  it('is told apart where the echo of the line before it is still on its way', async () => {
    const { prompts, report, type, print } = harness()
    await prompts()
    type('true\r')
    type(':\r')
    for (const host of all) await print(host, `true\r\n\x1b[?2004l\r\x1b[?2004h${host}# `)
    type('echo next\r')
    for (const host of all)
      await print(host, `:\r\n\x1b[?2004l\r\x1b[?2004h${host}# echo next\r\n\x1b[?2004l\rnext\r\n\x1b[?2004h${host}# `)
    const { markdown } = await report()
    expect(markdown).toContain('` true `\n\ntyped on m\\[1-3\\]\n\n**m\\[1-3\\] (3)**\n\nno output')
    expect(markdown).toContain('` : `\n\ntyped on m\\[1-3\\]\n\n**m\\[1-3\\] (3)**\n\nno output')
    expect(markdown).toContain('` echo next `\n\ntyped on m\\[1-3\\]\n\n**m\\[1-3\\] (3)**\n\n```\nnext\n```')
  })

  it('does not get the output of the next line after a program has read it', async () => {
    const { prompts, run, report, type, print } = harness()
    await prompts()
    type('cat\r')
    for (const host of all) await print(host, 'cat\r\n\x1b[?2004l\r')
    type('hello\r')
    for (const host of all) await print(host, 'hello\r\nhello\r\n')
    type('\x04')
    await prompts()
    await run('echo next', () => 'next\r\n')
    const { markdown } = await report()
    expect(markdown).toContain('` cat `\n\ntyped on m\\[1-3\\]\n\n**m\\[1-3\\] (3)**\n\n```\nhello\n```')
    expect(markdown).toContain('` echo next `\n\ntyped on m\\[1-3\\]\n\n**m\\[1-3\\] (3)**\n\n```\nnext\n```')
  })
})

describe('a mark of a line editor that a program prints', () => {
  const STARTS = '\x1b[?2004h'
  const STOPS = '\x1b[?2004l'
  const screenOfVi = `\x1b[?1049h${STARTS}\x1b[H~\r\n~\r\nSCREEN OF VI${STOPS}\x1b[?1049l`

  it('hides no output', async () => {
    const { prompts, run, report } = harness()
    await prompts()
    await run('vi -c q x; echo after', () => `${screenOfVi}after vi\r\n`)
    await run('cat file', (host) => `one\r\n${STARTS}${STOPS}two\r\n${host === 'm2' ? '' : 'three\r\n'}`)
    const { markdown } = await report()
    expect(markdown).toContain('after vi\n[a full-screen program ran here]')
    expect(markdown).toContain('different: m2\n\n**m\\[1,3\\] (2)**\n\n```\none\ntwo\nthree\n```')
    expect(markdown).toContain('**m2 (1)**\n\n```\none\ntwo\n```')
  })

  it('hides no output of a command that still runs', async () => {
    const { prompts, report, type, print } = harness()
    await prompts()
    type('cat fifo\r')
    const outputs = { m1: `${STARTS}one\r\ntwo\r\n`, m2: `${STARTS}one${STOPS}`, m3: 'half a line' }
    for (const [host, output] of Object.entries(outputs)) await print(host, `cat fifo\r\n${STOPS}\r${output}`)
    const { markdown } = await report()
    expect(markdown).toContain('**m1 (1)**\n\n```\none\ntwo\n```')
    // The mark of its line editor is believed.
    expect(markdown).toContain('**m2 (1): still running**\n\n```\none\n```')
    expect(markdown).toContain('**m3 (1): still running**\n\n```\nhalf a line\n```')
  })

  it('says where a command did not end: its connection was lost, its host was closed, or it still runs', async () => {
    const { prompts, report, run, type, print, fleet, console } = harness()
    await prompts()
    await run('true', () => '')
    type('sleep 60\r')
    for (const host of ['m1', 'm2', 'm3']) await print(host, `sleep 60\r\n${STOPS}\r`)
    fleet.events.emit({ type: 'shell', host: 'm2', state: { kind: 'ended', end: { kind: 'lost', reason: 'reset' } } })
    console.removeHosts(['m3'])
    const { markdown } = await report()
    expect(markdown).toContain('**m\\[1-3\\] (3)**\n\nno output')
    expect(markdown).toContain('**m1 (1): still running**\n\nno output')
    expect(markdown).toContain('**m2 (1): connection lost before it ended**\n\nno output')
    expect(markdown).toContain('**m3 (1): closed before it ended**\n\nno output')
  })

  it('says nothing of the kind of a shell that ended by itself', async () => {
    const { prompts, report, type, print, fleet } = harness()
    await prompts()
    type('exit\r')
    for (const host of ['m1', 'm2', 'm3']) await print(host, `exit\r\n${STOPS}\rlogout\r\n`)
    for (const host of ['m1', 'm2', 'm3'])
      fleet.events.emit({ type: 'shell', host, state: { kind: 'ended', end: { kind: 'exit', code: 0 } } })
    expect((await report()).markdown).toContain('**m\\[1-3\\] (3)**\n\n```\nlogout\n```')
  })

  it('says how a shell ended that a line did not end well, but not after a prompt', async () => {
    const { prompts, report, type, print, fleet } = harness()
    await prompts()
    type('exit 3\r')
    const printed = (host: string) => (host === 'm3' ? `\x1b[?2004h${host}# ${STOPS}\r\r\nlogout\r\n` : 'logout\r\n')
    for (const host of ['m1', 'm2', 'm3']) await print(host, `exit 3\r\n${STOPS}\r${printed(host)}`)
    for (const host of ['m1', 'm2', 'm3'])
      fleet.events.emit({ type: 'shell', host, state: { kind: 'ended', end: { kind: 'exit', code: 3 } } })
    const { markdown } = await report()
    expect(markdown).toContain('**m\\[1-2\\] (2): shell ended (exit 3)**\n\n```\nlogout\n```')
    expect(markdown).toContain('**m3 (1)**')
  })

  it('hides nothing that is printed at the prompt, and no line of a prompt with two lines is output', async () => {
    const { report, type, print } = harness()
    const prompt = `${STARTS}~/work\r\n# `
    for (const host of ['m1', 'm2', 'm3']) await print(host, prompt)
    type('sleep 1 &\r')
    for (const host of ['m1', 'm2', 'm3']) await print(host, `sleep 1 &\r\n${STOPS}\r[1] 7\r\n${prompt}`)
    await print('m2', '\r\nbroadcast: disk is full\r\n')
    const { markdown } = await report()
    expect(markdown).toContain('**m\\[1,3\\] (2)**\n\n```\n[1] 7\n```')
    expect(markdown).toMatch(/\*\*m2 \(1\)\*\*\n\n```\n\[1\] 7\n~\/work\n#\n+broadcast: disk is full\n```/)
  })

  it('does not end a line while the next one is typed ahead', async () => {
    const { prompts, report, type, print } = harness()
    const all = ['m1', 'm2', 'm3']
    await prompts()
    type('vi -c q x; sleep 1; echo after\r')
    for (const host of all) await print(host, `vi -c q x; sleep 1; echo after\r\n${STOPS}\r`)
    type('echo next\r')
    for (const host of all) {
      await print(host, `echo next\r\n${screenOfVi}${host === 'm2' ? 'no lock' : 'after'}\r\n`)
      await print(host, `\x1b[?2004h${host}# echo next\r\n${STOPS}\rnext\r\n${STARTS}${host}# `)
    }
    const { markdown } = await report()
    expect(markdown).toContain(
      'different: m2\n\n**m\\[1,3\\] (2)**\n\n```\nafter\n[a full-screen program ran here]\n```',
    )
    expect(markdown).toContain('**m2 (1)**\n\n```\nno lock\n[a full-screen program ran here]\n```')
    expect(markdown).toContain('typed on m\\[1-3\\]\n\n**m\\[1-3\\] (3)**\n\n```\nnext\n```')
  })
})

it('has the output of the line after one that a program read without echo', async () => {
  const { prompts, run, report, type, print } = harness()
  const all = ['m1', 'm2', 'm3']
  await prompts()
  type('read -s pw\r')
  for (const host of all) await print(host, 'read -s pw\r\n\x1b[?2004l\r')
  type('hunter2-read\r')
  await prompts()
  await run('echo ok2', () => 'ok2\r\n')
  const { markdown } = await report()
  expect(markdown).toContain('` echo ok2 `\n\ntyped on m\\[1-3\\]\n\n**m\\[1-3\\] (3)**\n\n```\nok2\n```')
  expect(markdown).toContain('typed without echo\n\ntyped on m\\[1-3\\]\n\n**m\\[1-3\\] (3)**\n\n```\n[typed ahead: ')
  expect(markdown).not.toContain('hunter2')
})

it('has the output of lines that were typed before the first prompt', async () => {
  const { report, type, print } = harness()
  const lines = ['echo first', 'echo second', 'echo third']
  const answer = (host: string, line: string) =>
    `\x1b[?2004h${host}# ${line}\r\n\x1b[?2004l\r${line.slice('echo '.length)}\r\n`
  await print('m2', '\x1b[?2004hm2# ')
  for (const line of lines) {
    type(`${line}\r`)
    await print('m2', `${answer('m2', line).slice('\x1b[?2004hm2# '.length)}\x1b[?2004hm2# `)
  }
  for (const host of ['m1', 'm3'])
    await print(host, `${lines.join('\r\n')}\r\nWelcome\r\n${lines.map((line) => answer(host, line)).join('')}`)
  for (const host of ['m1', 'm3']) await print(host, `\x1b[?2004h${host}# `)
  const { markdown } = await report()
  expect(markdown).toContain('typed on m\\[1-3\\], typed ahead: m\\[1,3\\]\n\n**m2 (1)**\n\n```\nfirst\n```')
  expect(markdown).toContain('` echo second `\n\ntyped on m\\[1-3\\]\n\n**m\\[1-3\\] (3)**\n\n```\nsecond\n```')
  expect(markdown).toContain('` echo third `\n\ntyped on m\\[1-3\\]\n\n**m\\[1-3\\] (3)**\n\n```\nthird\n```')
})

it('keeps what is printed while a line is typed that Ctrl-C cancels', async () => {
  const { prompts, run, report, type, print } = harness()
  await prompts()
  await run('(sleep 1; echo late) &', () => '[1] 7\r\n')
  type('ec')
  for (const host of ['m1', 'm2', 'm3']) await print(host, 'ec')
  await print('m2', '\r\nlate\r\n')
  type('\x03')
  for (const host of ['m1', 'm2', 'm3']) await print(host, '^C\x1b[?2004l\r\r\n')
  await prompts()
  await print('m1', '\r\nlate\r\n')
  const { markdown } = await report()
  expect(markdown).toContain('1 entry')
  expect(markdown.match(/^late$/gm)).toHaveLength(2)
  expect(markdown).toContain('**m3 (1)**\n\n```\n[1] 7\n```')
})

describe('a line that not all hosts get', () => {
  const all = ['m1', 'm2', 'm3']
  const headings = (markdown: string) => markdown.match(/^## .*\n\n.*$/gm)?.map((line) => line.replace(/^## \S+ /, ''))
  const typeAndEcho = async ({ type, print }: ReturnType<typeof harness>, text: string, hosts: readonly string[]) => {
    type(text)
    for (const host of hosts) await print(host, text)
  }
  const answer = async ({ print }: ReturnType<typeof harness>, hosts: readonly string[], output: string) => {
    for (const host of hosts) await print(host, `\r\n\x1b[?2004l\r${output}\r\n\x1b[?2004h${host}# `)
  }

  it('is one entry of the others when the shell of a host starts again in the middle of it', async () => {
    const console = harness()
    await console.prompts()
    await typeAndEcho(console, 'echo half ', all)
    console.fleet.events.emit({ type: 'shell', host: 'm2', state: { kind: 'opening' } })
    console.fleet.events.emit({ type: 'shell', host: 'm2', state: { kind: 'open' } })
    await typeAndEcho(console, 'rest of line', ['m1', 'm3'])
    console.type('\r')
    await answer(console, ['m1', 'm3'], 'half rest of line')
    const { markdown } = await console.report()
    expect(headings(markdown)).toEqual(['` echo half rest of line `\n\ntyped on m\\[1,3\\]'])
    expect(markdown).toContain('**m\\[1,3\\] (2)**\n\n```\nhalf rest of line\n```')
  })

  it('says where Enter was not typed', async () => {
    const console = harness()
    await console.prompts()
    await typeAndEcho(console, 'echo a ', all)
    console.type('\x1ds')
    await typeAndEcho(console, 'b', ['m1'])
    console.type('\r')
    await answer(console, ['m1'], 'a b')
    const { markdown } = await console.report()
    expect(headings(markdown)).toEqual([
      '` echo a `\n\ntyped on m\\[2-3\\], Enter not typed',
      '` echo a b `\n\ntyped on m1',
    ])
  })

  it('has the text that each host got', async () => {
    const console = harness()
    await console.prompts()
    await typeAndEcho(console, 'echo a ', all)
    console.type('\x1ds')
    await typeAndEcho(console, 'b', ['m1'])
    console.type('\r')
    await answer(console, ['m1'], 'a b')
    console.type('\x1ds')
    await typeAndEcho(console, 'echo c', all)
    console.type('\r')
    await answer(console, ['m1'], 'c')
    await answer(console, ['m2', 'm3'], 'a echo c')
    const { markdown } = await console.report()
    expect(headings(markdown)).toEqual([
      '` echo a b `\n\ntyped on m1',
      '` echo c `\n\ntyped on m1',
      '` echo a echo c `\n\ntyped on m\\[2-3\\]',
    ])
  })
})

it('has what a program prints that waits for one key', async () => {
  const { prompts, report, type, print } = harness()
  await prompts()
  await print('m1', '\r\ncontinue? ')
  type('y')
  await print('m1', 'y\r\ndeleted\r\n')
  for (const host of ['m2', 'm3']) await print(host, 'y')
  const { markdown } = await report()
  expect(markdown).toContain('Enter not typed')
  expect(markdown).toContain('**m1 (1)**\n\n```\ndeleted\n```')
})

describe('keys that a program reads without Enter', () => {
  const all = ['m1', 'm2', 'm3']
  const each = async ({ print }: ReturnType<typeof harness>, textOf: (host: string) => string) => {
    for (const host of all) await print(host, textOf(host))
  }
  const STATUS = '\x1b[7mbig.log\x1b[27m\x1b[K'
  const CASES = [
    ['less -FRX', ' q', STATUS, ['\r\x1b[Kmore text\r\n:\x1b[K', '\r\x1b[K\x1b[?1l\x1b>']],
    ['more', ' q', '\x1b[7m--More--(3%)\x1b[27m', ['\rmore text\r\n\x1b[7m--More--(7%)\x1b[27m', '\r\x1b[K']],
    ['top', 'q', '\x1b[H\x1b[2Jtop - load\r\n\r\n', ['\x1b[?1l\x1b>\x1b[24;1H\r\n\x1b[K']],
    ['read -n1', 'y', 'sure? ', ['y']],
    ['read -sn1', 'y', 'press key ', ['\r\n']],
  ] as const

  const PROMPTS = ['#', '➜  ~ ', 'X ']
  it.each(
    PROMPTS.flatMap((end) => CASES.map(([program, ...rest]) => [program, end, ...rest] as const)),
  )('belong to its line, and the next line is whole: %s, where a prompt ends in %j', async (program, end, keys, shown, answers) => {
    const test = harness()
    const prompt = (host: string) => `\x1b[?2004h${end === '#' ? `${host}# ` : end}`
    await each(test, prompt)
    test.type(`${program}\r`)
    await each(test, () => `${program}\r\n\x1b[?2004l\rtext\r\n${shown}`)
    for (const [index, key] of [...keys].entries()) {
      test.type(key)
      await each(test, () => answers[index] ?? '')
    }
    await each(test, prompt)
    for (const key of 'echo zero') {
      test.type(key)
      await each(test, () => key)
    }
    test.type('\r')
    await each(test, (host) => `\r\n\x1b[?2004l\rzero\r\n${prompt(host)}`)
    const { markdown } = await test.report()
    expect(titlesOf(markdown)).toEqual([`\` ${program} \``, '` echo zero `'])
    expect(markdown).toContain('` echo zero `\n\ntyped on m\\[1-3\\]\n\n**m\\[1-3\\] (3)**\n\n```\nzero\n```')
    expect(markdown).not.toMatch(/typed ahead|ifferent/)
  })

  it('are no entry where the report is written after them', async () => {
    const test = harness()
    await test.prompts()
    test.type('less -FRX big.log\r')
    await each(test, () => `less -FRX big.log\r\n\x1b[?2004l\rtext\r\n${STATUS}`)
    test.type('q')
    await each(test, (host) => `\r\x1b[K\x1b[?2004h${host}# `)
    expect(titlesOf((await test.report()).markdown)).toEqual(['` less -FRX big.log `'])
  })

  it.each([
    ['qwerty-Moon77', 1],
    ['qwerty-Moon77', 7],
    ['Correct horse battery', 9],
    ['qzz7', 1],
  ])('leave the rest of a password to a shell, which is not shown: %s, from key %i', async (password, taken) => {
    const test = harness()
    const rest = password.slice(taken)
    await test.prompts()
    test.type('./login\r')
    for (const host of ['m1', 'm2']) await test.print(host, './login\r\n\x1b[?2004l\rPassword: ')
    await test.print('m3', `./login\r\n\x1b[?2004l\rtext\r\n${STATUS}`)
    for (const [index, key] of [...password].entries()) {
      test.type(key)
      await test.print('m3', index < taken - 1 ? '' : index < taken ? '\r\x1b[K\x1b[?2004hm3# ' : key)
    }
    test.type('\r')
    for (const host of ['m1', 'm2']) await test.print(host, `\r\nwelcome\r\n\x1b[?2004h${host}# `)
    await test.print('m3', `\r\n\x1b[?2004l\r-bash: ${rest.split(' ')[0]}: command not found\r\n\x1b[?2004hm3# `)
    await test.run('history', (host) => `  1  ${host === 'm3' && rest.length > 3 ? rest : 'true'}\r\n`)
    const { markdown, html } = await test.report()
    expect(markdown).toContain('./login')
    for (const text of [markdown, html]) expect(text).not.toContain(rest)
    for (const text of [markdown, html]) expect(text).not.toMatch(/Moon77|erty|battery|horse|orse/)
  })

  it.each([
    ['qZ9!k7', '$ Z9!k7\r\n\x1b[?2004l\r-bash: !k7: event not found\r\n', /Z9|k7/],
    [
      'qLm4;Zt8w&Rq2x',
      '$ Lm4;Zt8w&Rq2x\r\n\x1b[?2004l\r-bash: Lm4: command not found\r\n[1]+  Exit 127   Zt8w\r\n',
      /Lm4|Zt8|Rq2/,
    ],
    ['q cd/Xy7', '$  cd/Xy7\r\n\x1b[?2004l\r-bash: cd/Xy7: No such file\r\n', /Xy7/],
    ['sunflowerqX7z', '$ X7z\r\n\x1b[?2004l\r-bash: X7z: command not found\r\n', /X7z/],
    ["qit's9x", "$ it's9x\r\n\x1b[?2004l\r> ", /s9x/],
    [
      '!ecX9;Kx9z',
      '!\x1b[K\r\n/bin/bash: line 1: ecX9: command not found\r\nline 1: Kx9z: command not found\r\n',
      /cX9|Kx9/,
    ],
  ])('may be the first of a password that comes at once, of which nothing is shown: %s', async (password, answer, secret) => {
    const test = harness()
    await test.prompts()
    await test.run('ls', () => '')
    test.type('./login\r')
    for (const host of ['m1', 'm3']) await test.print(host, './login\r\n\x1b[?2004l\rPassword: ')
    await test.print('m2', './login\r\n\x1b[?2004l\rtext\r\n:')
    test.type(`${password}\r`)
    for (const host of ['m1', 'm3']) await test.print(host, `\r\nwelcome\r\n\x1b[?2004h${host}# `)
    await test.print('m2', `\r\x1b[K\x1b[?2004h${answer}`)
    await test.print('m2', '\x1b[?2004hm2# ')
    const { markdown, html } = await test.report()
    expect(markdown).toContain('welcome')
    for (const text of [markdown, html]) expect(text).not.toMatch(secret)
  })

  it('may be the first of a password that is pasted, whose rest is not shown', async () => {
    const test = harness()
    await test.prompts()
    test.type('./login\r')
    for (const host of ['m1', 'm2']) await test.print(host, './login\r\n\x1b[?2004l\rPassword: ')
    await test.print('m3', './login\r\n\x1b[?2004l\r\x1b[?1049htext\r\n:')
    test.type('qwerty!k7-Moon\r')
    for (const host of ['m1', 'm2']) await test.print(host, `\r\n\x1b[?2004h${host}# `)
    const failure = '-bash: !k7: event not found\r\n'
    await test.print('m3', `\x1b[?1049l\x1b[?2004hm3# werty!k7-Moon\r\n\x1b[?2004l\r${failure}\x1b[?2004hm3# `)
    await test.run('history', () => '  1  werty!k7-Moon\r\n')
    expect((await test.report()).markdown).not.toMatch(/Moon|erty|k7/)
  })

  it('are a password once the pager of a script is over', async () => {
    const test = harness()
    const { sessionLog } = test.console
    await test.prompts()
    sessionLog.noteTyped([{ hosts: ['m1'], bytes: Buffer.from('./install\r') }], 0)
    await test.print('m1', `./install\r\n\x1b[?2004l\r\x1b[?1h\x1b=text\r\n:`)
    const answers = (host: string, line: string) => `${line}\r\n\x1b[?2004l\r ok\r\n\x1b[?2004h${host}# `
    for (const line of ['uptime', 'echo Moon-k7']) {
      test.type(`${line}\r`)
      for (const host of ['m2', 'm3']) await test.print(host, answers(host, line))
      await test.print('m1', line === 'uptime' ? '\r\x1b[K\x1b[?1l\x1b>' : '\r\n')
    }
    const { markdown } = await test.report()
    expect(markdown).toContain('uptime')
    expect(markdown).not.toContain('Moon')
  })

  it.each([
    ['git log', ':'],
    ['LESS=RX less /etc/hosts', '\x1b[7mhosts\x1b[27m'],
    ['dmesg | less', '\x1b[7m(END)\x1b[27m'],
    ['./show-log', '\x1b[7m(END)\x1b[27m', '\x1b[?1h\x1b='],
  ])('are no password where other hosts show them at their prompts: %s %j', async (command, shown, starts = '') => {
    const test = harness()
    const { sessionLog } = test.console
    await test.prompts()
    await test.run('uptime', () => ' up 3 days\r\n')
    sessionLog.noteTyped([{ hosts: ['m1'], bytes: Buffer.from(command) }], 0)
    await test.print('m1', command)
    sessionLog.noteTyped([{ hosts: ['m1'], bytes: Buffer.from('\r') }], 0)
    await test.print('m1', `\r\n\x1b[?2004l\r${starts}text\r\n${shown}`)
    for (const line of ['uptime', 'date +%Y']) {
      test.type(`${line}\r`)
      for (const host of ['m2', 'm3']) await test.print(host, `${line}\r\n\x1b[?2004l\r ok\r\n\x1b[?2004h${host}# `)
      await test.print('m1', `\r\x1b[Kmore\r\n${shown}`)
    }
    sessionLog.noteTyped([{ hosts: ['m1'], bytes: Buffer.from('q') }], 0)
    await test.print('m1', '\r\x1b[K\x1b[?2004hm1# ')
    const { markdown } = await test.report()
    expect(titlesOf(markdown)).toEqual(['` uptime `', `\` ${command} \``, '` uptime `', '` date +%Y `'])
    expect(markdown).toContain(' up 3 days')
    expect(markdown).toContain(
      'typed on m\\[2-3\\], not recorded, in a full-screen program: m1\n\n**m\\[2-3\\] (2)**\n\n```\n ok\n```',
    )
    expect(markdown).not.toContain('not shown')
  })

  it('may be a password if other shells do not know them', async () => {
    const test = harness()
    await test.prompts()
    const { sessionLog } = test.console
    sessionLog.noteTyped([{ hosts: ['m1'], bytes: Buffer.from('less x') }], 0)
    await test.print('m1', 'less x')
    sessionLog.noteTyped([{ hosts: ['m1'], bytes: Buffer.from('\r') }], 0)
    await test.print('m1', '\r\n\x1b[?2004l\rtext\r\n:')
    test.type('FzBGX31nLw\r')
    for (const host of ['m2', 'm3'])
      await test.print(host, `FzBGX31nLw\r\n\x1b[?2004l\r-bash: FzBGX31nLw: command not found\r\n\x1b[?2004h${host}# `)
    expect((await test.report()).markdown).not.toContain('FzBGX31nLw')
  })

  it('are a password if another host asks for one', async () => {
    const test = harness()
    await test.prompts()
    test.type('./login\r')
    await test.print('m1', './login\r\n\x1b[?2004l\rtext\r\n:')
    await test.print('m2', './login\r\n\x1b[?2004l\rPassword: ')
    await test.print('m3', './login\r\n\x1b[?2004l\r\x1b[?2004hm3# ')
    test.type('uptime88\r')
    await test.print('m2', '\r\n\x1b[?2004hm2# ')
    await test.print('m3', 'uptime88\r\n\x1b[?2004l\r-bash: uptime88\r\n\x1b[?2004hm3# ')
    expect((await test.report()).markdown).not.toContain('uptime88')
  })

  it('are told from the beginning of a line that is typed ahead', async () => {
    const test = harness()
    await test.prompts()
    test.type('sleep 1\r')
    await each(test, () => 'sleep 1\r\n\x1b[?2004l\r')
    test.type('echo ne')
    await each(test, (host) => `echo ne\x1b[?2004h${host}# echo ne`)
    test.type('xt\r')
    await each(test, (host) => `xt\r\n\x1b[?2004l\rnext\r\n\x1b[?2004h${host}# `)
    expect(titlesOf((await test.report()).markdown)).toEqual(['` sleep 1 `', '` echo next `'])
  })

  it.each([
    ['has not drawn yet', (host: string) => `\x1b[?2004h${host}# `],
    ['draws again after a change of size', (host: string) => `echo\x1b[?2004h${host}# echo \r\x1b[K\r${host}# `],
  ])('are told from the beginning of a line that a line editor %s', async (_, prompt) => {
    const test = harness()
    await test.prompts()
    test.type('sleep 1\r')
    await each(test, () => 'sleep 1\r\n\x1b[?2004l\r')
    test.type('echo half')
    await test.print('m1', '\x1b[?2004hm1# echo half')
    for (const host of ['m2', 'm3']) await test.print(host, prompt(host))
    for (const key of ['\x1dz', '\x1dz', '-way', '-done', '\r']) test.type(key)
    await test.print('m1', '-way-done')
    for (const host of ['m2', 'm3']) await test.print(host, 'echo half-way-done')
    await each(test, (host) => `\r\n\x1b[?2004l\rhalf-way-done\r\n\x1b[?2004h${host}# `)
    const { markdown } = await test.report()
    expect(titlesOf(markdown)).toEqual(['` sleep 1 `', '` echo half-way-done `'])
    expect(markdown).toContain('**m\\[2-3\\] (2)**\n\n```\nhalf-way-done\n```')
    expect(markdown).not.toContain('not shown')
  })

  it('are hidden where a program has read them, even if the same is the beginning of a line on another host', async () => {
    const test = harness()
    await test.prompts()
    test.type('read -sn8 x\r')
    await each(test, () => 'read -sn8 x\r\n\x1b[?2004l\r')
    test.type('hunter22')
    await each(test, (host) => `\x1b[?2004h${host}# `)
    test.type('true\r')
    for (const host of ['m1', 'm2']) await test.print(host, `true\r\n\x1b[?2004l\r\x1b[?2004h${host}# `)
    await test.print('m3', 'hunter22true\r\n\x1b[?2004l\rhunter22true: not found\r\n\x1b[?2004hm3# ')
    const { markdown, html } = await test.report()
    expect(markdown + html).not.toContain('hunter2')
    expect(titlesOf(markdown)).toContain('` true `')
  })

  it('are hidden where they may be a password, even where another host shows them', async () => {
    const test = harness()
    await test.prompts()
    test.type('read -sn8 x\r')
    for (const host of ['m1', 'm2']) await test.print(host, 'read -sn8 x\r\n\x1b[?2004l\r')
    await test.print('m3', 'read -sn8 x\r\nread: bad option\r\n\x1b[?2004hm3# ')
    test.type('hunter22')
    for (const host of ['m1', 'm2']) await test.print(host, `\x1b[?2004h${host}# `)
    await test.print('m3', 'hunter22')
    test.type('true\r')
    for (const host of ['m1', 'm2']) await test.print(host, `true\r\n\x1b[?2004l\r\x1b[?2004h${host}# `)
    await test.print('m3', 'true\r\n\x1b[?2004l\rhunter22true: not found\r\n\x1b[?2004hm3# ')
    const { markdown, html } = await test.report()
    expect(markdown + html).not.toContain('hunter2')
    expect(titlesOf(markdown)).toContain('` true `')
  })
})
