/** The script of a watched host over /proc as other kernels write it: what it picks out of it, and what becomes of that. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Sample, SampleReader, WATCH_SCRIPT } from '../../../src/ops/net/watch/sample.ts'
import { findProgram } from '../../support/requirements.ts'
import { waitUntil } from '../../support/wait-until.ts'

const FIXTURES = join(import.meta.dirname, '../../fixtures/net/proc')
const shells = ['sh', 'busybox sh'].filter((shell) => findProgram(shell.split(' ')[0] ?? '') !== undefined)

/** Files between lines `==> STATE/PATH <==`, below a directory. */
function unpack(kernel: string, directory: string): void {
  const parts = readFileSync(join(FIXTURES, `${kernel}.txt`), 'utf8').split(/^==> (.*) <==\n/m)
  for (let at = 1; at < parts.length; at += 2) {
    const file = join(directory, parts[at] ?? '')
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, parts[at + 1] ?? '')
  }
}

/** One whole reading of what is in a directory as if it were /proc. */
async function readOnce(shell: string, proc: string): Promise<string> {
  const [file = 'sh', ...args] = shell.split(' ')
  const child = spawn(findProgram(file) ?? file, [...args, '-c', WATCH_SCRIPT.replaceAll('/proc/', `${proc}/`)], {
    detached: true,
    // No busybox program of a host is without it, and nothing of this machine's cards is to be seen.
    env: { PATH: '/usr/bin:/bin' },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const closed = once(child, 'close')
  let stdout = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text
  })
  await waitUntil(() => /^=$/m.test(stdout), 'a reading')
  process.kill(-(child.pid ?? 0), 'SIGKILL')
  await closed
  return stdout.slice(0, stdout.indexOf('\n=\n') + 3)
}

describe.skipIf(process.platform !== 'linux').each(shells)('read with %s', (shell) => {
  let directory: string
  beforeAll(() => {
    directory = mkdtempSync(join(tmpdir(), 'muster-proc-'))
  })
  afterAll(() => rmSync(directory, { recursive: true }))

  const sampleOf = async (kernel: string): Promise<{ text: string; sample: Sample | undefined }> => {
    const root = join(directory, kernel)
    unpack(kernel, root)
    const text = (await readOnce(shell, join(root, 'before'))) + (await readOnce(shell, join(root, 'after')))
    return { text, sample: new SampleReader().push(text, 0)[0] }
  }

  it('a kernel of 2013 reports everything except available memory; a mount in two places counts once', async () => {
    const { text, sample } = await sampleOf('linux-3.10-nfs3')
    expect(sample).toMatchObject({
      upSeconds: 8640002.25,
      cores: 4,
      cpu: 0.5,
      load: 0.14,
      memoryBytes: 16318040 * 1024,
      memoryUsedBytes: (16318040 - 1024000 - 204800 - 8192000) * 1024,
      swapBytes: 8388604 * 1024,
      swapUsedBytes: (8388604 - 6291453) * 1024,
      swapped: 50,
      readBytes: 512_000,
      writtenBytes: 1_536_000,
      diskBusy: 0.25,
      receivedBytes: 100_000,
      sentBytes: 25_000,
      nfs: { readBytes: 200_000, writtenBytes: 400_000, operations: 30, roundTripMs: 6 },
    })
    // Nothing is sent twice or for nothing.
    expect(text).not.toMatch(/NULL:|COMMIT:|xprt|HugePages|loop0|sda1/)
    expect(text.match(/READ:/g)).toHaveLength(4)
  })

  it('a small ARM machine reports its values', async () => {
    const { sample } = await sampleOf('linux-5.10-arm')
    expect(sample).toMatchObject({
      cores: 4,
      cpu: 30 / 400,
      memoryUsedBytes: 200_000 * 1024,
      swapUsedBytes: 0,
      readBytes: 8192,
      writtenBytes: 4096,
      diskBusy: 0.25,
      receivedBytes: 1024,
      sentBytes: 2048,
      cards: [{ name: 'wlan0' }, { name: 'enxb827eb000000' }, { name: 'lo' }],
    })
    expect(sample?.nfs).toBeUndefined()
  })
})
