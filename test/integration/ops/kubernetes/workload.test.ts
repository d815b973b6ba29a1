/** A pod or a Job by name: why it waits, its events, and what may be done with it; the API server may say anything. */
import { describe, expect, it } from 'vitest'
import { KubernetesApi } from '../../../../src/ops/kubernetes/api.ts'
import { KEY_LABEL } from '../../../../src/ops/kubernetes/manifest.ts'
import { eventLines, readWorkload, WorkloadActions } from '../../../../src/ops/kubernetes/workload.ts'
import { type ApiRequest, FakeApiServer, refuse, sendJson } from '../../../support/fake-api-server.ts'
import { ManualClock } from '../../../unit/ssh/manual-clock.ts'

const never = new AbortController().signal
const OPTIONS = { gpuResource: 'nvidia.com/gpu', signal: never }
const REVIEWS = '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews'

const job = (spec: object = {}, labels: object = {}) => ({
  metadata: { name: 'train', uid: 'u1', labels },
  spec,
  status: {},
})

/** Answers by path; `allowed`: verbs that a review allows. */
function serverOf(objects: Readonly<Record<string, unknown>>, allowed: readonly string[] = ['delete', 'patch']) {
  return FakeApiServer.start(({ path, body, method }: ApiRequest, response) => {
    if (path === REVIEWS) {
      const { verb = '' } = (body as { spec: { resourceAttributes: { verb?: string } } }).spec.resourceAttributes
      return sendJson(response, { status: { allowed: allowed.includes(verb) } })
    }
    if (method !== 'GET') return sendJson(response, {})
    return path in objects ? sendJson(response, objects[path]) : refuse(response, 404, 'NotFound', 'not found')
  })
}

const JOB = '/apis/batch/v1/namespaces/a/jobs/train'

async function read(server: FakeApiServer, name = 'train') {
  const api = new KubernetesApi(server.dial, new ManualClock(), never)
  const found = await readWorkload(api, 'a', name, OPTIONS)
  if (!found.ok) throw new Error(found.message)
  return { workload: found.workload, actions: new WorkloadActions(api, new ManualClock()) }
}

describe('reading', () => {
  it('says why a Job has no pods, with its events', async () => {
    const items = [
      {
        type: 'Warning',
        reason: 'FailedCreate',
        message:
          'pods "x" is forbidden: exceeded quota: q, requested: requests.nvidia.com/gpu=1, used: requests.nvidia.com/gpu=2, limited: requests.nvidia.com/gpu=2',
        metadata: { uid: '1' },
        lastTimestamp: '2026-01-01T00:00:02Z',
      },
      {
        type: 'Normal',
        reason: 'Odd\u001b[2J',
        message: 'a\nb',
        count: 3,
        metadata: { uid: '2' },
        lastTimestamp: '2026-01-01T00:00:01Z',
      },
    ]
    using server = await serverOf({
      [JOB]: job(),
      '/api/v1/namespaces/a/events': { items },
      '/api/v1/namespaces/a/pods': { items: [] },
    })
    const { workload } = await read(server)
    expect(workload.kind).toBe('Job')
    expect(workload.because[0]).toMatch(/^the quota q is used up/)
    expect(eventLines(workload).map(({ text }) => text)).toEqual([
      'Odd\\x1b[2J: 3 times: a b',
      expect.stringContaining('FailedCreate: pods "x"'),
    ])
  })

  it('says that there is none, and passes refusals on', async () => {
    using server = await serverOf({})
    const api = new KubernetesApi(server.dial, new ManualClock(), never)
    expect(await readWorkload(api, 'a', 'none', OPTIONS)).toMatchObject({
      status: 404,
      message: 'no pod and no Job none in the namespace a',
    })
    server.answer = (_, response) => refuse(response, 403, 'Forbidden', 'pods "none" is forbidden')
    expect(await readWorkload(api, 'a', 'none', OPTIONS)).toMatchObject({ ok: false, status: 403 })
  })

  it('reads nothing that a name could reach outside its kind', async () => {
    using server = await serverOf({})
    const api = new KubernetesApi(server.dial, new ManualClock(), never)
    expect(await readWorkload(api, 'a', '..', OPTIONS)).toMatchObject({ ok: false, status: 0 })
    await readWorkload(api, 'a/../b', 'x/y?z', OPTIONS)
    expect(server.requests.map(({ path }) => path)).toEqual([
      '/api/v1/namespaces/a%2F..%2Fb/pods/x%2Fy%3Fz',
      '/apis/batch/v1/namespaces/a%2F..%2Fb/jobs/x%2Fy%3Fz',
    ])
  })

  it.each([
    [null],
    [7],
    ['x'],
    [[]],
    [{ toString: 1, valueOf: 1 }],
  ])('survives a Job that is full of %j', async (odd) => {
    const strange = { metadata: { name: 'train', uid: odd, labels: odd }, spec: odd, status: odd }
    using server = await serverOf({
      [JOB]: strange,
      '/api/v1/namespaces/a/events': { items: odd },
      '/api/v1/namespaces/a/pods': { items: [strange, odd] },
    })
    const { workload, actions } = await read(server)
    expect(workload.because.every((sentence) => typeof sentence === 'string')).toBe(true)
    await actions.allowed(workload, never)
  })
})

describe('actions', () => {
  it.each([
    ['all for a Job that runs', job(), ['delete', 'patch'], ['delete', 'suspend']],
    ['resume for one that is suspended', job({ suspend: true }), ['delete', 'patch'], ['delete', 'resume']],
    ['only what the access review allows', job(), ['patch'], ['suspend']],
    ['none where nothing is allowed', job(), [], []],
    ['none for a job of a queue', job({}, { [KEY_LABEL]: 'x' }), ['delete', 'patch'], []],
  ])('are %s', async (_, object, allowed, expected) => {
    using server = await serverOf({ [JOB]: object }, allowed)
    const { workload, actions } = await read(server)
    expect(await actions.allowed(workload, never)).toEqual(expected)
  })

  it('ask for each right once a minute at most, and for the namespace alone', async () => {
    using server = await serverOf({ [JOB]: job() })
    const { workload, actions } = await read(server)
    await actions.allowed(workload, never)
    await actions.allowed(workload, never)
    const reviews = server.requests.filter(({ path }) => path === REVIEWS)
    expect(reviews.map(({ body }) => body)).toMatchObject([
      { spec: { resourceAttributes: { verb: 'delete', group: 'batch', resource: 'jobs', namespace: 'a' } } },
      { spec: { resourceAttributes: { verb: 'patch', group: 'batch', resource: 'jobs', namespace: 'a' } } },
    ])
  })

  it('change the very object that was read', async () => {
    using server = await serverOf({ [JOB]: job() })
    const { workload, actions } = await read(server)
    await actions.act('delete', workload, never)
    await actions.act('suspend', workload, never)
    const changes = server.requests.filter(({ method }) => method !== 'GET')
    expect(changes.map(({ method, path, body }) => [method, path, body])).toEqual([
      ['DELETE', JOB, expect.objectContaining({ preconditions: { uid: 'u1' }, propagationPolicy: 'Background' })],
      ['PATCH', JOB, { metadata: { uid: 'u1' }, spec: { suspend: true } }],
    ])
  })
})
