/** A long report on a terminal, in the pager that the user has. */
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { PROGRAM } from '../support/console-options.ts'
import { startOnTerminal } from '../support/terminal-program.ts'

let directory: string
let closing: (() => unknown)[]
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'muster-pager-'))
  closing = []
  writeFileSync(join(directory, 'hosts.yaml'), 'hosts: { "m[1-60]": { transport: local } }\n')
})
afterEach(() => {
  for (const close of closing) close()
  rmSync(directory, { recursive: true })
})

/** On a terminal of 30 lines. */
function start(args: string, environment: Readonly<Record<string, string>>) {
  const started = startOnTerminal(
    [
      'env',
      `TERM=${environment.TERM ?? 'xterm-256color'}`,
      ...PROGRAM,
      ...args.split(' '),
      '--hosts',
      join(directory, 'hosts.yaml'),
    ],
    {
      PATH: process.env.PATH,
      HOME: directory,
      LANG: 'C.UTF-8',
      ...environment,
    },
  )
  closing.push(started.close)
  return started
}

describe('the pager', () => {
  it('gets a long report and the settings of less, and leaves the exit code', async () => {
    const seen = join(directory, 'seen')
    const terminal = start('hosts --expand', {
      MUSTER_PAGER: `{ echo "$LESS"; cat; } > '${seen}'; exit 3`,
      PAGER: 'false',
    })
    await terminal.ended()
    const lines = readFileSync(seen, 'utf8').trim().split('\n')
    expect([terminal.code(), terminal.text(), lines.length, lines[0], lines[60]]).toEqual([0, '', 61, 'FRX', 'm60'])
  })

  it('may be closed before it has read everything, also by Ctrl-C', async () => {
    const terminal = start('hosts --expand', {
      PAGER: 'head -n 1; echo READY; trap "exit 0" INT; read -r _ < /dev/tty',
    })
    await terminal.shows(/m1\r\nREADY/)
    terminal.type('\x03')
    await terminal.ended()
    expect([terminal.code(), terminal.text().replace('^C', '').trim()]).toEqual([0, 'm1\r\nREADY'])
  })

  it.each([
    ['a report that fits', 'hosts --fold', { PAGER: 'touch seen' }, /m\[1-60\]/],
    ['--no-pager', 'hosts --expand --no-pager', { PAGER: 'touch seen' }, /m60/],
    ['an empty MUSTER_PAGER', 'hosts --expand', { MUSTER_PAGER: '', PAGER: 'touch seen' }, /m60/],
    ['a terminal that is dumb', 'hosts --expand', { TERM: 'dumb', PAGER: 'touch seen' }, /m60/],
    ['--json', 'hosts --expand --json', { PAGER: 'touch seen' }, /"set"/],
  ])('is not started for %s', async (_name, args, environment, expected) => {
    const seen = join(directory, 'seen')
    const paged = Object.fromEntries(
      Object.entries(environment).map(([name, text]) => [name, text.replace('seen', seen)]),
    )
    const terminal = start(args, paged)
    await terminal.ended()
    expect([terminal.code(), existsSync(seen)]).toEqual([0, false])
    expect(terminal.text()).toMatch(expected)
  })

  it('that does not exist is reported, and the report is printed', async () => {
    const terminal = start('hosts --expand', { PAGER: 'no-such-pager' })
    await terminal.ended()
    expect(terminal.code()).toBe(0)
    expect(terminal.text()).toMatch(/cannot start the pager[\s\S]*m60\r\n$/)
  })
})
