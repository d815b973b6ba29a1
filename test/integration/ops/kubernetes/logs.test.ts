/** Pieces of logs of an API server that answers as a node does: from a whole second on, and of the current file only. */
import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { KubernetesApi } from '../../../../src/ops/kubernetes/api.ts'
import { PodLogs, runWithFiles } from '../../../../src/ops/kubernetes/logs.ts'
import { type ApiRequest, FakeApiServer, refuse } from '../../../support/fake-api-server.ts'
import { ManualClock } from '../../../unit/ssh/manual-clock.ts'

const never = new AbortController().signal

/** Parts of lines with the time when they were printed; a part that does not end its line has the next one behind it. */
type Part = readonly [time: string, text: string]

const at = (seconds: number): string => new Date(1_780_000_000_000 + Math.round(seconds * 1000)).toISOString()

describe('the output of a pod', () => {
  let server: FakeApiServer
  let api: KubernetesApi
  let logs: PodLogs
  let parts: Part[]
  let sent: number

  const answer = ({ query }: ApiRequest, response: ServerResponse) => {
    const sinceMs = Date.parse(query.get('sinceTime') ?? '1970-01-01T00:00:00Z')
    let isNew = true
    let text = ''
    for (const [time, part] of parts) {
      if (Date.parse(time) >= sinceMs) text += query.has('timestamps') && isNew ? `${time} ${part}` : part
      isNew = part.endsWith('\n')
    }
    sent += text.length
    response.end(text)
  }
  const read = async (fromByte: number, mostBytes = 1000, uid = 'u'): Promise<string> => {
    const piece = { namespace: 'team', pod: { name: 'p', uid }, key: 'k 0', fromByte, mostBytes }
    const bytes = await logs.read(api, piece, never)
    return typeof bytes === 'string' ? `refused: ${bytes}` : Buffer.from(bytes).toString()
  }
  /** As `job logs -f` reads it. */
  const follow = async (from = '', mostBytes = 1000): Promise<string> => {
    let all = from
    for (;;) {
      const piece = await read(Buffer.byteLength(all), mostBytes)
      if (piece === '') return all
      all += piece
    }
  }

  beforeEach(async () => {
    server = await FakeApiServer.start(answer)
    api = new KubernetesApi(server.dial, new ManualClock(), never)
    logs = new PodLogs()
    parts = []
    sent = 0
  })
  afterEach(() => server[Symbol.dispose]())

  it('is read in pieces, whatever their size', async () => {
    parts = Array.from({ length: 60 }, (_, line) => [at(line / 20), `line ${line} ü\n`])
    const all = parts.map(([, text]) => text).join('')
    for (const most of [10, 17, 64, 10_000]) {
      logs = new PodLogs()
      const bytes: Uint8Array[] = []
      for (let count = 0; ; ) {
        const piece = { namespace: 'team', pod: { name: 'p', uid: 'u' }, key: 'k 0', fromByte: count, mostBytes: most }
        const next = (await logs.read(api, piece, never)) as Uint8Array
        if (next.length === 0) break
        bytes.push(next)
        count += next.length
      }
      expect(Buffer.concat(bytes).toString()).toBe(all)
    }
  })

  it('goes on with lines of the same instant, lines without an end, and empty ones', async () => {
    parts = [
      [at(1), 'a\n'],
      [at(1), '\n'],
      [at(1), 'loss='],
    ]
    const first = await follow()
    expect(first).toBe('a\n\nloss=')
    parts.push([at(2.5), '0.5\n'], [at(2.5), 'b\n'])
    const second = await follow(first)
    expect(second).toBe('a\n\nloss=0.5\nb\n')
    parts.push([at(2.5), 'b\n'], [at(2.6), 'c\n'])
    expect(await follow(second)).toBe('a\n\nloss=0.5\nb\nb\nc\n')
  })

  it('goes on in the next file when the node has replaced the log', async () => {
    parts = [[at(1), 'old\n']]
    const first = await follow()
    parts = [
      [at(1.5), 'new\n'],
      [at(9), 'newer\n'],
    ]
    expect(await follow(first)).toBe('old\nnew\nnewer\n')
  })

  it('goes on with the pod that follows', async () => {
    parts = [[at(1), 'first pod\n']]
    expect(await read(0)).toBe('first pod\n')
    parts = [[at(5), 'second\n']]
    expect(await read(10, 1000, 'v')).toBe('second\n')
    expect(await read(17, 1000, 'v')).toBe('')
  })

  it('is not read from its start for each piece', async () => {
    const line = `${'x'.repeat(999)}\n`
    parts = Array.from({ length: 8_000 }, (_, index) => [at(index / 100), line])
    const all = await follow('', 256 * 1024)
    expect(all.length).toBe(8_000_000)
    expect(sent).toBeLessThan(60_000_000)
    sent = 0
    parts.push([at(81), 'last\n'])
    expect(await read(all.length)).toBe('last\n')
    expect(sent).toBeLessThan(200_000)
  })

  it('has no time in it that the program did not print, and is complete where the server sends none', async () => {
    parts = [[at(1), `${at(0)} INFO\n`]]
    expect(await follow()).toBe(`${at(0)} INFO\n`)
    logs = new PodLogs()
    server.answer = (_, response) => response.end('one line\nand two\n')
    expect(await follow('', 5)).toBe('one line\nand two\n')
  })

  it('ends with words where the server sends too much, or refuses', async () => {
    parts = [[at(1), 'a\n']]
    expect(await read(0)).toBe('a\n')
    server.answer = async (_, response) => {
      // Never anything new.
      const line = Buffer.from(`${at(0)} ${'x'.repeat(65_000)}\n`)
      const closed = once(response, 'close')
      for (let count = 0; count < 1_100 && !response.destroyed; count += 1)
        if (!response.write(line)) await Promise.race([once(response, 'drain'), closed])
      response.end()
    }
    expect(await read(2)).toBe('refused: the next part of its output was not found within 64 MiB')
    server.answer = (_, response) => refuse(response, 403, 'Forbidden', 'no \u001b[2Jlogs')
    expect(await read(2)).toMatch(/^refused: no .*logs$/)
    expect(await read(2)).not.toContain('\u001b')
    server.answer = (_, response) => refuse(response, 400, 'BadRequest', 'container "main" is waiting to start')
    expect(await read(2)).toBe('')
  })
})

describe('a search in the output of pods', () => {
  afterEach(() => void vi.unstubAllEnvs())

  it('finds nothing where no temporary directory can be made', async () => {
    vi.stubEnv('TMPDIR', '/proc/none')
    expect(await runWithFiles(new Map(), () => 'echo found', never)).toBeUndefined()
  })
})
