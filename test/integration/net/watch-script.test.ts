/** What the script of a watched host reads, beside what free, vmstat and ip say before and after it. */
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { describe, expect, it } from 'vitest'
import { SampleReader, WATCH_SCRIPT } from '../../../src/ops/net/watch/sample.ts'
import { findProgram, requirement } from '../../support/requirements.ts'
import { waitUntil } from '../../support/wait-until.ts'

const canRun = requirement('free', 'vmstat', 'ip')
const shells = ['sh', 'bash', 'busybox sh'].filter((shell) => findProgram(shell.split(' ')[0] ?? '') !== undefined)

const say = (file: string, ...args: readonly string[]) =>
  execFileSync(findProgram(file) ?? file, args, { encoding: 'utf8' })
const number = (text: string, pattern: RegExp) => Number(pattern.exec(text)?.[1] ?? Number.NaN)

/** Counters that only grow, as the tools tell them. */
function counters() {
  const memory = say('vmstat', '-s')
  const card = say('ip', '-s', '-j', 'link', 'show', 'lo')
  const [{ stats64 }] = JSON.parse(card) as [{ stats64: { rx: { bytes: number } } }]
  return {
    user: number(memory, /(\d+) non-nice user cpu ticks/),
    idle: number(memory, /(\d+) idle cpu ticks/),
    swappedIn: number(memory, /(\d+) pages swapped in/),
    received: stats64.rx.bytes,
  }
}

describe.skipIf(!canRun || process.platform !== 'linux')('the script of a watched host', () => {
  it.each(shells)('reads in %s the same values as the usual tools', async (shell) => {
    const before = counters()
    const [file = 'sh', ...args] = shell.split(' ')
    const child = spawn(findProgram(file) ?? file, [...args, '-c', WATCH_SCRIPT], {
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    const closed = once(child, 'close')
    let stdout = ''
    let stderr = ''
    child.stdout.setEncoding('utf8').on('data', (text) => {
      stdout += text
    })
    child.stderr.setEncoding('utf8').on('data', (text) => {
      stderr += text
    })
    await waitUntil(() => stdout.split('\n=\n').length > 2, 'two samples')
    // Its own group: what it has started goes with it.
    process.kill(-(child.pid ?? 0), 'SIGKILL')
    await closed
    const after = counters()
    expect(stderr).toBe('')
    const total = number(say('free', '-b'), /^Mem:\s+(\d+)/m)
    const [sample] = new SampleReader().push(stdout, 0)
    expect(sample?.memoryBytes).toBe(total)
    const [first = ''] = stdout.split('\n=\n')
    const read = {
      user: number(first, /^cpu +(\d+)/m),
      idle: number(first, /^cpu +\d+ \d+ \d+ (\d+)/m),
      swappedIn: number(first, /^pswpin (\d+)/m),
      received: number(first, /^ *lo: *(\d+)/m),
    }
    for (const key of ['user', 'idle', 'swappedIn', 'received'] as const) {
      expect(read[key]).toBeGreaterThanOrEqual(before[key])
      expect(read[key]).toBeLessThanOrEqual(after[key])
    }
  })
})
