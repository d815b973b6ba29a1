/** Hosts files that are pipes: read while something writes, an error if nothing does, and never an endless wait. */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Clock } from '../../../src/base/clock.ts'
import { readHostsFile } from '../../../src/inventory/load-inventory.ts'
import { requirement } from '../../support/requirements.ts'

const canRun = requirement('mkfifo')
const TEXT = 'hosts: { m1: {} }\n'

describe.skipIf(!canRun)('a hosts file that is a pipe', () => {
  let directory: string
  let pipe: string
  let writer: FileHandle | undefined
  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), 'muster-pipe-'))
    pipe = join(directory, 'hosts.yaml')
    execFileSync('mkfifo', [pipe])
  })
  afterEach(async () => {
    await writer?.close()
    writer = undefined
    rmSync(directory, { recursive: true })
  })

  /** Each wait is over at once, after what `onWait` does at that moment. */
  const clockThat = (onWait: (wait: number) => Promise<void>): Clock => {
    let [nowMs, wait] = [0, 0]
    return {
      now: () => nowMs,
      after(delayMs, callback) {
        nowMs += delayMs
        wait += 1
        void onWait(wait).then(() => setImmediate(callback))
        return { [Symbol.dispose]: () => {} }
      },
    }
  }

  it('is an error if nothing writes into it', async () => {
    const clock = clockThat(async () => {})
    await expect(readHostsFile(pipe, { clock })).rejects.toThrow('it is a pipe, and no program writes to it')
    expect(clock.now()).toBeLessThan(4000)
  })

  it('is read whole, however slowly and late it is written', async () => {
    const clock = clockThat(async (wait) => {
      if (wait === 3) writer = await open(pipe, 'w')
      if (wait === 300) await writer?.write(TEXT.slice(0, 5))
      if (wait === 600) await writer?.write(TEXT.slice(5))
      if (wait === 601) await writer?.close()
      if (wait === 601) writer = undefined
    })
    expect((await readHostsFile(pipe, { clock })).toString()).toBe(TEXT)
  })

  it('does not prevent a stop', async () => {
    const stopping = new AbortController()
    writer = await open(pipe, 'r+')
    const clock = clockThat(async (wait) => {
      if (wait === 5) stopping.abort(new Error('stopped'))
    })
    await expect(readHostsFile(pipe, { clock, signal: stopping.signal })).rejects.toThrow('stopped')
  })

  it('may also be a regular file', async () => {
    const file = join(directory, 'file')
    writeFileSync(file, TEXT)
    expect((await readHostsFile(file)).toString()).toBe(TEXT)
  })
})
