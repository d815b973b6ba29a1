import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { describe, expect, it, vi } from 'vitest'
import { z } from 'zod'
import { formatBytes } from '../../../../src/base/format-bytes.ts'
import type { CliContext, GlobalOptions } from '../../../../src/cli/command-line/verb.ts'
import { CopyReport } from '../../../../src/cli/copy/report.ts'
import type { HostResult } from '../../../../src/ssh/copy/events.ts'
import { ROOT } from '../../../support/console-options.ts'

const DONE: HostResult = { outcome: 'ok', copied: 2, identical: 1, failed: 0, sentBytes: 2048, durationMs: 1500 }

function reportOf(hosts: readonly string[], options: GlobalOptions = {}, isTTY = false) {
  const stdout = new PassThrough()
  const stderr = Object.assign(new PassThrough(), { isTTY })
  const context: CliContext = {
    stdin: new PassThrough(),
    stdout,
    stderr,
    environment: {},
    workingDirectory: '/',
    signal: new AbortController().signal,
    now: () => 0,
  }
  const report = new CopyReport(hosts, options, context)
  return { report, out: () => String(stdout.read() ?? ''), err: () => String(stderr.read() ?? '') }
}

describe('the report of a copy', () => {
  it('says which hosts share the destination', () => {
    const { report, err } = reportOf(['m1', 'm2', 'm3'])
    for (const host of ['m1', 'm3']) report.handle({ type: 'shared', host, with: 'm2', path: '/home/ada' })
    for (const host of ['m1', 'm2', 'm3']) report.handle({ type: 'result', host, result: DONE })
    report.finish([])
    expect(err()).toContain('muster: m[1-3] share /home/ada: written once, checked on each\n')
  })

  it('does not claim that everything is written if a host failed', () => {
    const { report, err } = reportOf(['m1', 'm2'])
    report.handle({ type: 'shared', host: 'm1', with: 'm2', path: '/home/ada' })
    report.handle({ type: 'result', host: 'm1', result: DONE })
    report.handle({ type: 'result', host: 'm2', result: { ...DONE, outcome: 'unreachable', reason: 'away' } })
    report.finish([])
    expect(err()).toContain('muster: m[1-2] share /home/ada\n')
  })

  it('has one line per host, and counts the successful ones', () => {
    const { report, out, err } = reportOf(['m1', 'm2'])
    report.handle({ type: 'result', host: 'm1', result: DONE })
    report.handle({
      type: 'result',
      host: 'm2',
      result: { ...DONE, outcome: 'unreachable', copied: 0, reason: 'away' },
    })
    expect(report.finish([])).toBe(4)
    expect(out()).toBe('m1: 2 copied, 1 identical, 2.0 KiB in 1.5 s\nm2: unreachable: away\n')
    expect(err()).toBe('muster: 1 of 2 hosts ok, 1 not reached; 4.0 KiB in total\n')
  })

  it('counts a refused host apart from those that were not reached', () => {
    const { report, err } = reportOf(['m1', 'm2'])
    report.handle({ type: 'result', host: 'm1', result: DONE })
    report.handle({ type: 'result', host: 'm2', result: { ...DONE, outcome: 'refused', reason: 'its host key' } })
    expect(report.finish([])).toBe(4)
    expect(err()).toContain('muster: 1 of 2 hosts ok, 1 refused; ')
  })

  it('shows the first failures of a host, and how many more there are', () => {
    const { report, out, err } = reportOf(['m1'])
    for (let index = 0; index < 7; index += 1) {
      report.handle({ type: 'file', host: 'm1', path: `f${index}`, action: 'failed', sizeBytes: 1, reason: 'no' })
    }
    report.handle({ type: 'result', host: 'm1', result: { ...DONE, outcome: 'failed', failed: 7 } })
    expect(report.finish([])).toBe(1)
    expect(err().match(/^m1: f\d: no$/gm)).toHaveLength(5)
    expect(out()).toContain('7 failed, 2.0 KiB in 1.5 s (2 more failures not shown')
  })

  it('lets no byte of a path act on the terminal with --json', () => {
    const { report, out } = reportOf(['m1'], { json: true })
    report.problem({ path: '/tmp/\u009b2J', reason: 'tab\t\u202eend' })
    report.handle({ type: 'file', host: 'm1', path: 'a\u007f\nb', action: 'copied', sizeBytes: 1 })
    report.finish([])
    const text = out()
    expect(text).toMatch(/^[\x20-\x7e\n]+$/)
    const [problem, file] = text.split('\n').map((line) => line && JSON.parse(line))
    expect(problem).toMatchObject({ path: '/tmp/\\x9b2J', reason: 'tab\t\\u202eend' })
    expect(file).toMatchObject({ path: 'a\\x7f\nb' })
  })

  it('reports the path of large files, in words and as its schema says', () => {
    const rates = { betweenBitsPerSecond: 190_400_000, hereBitsPerSecond: 9_440_000 }
    const { report, err } = reportOf(['m1'])
    report.path({ via: 'chain', hosts: ['m1', 'm2'], ...rates })
    report.path({ via: 'direct', reason: 'no way' })
    report.path({ via: 'detour', host: 'm2', reason: 'm1 has gone' })
    report.path({ via: 'detour', host: 'm3', from: 'm1', reason: 'm2 is slow' })
    expect(err().split('\n')).toEqual([
      'muster: path: this machine → m1 → m2 (measured 190 Mbit/s between hosts, 9.4 Mbit/s from here)',
      'muster: path: from this machine to every host: no way',
      'muster: m2 takes the rest from this machine: m1 has gone',
      'muster: m3 takes the rest from m1: m2 is slow',
      '',
    ])
    const json = reportOf(['m1'], { json: true })
    json.report.path({ via: 'chain', hosts: ['m1', 'm2'], ...rates })
    json.report.path({ via: 'direct', reason: 'no way' })
    json.report.path({ via: 'detour', host: 'm2', reason: 'm1 has gone' })
    json.report.handle({ type: 'result', host: 'm1', result: { ...DONE, passedOnBytes: 5 } })
    json.report.handle({ type: 'shared', host: 'm1', with: 'm2', path: '/home/ada' })
    const schema = z.fromJSONSchema(JSON.parse(readFileSync(join(ROOT, 'docs/schema/copy.schema.json'), 'utf8')))
    const lines = json.out().trim().split('\n')
    expect(lines.map((line) => schema.safeParse(JSON.parse(line)).success)).toEqual([true, true, true, true, true])
  })

  it('is nothing but JSON lines on stdout with --json', () => {
    const { report, out } = reportOf(['m1'], { json: true })
    report.handle({ type: 'file', host: 'm1', path: 'f', action: 'copied', sizeBytes: 1 })
    report.handle({ type: 'result', host: 'm1', result: DONE })
    report.finish([])
    const lines = out().trim().split('\n')
    const time = '1970-01-01T00:00:00.000Z'
    expect(lines.map((line) => JSON.parse(line))).toMatchObject([
      { type: 'file', host: 'm1', action: 'copied', time },
      { type: 'result', host: 'm1', outcome: 'ok', time },
      { type: 'summary', hosts: 1, ok: 1, time },
    ])
  })

  it('shows progress on a terminal only, and removes it at the end', () => {
    vi.useFakeTimers()
    for (const isTTY of [true, false]) {
      const { report, err } = reportOf(['m1'], {}, isTTY)
      report.handle({ type: 'begin', host: 'm1', files: 1, totalBytes: 1000 })
      report.handle({ type: 'progress', host: 'm1', bytes: 250 })
      vi.advanceTimersByTime(100)
      report.finish([])
      const said = err()
      if (isTTY) expect(said.endsWith('\u001b[2A\r\u001b[J')).toBe(true)
      else expect(said).toBe('')
    }
    vi.useRealTimers()
  })

  it('exits with 1 if a local file could not be read', () => {
    const { report } = reportOf(['m1'])
    report.handle({ type: 'result', host: 'm1', result: DONE })
    expect(report.finish([{ path: 'f', reason: 'Permission denied' }])).toBe(1)
  })

  it('counts in binary units', () => {
    expect([0, 1023, 1024, 150 * 1024, 3 * 1024 ** 4].map(formatBytes)).toEqual([
      '0 B',
      '1023 B',
      '1.0 KiB',
      '150 KiB',
      '3.0 TiB',
    ])
  })
})
