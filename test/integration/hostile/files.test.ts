/** Fetching from a host that lies and copying to it: nothing is written elsewhere, and nothing is called done that is not. */
import { createHash } from 'node:crypto'
import { lstatSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { systemClock } from '../../../src/base/clock.ts'
import { Chain } from '../../../src/ssh/copy/chain.ts'
import { copyToHosts } from '../../../src/ssh/copy/copy-to-hosts.ts'
import type { CopyEvent, PathEvent } from '../../../src/ssh/copy/events.ts'
import { fetchFromHosts } from '../../../src/ssh/copy/fetch-from-hosts.ts'
import type { CopyWires } from '../../../src/ssh/copy/on-each-host.ts'
import { RemoteHelper } from '../../../src/ssh/copy/remote-helper.ts'
import { type CopySource, type SourceTree, scanSources } from '../../../src/ssh/copy/source.ts'
import { createHostKeyVerifier } from '../../../src/ssh/known-hosts/verifier.ts'
import { endpointOf } from '../../support/endpoint.ts'
import { HostileFiles } from '../../support/hostile-host/hostile-files.ts'
import { createHostileTransport, type HostileChannel } from '../../support/hostile-host/hostile-transport.ts'
import { type Choice, mutate } from '../../support/hostile-host/mutate.ts'
import { expectNoDefect, expectPrintable, playMutations } from '../../support/hostile-host/play.ts'
import { nobody, watchedContext } from '../../support/ssh-context.ts'
import { ManualClock } from '../../unit/ssh/manual-clock.ts'

const FOREIGN = ['m1', './data/../../x', '/etc/passwd', '../m1', 'ok 0', 'err 3', './data/d', 'ok 5\nhello']
const FILES = new Map([
  ['./data/a', Buffer.from('hello\n')],
  ['./data/d/b', Buffer.alloc(70_000, 'abc')],
  ['./data/d/empty', Buffer.alloc(0)],
])
const digest = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex')

let root: string
beforeAll(() => {
  root = mkdtempSync(join(tmpdir(), 'muster-hostile-files-'))
})
afterAll(() => rmSync(root, { recursive: true, force: true }))

function wiresTo(host: HostileFiles, events: CopyEvent[]): CopyWires {
  return {
    transports: { ssh2: host.transport },
    ...{ hostKeys: createHostKeyVerifier(), credentials: nobody, clock: systemClock, fanOut: 1 },
    signal: new AbortController().signal,
    onEvent: (event) => void events.push(event),
  }
}

function expectHonest(events: readonly CopyEvent[]): void {
  for (const event of events) {
    if (event.host !== 'm2') throw new Error(`it is about ${event.host}`)
    const text = JSON.stringify(event, (_, value: unknown) => (typeof value === 'bigint' ? String(value) : value))
    if (event.type === 'result') expectNoDefect(event.result.reason ?? '', 'the result')
    if (event.type === 'file') expectNoDefect(event.reason ?? '', 'the reason')
    for (const word of JSON.stringify(JSON.parse(text)).match(/"(?:[^"\\]|\\.)*"/g) ?? [])
      expectPrintable(JSON.parse(word) as string, 'an event')
  }
  const results = events.filter(({ type }) => type === 'result')
  if (results.length !== 1) throw new Error(`${results.length} results`)
}

describe('a hostile host that files are fetched from', () => {
  async function fetch(choice: Choice, seed: number, mutatedOnceIn: number, note: (...how: readonly string[]) => void) {
    const directory = join(root, `fetch-${seed}-${mutatedOnceIn}`)
    mkdirSync(join(directory, 'out'), { recursive: true })
    writeFileSync(join(directory, 'foreign'), 'foreign')
    const host = new HostileFiles({ choice, mutatedOnceIn, files: FILES, foreign: FOREIGN, note })
    const events: CopyEvent[] = []
    const request = { sourcesOf: () => ['data'], directory: join(directory, 'out'), isDryRun: choice.once(20) }
    await host.untilOver(fetchFromHosts([endpointOf('m2')], request, wiresTo(host, events)))
    return { directory, events, said: host.said.join(''), request }
  }

  it('delivers its files while it is honest', async () => {
    await playMutations(async ({ choice }) => {
      const { directory, events } = await fetch(choice, -1, 0, () => {})
      expect(events.at(-1)).toMatchObject({ type: 'result', result: { outcome: 'ok', failed: 0 } })
      rmSync(directory, { recursive: true })
    }, 0.0001)
  })

  it('writes nothing elsewhere, and has no file accepted without its checksum', async () => {
    await playMutations(
      async ({ choice, seed, note }) => {
        const { directory, events, said, request } = await fetch(choice, seed, choice.one([1, 3, 6, 6, 10]), note)
        expectHonest(events)
        if (
          readdirSync(directory).sort().join(' ') !== 'foreign out' ||
          readFileSync(join(directory, 'foreign'), 'utf8') !== 'foreign'
        )
          throw new Error('it has written elsewhere')
        if (readdirSync(join(directory, 'out')).some((name) => name !== 'm2'))
          throw new Error('it has written for another host')
        for (const event of events) {
          if (event.type !== 'file' || event.action !== 'copied' || request.isDryRun) continue
          const facts = lstatSync(event.path, { throwIfNoEntry: false })
          if (facts === undefined) continue
          if ((facts.mode & 0o7000) !== 0) throw new Error(`${event.path} has the mode ${facts.mode.toString(8)}`)
          if (facts.isFile() && !said.includes(digest(readFileSync(event.path))))
            throw new Error(`${event.path} is not what it said`)
        }
        rmSync(directory, { recursive: true, force: true })
      },
      1,
      32,
    )
  })
})

describe('a hostile host that files are copied to', () => {
  let tree: SourceTree
  beforeAll(async () => {
    const source = join(root, 'source')
    mkdirSync(join(source, 'd'), { recursive: true })
    for (let number = 0; number < 12; number++) writeFileSync(join(source, 'd', `small-${number}`), `file ${number}`)
    writeFileSync(join(source, 'large'), Buffer.alloc(200_000, 'abc'))
    tree = await scanSources([source])
  })

  async function copy(choice: Choice, mutatedOnceIn: number, note: (...how: readonly string[]) => void) {
    const host = new HostileFiles({ choice, mutatedOnceIn, files: new Map(), foreign: FOREIGN, note })
    const events: CopyEvent[] = []
    const request = { tree, destinationOf: () => 'data', isDryRun: choice.once(20), hasHelpers: !choice.once(3) }
    await host.untilOver(copyToHosts([endpointOf('m2')], request, wiresTo(host, events)))
    return events
  }

  it('gets all files while it is honest', async () => {
    await playMutations(async ({ choice }) => {
      const events = await copy(choice, 0, () => {})
      const failed = events.filter((event) => event.type === 'file' && event.action === 'failed')
      expect(failed.length).toBeLessThanOrEqual(1)
      expect(events.filter(({ type }) => type === 'file')).toHaveLength(13)
    }, 0.0001)
  })

  it('is reported as it is, with each file at most once', async () => {
    await playMutations(
      async ({ choice, note }) => {
        const events = await copy(choice, choice.one([1, 3, 6, 6, 10]), note)
        expectHonest(events)
        const paths = events.flatMap((event) => (event.type === 'file' ? [event.path] : []))
        if (new Set(paths).size !== paths.length) throw new Error('a file is told twice')
      },
      1,
      32,
    )
  })
})

describe('a hostile host in a chain', () => {
  const SIZE = 64 * 1024 * 1024
  const MESSAGES = [
    ...['{"link": L, "at": ["127.0.0.1", 5000]}', '{"link": L, "up": true}', '{"link": L, "probe": [1000000, 0.4]}'],
    ...['{"link": L, "error": "no route"}', '{"file": 1, "have": 1048576}', '{"file": 1, "error": "No space left"}'],
  ] as const

  it('is believed within what is possible, and the others pass the file on without it', async () => {
    await playMutations(async ({ choice, note }) => {
      const clock = new ManualClock()
      let channel: HostileChannel | undefined
      const transport = createHostileTransport({
        onExec: (own) => {
          channel = own
        },
        onBytes: (own, bytes) => {
          const token = /^TOKEN = "([^"]+)"/.exec(Buffer.from(bytes).toString('latin1', 0, 100))?.[1]
          if (token !== undefined) queueMicrotask(() => own.say(Buffer.from(`${token}\n`)))
        },
      })
      const connection = await transport.connect(endpointOf('m2'), watchedContext())
      const helper = await RemoteHelper.start(connection, {
        clock,
        startLimitMs: 1000,
        signal: new AbortController().signal,
      })
      if (helper === undefined || channel === undefined) throw new Error('there is no helper')
      const told: PathEvent[] = []
      const orders: { op: string; to?: unknown; from?: unknown }[] = []
      using chain = new Chain({
        via: choice.one(['auto', 'chain']),
        clock,
        hosts: ['m1', 'm2', 'm3'],
        onPath: (event) => told.push(event),
      })
      const file = { kind: 'file', sizeBytes: SIZE, isSparse: false } as CopySource
      chain.add('m2', '10.0.0.2', helper)
      for (const name of ['m1', 'm3']) {
        let say: (message: never) => void = () => {}
        const send = (order: { op: string; link?: number }) => {
          orders.push(order)
          const { op, link } = order
          const answer =
            op === 'listen'
              ? { link, at: ['127.0.0.1', 1] }
              : op === 'probe'
                ? { link, probe: [1e8, 1] }
                : op === 'connect'
                  ? { link, up: true }
                  : undefined
          if (answer !== undefined) queueMicrotask(() => say(answer as never))
        }
        chain.add(name, `10.0.0.${name.slice(1)}`, {
          isLost: false,
          send: send as never,
          onMessage: (listener) => (say = listener as never),
        })
      }
      const hops = ['m1', 'm2', 'm3'].map((name) =>
        chain.join(name, file, '.muster', 0, (bytes) => {
          if (!Number.isSafeInteger(bytes) || bytes <= 0 || bytes > SIZE)
            throw new Error(`${name} has got ${bytes} bytes`)
        }),
      )
      let sent = 0
      for (let step = 0; step < 12; step++) {
        sent = Math.min(SIZE, sent + 4 * 1024 * 1024)
        for (const hop of hops) {
          if (hop?.isRelayed !== true) hop?.advance(sent)
          else
            void hop.relayed(sent).then((have) => {
              if (!Number.isSafeInteger(have) || have > SIZE) throw new Error(`it is believed to have ${have}`)
            })
        }
        clock.advance(700)
        await setImmediate()
        const good = choice.one(MESSAGES).replace('L', String(1 + choice.below(6)))
        const answer = mutate(Buffer.from(`${good}\n`), choice, ['1', '2', '3'])
        note(...answer.how)
        for (const piece of answer.pieces) channel.say(piece)
        await setImmediate()
      }
      for (const hop of hops) hop?.leave()
      helper.close()
      clock.advance(120_000)
      await setImmediate()
      for (const event of told) {
        if ('reason' in event) {
          expectPrintable(event.reason, 'the reason')
          expectNoDefect(event.reason, 'the reason')
        } else if (![event.betweenBitsPerSecond, event.hereBitsPerSecond].every(Number.isFinite))
          throw new Error(`its speed is ${event.betweenBitsPerSecond}`)
      }
      for (const { op, to, from } of orders) {
        const isAddress = Array.isArray(to) && to.length === 2 && typeof to[0] === 'string' && Number.isInteger(to[1])
        if (op === 'connect' && !isAddress) throw new Error(`another host is told to connect to ${JSON.stringify(to)}`)
        if (op === 'serve' && !Number.isSafeInteger(from))
          throw new Error(`another host is told to serve from ${String(from)}`)
      }
    })
  })
})
