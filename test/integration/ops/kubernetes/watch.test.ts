/** Lists and watches: a dead, lying or silent API server causes no storm and no leak. */
import { setImmediate } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { type JsonRecord, record, textOf } from '../../../../src/base/json-lines.ts'
import { KubernetesApi, type KubernetesRefusal } from '../../../../src/ops/kubernetes/api.ts'
import { listObjects, watchObjects } from '../../../../src/ops/kubernetes/watch.ts'
import { type ApiRequest, FakeApiServer, refuse, sendEvent, sendJson } from '../../../support/fake-api-server.ts'
import { waitUntil } from '../../../support/wait-until.ts'
import { ManualClock } from '../../../unit/ssh/manual-clock.ts'

const never = new AbortController().signal
const PATH = '/api/v1/pods'

const pod = (name: string, version = '1') => ({ metadata: { name, uid: `uid-${name}`, resourceVersion: version } })
const nameOf = (object: JsonRecord) => textOf(record(object.metadata)?.name)
/** Throws, as a reader does that takes an object for a text. */
const readName = (object: JsonRecord) => {
  if (nameOf(object) === 'odd') throw new TypeError('Cannot convert object to primitive value')
  return nameOf(object)
}
const UNREADABLE = 'the API server sent an object of a shape that Muster does not know'
const page = (items: readonly unknown[], next?: string, resourceVersion = '10') => ({
  metadata: { resourceVersion, ...(next && { continue: next }) },
  items,
})

type Answer = ConstructorParameters<typeof FakeApiServer>[0]

/** A server, a watch of it, and what the watch has said. */
async function watched(answer: Answer) {
  const server = await FakeApiServer.start(answer)
  const clock = new ManualClock()
  const abort = new AbortController()
  const seen: string[][] = []
  const troubles: (KubernetesRefusal | undefined)[] = []
  const watch = watchObjects(
    new KubernetesApi(server.dial, clock, abort.signal),
    PATH,
    { project: readName, clock, random: () => 0.5 },
    { onChange: (all) => seen.push([...all.values()]), onTrouble: (refusal) => troubles.push(refusal) },
  )
  return {
    server,
    clock,
    seen,
    troubles,
    /** Until it waits for time or for a server that is silent. */
    async settle() {
      for (let turns = 0; turns < 50; turns += 1) await setImmediate()
    },
    [Symbol.dispose]() {
      watch[Symbol.dispose]()
      abort.abort()
      server[Symbol.dispose]()
    },
  }
}

const isWatch = ({ query }: ApiRequest) => query.has('watch')

describe('a list', () => {
  it('is read in pages, and keeps what is wanted of each object', async () => {
    using server = await FakeApiServer.start(({ query }, response) =>
      sendJson(response, query.get('continue') === 'more' ? page([pod('b'), pod('c')]) : page([pod('a')], 'more')),
    )
    const api = new KubernetesApi(server.dial, new ManualClock(), never)
    const listed = await listObjects(api, PATH, (object) => (nameOf(object) === 'b' ? undefined : nameOf(object)))
    expect(listed).toMatchObject({ ok: true, version: '10', isCut: false })
    expect(listed.ok && [...listed.items]).toEqual([
      ['uid-a', 'a'],
      ['uid-c', 'c'],
    ])
    expect(server.requests.map(({ query }) => `${query}`)).toEqual(['limit=250', 'limit=250&continue=more'])
  })

  it('ends though a server always has another page', async () => {
    let count = 0
    using server = await FakeApiServer.start((_, response) => {
      count += 1
      sendJson(
        response,
        page(
          Array.from({ length: 250 }, (_each, index) => pod(`${count}-${index}`)),
          'more',
        ),
      )
    })
    const listed = await listObjects(new KubernetesApi(server.dial, new ManualClock(), never), PATH, nameOf)
    expect(listed).toMatchObject({ ok: true, isCut: true })
    expect(listed.ok && listed.items.size).toBe(20_000)
  })

  it('is refused if its reader cannot read an object', async () => {
    using server = await FakeApiServer.start((_, response) => sendJson(response, page([pod('a'), pod('odd')])))
    const listed = await listObjects(new KubernetesApi(server.dial, new ManualClock(), never), PATH, readName)
    expect(listed).toMatchObject({ ok: false, status: 0, reason: 'Unreadable', message: UNREADABLE })
  })

  it('takes objects of any shape', async () => {
    const odd = [null, 7, [], {}, { metadata: { uid: 7 } }, { metadata: null }, pod('x'.repeat(1000)), pod('a')]
    using server = await FakeApiServer.start((_, response) => sendJson(response, { metadata: [], items: odd }))
    const listed = await listObjects(new KubernetesApi(server.dial, new ManualClock(), never), PATH, nameOf)
    expect(listed.ok && [...listed.items.values()]).toEqual(['a'])
  })
})

