/** The report of a session, from keys and output to Markdown and HTML. */
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { Questions } from '../../../../src/ui/console/dialogs.ts'
import { buildReport } from '../../../../src/ui/report/build-report.ts'
import { HostPart, SessionLog } from '../../../../src/ui/report/session-log.ts'
import { randomRuns } from '../../../support/random-runs.ts'
import { createConsoleHarness } from '../../../unit/ui/console/console-harness.ts'

let directory: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'muster-report-'))
})
afterEach(() => rmSync(directory, { recursive: true }))

function harness(size = { columns: 120, rows: 40 }) {
  const environment = { XDG_STATE_HOME: directory }
  const harness = createConsoleHarness({ hosts: ['m1', 'm2', 'm3'], environment, size })
  const { print, type, fleet } = harness
  const all = ['m1', 'm2', 'm3']
  const prompts = async () => {
    for (const host of all) await print(host, `\x1b[?2004h${host}# `)
  }
  /** Types a line, which every host echoes, and prints its answer. */
  const run = async (line: string, answer: (host: string) => string) => {
    type(`${line}\r`)
    for (const host of all) await print(host, `${line}\r\n\x1b[?2004l\r${answer(host)}\x1b[?2004h${host}# `)
  }
  const report = async () => {
    type('\x1de')
    const folder = join(directory, 'muster/reports')
    for (;;) {
      await new Promise((resolve) => setImmediate(resolve))
      if (/^(?:report (?:copied|written)|cannot|no report)/.test(harness.console.state.notice?.text ?? '')) break
    }
    const names = readdirSync(folder)
    const read = (ending: string) =>
      readFileSync(join(folder, names.find((name) => name.endsWith(ending)) ?? ''), 'utf8')
    const notice = harness.console.state.notice?.text
    return { markdown: read('.md'), html: read('.html'), folder, names, notice }
  }
  return { ...harness, prompts, run, report, print, type, fleet }
}

