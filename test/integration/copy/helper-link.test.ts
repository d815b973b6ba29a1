/** Two helpers on this machine that pass a file on over a link, with orders that come when the test wants. */
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { helperScript } from '../../../src/ssh/copy/helper-script.ts'
import { createLinkCertificate } from '../../../src/ssh/copy/link-certificate.ts'
import type { HelperMessage } from '../../../src/ssh/copy/remote-helper.ts'
import { requirement } from '../../support/requirements.ts'
import { waitUntil } from '../../support/wait-until.ts'

const canRun = process.platform === 'linux' && requirement('python3')
const PART_BYTES = 64 * 1024
const TOKEN = 'ready'

class Helper {
  readonly messages: HelperMessage[] = []
  readonly #process: ChildProcessWithoutNullStreams
  #isReady = false

  constructor() {
    const script = helperScript(TOKEN)
    const start = `import sys;exec(sys.stdin.buffer.read(${script.length}))`
    this.#process = spawn('python3', ['-I', '-S', '-c', start], { env: { PATH: process.env.PATH } })
    this.#process.stdin.write(script)
    let text = ''
    this.#process.stdout.setEncoding('utf8').on('data', (more) => {
      const lines = (text + more).split('\n')
      text = lines.pop() ?? ''
      for (const line of lines) {
        if (this.#isReady) this.messages.push(JSON.parse(line))
        else this.#isReady = line === TOKEN
      }
    })
  }

  tell(order: object): void {
    this.#process.stdin.write(`${JSON.stringify(order)}\n`)
  }

  async said(isMeant: (message: HelperMessage) => boolean): Promise<HelperMessage> {
    await waitUntil(() => this.messages.some(isMeant), 'an answer of a helper')
    return this.messages.find(isMeant) as HelperMessage
  }

  /** By read(2), whatever from. */
  get readBytes(): number {
    return Number(/rchar: (\d+)/.exec(readFileSync(`/proc/${this.#process.pid}/io`, 'latin1'))?.[1])
  }

  async close(): Promise<void> {
    const ended = once(this.#process, 'close')
    this.#process.stdin.end()
    await ended
  }
}

describe.skipIf(!canRun)('helpers that pass a file on', () => {
  let directory: string
  let source: Helper
  let taker: Helper
  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), 'muster-helpers-'))
    source = new Helper()
    taker = new Helper()
  })
  afterEach(async () => {
    await Promise.all([source.close(), taker.close()])
    rmSync(directory, { recursive: true })
  })

  it('lose nothing that comes before the word that what precedes it is there', async () => {
    const [theirs, ours] = [join(directory, 'source'), join(directory, 'taker')]
    const bytes = randomBytes(2 * PART_BYTES)
    writeFileSync(theirs, bytes)
    writeFileSync(ours, bytes.subarray(0, PART_BYTES))
    const file = { op: 'file', file: 1, size: bytes.length, sparse: false }
    source.tell({ ...file, path: theirs, have: bytes.length })
    taker.tell({ ...file, path: ours, have: 0 })
    const secret = createLinkCertificate()
    taker.tell({ op: 'listen', link: 1, address: '127.0.0.1', ...secret })
    const { at } = await taker.said((message) => message.at !== undefined)
    source.tell({ op: 'connect', link: 1, to: at, ...secret })
    await taker.said(({ up }) => up === true)
    const before = taker.readBytes
    source.tell({ op: 'serve', link: 1, file: 1, from: PART_BYTES })
    await waitUntil(() => taker.readBytes >= before + PART_BYTES, 'the bytes on the link')
    taker.tell({ op: 'have', file: 1, have: PART_BYTES })
    await taker.said(({ have }) => have === bytes.length)
    expect(readFileSync(ours).equals(bytes)).toBe(true)
  })
})
