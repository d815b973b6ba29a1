/** The report of what was recorded on terminals of bash, fish and zsh: lines that wrap or are continued, and keys at a prompt. */
import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { buildReport } from '../../../../src/ui/report/build-report.ts'
import { createConsoleHarness } from '../../../unit/ui/console/console-harness.ts'

/** `>` was typed, `<` was printed; of each section the title and the output. */
type Recording = { readonly steps: readonly string[]; readonly report: readonly (readonly (string | null)[])[] }
const recorded = <T>(name: string) =>
  Object.entries(JSON.parse(readFileSync(`test/fixtures/${name}.json`, 'utf8')) as Record<string, T>)
const RECORDINGS = recorded<Recording>('wrapped-echoes')

async function reportOf(steps: readonly string[], mostCharacters: number, secret = '') {
  // A pane of 40 columns.
  const { console, print } = createConsoleHarness({ hosts: ['m1'], size: { columns: 42, rows: 30 } })
  const { sessionLog } = console
  sessionLog.noteSecret(secret)
  for (const step of steps) {
    const text = step.slice(1)
    if (step.startsWith('>')) sessionLog.noteTyped([{ hosts: ['m1'], bytes: Buffer.from(text) }], 0)
    else for (let at = 0; at < text.length; at += mostCharacters) await print('m1', text.slice(at, at + mostCharacters))
  }
  const promptOf = (host: string) => console.views.screen(host)?.textBeforeCursor()
  const { sections } = await buildReport(sessionLog.entries, sessionLog, promptOf)
  return sections.map(({ title, groups }) => [title ?? null, ...groups.flatMap(({ lines }) => lines)])
}

describe('a line that wraps', () => {
  it.each(RECORDINGS)('is no output, and not called hidden: %s', async (_, { steps, report }) => {
    expect(await reportOf(steps, 10_000)).toEqual(report)
    expect(JSON.stringify(report)).not.toContain('hunter2')
  })

  // Fish draws what it suggests at once.
  it.each(RECORDINGS.filter(([name]) => name !== 'fish: cancelled'))('is the same in small pieces: %s', async (_, {
    steps,
    report,
  }) => {
    expect(await reportOf(steps, 9)).toEqual(report)
  })
})

describe('a prompt that is drawn again', () => {
  const PROMPTS = recorded<readonly string[]>('prompts-again')
  // `sleep 9` and Ctrl-C, Enter twice, Ctrl-L, `echo two`, `ls nothere` and Ctrl-C, Up and Ctrl-C.
  const report = [
    ['echo one', 'one'],
    ['echo two', 'two'],
    ['echo three', 'three'],
  ]

  it.each(PROMPTS)('is no output, and no line that was cancelled is: %s', async (_, steps) => {
    expect(await reportOf(steps, 10_000)).toEqual(report)
  })

  // Fish draws what it suggests at once.
  it.each(
    PROMPTS.filter(([shell]) => !shell.startsWith('fish')),
  )('is the same in small pieces: %s', async (_, steps) => {
    expect(await reportOf(steps, 9)).toEqual(report)
  })
})

it.each(
  recorded<readonly string[]>('recalled-secret'),
)('a password that is recalled and cancelled is not shown, in no two rows either: %s', async (_, steps) => {
  const report = await reportOf(steps, 10_000, 'qwerty-Moon77')
  expect(report.map(([title]) => title)).toEqual([expect.stringContaining('not shown'), 'echo two', 'true'])
  expect(JSON.stringify(report)).not.toMatch(/qwerty|oon77/)
})

// `mkdir proj`, `sleep 1.5`; before that ends `echo ahead1` and `echo ahead2`; after it `echo mid`, `cd proj`, `echo later1`.
it.each(
  recorded<readonly string[]>('typed-ahead'),
)('lines that are typed ahead have their own output: %s', async (_, steps) => {
  const titles = ['mkdir proj', 'sleep 1.5', 'echo ahead1', 'echo ahead2', 'echo mid', 'cd proj', 'echo later1']
  const report = titles.map((title) => (title.startsWith('echo ') ? [title, title.slice(5)] : [title]))
  expect(await reportOf(steps, 10_000)).toEqual(report)
})

// `echo zero`; while the host does not answer, `hostname` or `sleep 1`, a paste of `echo one` and `ls /etc/hostname`, and Enter; `echo after`.
it.each(
  recorded<readonly string[]>('pasted-ahead'),
)('a paste of several lines that is typed ahead has its own output, and is not called hidden: %s', async (_, steps) => {
  const [zero, line, paste, after, ...rest] = await reportOf(steps, 10_000)
  expect(zero).toEqual(['echo zero', 'zero'])
  expect([['hostname', 'm1'], ['sleep 1']]).toContainEqual(line)
  expect(paste).toEqual(['echo one … (2 lines)', 'one', expect.stringMatching(/^\/etc\/hostname\*?$/)])
  expect([after, ...rest]).toEqual([['echo after', 'after']])
})

// `echo start`; a loop of three lines is pasted, and cancelled; `echo next`.
it.each(
  recorded<readonly string[]>('pasted-cancelled'),
)('a text of several lines that is cancelled is no output: %s', async (_, steps) => {
  expect(await reportOf(steps, 10_000)).toEqual([
    ['echo start', 'start'],
    ['echo next', 'next'],
  ])
})

// `echo one`, Ctrl-C, Enter, `false`, Ctrl-C, `echo two`.
it.each(
  recorded<readonly string[]>('prompts-with-status'),
)('a prompt that shows another exit status is no output: %s', async (_, steps) => {
  expect(await reportOf(steps, 10_000)).toEqual([['echo one', 'one'], ['false'], ['echo two', 'two']])
})
