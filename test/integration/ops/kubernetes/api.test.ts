/** The API of Kubernetes: what a server may answer, however wrong. */
import { setImmediate } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { apiPath, KubernetesApi } from '../../../../src/ops/kubernetes/api.ts'
import { type ApiRequest, FakeApiServer, refuse, sendJson } from '../../../support/fake-api-server.ts'
import { ManualClock } from '../../../unit/ssh/manual-clock.ts'

const never = new AbortController().signal
const clock = new ManualClock()
const apiOf = (server: FakeApiServer) => new KubernetesApi(server.dial, clock, never)
const PATH = apiPath('v1', 'namespaces', 'a', 'pods')

describe('a request', () => {
  it('sends JSON and returns the object of the answer', async () => {
    using server = await FakeApiServer.start((_, response) => sendJson(response, { kind: 'Job' }, 201))
    const answer = await apiOf(server).request('POST', apiPath('batch/v1', 'namespaces', 'a', 'jobs'), {
      body: { kind: 'Job' },
      query: { dryRun: 'All', limit: undefined },
    })
    expect(answer).toEqual({ ok: true, status: 201, body: { kind: 'Job' } })
    const [request] = server.requests as [ApiRequest]
    expect(request).toMatchObject({ method: 'POST', path: '/apis/batch/v1/namespaces/a/jobs', body: { kind: 'Job' } })
    expect(`${request.query}`).toBe('dryRun=All')
    expect(request.headers).toMatchObject({ host: 'localhost', 'content-type': 'application/json' })
  })

  it('sends a change as a merge patch', async () => {
    using server = await FakeApiServer.start((_, response) => sendJson(response, {}))
    await apiOf(server).request('PATCH', PATH, { body: { spec: { suspend: true } } })
    expect(server.requests[0]?.headers['content-type']).toBe('application/merge-patch+json')
  })

  it('returns a refusal with the words of the API server, made printable', async () => {
    using server = await FakeApiServer.start((_, response) =>
      refuse(response, 409, 'AlreadyExists', 'jobs "x\u001b[31m"\nalready exists'),
    )
    expect(await apiOf(server).request('POST', PATH)).toEqual({
      ok: false,
      status: 409,
      reason: 'AlreadyExists',
      message: 'jobs "x\\x1b[31m" already exists',
    })
  })

  it('says what to do about expired credentials, and how long the server asks to wait', async () => {
    using server = await FakeApiServer.start((_, response) =>
      refuse(response, 401, 'Unauthorized', 'Unauthorized', { 'retry-after': '7' }),
    )
    const answer = await apiOf(server).request('GET', PATH)
    expect(answer).toMatchObject({ ok: false, status: 401, retryAfterMs: 7000 })
    expect(answer).toHaveProperty('message', expect.stringContaining('Log in again'))
  })

  it.each([
    ['dial tcp 10.0.0.1:6443: connect: connection refused', 'no API server answers'],
    ['x509: certificate has expired or is not yet valid', 'a certificate has expired'],
    ['getting credentials: exec: executable aws failed with exit code 255', 'cannot be renewed'],
    ['dial tcp: lookup k8s.lab: no such host', 'does not resolve'],
    [
      'dial tcp: lookup k8s.lab on [::1]:53: dial udp [::1]:53: connect: cannot assign requested address',
      'does not resolve',
    ],
    [
      'getting credentials: exec: executable gke-gcloud-auth-plugin not found',
      'program for its credentials that is not installed',
    ],
    ['net/http: request canceled (i/o timeout)', 'cannot be reached'],
  ])('says why kubectl proxy does not reach the server: %s', async (said, words) => {
    using server = await FakeApiServer.start((_, response) => response.writeHead(502).end(`${said}\n`))
    const answer = await apiOf(server).request('GET', PATH)
    expect(answer).toMatchObject({ ok: false, status: 0, reason: 'Unreachable' })
    expect(answer).toHaveProperty('message', expect.stringContaining(words))
    expect(answer).toHaveProperty('message', expect.stringContaining(said))
  })

  it.each([
    ['no JSON', '<html>'],
    ['a list', '[]'],
    ['nothing', ''],
  ])('refuses %s as an answer', async (_, text) => {
    using server = await FakeApiServer.start((__, response) => response.end(text))
    expect(await apiOf(server).request('GET', PATH)).toMatchObject({ ok: false, status: 0, reason: 'Unreadable' })
  })

  it('stops reading an endless answer', async () => {
    const chunk = Buffer.alloc(1024 * 1024, 'x')
    using server = await FakeApiServer.start(async (_, response) => {
      while (!response.destroyed) {
        if (response.write(chunk)) continue
        const { promise, resolve } = Promise.withResolvers<void>()
        response.once('drain', resolve).once('close', resolve)
        await promise
        response.off('drain', resolve).off('close', resolve)
      }
    })
    expect(await apiOf(server).request('GET', PATH)).toMatchObject({ ok: false, reason: 'Unreadable' })
  })

  it('reports an answer that was cut', async () => {
    using server = await FakeApiServer.start((_, response) => {
      response.writeHead(200, { 'content-length': 100 }).write('{', () => response.destroy())
    })
    expect(await apiOf(server).request('GET', PATH)).toMatchObject({ ok: false, status: 0, reason: 'Unreachable' })
  })

  it('gives up a server that does not answer', async () => {
    const own = new ManualClock()
    using server = await FakeApiServer.start(() => own.advance(5_000))
    const answer = await new KubernetesApi(server.dial, own, never).request('GET', PATH, { timeoutMs: 5_000 })
    expect(answer).toMatchObject({ ok: false, status: 0, message: 'no answer within 5 s' })
    expect(own.timerCount).toBe(0)
  })

  it('says why there is no way to the server', async () => {
    const api = new KubernetesApi(() => Promise.reject(new Error('kubectl is not installed on m1')), clock, never)
    expect(await api.request('GET', PATH)).toMatchObject({ status: 0, message: 'kubectl is not installed on m1' })
  })

  it('sends nothing to a path that leads elsewhere', async () => {
    using server = await FakeApiServer.start((_, response) => sendJson(response, {}))
    for (const name of ['..', '.', ''])
      expect(await apiOf(server).request('DELETE', `${PATH}/${name}`)).toMatchObject({ ok: false, status: 0 })
    expect(server.requests).toEqual([])
    await apiOf(server).request('DELETE', apiPath('v1', 'namespaces', 'a', 'pods', '../../b?x'))
    expect(server.requests.map(({ path }) => path)).toEqual(['/api/v1/namespaces/a/pods/..%2F..%2Fb%3Fx'])
  })
})

describe('a stream', () => {
  it('passes on the bytes as they come, and ends with the server', async () => {
    using server = await FakeApiServer.start((_, response) => {
      response.write('one\n')
      response.end('two\n')
    })
    let text = ''
    let hasBegun = false
    const onBegin = () => {
      hasBegun = true
    }
    const end = await apiOf(server).stream(`${PATH}/x/log`, { query: { follow: true }, onBegin }, async (bytes) => {
      expect(hasBegun).toBe(true)
      await setImmediate()
      text += Buffer.from(bytes).toString()
    })
    expect(end).toBeUndefined()
    expect(text).toBe('one\ntwo\n')
  })

  it('reports a cut, and that it was stopped', async () => {
    using server = await FakeApiServer.start((_, response) => void response.write('one\n'))
    const cut = await apiOf(server).stream(PATH, {}, () => server.cut())
    expect(cut).toMatchObject({ ok: false, status: 0, reason: 'Unreachable' })
    const abort = new AbortController()
    const stopped = await apiOf(server).stream(PATH, { signal: abort.signal }, () => abort.abort())
    expect(stopped).toMatchObject({ ok: false, status: 0, reason: 'Stopped' })
  })
})
