/** Two helpers on this machine that pass a file on over a link, with orders that come when the test wants. */
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { helperScript } from '../../../src/ssh/copy/helper-script.ts'
import { createLinkCertificate } from '../../../src/ssh/copy/links.ts'
import type { HelperMessage } from '../../../src/ssh/copy/remote-helper.ts'
import { requirement } from '../../support/requirements.ts'
import { waitUntil } from '../../support/wait-until.ts'

const canRun = process.platform === 'linux' && requirement('python3')
const canBare = requirement('root', 'namespaces')
const PART_BYTES = 64 * 1024
const TOKEN = 'ready'

class Helper {
  readonly messages: HelperMessage[] = []
  readonly #process: ChildProcessWithoutNullStreams
  #isReady = false

  /** `prefix`: what runs it. */
  constructor(prefix: readonly string[] = []) {
    const script = helperScript(TOKEN)
    const start = `import sys;exec(sys.stdin.buffer.read(${script.length}))`
    const [program = '', ...args] = [...prefix, 'python3', '-I', '-S', '-c', start]
    this.#process = spawn(program, args, { env: { PATH: `/usr/bin:${process.env.PATH}` } })
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

  send(order: object): void {
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

/** In containers and chroots /dev and /proc may be nearly empty. */
const BARE = `mount -t tmpfs none /dev && mknod -m 666 /dev/null c 1 3 && mount -t tmpfs none /proc && exec "$@"`
/** Nothing that could hold a pipe with a name. */
const READ_ONLY = 'for d in /tmp /var/tmp /root; do mount -t tmpfs -o ro none $d || exit; done; cd /'
const WITHOUT_DESCRIPTORS = ['unshare', '--mount', 'sh', '-c', BARE, 'sh']

describe.skipIf(!canRun)('helpers that relay a file', () => {
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

  const link = async () => {
    const secret = createLinkCertificate()
    taker.send({ op: 'listen', link: 1, address: '127.0.0.1', ...secret })
    const { at } = await taker.said((message) => message.at !== undefined)
    source.send({ op: 'connect', link: 1, to: at, ...secret })
    await taker.said(({ up }) => up === true)
  }

  it('lose no data that arrives before the order that permits it', async () => {
    const [theirs, ours] = [join(directory, 'source'), join(directory, 'taker')]
    const bytes = randomBytes(2 * PART_BYTES)
    writeFileSync(theirs, bytes)
    writeFileSync(ours, bytes.subarray(0, PART_BYTES))
    const file = { op: 'file', file: 1, size: bytes.length, sparse: false }
    source.send({ ...file, path: theirs, have: bytes.length })
    taker.send({ ...file, path: ours, have: 0 })
    await link()
    const before = taker.readBytes
    taker.send({ op: 'take', link: 1, file: 1 })
    source.send({ op: 'serve', link: 1, file: 1, from: PART_BYTES })
    await waitUntil(() => taker.readBytes >= before + PART_BYTES, 'the bytes on the link')
    taker.send({ op: 'have', file: 1, have: PART_BYTES })
    await taker.said(({ have }) => have === bytes.length)
    expect(readFileSync(ours).equals(bytes)).toBe(true)
  })

  it('accept no byte past the end of a file, and only the file that was announced', async () => {
    const [theirs, ours, other] = ['source', 'taker', 'other'].map((name) => join(directory, name)) as [
      string,
      string,
      string,
    ]
    writeFileSync(theirs, randomBytes(3 * PART_BYTES))
    const [small, granted, notGranted] = [1, 1, 2]
    source.send({ op: 'file', file: granted, path: theirs, have: 3 * PART_BYTES, size: 3 * PART_BYTES, sparse: false })
    source.send({ op: 'file', file: notGranted, path: theirs, have: PART_BYTES, size: PART_BYTES, sparse: false })
    // To the one that takes it, the file is shorter than what comes.
    taker.send({ op: 'file', file: small, path: ours, have: 0, size: PART_BYTES, sparse: false })
    taker.send({ op: 'file', file: notGranted, path: other, have: 0, size: PART_BYTES, sparse: false })
    await link()
    const before = taker.readBytes
    taker.send({ op: 'take', link: 1, file: small })
    source.send({ op: 'serve', link: 1, file: granted, from: 0 })
    source.send({ op: 'serve', link: 1, file: notGranted, from: 0 })
    await waitUntil(() => taker.readBytes >= before + 4 * PART_BYTES, 'the bytes on the link')
    taker.send({ op: 'take', link: 1, file: notGranted })
    await taker.said(({ file, have }) => file === notGranted && have === PART_BYTES)
    expect(readFileSync(ours).length).toBeLessThanOrEqual(PART_BYTES)
  })

  it.skipIf(!canBare)('connect on hosts without /dev/fd, and leave nothing behind', async () => {
    const temporary = join(directory, 'tmp')
    mkdirSync(temporary)
    const bare = ['env', `TMPDIR=${temporary}`, ...WITHOUT_DESCRIPTORS]
    await Promise.all([source.close(), taker.close()])
    ;[source, taker] = [new Helper(bare), new Helper(bare)]
    const secret = createLinkCertificate()
    taker.send({ op: 'listen', link: 1, address: '127.0.0.1', ...secret })
    const answer = await taker.said(({ at, error }) => at !== undefined || error !== undefined)
    expect(answer.error).toBeUndefined()
    source.send({ op: 'connect', link: 1, to: answer.at, ...secret })
    const made = await taker.said(({ up, error }) => up === true || error !== undefined)
    expect(made.error).toBeUndefined()
    expect(readdirSync(temporary)).toEqual([])
  })

  it.skipIf(!canBare)('say what is missing when they cannot connect', async () => {
    await source.close()
    source = new Helper(['env', 'TMPDIR=/nowhere', 'unshare', '--mount', 'sh', '-c', `${READ_ONLY} && ${BARE}`, 'sh'])
    source.send({ op: 'listen', link: 1, address: '127.0.0.1', ...createLinkCertificate() })
    const { error } = await source.said((message) => message.error !== undefined)
    expect(error).toMatch(
      /^the key of the link cannot be handed over: no \/dev\/fd; \/nowhere: No such file or directory, \/tmp: /,
    )
  })
})
