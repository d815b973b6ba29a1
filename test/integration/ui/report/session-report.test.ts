/** The report of a session, from keys and output to Markdown and HTML. */
import { rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { HostPart, SessionLog } from '../../../../src/ui/report/session-log.ts'
import { harness } from './report-harness.ts'

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
  const { prompts, run, type, console, directory } = harness()
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
  const written = async (directory?: string) => {
    const { prompts, run, report, ...others } = harness(undefined, directory)
    await prompts()
    await run('uname -r', () => '6.1\r\n')
    return { ...(await report()), directory: others.directory }
  }
  const { folder, names: first, directory } = await written()
  const html = first.find((name) => name.endsWith('.html')) ?? ''
  rmSync(join(folder, html.replace('.html', '.md')))
  const { names } = await written(directory)
  expect(names.toSorted()).toEqual([html.replace('.html', '-2.html'), html.replace('.html', '-2.md'), html].toSorted())
})

it('says that there is nothing to report', () => {
  const { type, console } = harness()
  type('\x1de')
  expect(console.state.notice?.text).toBe('no report: nothing was typed or run yet')
})
