/** A host that takes part in a copy as the remote script and the helper do, over a hostile channel: some of its answers are mutated. */
import { createHash } from 'node:crypto'
import type { Transport } from '../../../src/ssh/transport.ts'
import { createHostileTransport, ENDS, type HostileChannel } from './hostile-transport.ts'
import { type Choice, mutate } from './mutate.ts'

export type HostileFilesOptions = {
  readonly choice: Choice
  /** One answer in so many is mutated; 0: none. */
  readonly mutatedOnceIn: number
  readonly files: ReadonlyMap<string, Buffer>
  readonly foreign: readonly string[]
  note(...how: readonly string[]): void
}

/** Where nothing was said for so long nothing more comes: the link is lost then. An honest host is waited for. */
const STILL_MS = 200
const HONEST_STILL_MS = 10_000

export class HostileFiles {
  readonly transport: Transport
  /** All that it has said, to look for checksums in it. */
  readonly said: string[] = []
  readonly #options: HostileFilesOptions
  readonly #channels: HostileChannel[] = []
  readonly #read = new Map<HostileChannel, Buffer[]>()
  readonly #tokens = new Map<HostileChannel, string>()
  #movedAtMs = performance.now()

  constructor(options: HostileFilesOptions) {
    this.#options = options
    this.transport = createHostileTransport({
      onExec: (channel) => {
        this.#channels.push(channel)
        const token = /echo (muster-[0-9a-f]{16})/.exec(channel.command)?.[1]
        if (token === undefined) return
        this.#tokens.set(channel, token)
        void this.#say(channel, Buffer.from(`${token}\n`))
      },
      onBytes: (channel, bytes) => this.#take(channel, bytes),
    })
  }