describe('a watch', () => {
  it('says so if its reader cannot read an object, and goes on when the object has changed', async () => {
    let items = [pod('a')]
    using world = await watched((request, response) =>
      isWatch(request) ? response.flushHeaders() : sendJson(response, page(items)),
    )
    const { server, clock, seen, troubles } = world
    const goesOn = (isTrue: () => boolean, what: string) =>
      waitUntil(async () => {
        await world.settle()
        clock.advance(1000)
        return isTrue()
      }, what)
    await waitUntil(() => server.watches.length === 1, 'a watch')
    items = [pod('a'), pod('odd')]
    const [stream] = server.watches
    if (stream === undefined) throw new Error('no watch')
    sendEvent(stream, 'ADDED', pod('odd', '11'))
    await goesOn(() => troubles.at(-1)?.message === UNREADABLE, 'the trouble')
    expect(seen.at(-1)).toEqual(['a'])
    items = [pod('a'), pod('b')]
    await goesOn(() => seen.at(-1)?.length === 2, 'the next list')
    expect([seen.at(-1), troubles.at(-1)]).toEqual([['a', 'b'], undefined])
  })

  it('follows the list from its version, with bookmarks and a time limit', async () => {
    using world = await watched((request, response) =>
      isWatch(request) ? response.flushHeaders() : sendJson(response, page([pod('a')])),
    )
    const { server, clock, seen } = world
    await waitUntil(() => server.watches.length === 1, 'a watch')
    expect(Object.fromEntries(server.requests[1]?.query ?? [])).toEqual({
      watch: 'true',
      allowWatchBookmarks: 'true',
      resourceVersion: '10',
      timeoutSeconds: '270',
    })
    expect(seen).toEqual([['a']])
    const [stream] = server.watches
    if (stream === undefined) throw new Error('no watch')
    sendEvent(stream, 'ADDED', pod('b', '11'))
    sendEvent(stream, 'DELETED', pod('a', '12'))
    sendEvent(stream, 'BOOKMARK', { metadata: { resourceVersion: '20' } })
    await waitUntil(async () => {
      await world.settle()
      clock.advance(200)
      return seen.at(-1)?.join() === 'b'
    }, 'the change')
    // The server ends each watch in time: the next one goes on from the bookmark, without a list.
    stream.end()
    await waitUntil(async () => {
      await world.settle()
      clock.advance(500)
      return server.count('watch') === 2
    }, 'the next watch')
    expect(server.requests.at(-1)?.query.get('resourceVersion')).toBe('20')
    expect(server.count('list')).toBe(1)
    expect(world.troubles).toEqual([])
  })

  it.each<[string, (world: Awaited<ReturnType<typeof watched>>) => void]>([
    ['an ERROR event with 410', ({ server }) => server.watches.map((each) => sendEvent(each, 'ERROR', { code: 410 }))],
    ['silence past a bookmark', ({ clock }) => clock.advance(90_000)],
  ])('lists again after %s, but not at once', async (_, spoil) => {
    using world = await watched((request, response) =>
      isWatch(request) ? response.flushHeaders() : sendJson(response, page([pod('a')])),
    )
    const { server, clock } = world
    await waitUntil(() => server.watches.length === 1, 'a watch')
    await world.settle()
    spoil(world)
    await waitUntil(() => server.watches.length === 0, 'the end of the watch')
    await world.settle()
    expect(server.count('list')).toBe(1)
    await waitUntil(async () => {
      clock.advance(100)
      await world.settle()
      return server.count('watch') === 2
    }, 'the next watch')
    expect(server.count('list')).toBe(2)
  })

  it.each<[string, Answer, number]>([
    ['refuses every list', (_, response) => refuse(response, 403, 'Forbidden', 'pods is forbidden'), 20],
    ['does not accept the credentials', (_, response) => refuse(response, 401, 'Unauthorized'), 20],
    ['cuts every connection', (_, response) => void response.destroy(), 32],
    [
      'has only expired versions',
      (request, response) => (isWatch(request) ? refuse(response, 410, 'Expired') : sendJson(response, page([]))),
      64,
    ],
    [
      'allows lists and no watches',
      (request, response) => (isWatch(request) ? refuse(response, 403, 'Forbidden') : sendJson(response, page([]))),
      64,
    ],
    [
      'ends each watch at once',
      (request, response) => (isWatch(request) ? response.end() : sendJson(response, page([]))),
      64,
    ],
    [
      'sends nonsense as events',
      (request, response) => (isWatch(request) ? response.end('{"a":\n[]\n') : sendJson(response, page([]))),
      64,
    ],
    [
      'sends an error without a code',
      (request, response) =>
        isWatch(request) ? response.end('{"type":"ERROR","object":{}}\n') : sendJson(response, page([])),
      64,
    ],
    [
      'asks for patience',
      (_, response) => refuse(response, 429, 'TooManyRequests', 'later', { 'retry-after': '300' }),
      3,
    ],
  ])('asks a server rarely that %s', async (_, answer, most) => {
    using world = await watched(answer)
    // Ten minutes.
    for (let second = 0; second < 600; second += 1) {
      await world.settle()
      world.clock.advance(1000)
    }
    expect(world.server.requests.length).toBeGreaterThan(1)
    expect(world.server.requests.length).toBeLessThanOrEqual(most)
  })

  it('says what an ERROR event says in printable words', async () => {
    const error = { code: 500, reason: '\x1b[2J', message: '\x1b]0;title\x07 and more' }
    using world = await watched((request, response) =>
      isWatch(request)
        ? response.end(`${JSON.stringify({ type: 'ERROR', object: error })}\n`)
        : sendJson(response, page([])),
    )
    await waitUntil(() => world.troubles.length > 0, 'the trouble')
    expect(world.troubles[0]).toMatchObject({ reason: '\\x1b[2J', message: '\\x1b]0;title\\x07 and more' })
  })

  it('says when the server is away, and when it is back', async () => {
    let isDead = false
    using world = await watched((request, response) => {
      if (isDead) response.writeHead(502).end('dial tcp 10.0.0.1:6443: connect: connection refused')
      else if (isWatch(request)) response.flushHeaders()
      else sendJson(response, page([pod('a')]))
    })
    const { server, clock, troubles } = world
    await waitUntil(() => server.watches.length === 1, 'a watch')
    isDead = true
    server.cut()
    await waitUntil(async () => {
      await world.settle()
      clock.advance(1000)
      return server.requests.length > 4
    }, 'some tries')
    expect(troubles.at(-1)).toMatchObject({ status: 0 })
    isDead = false
    await waitUntil(async () => {
      await world.settle()
      clock.advance(1000)
      return troubles.at(-1) === undefined
    }, 'the end of the trouble')
    // It was away for a short time only: the version still holds.
    expect(server.count('list')).toBe(1)
  })

  it('drops a server that sends an endless line', async () => {
    const chunk = Buffer.alloc(1024 * 1024, 'x')
    using world = await watched((request, response) => {
      if (!isWatch(request)) return sendJson(response, page([]))
      response.write(chunk)
      const more = setInterval(() => response.write(chunk), 1)
      response.once('close', () => clearInterval(more))
    })
    await waitUntil(async () => {
      await world.settle()
      world.clock.advance(100)
      return world.troubles.length > 0
    }, 'the trouble')
    expect(world.troubles[0]).toMatchObject({ status: 0, message: 'the API server sent an endless line' })
  })

  it('keeps at most 20,000 objects of a server that always adds more', async () => {
    using world = await watched((request, response) => {
      if (!isWatch(request)) return sendJson(response, page([]))
      for (let index = 0; index < 20_500; index += 1) sendEvent(response, 'ADDED', pod(`${index}`))
    })
    await waitUntil(async () => {
      await world.settle()
      world.clock.advance(200)
      return (world.seen.at(-1)?.length ?? 0) >= 20_000
    }, 'the objects')
    await world.settle()
    world.clock.advance(200)
    expect(world.seen.at(-1)).toHaveLength(20_000)
  })

  it('leaves no timer and no connection behind', async () => {
    const world = await watched((request, response) =>
      isWatch(request) ? response.flushHeaders() : sendJson(response, page([])),
    )
    await waitUntil(() => world.server.watches.length === 1, 'a watch')
    world[Symbol.dispose]()
    await waitUntil(() => world.server.watches.length === 0 && world.clock.timerCount === 0, 'its end')
  })
})