/** Of the entries, without their times. */
const titlesOf = (markdown: string) => markdown.match(/^## .*$/gm)?.map((line) => line.replace(/^## \S+ /, ''))

it('folds equal output, says which hosts differ, and leaves prompts out', async () => {
  const { prompts, run, report } = harness()
  await prompts()
  await run('uname -r', (host) => (host === 'm2' ? '5.10\r\n' : '6.1\r\n'))
  await run('true', () => '')
  await run('hostname', (host) => `${host}\r\n`)
  const { markdown, folder, names, notice } = await report()
  expect(markdown).toContain('- Output differed: m2 (1), all from each other (1)\n')
  expect(markdown).toContain('typed on m\\[1-3\\], all different')
  expect(markdown).toContain('`` uname -r ``'.replaceAll('``', '`'))
  expect(markdown).toContain('typed on m\\[1-3\\], different: m2')
  expect(markdown).toContain('**m\\[1,3\\] (2)**\n\n```\n6.1\n```')
  expect(markdown).toContain('**m2 (1)**\n\n```\n5.10\n```')
  expect(markdown).toContain('**m\\[1-3\\] (3)**\n\nno output')
  expect(markdown).not.toContain('m1#')
  expect(names.map((name) => statSync(join(folder, name)).mode & 0o777)).toEqual([0o600, 0o600])
  expect(notice).toBe(`report copied, and written: ${folder} (.md and .html)`)
})

it('says that a host did not answer, with or without a new shell after that', async () => {
  const { prompts, report, type, print, fleet } = harness()
  await prompts()
  for (const line of ['true', 'date']) {
    type(`${line}\r`)
    for (const host of ['m1', 'm2']) await print(host, `${line}\r\n\x1b[?2004l\r\x1b[?2004h${host}# `)
    if (line === 'true') fleet.events.emit({ type: 'shell', host: 'm3', state: { kind: 'opening' } })
    if (line === 'true') await print('m3', '\x1b[?2004hm3# ')
  }
  const { markdown } = await report()
  expect(markdown.match(/\*\*m\\\[1-2\\\] \(2\)\*\*\n\nno output/g)).toHaveLength(2)
  expect(markdown.match(/\*\*m3 \(1\)\*\*\n\n```\n\[the host did not answer\]\n```/g)).toHaveLength(2)
})

it('says of all lines that a host did not answer that it did not, while it is silent and after its connection is lost', async () => {
  for (const isLost of [false, true]) {
    const { prompts, report, type, print, fleet } = harness()
    await prompts()
    for (const line of ['true', 'date']) {
      type(`${line}\r`)
      for (const host of ['m1', 'm2']) await print(host, `${line}\r\n\x1b[?2004l\r\x1b[?2004h${host}# `)
    }
    if (isLost) fleet.events.emit({ type: 'shell', host: 'm3', state: { kind: 'opening' } })
    if (isLost) await print('m3', '\x1b[?2004hm3# ')
    const { markdown } = await report()
    expect(markdown.match(/\*\*m3 \(1\)\*\*\n\n```\n\[the host did not answer\]\n```/g)).toHaveLength(2)
    expect(markdown).not.toContain('typed ahead')
  }
})

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
        log.noteOutput('m1', Buffer.from(text.slice(0, at)))
        log.noteOutput('m1', Buffer.from(text.slice(at)))
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

it('has each line at the time of Enter, in that order', () => {
  const log = new SessionLog(() => ({ columns: 80, before: '# ', isEditing: false, isFullScreen: false }))
  log.noteTyped([{ hosts: ['m1'], bytes: Buffer.from('z\x15') }], 1)
  log.noteRun({ atMs: 2, command: 'uptime', groups: [] })
  log.noteTyped([{ hosts: ['m1'], bytes: Buffer.from('ls\r') }], 3)
  expect(log.entries.map(({ kind, atMs }) => [kind, atMs])).toEqual([
    ['run', 2],
    ['typed', 3],
  ])
})

it('never has what was typed without echo, even where another host shows it', async () => {
  const { prompts, run, report, type, print } = harness()
  await prompts()
  await run('whoami', () => 'me\r\n')
  type('sudo -k true\r')
  for (const host of ['m1', 'm2']) await print(host, 'sudo -k true\r\n[sudo] password for me: ')
  // m3 does not ask: the password lands at its prompt.
  await print('m3', 'sudo -k true\r\n\x1b[?2004hm3# ')
  type('hunter2-secret\r')
  for (const host of ['m1', 'm2']) await print(host, `\r\n\x1b[?2004h${host}# `)
  await print('m3', 'hunter2-secret\r\nbash: hunter2-secret: command not found\r\n\x1b[?2004hm3# ')
  await run('history', () => '  1  whoami\r\n  2  hunter2-secret\r\n')
  const { markdown, html } = await report()
  expect(markdown + html).not.toContain('hunter2')
  expect(markdown).toContain('typed without echo')
  expect(markdown).toContain('**m3 (1)**\n\n```\n[output not shown: ')
  expect(markdown).toContain('2  [not shown: typed without echo]')
  expect(markdown).toContain('` whoami `')
})

it.each<[string, string, (key: string) => string]>([
  ['concealed, after a prompt with a letter of another script', 'P\u0430ssword: \x1b[8m', (key) => key],
  ['concealed, after a prompt that ends with a concealed dot', 'Password:\x1b[8m.', (key) => key],
  ['concealed, at a prompt of unknown words', 'Losung: \x1b[8m', (key) => key],
  ['black on black, after a black sign', 'Password: \x1b[30;40m#', (key) => key],
  ['black on a dark terminal', 'Password: \x1b[30m#', (key) => `\x1b[30m${key}`],
  [
    'after the cursor is restored with a concealed pen',
    'Say it: \x1b[8m\x1b7\x1b[m',
    (key) => `\x1b8${key}\x1b7\x1b[m`,
  ],
])('never has a password whose echo nobody can see: %s', async (_, prompt, echo) => {
  const { prompts, run, report, type, print } = harness()
  await prompts()
  await run('whoami', () => 'me\r\n')
  type('login\r')
  for (const host of ['m1', 'm2', 'm3']) await print(host, `login\r\n\x1b[?2004l\r${prompt}`)
  for (const key of 'hunter2') {
    type(key)
    for (const host of ['m1', 'm2', 'm3']) await print(host, echo(key))
  }
  type('\r')
  for (const host of ['m1', 'm2', 'm3']) await print(host, `\r\n\x1b[m\x1b[?2004h${host}# `)
  await run('history', () => '  1  whoami\r\n')
  const { markdown, html } = await report()
  expect(markdown + html).not.toContain('hunter2')
  expect(titlesOf(markdown)).toEqual(['` whoami `', '` login `', 'typed without echo', '` history `'])
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
      rmSync(join(directory, 'muster'), { recursive: true })
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
      rmSync(join(directory, 'muster'), { recursive: true })
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

it.each([
  ['the first part, in a shell of another host', 'BzqkLvJ', /Bzqk|kLvJ/],
  ['the first part and more', 'BzqkLvJxyz', /Bzqk|kLvJ/],
])('has no part of a password of which another host got %s', async (_, own, secret) => {
  const { console, prompts, report, type, print, run } = harness()
  await prompts()
  type('./login\r')
  await print('m1', './login\r\n\x1b[?2004l\rPassword: ')
  for (const host of ['m2', 'm3']) await print(host, `./login\r\n\x1b[?2004l\r\x1b[?2004h${host}# `)
  const typed = (hosts: readonly string[], text: string) =>
    console.sessionLog.noteTyped([{ hosts, bytes: Buffer.from(text) }], 0)
  typed(['m1', 'm2'], 'BzqkLvJ')
  await print('m2', 'BzqkLvJ')
  typed(['m2'], own.slice(7))
  await print('m2', own.slice(7))
  typed(['m2'], '\r')
  await print('m2', `\r\n\x1b[?2004l\r-bash: ${own}: command not found\r\n\x1b[?2004hm2# `)
  typed(['m1'], 'wgXhF\r')
  await print('m1', '\r\nwelcome\r\n\x1b[?2004hm1# ')
  await run('true', () => '')
  const { markdown, html } = await report()
  expect(markdown).toContain('welcome')
  expect(markdown + html).not.toMatch(secret)
})

it.each([
  'HqzWkvXjBnP',
  'zWkvXj',
  'vqzWkvXjBnPd',
  'aqzWkb\r\nbXjBnc',
  'Hqz',
])('has no part of a password that a program prints: %s', async (part) => {
  const { prompts, report, type, print } = harness()
  await prompts()
  type('./login\r')
  for (const host of ['m1', 'm2', 'm3']) await print(host, './login\r\n\x1b[?2004l\rPassword: ')
  type('HqzWkvXjBnPd\r')
  for (const host of ['m1', 'm3']) await print(host, `\r\nwelcome\r\n\x1b[?2004h${host}# `)
  await print('m2', `\r\n${part}\r\n\x1b[?2004hm2# `)
  const { markdown, html } = await report()
  expect(markdown).toContain('welcome')
  // Three characters are not told from other text.
  if (part.length > 3) expect(markdown + html).not.toMatch(/qzWk|zWkv|XjBn/)
  else expect(markdown).toContain(part)
})

it.each([
  ['Ctrl-U', '\x15'],
  ['Backspace', '\x7f'.repeat(10)],
  ['Ctrl-W', '\x17'],
])('hides what was typed at a question and erased with %s, wherever a host prints it', async (_, erase) => {
  for (const end of ['Right-pw77\r', '\x03']) {
    const { prompts, report, type, print, run } = harness()
    await prompts()
    type('./login\r')
    for (const host of ['m1', 'm3']) await print(host, './login\r\n\x1b[?2004l\rPassword: ')
    await print('m2', './login\r\n\x1b[?2004l\r')
    for (const key of ['JLGVt8NdRk', ...erase, end]) type(key)
    for (const host of ['m1', 'm2', 'm3']) await print(host, `\r\n\x1b[?2004h${host}# `)
    await run('show', (host) => (host === 'm2' ? 'JLGVt8NdRkURight-pw77\r\n' : ''))
    const { markdown } = await report()
    expect(markdown).not.toMatch(/JLGV|NdRk/)
    if (end.length > 1) expect(markdown).not.toContain('Right')
  }
})

it('hides nothing in what stands for hidden text', async () => {
  const { prompts, run, report, type, print } = harness()
  await prompts()
  for (const password of ['typed-in-vain-1', 'typed', 'echo']) {
    type('sudo true\r')
    for (const host of ['m1', 'm2', 'm3']) await print(host, 'sudo true\r\n[sudo] password for me: ')
    type(`${password}\r`)
    for (const host of ['m1', 'm2', 'm3']) await print(host, `\r\n\x1b[?2004h${host}# `)
  }
  await run('history', () => ' 1 typed-in-vain-1 echo\r\n')
  const { markdown } = await report()
  expect(markdown).toContain(' 1 [not shown: typed without echo] [not shown: typed without echo]\n')
})

it.each([
  ['Zx9!topSecret', 'bash: !topSecret: event not found'],
  ['Hunter2;Spring24x', 'bash: Hunter2: command not found\r\nbash: Spring24x: command not found'],
  ['Corr3ct&H0rseX', '[1] 4711\r\nbash: H0rseX: command not found'],
  ['Abc1(defGhi', "bash: syntax error near unexpected token `defGhi'"],
])('has no part of a password that a shell took for a line: %s', async (password, answer) => {
  const { prompts, run, report, type, print } = harness()
  await prompts()
  type('sudo true\r')
  for (const host of ['m1', 'm2']) await print(host, 'sudo true\r\n[sudo] password for me: ')
  await print('m3', 'sudo true\r\n\x1b[?2004hm3# ')
  type(`${password}\r`)
  for (const host of ['m1', 'm2']) await print(host, `\r\n\x1b[?2004h${host}# `)
  await print('m3', `${password}\r\n\x1b[?2004l\r${answer}\r\n\x1b[?2004hm3# `)
  // The shell names its job, and its history has the line.
  await run('true', () => `[1]+  Exit 127                ${password.split(/[!;&(]/)[1]}\r\n${answer}\r\n`)
  const { markdown, html } = await report()
  expect(markdown + html).not.toMatch(/topSecret|Hunter2|Spring24|Corr3ct|H0rse|Abc1|defGhi/)
  expect(markdown).toContain('Exit 127')
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

it('hides what a silent program on one host may have read without echo, although the others show it', async () => {
  const { prompts, report, type, print } = harness()
  await prompts()
  type('run it\r')
  for (const host of ['m1', 'm2']) await print(host, `run it\r\n\x1b[?2004l\r\x1b[?2004h${host}# `)
  await print('m3', 'run it\r\n\x1b[?2004l\r')
  type('hunter22\r')
  for (const host of ['m1', 'm2'])
    await print(host, `hunter22\r\n\x1b[?2004l\rhunter22: not found\r\n\x1b[?2004h${host}# `)
  const { markdown, html } = await report()
  expect(markdown).toContain('` run it `')
  expect(markdown + html).not.toContain('hunter22')
  expect(markdown).toContain('not shown: m3 did not echo it')
})

it('hides the hidden answer to a question of a server, which any host may print', async () => {
  const { prompts, run, report, type, console, clock } = harness()
  await prompts()
  const questions = new Questions()
  questions.bind(console, () => {})
  const prompt = [
    { text: 'Password:', isEchoed: false },
    { text: 'Name:', isEchoed: true },
  ]
  const words = { kind: 'keyboard-interactive', title: 'Login', instruction: '', isRetry: false } as const
  const answered = questions.ask({ ...words, hosts: ['m1'], prompts: prompt }, new AbortController().signal)
  await new Promise((resolve) => setImmediate(resolve))
  clock.advance(1000)
  type('Quokka77\r')
  type('ada-name\r')
  expect((await answered)?.map((secret) => secret.reveal())).toEqual(['Quokka77', 'ada-name'])
  await run('last', () => 'got Quokka77 of ada-name\r\n')
  const { markdown, html } = await report()
  expect(markdown).toContain('got [not shown: typed without echo] of ada-name')
  expect(markdown + html).not.toContain('Quokka77')
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

it.each([
  ["Q='Aa<b>&\"c'\\''9x'", 'set of a shell'],
  ["Q='Aa<b>&\"c'\"'\"'9x'", 'set of dash'],
  ['declare -- Q="Aa<b>&\\"c\'9x"', 'declare'],
  ['Aa\\<b\\>\\&\\"c\\\'9x', 'printf %q'],
  ['{"q":"Aa<b>&\\"c\'9x"}', 'JSON'],
  ['<i>Aa&lt;b&gt;&amp;"c\'9x</i>', 'HTML'],
  ["?q=Aa%3Cb%3E%26%22c'9x", 'a URL'],
])('hides a password as programs write it: %s (%s)', async (row) => {
  const { prompts, report, type, print, run } = harness()
  await prompts()
  type('read -s Q\r')
  for (const host of ['m1', 'm2', 'm3']) await print(host, 'read -s Q\r\n\x1b[?2004l\r')
  type(`Aa<b>&"c'9x\r`)
  for (const host of ['m1', 'm2', 'm3']) await print(host, `\r\n\x1b[?2004h${host}# `)
  await run('show it', () => `${row}\r\n`)
  const { markdown } = await report()
  expect(markdown).toContain('show it')
  expect(markdown).not.toMatch(/Aa|9x/)
})

describe('a password that shells took for a line', () => {
  const others = ['m2', 'm3']
  /** m1 reads the password without echo, the others at their prompts. They print `answer` then, and `later` after the next line. */
  const reportAfter = async (password: string, answer: string, next: string, later: string) => {
    const { prompts, run, report, type, print } = harness()
    await prompts()
    type('login\r')
    await print('m1', 'login\r\n\x1b[?2004l\rPassword: ')
    for (const host of others) await print(host, `login\r\n\x1b[?2004l\r\x1b[?2004h${host}# `)
    type(`${password}\r`)
    await print('m1', '\r\n\x1b[?2004hm1# ')
    for (const host of others) await print(host, `${password}\r\n\x1b[?2004l\r${answer}`)
    type(`${next}\r`)
    await print('m1', `${next}\r\n\x1b[?2004l\r\x1b[?2004hm1# `)
    for (const host of others) await print(host, `${next}\r\n\x1b[?2004l\r${later}\x1b[?2004h${host}# `)
    await run('uname', () => 'Linux\r\n')
    const { markdown, html } = await report()
    expect(markdown).toContain('Linux')
    return markdown + html
  }

  it.each([
    ["don'tTell9", '\x1b[?2004h> ', "'", "-bash: $'dontTell9\\n': command not found\r\n", /Tell9/],
    ["correct'horse", '\x1b[?2004h> ', "'", "-bash: $'correcthorse\\n': command not found\r\n", /correct|horse/],
    ['Zx9hunter2\\', '\x1b[?2004h> ', 'uptime', '-bash: Zx9hunter2uptime: command not found\r\n', /hunter/],
    ['Kx7!!Qz8mmm', '\x1b[?2004hm2# ', 'history', '    6  Kx7loginQz8mmm\r\n', /Kx7|Qz8/],
    ['Se9cret!1Wor7dy', '\x1b[?2004hm2# ', 'history', '    6  Se9cretloginWor7dy\r\n', /Se9|Wor7/],
    ['my $$Secr3t', '\x1b[?2004hm2# ', 'history', '    6  my 4711Secr3t\r\n', /Secr3t/],
  ])('is hidden with each row that has a part of it: %s', async (password, answer, next, later, secret) => {
    expect(await reportAfter(password, answer, next, later)).not.toMatch(secret)
  })

  it('is hidden as line editors changed it, and in the pieces that were typed', async () => {
    const { prompts, run, report, type, print } = harness()
    await prompts()
    type('login\r')
    await print('m1', 'login\r\n\x1b[?2004l\rPassword: ')
    for (const host of others) await print(host, `login\r\n\x1b[?2004l\r\x1b[?2004h${host}# `)
    for (const [key, shown] of [
      ['olden-Secret7', 'olden-Secret7'],
      ['\x1b[H', '\b'.repeat(13)],
      ['G', '\x1b[1@G'],
      ['\x1b[F', '\x1b[13C'],
      ['x', 'x'],
      ['\r', '\r\n\x1b[?2004l\rnot found\r\n'],
    ] as const) {
      type(key)
      for (const host of others) await print(host, shown)
    }
    await print('m1', '\r\n\x1b[?2004hm1# ')
    for (const host of others) await print(host, `\x1b[?2004h${host}# `)
    await run('history', (host) => (host === 'm1' ? 'olden-Secret7^[[HG^[[Fx\r\n' : '  2  Golden-Secret7x\r\n'))
    const { markdown, html } = await report()
    expect(markdown).toContain('  2  [not shown: typed without echo]')
    expect(markdown + html).not.toMatch(/olden|Secret7/)
  })

  it('does not hide rows that have plain words of a line of several words', async () => {
    const text = await reportAfter('check "$HOME" now', '\x1b[?2004hm2# ', 'ls', 'checksums\r\n')
    expect(text).toContain('checksums')
  })
})

it('hides what a silent program may have read after a question that ends like a prompt', async () => {
  const { prompts, run, report, type, print } = harness()
  await prompts()
  await run('true', () => '')
  type('unseal\r')
  await print('m1', 'unseal\r\n\x1b[?2004l\runseal key 1> ')
  for (const host of ['m2', 'm3']) await print(host, `unseal\r\n\x1b[?2004l\r\x1b[?2004h${host}# `)
  type('zebra88\r')
  for (const host of ['m2', 'm3'])
    await print(host, `zebra88\r\n\x1b[?2004l\rzebra88: not found\r\n\x1b[?2004h${host}# `)
  const { markdown, html } = await report()
  expect(markdown + html).not.toContain('zebra88')
})

it.each([
  ['FzBGX31nLwRBrX', '-bash: FzBGX31nLwRBrX: command not found'],
  ['correct horse battery', 'fish: Unknown command: correct'],
  ['hunter2', "NameError: name 'hunter2' is not defined"],
])('has no line that one full-screen program got and other shells do not know: %s', async (password, answer) => {
  const { prompts, report, type, print, run } = harness()
  await prompts()
  await print('m1', '\x1b[?1049h\x1b[H+-- Login to vault --+\r\n| ')
  type(`${password}\r`)
  for (const host of ['m2', 'm3']) await print(host, `${password}\r\n\x1b[?2004l\r${answer}\r\n\x1b[?2004h${host}# `)
  await print('m1', '**\x1b[?1049l\x1b[?2004hm1# ')
  await run('history', (host) => (host === 'm2' ? `  1  ${password}\r\n` : ''))
  const { markdown, html } = await report()
  for (const text of [markdown, html]) expect(text).not.toMatch(new RegExp(password.split(' ').join('|')))
})

it.each([
  ['ls /nope', "ls: cannot access '/nope': No such file or directory"],
  ['grep -c error log', '0\r\nerror: not found in 3 files'],
  ['apt-cache show foo', 'N: Unable to locate package foo\r\nE: No packages found'],
])('has a command that fails while one host has a full-screen program: %s', async (command, answer) => {
  const { prompts, report, type, print, run } = harness()
  await prompts()
  await print('m1', '\x1b[?1049h\x1b[H~\r\n~\r\n')
  type(`${command}\r`)
  for (const host of ['m2', 'm3']) await print(host, `${command}\r\n\x1b[?2004l\r${answer}\r\n\x1b[?2004h${host}# `)
  await print('m1', '\x1b[?1049l\x1b[?2004hm1# ')
  await run('true', () => '')
  const { markdown } = await report()
  expect(titlesOf(markdown)?.[0]).toBe(`\` ${command} \``)
  expect(markdown).not.toContain('not shown')
})

it('names the host whose full-screen program got a line', async () => {
  const { prompts, report, type, print, run } = harness()
  await prompts()
  await print('m2', '\x1b[?1049h\x1b[Htext')
  type('uptime\r')
  for (const host of ['m1', 'm3']) await print(host, `uptime\r\n\x1b[?2004l\r up\r\n\x1b[?2004h${host}# `)
  await print('m2', '\x1b[?1049l')
  await run('date', () => 'today\r\n')
  const { markdown, html } = await report()
  expect(markdown).toContain('typed on m\\[1,3\\], not recorded, in a full-screen program: m2\n')
  expect(html).toContain('typed on m[1,3], not recorded, in a full-screen program: m2<')
  expect(markdown).toContain('typed on m\\[1-3\\]\n')
})

it('gives each line its own output if the prompt follows a question in the same row', async () => {
  const { prompts, report, type, print } = harness()
  const all = ['m1', 'm2', 'm3']
  await prompts()
  type("read -s -p 'Password: ' P\r")
  for (const host of all) await print(host, "read -s -p 'Password: ' P\r\n\x1b[?2004l\rPassword: ")
  type('hunter22\r')
  for (const host of all) await print(host, `\x1b[?2004h${host}# `)
  for (const line of ['echo next', 'echo third']) {
    type(`${line}\r`)
    for (const host of all) await print(host, `${line}\r\n\x1b[?2004l\r${line.slice(5)}\r\n\x1b[?2004h${host}# `)
  }
  const { markdown } = await report()
  expect(markdown).not.toContain('typed ahead')
  expect(markdown).not.toContain('hunter22')
  expect(markdown).toMatch(/` echo next `\n\ntyped on m\\\[1-3\\\]\n\n\*\*m\\\[1-3\\\] \(3\)\*\*\n\n```\nnext\n```/)
  expect(markdown).toMatch(/` echo third `\n\ntyped on m\\\[1-3\\\]\n\n\*\*m\\\[1-3\\\] \(3\)\*\*\n\n```\nthird\n```/)
})

it('names the host that echoes nothing, since it hides what was typed into all', async () => {
  const { prompts, report, type, print } = harness()
  await prompts()
  type('systemctl restart nfs\r')
  for (const host of ['m1', 'm2']) await print(host, `systemctl restart nfs\r\n\x1b[?2004h${host}# `)
  await print('m3', '\r\nm3# ')
  const { markdown, html } = await report()
  expect(markdown).toContain('not shown: m3 did not echo it')
  expect(markdown).toContain('- m3 echoed nothing: what was typed there is hidden on all hosts')
  expect(html).toContain('not shown: m3 did not echo it')
  expect(markdown + html).not.toContain('systemctl')
})

it('hides a short password where another host showed it, and not where it is part of a word', async () => {
  const { prompts, report, type, print, run } = harness()
  await prompts()
  await run('seq 3', () => '1\r\n12\r\n123\r\n')
  for (const host of ['m1']) await print(host, '\r\nPIN: ')
  type('1.3\r')
  await print('m1', '\r\n\x1b[?2004hm1# ')
  for (const host of ['m2', 'm3'])
    await print(host, `1.3\r\nbash: 1.3: command not found, 1.35, 103\r\n\x1b[?2004h${host}# `)
  const { markdown, html } = await report()
  expect(markdown + html).not.toMatch(/1\.3(?!5)/)
  expect(markdown).toContain('**m\\[2-3\\] (2)**\n\n```\n[output not shown: ')
  expect(markdown).toContain('1\n12\n123')
})

it('hides a short password that is typed into tmux on one host, at the prompts of the others', async () => {
  const { prompts, report, type, print } = harness()
  await prompts()
  await print('m1', '\x1b[?1049h\x1b[H[sudo] password for me: ')
  type('abc\r')
  for (const host of ['m2', 'm3']) await print(host, `abc\r\nabc: no such command\r\n\x1b[?2004h${host}# `)
  const { markdown, html } = await report()
  expect(markdown).toContain('no such command')
  expect(markdown + html).not.toContain('abc')
})

it('takes a password that is typed into tmux on one host and lands on the prompt of another', async () => {
  const { prompts, report, type, print } = harness()
  await prompts()
  await print('m1', '\x1b[?1049h\x1b[H[sudo] password for me: ')
  type('hunter2-tmux\r')
  for (const host of ['m2', 'm3']) await print(host, `hunter2-tmux\r\nhunter2: no such command\r\n\x1b[?2004h${host}# `)
  const { markdown, html } = await report()
  expect(markdown).toContain('[output not shown: ')
  expect(markdown + html).not.toContain('hunter2')
})

it('leaves out half a password at the edge of what is kept', async () => {
  const { prompts, report, type, print } = harness()
  await prompts()
  type('cat\r')
  await print('m1', `cat\r\n${'x'.repeat(16 * 1024 - 13)}hunter2-half${'y'.repeat(40_000)}\r\nPassword: `)
  type('hunter2-half\r')
  await print('m1', '\r\n')
  const { markdown } = await report()
  expect(markdown).toContain('left out]')
  expect(markdown).not.toContain('hunter')
})

it('lets no text of a host act in Markdown or HTML', async () => {
  const { prompts, run, report } = harness()
  await prompts()
  await run(
    'cat x',
    () => '```\r\n# not a heading\r\n<script>alert(1)</script>\r\n\x1b]52;c;aGk=\x07"\'&\u202eevil\r\n',
  )
  const { markdown, html } = await report()
  expect(markdown).toContain('````\n```\n# not a heading')
  expect(html).not.toContain('<script')
  expect(html).toContain('&lt;script&gt;alert(1)&lt;/script&gt;')
  expect(html).toContain('&quot;&#39;&amp;evil')
  expect(markdown + html).not.toContain('\u202e')
  expect(html).toContain("default-src 'none'")
  expect(markdown + html).not.toContain('\x1b')
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

it('keeps the beginning and the end of long output, in bounded memory', async () => {
  const { prompts, run, report, console } = harness()
  await prompts()
  await run('seq 20000', () => Array.from({ length: 20_000 }, (_, index) => `${index + 1}\r\n`).join(''))
  const [entry] = console.sessionLog.entries
  const kept = entry?.kind === 'typed' ? [...entry.parts.values()].map((part) => part.size) : []
  expect(Math.max(...kept)).toBeLessThan(40_000)
  const { markdown } = await report()
  expect(markdown).toMatch(/\n1\n2\n3\n[\s\S]*KiB left out\]\n[\s\S]*\n19999\n20000\n/)
  expect(markdown.length).toBeLessThan(20_000)
})

it('keeps of an endless line no more than the screen shows', async () => {
  const { print, type, console } = harness()
  await print('m1', 'x'.repeat(50_000))
  type('ls\r')
  const [entry] = console.sessionLog.entries
  const before = entry?.kind === 'typed' ? (entry.parts.get('m1')?.before ?? '') : ''
  const { columns = 0, rows = 0 } = console.views.screen('m1') ?? {}
  expect(before).toMatch(/^x+$/)
  expect(before.length).toBeLessThanOrEqual(columns * rows)
})

it('keeps output that comes byte by byte as it keeps output that comes at once', () => {
  const bytes = Buffer.from(Array.from({ length: 9000 }, (_, index) => `${index}\r\n`).join(''))
  const [slow, fast] = [
    new HostPart({ before: '$ ', columns: 80, isEditing: true }),
    new HostPart({ before: '$ ', columns: 80, isEditing: true }),
  ]
  for (const byte of bytes) slow.push(Uint8Array.of(byte))
  fast.push(bytes)
  expect(slow.head.equals(fast.head)).toBe(true)
  expect(slow.tail.subarray(-16_384).equals(fast.tail)).toBe(true)
  expect(slow.tail.length).toBeLessThan(18_000)
})

it('is copied where it cannot be written, and the Log says why it was not', async () => {
  const { prompts, run, type, console } = harness()
  await prompts()
  await run('uname -r', () => '6.1\r\n')
  writeFileSync(join(directory, 'muster'), '')
  type('\x1de')
  const text = () => console.state.notice?.text ?? ''
  while (!/^(?:report|cannot)/.test(text())) await new Promise((resolve) => setImmediate(resolve))
  const folder = join(directory, 'muster/reports')
  expect(text()).toBe('report copied, but not written: part of its path is not a directory')
  const { text: logged, tone } = console.state.log.at(-1) ?? {}
  expect(logged).toContain(`not written: ${folder}: part of its path is not a directory`)
  expect(tone).toBe('error')
})

it('leaves no half of a report', async () => {
  const written = async () => {
    const { prompts, run, report } = harness()
    await prompts()
    await run('uname -r', () => '6.1\r\n')
    return await report()
  }
  const { folder, names: first } = await written()
  const html = first.find((name) => name.endsWith('.html')) ?? ''
  rmSync(join(folder, html.replace('.html', '.md')))
  const { names } = await written()
  expect(names.toSorted()).toEqual([html.replace('.html', '-2.html'), html.replace('.html', '-2.md'), html].toSorted())
})

it('says that there is nothing to report', () => {
  const { type, console } = harness()
  type('\x1de')
  expect(console.state.notice?.text).toBe('no report: nothing was typed or run yet')
})