  /** Ends what waits for an answer that never comes. */
  async untilOver(work: Promise<unknown>): Promise<void> {
    let isOver = false
    const over = () => {
      isOver = true
    }
    work.then(over, over)
    const stillMs = this.#options.mutatedOnceIn === 0 ? HONEST_STILL_MS : STILL_MS
    while (!isOver) {
      await new Promise((resolve) => setTimeout(resolve, 5))
      if (performance.now() - this.#movedAtMs < stillMs) continue
      for (const channel of this.#channels) channel.end(ENDS.lost)
    }
  }

  #take(channel: HostileChannel, bytes: Uint8Array): void {
    this.#movedAtMs = performance.now()
    const chunks = this.#read.get(channel) ?? []
    this.#read.set(channel, chunks)
    chunks.push(Buffer.from(bytes))
    let rest = Buffer.concat(chunks)
    for (;;) {
      const taken = this.#tokens.has(channel) ? this.#order(channel, rest) : this.#script(channel, rest)
      if (taken === 0) break
      rest = rest.subarray(taken)
    }
    this.#read.set(channel, [rest])
  }

  /** The helper's program, which is as long as its command says. */
  #script(channel: HostileChannel, rest: Buffer): number {
    const length = Number(/read\((\d+)\)/.exec(channel.command)?.[1])
    if (!(rest.length >= length)) return 0
    const token = /^TOKEN = "([^"]+)"/.exec(rest.toString('latin1', 0, 100))?.[1] ?? ''
    this.#tokens.set(channel, token)
    void this.#say(channel, Buffer.from(`${token}\n`))
    return length
  }

  /** Bytes of one whole order and what belongs to it; 0: there is none yet. */
  #order(channel: HostileChannel, rest: Buffer): number {
    const end = rest.indexOf(10)
    if (end < 0) return 0
    const line = rest.toString('latin1', 0, end)
    if (line.startsWith('{')) return this.#ask(channel, line, rest.length - end - 1, end + 1)
    const order = line.slice((this.#tokens.get(channel) ?? '').length).replace(/^watched '?(\w)'?/, '$1')
    const [, name = '', text = ''] = /^(\w+)((?: .*)?)$/.exec(order) ?? []
    if (!/^([A-Z]|top)$/.test(name)) {
      if (order.startsWith('if ! printf')) void this.#say(channel, Buffer.from('ok 0\n'))
      return end + 1
    }
    const words = [...text.matchAll(/'([^']*)'|\S+/g)].map(([word, quoted]) => quoted ?? word)
    const payload = name === 'W' ? Number(words[2]) : 0
    if (rest.length < end + 1 + payload) return 0
    void this.#say(channel, this.#answer(name, words))
    return end + 1 + payload
  }

  #answer(name: string, words: readonly string[]): Buffer {
    const ok = (text: string) => Buffer.from(`ok ${text.length}\n${text}`, 'latin1')
    const [path = '', second = '0', third = '0'] = words
    const bytes = this.#options.files.get(path) ?? Buffer.alloc(0)
    switch (name) {
      case 'N':
        return Buffer.concat([Buffer.from('busy\nbusy\n'), ok(this.#listing()), ok('')])
      case 'G':
        return Buffer.concat([
          Buffer.from(`ok ${third}\n`),
          bytes.subarray(Number(second) * 65_536).subarray(0, Number(third)),
        ])
      case 'S':
      case 'Y':
        return ok(createHash('sha256').update(bytes).digest('hex'))
      case 'I':
        return ok('a\n/')
      case 'D':
        return ok('directory')
      case 'B':
        return ok('no')
      case 'P':
        return ok('none 0 0')
      case 'E':
        return ok('node.4711')
      case 'O':
        return ok('1000:1000')
      case 'L':
        return ok('new')
      default:
        return ok('')
    }
  }

  #listing(): string {
    const root = './data'
    const files = [...this.#options.files]
    const names = [root, `${root}/d`, `${root}/link`, ...files.map(([path]) => path)]
    const facts = [
      `41ed:4096:1700000000.000000000:8:0:0:${root}\n`,
      `41ed:4096:1700000000.000000000:8:0:0:${root}/d\n`,
      `a1ff:1:1700000000.5:0:0:0:${root}/link\n`,
      ...files.map(
        ([path, { length }]) => `81a4:${length}:1700000000.123456789:${Math.ceil(length / 512)}:1000:1000:${path}\n`,
      ),
    ]
    return `${names.join('\0')}\0\0${facts.join('')}\0`
  }

  #ask(channel: HostileChannel, line: string, have: number, head: number): number {
    const order = JSON.parse(Buffer.from(line, 'latin1').toString()) as {
      op: string
      id?: number
      paths?: unknown[]
      files?: unknown[][]
    }
    const { op, id, files = [], paths = [] } = order
    const payload = op === 'pack' ? files.reduce((sum, file) => sum + Number(file[2]), 0) : 0
    if (have < payload) return 0
    const reply =
      op === 'offer'
        ? { id, answers: files.map((_, index) => (index % 3 === 0 ? 'same' : 'need')) }
        : op === 'pack'
          ? { id, failures: [[0, 'No space left on device']] }
          : id === undefined
            ? undefined
            : { id, answers: paths.map(() => '') }
    if (reply !== undefined) void this.#say(channel, Buffer.from(`${JSON.stringify(reply)}\n`))
    return head + payload
  }

  async #say(channel: HostileChannel, good: Buffer): Promise<void> {
    const { choice, mutatedOnceIn, foreign, note } = this.#options
    this.#movedAtMs = performance.now()
    if (mutatedOnceIn === 0 || !choice.once(mutatedOnceIn)) {
      this.said.push(good.toString('latin1'))
      await Promise.resolve()
      return channel.say(good)
    }
    const answer = mutate(good, choice, [...foreign, this.#tokens.get(channel) ?? ''])
    note(...answer.how)
    this.said.push(Buffer.concat(answer.pieces).toString('latin1'))
    await Promise.resolve()
    // What ends well goes on.
    await channel.play({ ...answer, end: answer.end === 'well' ? 'silent' : answer.end })
  }
}
